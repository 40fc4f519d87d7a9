package phases

// The codes of errors that the published schema of the kind also detects.
const (
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
	CodePhaseUnknown      = "phase-unknown"
	CodeSkipsItself       = "phase-skips-itself"
	CodeSkipCycle         = "phase-skip-cycle"
	CodeDuplicateID       = "id-duplicate"
	CodeVariableDuplicate = "variable-duplicate"
	CodeVariableType      = "variable-type"
)
