package steps

// The codes of what the schema says. A finding with one of these is one that the
// published schema makes too.
const (
	CodeRequired      = "field-missing"
	CodeUnexpected    = "field-unknown"
	CodeType          = "field-type"
	CodeLength        = "text-length"
	CodePattern       = "text-pattern"
	CodeEnum          = "value-unknown"
	CodeRange         = "number-bounds"
	CodeUnique        = "list-repeats"
	CodeEmptyList     = "list-empty"
	CodeVersion       = "version-format"
	CodeLoopType      = "loop-type"
	CodeLoopMax       = "loop-max-iterations"
	CodeLoopCondition = "loop-condition-missing"
	CodeLoopCount     = "loop-count"
	CodeLoopItems     = "loop-items"
	CodeComposition   = "criteria-composition"
	CodeNested        = "loop-nested"
)

// The codes of what no schema can say.
const (
	CodeDuplicateID      = "step-id-duplicate"
	CodeBodyMissing      = "loop-body-missing"
	CodeBodyIsLoop       = "loop-body-is-loop"
	CodeBodyCondition    = "loop-body-condition"
	CodeVariableEmpty    = "loop-variable-empty"
	CodeFunctionUnknown  = "function-unknown"
	CodeArgumentMissing  = "function-argument-missing"
	CodeArgumentType     = "function-argument-type"
	CodeArgumentValue    = "function-argument-value"
	CodeDefinitionObject = "definition-object"
	// CodeMore ends a list of findings that was cut.
	CodeMore = "more-findings"
)
