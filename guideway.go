// Package guideway defines the terms and error codes that all parts of Guideway share. It
// uses only the standard library and does no I/O.
//
// The terms are those of the glossary: a definition is a parsed, validated and hashed
// document of one dialect; a catalog holds the definitions of all sources in order of
// precedence; a run is one execution of a pinned definition; a position is the input that a
// run asks for now.
package guideway

import "slices"

// Dialect is the language of a definition.
type Dialect string

// The dialects.
const (
	// DialectSteps is the step workflow: a list of steps with conditions, loops and
	// criteria.
	DialectSteps Dialect = "steps"
	// DialectPhases is the phase workflow: phases with checkpoints, decisions,
	// loops and guarded transitions.
	DialectPhases Dialect = "phases"
	// DialectHooks is the hook graph: hooks that wrap the requests of the gateway.
	DialectHooks Dialect = "hooks"
	// DialectMachines is the agent machine: agents whose states and transitions script
	// functions control.
	DialectMachines Dialect = "machines"
)

// Severity is the severity of a diagnostic.
type Severity string

// The severities.
const (
	// SeverityError marks a diagnostic that prevents the definition from loading.
	SeverityError Severity = "error"
	// SeverityWarning marks a diagnostic that a person should read. The definition loads.
	SeverityWarning Severity = "warning"
)

// Diagnostic is a remark about a definition: its position, the message and the fix.
type Diagnostic struct {
	// Severity is error or warning.
	Severity Severity `json:"severity"`
	// Code is the rule, such as "loop-body-missing". It is stable.
	Code string `json:"code"`
	// File is the path or name of the document. It may be empty.
	File string `json:"file,omitempty"`
	// Line and Column are 1-based. Zero refers to the whole file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Pointer is the RFC 6901 JSON pointer to the value; "" is the root.
	Pointer string `json:"pointer"`
	// Node is the id of the node of a hook graph. It may be empty.
	Node string `json:"node,omitempty"`
	// Message describes the error or the warning.
	Message string `json:"message"`
	// Fix is the suggested correction.
	Fix string `json:"fix,omitempty"`
}

// Principal is the caller: the owner of runs and handles, and a label of the client. The
// user is an identity; the client is for attribution only.
type Principal struct {
	// User is the identity of a token or of the operating system user.
	User string `json:"user"`
	// Client is the name that the client gives itself.
	Client string `json:"client,omitempty"`
	// Roles are what the user may do. Nil means every role: the user has this computer's
	// data, as the local user has.
	Roles []Role `json:"roles,omitempty"`
}

// Role is a kind of work that a user may do.
type Role string

// The roles. Every role includes RoleViewer, and RoleAdmin includes every role.
const (
	// RoleViewer reads the user's data and that of shared projects.
	RoleViewer Role = "viewer"
	// RoleOperator starts and continues runs, and uses /mcp.
	RoleOperator Role = "operator"
	// RoleApprover opens human approvals.
	RoleApprover Role = "approver"
	// RoleAdmin changes upstreams, and sees and revokes the tokens of all users.
	RoleAdmin Role = "admin"
)

// Roles returns all roles.
func Roles() []Role { return []Role{RoleViewer, RoleOperator, RoleApprover, RoleAdmin} }

// Approval describes the persons that a human approval needs.
type Approval struct {
	// By are the roles of which each person needs one. Empty means RoleApprover.
	By []Role `json:"by,omitempty"`
	// Count is the number of persons that must choose the same option. 0 means one.
	Count int `json:"count,omitempty"`
}

// Roles returns the roles of which a person needs one. A nil approval needs an approver.
func (a *Approval) Roles() []Role {
	if a == nil || len(a.By) == 0 {
		return []Role{RoleApprover}
	}
	return a.By
}

// Persons returns the number of persons. A nil approval needs one.
func (a *Approval) Persons() int {
	if a == nil {
		return 1
	}
	return max(a.Count, 1)
}

// Accepts reports whether a user has a role that the approval needs.
func (a *Approval) Accepts(p Principal) bool { return slices.ContainsFunc(a.Roles(), p.Has) }

// Has reports whether the user has a role.
func (p Principal) Has(r Role) bool {
	return p.Roles == nil || slices.Contains(p.Roles, r) || slices.Contains(p.Roles, RoleAdmin) || r == RoleViewer && len(p.Roles) > 0
}
