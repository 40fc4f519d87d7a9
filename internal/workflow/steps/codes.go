package steps

// The codes of rules that the published schema also checks, in addition to the codes of
// package shape.
const (
	CodeVersion       = "version-format"
	CodeLoopType      = "loop-type"
	CodeLoopMax       = "loop-max-iterations"
	CodeLoopCondition = "loop-condition-missing"
	CodeLoopCount     = "loop-count"
	CodeLoopItems     = "loop-items"
	CodeNested        = "loop-nested"
)

// The codes of rules that a schema cannot express.
const (
	CodeDuplicateID     = "step-id-duplicate"
	CodeBodyMissing     = "loop-body-missing"
	CodeBodyIsLoop      = "loop-body-is-loop"
	CodeBodyCondition   = "loop-body-condition"
	CodeVariableEmpty   = "loop-variable-empty"
	CodeFunctionUnknown = "function-unknown"
	CodeArgumentMissing = "function-argument-missing"
	CodeArgumentType    = "function-argument-type"
	CodeArgumentValue   = "function-argument-value"
)
