package definition

// The codes of rules that the published schema also checks, in addition to those of package shape.
const (
	// CodeOldDialect reports a machine of the older dialect, which has actions and
	// conditions in place of handlers.
	CodeOldDialect = "machine-dialect-old"
	// CodeInputs reports a machine with both 'input' and 'inputs'.
	CodeInputs = "machine-inputs"
)

// The codes of errors that a schema cannot express.
const (
	CodeDuplicate      = "name-duplicate"
	CodeNoStart        = "state-start-missing"
	CodeStateUnknown   = "state-unknown"
	CodeAgentUnknown   = "agent-unknown"
	CodeContextUnknown = "context-unknown"
	CodeRoleUnknown    = "role-unknown"
	CodeRoleTools      = "role-tools-both"
	CodeStateMixed     = "state-mixed"
	CodePath           = "path-form"
	CodeDefault        = "input-default"
	CodeDuration       = "duration-form"
	CodeHandlerMissing = "handler-missing"
	CodeScriptMissing  = "script-missing"
	CodeFile           = "file-unreadable"
)

// The codes of warnings.
const (
	CodeUnreachable     = "state-unreachable"
	CodeNoStop          = "stop-unreachable"
	CodeVariableShadows = "variable-shadows-input"
	CodeRoleUnused      = "role-unused"
	CodeContextUnused   = "context-unused"
	CodeAgentUnused     = "agent-unused"
	CodeParsingMany     = "parsing-tools-many"
	CodeToolUnused      = "tool-policy-unused"
	CodeTransitionState = "transition-state-unknown"
	// CodeToolUnknown reports a pattern that matches no available tool; see
	// LintAvailableTools.
	CodeToolUnknown = "tool-unknown"
)
