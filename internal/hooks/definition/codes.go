package definition

import "github.com/guideway-dev/guideway/internal/workflow/shape"

// The codes of rules that the published schemas also check. Conditions have the codes of
// the phases dialect.
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

// The codes of rules that a schema cannot express.
const (
	CodeDefinitionObject     = shape.CodeObject
	CodeDuplicateID          = "id-duplicate"
	CodeBindingTool          = "binding-tool"
	CodeModuleUnknown        = "module-unknown"
	CodeFireAndForgetAnswers = "answers-aside"

	CodeStartCount          = "start-count"
	CodeEndMissing          = "end-missing"
	CodeEdgeUnknown         = "edge-unknown"
	CodeEdgeTwice           = "edge-duplicate"
	CodeStartInput          = "start-input"
	CodeEndOutput           = "end-output"
	CodeFireAndForgetOutput = "aside-output"
	CodeInputMany           = "input-many"
	CodeOutputMany          = "output-many"
	CodeBranch              = "branch-unknown"
	CodeWayOpen             = "way-open"
	CodeCycle               = "graph-cycle"
	CodeUnreachable         = "node-unreachable"
	CodeCallTwice           = "call-twice"
	CodeCallMissing         = "call-missing"
)
