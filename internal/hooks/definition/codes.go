package definition

// The codes of rules that the published schemas also check. Conditions have the codes of
// the phases dialect.
const (
	CodeHookScript = "hook-script"
)

// The codes of rules that a schema cannot express.
const (
	CodeDuplicateID          = "id-duplicate"
	CodeBindingTool          = "binding-tool"
	CodeAlsoTwice            = "also-duplicate"
	CodeModuleUnknown        = "module-unknown"
	CodeFireAndForgetAnswers = "answers-aside"
	CodeHandles              = "handles-call"

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
