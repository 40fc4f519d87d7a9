package phases

import "github.com/guideway-dev/guideway/internal/workflow/shape"

// The codes of schema errors: the published schema of the kind reports them too.
const (
	CodeRequired   = shape.CodeRequired
	CodeUnexpected = shape.CodeUnexpected
	CodeType       = shape.CodeType
	CodeLength     = shape.CodeLength
	CodePattern    = shape.CodePattern
	CodeEnum       = shape.CodeEnum
	CodeRange      = shape.CodeRange
	CodeEmptyList  = shape.CodeEmptyList

	CodeVersion        = "version-format"
	CodeFewBranches    = "decision-branches"
	CodeFewConditions  = "condition-operands"
	CodeConditionType  = "condition-type"
	CodeConditionValue = "condition-value"
	CodeNotBlocking    = "checkpoint-blocking"
	CodeLoopType       = "loop-type"
	CodeLoopMax        = "loop-max-iterations"
	CodeLoopOver       = "loop-over-missing"
	CodeLoopCondition  = "loop-condition-missing"
	CodeTime           = "time-format"
	CodeStateKey       = "state-key"
)

// The codes of rules that a schema cannot express.
const (
	CodeDefinitionObject  = shape.CodeObject
	CodePhaseUnknown      = "phase-unknown"
	CodeSkipsItself       = "phase-skips-itself"
	CodeSkipCycle         = "phase-skip-cycle"
	CodeDuplicateID       = "id-duplicate"
	CodeVariableDuplicate = "variable-duplicate"
	CodeVariableType      = "variable-type"
)
