// Package guideway holds the nouns and error codes that every part of Guideway
// shares. It uses the standard library only and does no I/O.
//
// The words are those of the design's glossary: a definition is a parsed,
// validated and hashed document of one dialect; a catalog holds the definitions
// of all sources in order of precedence; a run is one execution of a pinned
// definition; a position is what a run asks for now.
package guideway

// Dialect names the language that a definition is written in.
type Dialect string

// The dialects.
const (
	// DialectSteps is the step workflow: a list of steps with conditions,
	// loops and criteria (seed 000).
	DialectSteps Dialect = "steps"
	// DialectPhases is the phase workflow: phases with checkpoints, decisions,
	// loops and guarded transitions (seed 002).
	DialectPhases Dialect = "phases"
	// DialectHooks is the hook graph: hooks around the requests of the gateway
	// (seed 001).
	DialectHooks Dialect = "hooks"
	// DialectMachines is the agent machine: agents that are led through states by
	// the functions of a script (seed 004).
	DialectMachines Dialect = "machines"
)

// Severity says whether a finding keeps a definition from loading.
type Severity string

// The severities.
const (
	// SeverityError marks a finding that keeps the definition from loading.
	SeverityError Severity = "error"
	// SeverityWarning marks a finding that a person should look at; the
	// definition loads.
	SeverityWarning Severity = "warning"
)

// Diagnostic is one finding about a definition: where it is, what is wrong and
// how to mend it.
type Diagnostic struct {
	// Severity says whether the definition loads.
	Severity Severity `json:"severity"`
	// Code names the rule, such as "loop-body-missing". It is stable.
	Code string `json:"code"`
	// File is the path or name of the document; empty if it has none.
	File string `json:"file,omitempty"`
	// Line and Column are 1-based; zero means that the whole file is meant.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Pointer is the RFC 6901 JSON pointer to the value; "" is the root.
	Pointer string `json:"pointer"`
	// Node is the id of the node of a hook graph that is meant, if one is.
	Node string `json:"node,omitempty"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Fix says how to mend it.
	Fix string `json:"fix,omitempty"`
}

// Principal is who calls: the owner of runs and handles, and a label of the
// client. The user is an identity; the client is attribution only.
type Principal struct {
	// User is the identity that a token or the operating system gives.
	User string `json:"user"`
	// Client is what the client calls itself.
	Client string `json:"client,omitempty"`
}
