// Package holds keeps held calls: calls of upstream tools that wait for the approval of a
// person.
//
// An approval is bound to the whole call: to the user, the token and the client that made
// it, to the configuration of the upstream, to the approved definition of the tool, and to
// the arguments. A person answers each held call once, and an approval is used once: it is
// marked as used, durably, before the call is sent. So a call is sent at most once, even if
// the process is killed. The store is a file with a MAC that several processes share.
package holds

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Status is the state of a held call.
type Status string

// The statuses.
const (
	// Waiting is a call without an answer of a person.
	Waiting Status = "waiting"
	// Approved is a call that the client may make once, unchanged.
	Approved Status = "approved"
	// Denied is a call that is refused.
	Denied Status = "denied"
	// Used is an approved call that was sent, or may have been sent.
	Used Status = "used"
	// Expired is a call whose question was not answered, or whose approval was not used, in
	// time.
	Expired Status = "expired"
)

// Statuses returns all statuses.
func Statuses() []Status { return []Status{Waiting, Approved, Denied, Used, Expired} }

// Binding is the part of a call that an approval covers.
type Binding struct {
	// User, Token and Client are the principal: the user, the ID of the client's named token,
	// and the name of the client.
	User   string `json:"user"`
	Token  string `json:"token,omitempty"`
	Client string `json:"client"`
	// Upstream is the name of the upstream, Server the hash of its configuration, Tool its
	// name of the tool, and Pin the hash of the tool's definition.
	Upstream string `json:"upstream"`
	Server   string `json:"server"`
	Tool     string `json:"tool"`
	Pin      string `json:"pin"`
	// Hash is the hash of the canonical arguments.
	Hash string `json:"hash"`
}

// ID returns a text that identifies the binding.
func (b Binding) ID() string {
	text, _ := json.Marshal(b) // Strings always marshal.
	return digest.Hex(text)
}

// Answer is the answer of a person.
type Answer struct {
	Approve bool `json:"approve"`
	// By is the person, and Via the channel of the answer: elicitation, terminal, browser or
	// token.
	By   string    `json:"by"`
	Via  string    `json:"via"`
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at"`
}

// Call is a held call.
type Call struct {
	ID string `json:"id"`
	Binding

	// Name is the name by which clients call the tool.
	Name string `json:"name"`
	// Reason is the reason why the call is held.
	Reason string `json:"reason"`
	// Runs are the runs of the client that were open when the call was held.
	Runs []string `json:"runs,omitempty"`
	// Arguments are the canonical arguments. They are removed when the call is used, denied
	// or expired.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Status    Status          `json:"status"`
	Created   time.Time       `json:"createdAt"`
	// Expires is the end of the status: of the question, the approval or the denial.
	Expires time.Time `json:"expiresAt"`
	// UseSeconds is the time in which an approval must be used.
	UseSeconds int     `json:"useSeconds"`
	Answer     *Answer `json:"answer,omitempty"`
	// UsedAt is the time at which the approval was used.
	UsedAt time.Time `json:"usedAt,omitzero"`
	// Closed is the last form about the call that was closed without an answer.
	Closed *ClosedForm `json:"closedForm,omitempty"`
	// Sealed is the encrypted form of the arguments, the reason and the note, in the file only.
	Sealed []byte `json:"sealed,omitempty"`
	// Preview is a short form of the arguments without likely secrets, which lists have in
	// place of the arguments. It is not stored.
	Preview string `json:"preview,omitempty"`
}

// ClosedForm is a form of the client that was closed without an answer of a person.
type ClosedForm struct {
	At time.Time `json:"at"`
	// ByClient reports that no person could have read the form.
	ByClient bool `json:"byClient"`
	Count    int  `json:"count"`
}

// finish ends a call: it has no more effect, and its arguments are removed.
func (c *Call) finish(s Status) { c.Status, c.Arguments = s, nil }

// updateStatus expires the call if its time is over. The status of a denied or used call
// stays.
func (c *Call) updateStatus(now time.Time) {
	if (c.Status == Waiting || c.Status == Approved) && !now.Before(c.Expires) {
		c.finish(Expired)
	}
}

// decides reports whether the call decides on new calls with its binding.
func (c *Call) decides(now time.Time) bool {
	switch c.Status {
	case Waiting, Approved, Denied:
		return now.Before(c.Expires)
	case Used, Expired:
	}
	return false
}

// EncodeArguments returns the canonical form of arguments, which does not depend on the order
// of members and on white space, and its hash. Arguments with a duplicate member are refused,
// because a person and a server could read them differently.
func EncodeArguments(raw json.RawMessage) (canonical json.RawMessage, hash string, err error) {
	if len(raw) == 0 {
		return nil, digest.Hex(""), nil
	}
	var decoded any
	if err := jsontext.Decode(raw, &decoded); err != nil { // The decoder limits the nesting.
		return nil, "", guideway.Errorf(guideway.CodeInvalid, "the arguments of a held call are not JSON: %w", err).WithFix("pass an object")
	}
	if err := jsonrpc.CheckUnique(raw); err != nil {
		return nil, "", guideway.Errorf(guideway.CodeInvalid, "the arguments of a held call are invalid: %w", err).
			WithFix("use each member of an object once")
	}
	if canonical, err = jsontext.Marshal(decoded); err != nil {
		return nil, "", guideway.Errorf(guideway.CodeInvalid, "the arguments of a held call are not JSON: %w", err).WithFix("pass an object")
	}
	if len(canonical) > maxArguments {
		return nil, "", guideway.Errorf(guideway.CodeTooLarge, "the call is held for the approval of a person, but its arguments take %d bytes; at most %d are allowed", len(canonical), maxArguments).
			WithFix("make a call with smaller arguments")
	}
	return canonical, digest.Hex(canonical), nil
}

// ShownArguments returns the arguments as a person reads them: indented, in the order of
// their names. It returns "" for a call without arguments.
func (c *Call) ShownArguments() string {
	var decoded any
	if len(c.Arguments) == 0 || jsontext.Decode(c.Arguments, &decoded) != nil {
		return ""
	}
	text, err := jsontext.Indent(decoded)
	if err != nil { // A decoded value always has a JSON form.
		return ""
	}
	return string(text)
}
