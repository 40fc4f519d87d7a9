package machines

import "github.com/guideway-dev/guideway/internal/definition/shape"

// The codes of what the published schema says, too.
const (
	CodeRequired   = shape.CodeRequired
	CodeUnexpected = shape.CodeUnexpected
	CodeType       = shape.CodeType
	CodeLength     = shape.CodeLength
	CodePattern    = shape.CodePattern
	CodeEnum       = shape.CodeEnum
	CodeRange      = shape.CodeRange
	CodeEmptyList  = shape.CodeEmptyList
	// CodeOldDialect is of a machine of the first dialect, with actions and
	// conditions in place of handlers.
	CodeOldDialect = "machine-dialect-old"
	// CodeInputs is of a machine with both 'input' and 'inputs', or neither.
	CodeInputs = "machine-inputs"
)

// The codes of what no schema can say. They keep a machine from loading.
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

// The codes of the linter: what loads and is most likely not meant.
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
	// CodeToolUnknown is of a pattern that fits no tool of a configuration; see
	// LintOffers.
	CodeToolUnknown = "tool-unknown"
)
