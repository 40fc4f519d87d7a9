package hooks

import "github.com/guideway-dev/guideway/internal/definition/shape"

// The codes of what the schemas say. A finding with one of these is one that the
// published schema of the kind makes too; so are those of conditions, which are
// the phases dialect's.
const (
	CodeRequired   = shape.CodeRequired
	CodeUnexpected = shape.CodeUnexpected
	CodeType       = shape.CodeType
	CodeLength     = shape.CodeLength
	CodePattern    = shape.CodePattern
	CodeEnum       = shape.CodeEnum
	CodeRange      = shape.CodeRange
	CodeEmptyList  = shape.CodeEmptyList
	CodeHookScript = "hook-script"
)

// The codes of what no schema can say.
const (
	CodeDefinitionObject = shape.CodeObject
	CodeDuplicateID      = "id-duplicate"
	CodeBindingTool      = "binding-tool"
	CodeModuleUnknown    = "module-unknown"
	CodeAnswersAside     = "answers-aside"

	CodeStartCount  = "start-count"
	CodeEndMissing  = "end-missing"
	CodeEdgeUnknown = "edge-unknown"
	CodeEdgeTwice   = "edge-duplicate"
	CodeStartInput  = "start-input"
	CodeEndOutput   = "end-output"
	CodeAsideOutput = "aside-output"
	CodeInputMany   = "input-many"
	CodeOutputMany  = "output-many"
	CodeBranch      = "branch-unknown"
	CodeWayOpen     = "way-open"
	CodeCycle       = "graph-cycle"
	CodeUnreachable = "node-unreachable"
	CodeCallTwice   = "call-twice"
	CodeCallMissing = "call-missing"
)
