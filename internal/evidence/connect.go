package evidence

import (
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

const (
	// ConnectHeader is the header with which guideway connect reports that it executes checks.
	// Its value is the name of the computer.
	ConnectHeader = "Guideway-Checks"
	// ConnectMeta is the member of _meta with a sealed ConnectRequest in the result of a call,
	// and with a ConnectAnswer in the repeated call.
	ConnectMeta = "dev.guideway/checks"
)

// ConnectRequest asks guideway connect to execute checks, or without checks for the workspace
// of a new run. The server seals it: it is the base64 text before the first dot of the sealed
// text. It is valid once, for one call of one client.
type ConnectRequest struct {
	User    string    `json:"user"`
	Client  string    `json:"client"`
	Call    string    `json:"call"` // the hash of the call
	Nonce   string    `json:"nonce"`
	Expires time.Time `json:"expires"`
	// ProjectPath is the directory of a new run, or "" if only the client knows it.
	ProjectPath string    `json:"projectPath,omitempty"`
	Checks      []Request `json:"checks,omitempty"`
	// Done are the results of the checks of the call that were executed before.
	Done []Result `json:"done,omitempty"`
}

// ConnectAnswer is the answer to a ConnectRequest: the workspace, the results of the checks in
// their order, or the reason why there are none.
type ConnectAnswer struct {
	// Sealed is the sealed request.
	Sealed    string     `json:"sealed"`
	Workspace *Workspace `json:"workspace,omitempty"`
	Results   []Result   `json:"results,omitempty"`
	Refusal   string     `json:"refusal,omitempty"`
	Fix       string     `json:"fix,omitempty"`
}

// AcceptResult returns a result that guideway connect returned for the request, or an error if
// it does not answer the request. The members that the server knows are those of the request.
func (r *Request) AcceptResult(given Result) (Result, error) {
	decides := given.Undefined || given.Inconclusive
	w := given.Workspace
	switch {
	case given.Step != r.Step || given.Key != r.Key:
		return Result{}, guideway.Errorf(guideway.CodeInvalid, "the result is for the rule %.100q of the step %.100q, not for %q of %q", given.Key, given.Step, r.Key, r.Step)
	case given.Passed && (decides || w == nil || given.Hash == ""), given.Undefined && r.Template.Type != criteria.NamedCheck:
		return Result{}, guideway.Errorf(guideway.CodeInvalid, "the result for the rule %q of the step %q contradicts itself", r.Key, r.Step)
	case w != nil && (w.Root != r.Start.Root || w.Host != r.Start.Host):
		return Result{}, guideway.Errorf(guideway.CodeInvalid, "the check was executed in %.200q on %.100q, not in the workspace %s on %s of the run", w.Root, w.Host, r.Start.Root, r.Start.Host)
	}
	given.Type, given.Name, given.With, given.Describe, given.Instance = r.Template.Type, r.Template.Check, r.Rule.With, r.Rule.Describe(), "guideway connect on "+r.Start.Host
	given.Workspace = w.ViaConnect()
	return given, nil
}

// ViaConnect returns a copy of a workspace with Connect, or nil.
func (w *Workspace) ViaConnect() *Workspace {
	if w == nil {
		return nil
	}
	copied := *w
	copied.Connect = true
	return &copied
}

// ConnectHost returns the computer on which guideway connect executed the check, or "" if the
// server executed it.
func (r *Result) ConnectHost() string {
	if r.Workspace == nil || !r.Workspace.Connect {
		return ""
	}
	return r.Workspace.Host
}
