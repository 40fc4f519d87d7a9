package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/run"
)

// Problem is the body of every error response.
type Problem struct {
	// Success is always false.
	Success bool `json:"success"`
	// Error is the message.
	Error string        `json:"error"`
	Code  guideway.Code `json:"code"`
	// Fix is the suggested action.
	Fix string `json:"fix,omitempty"`
	// Path is the path of a request for which there is no route.
	Path string `json:"path,omitempty"`
	// Rule and the following members describe a refused command; see run.Refusal.
	Rule     string           `json:"rule,omitempty"`
	Given    any              `json:"given,omitempty"`
	Allowed  any              `json:"allowed,omitempty"`
	Issues   []string         `json:"issues,omitempty"`
	Next     *run.Call        `json:"next,omitempty"`
	RunID    string           `json:"runId,omitempty"`
	Position *engine.Position `json:"position,omitempty"`
	// Candidates are the paths of the documents that an ambiguous request may refer to.
	Candidates []string `json:"candidates,omitempty"`
}

// httpStatuses are the HTTP statuses of the error codes. Other codes have the status 500.
var httpStatuses = map[guideway.Code]int{
	guideway.CodeInvalid:           http.StatusBadRequest,
	guideway.CodeInvalidDefinition: http.StatusUnprocessableEntity,
	guideway.CodeNotFound:          http.StatusNotFound,
	guideway.CodeConflict:          http.StatusConflict,
	guideway.CodeRefused:           http.StatusConflict,
	guideway.CodeTooLarge:          http.StatusRequestEntityTooLarge,
	guideway.CodeUnauthorized:      http.StatusUnauthorized,
	guideway.CodeForbidden:         http.StatusForbidden,
	guideway.CodeUnavailable:       http.StatusServiceUnavailable,
}

// ambiguousError lists the documents that a request may refer to.
type ambiguousError struct {
	err        *guideway.Error
	candidates []string
}

func (e *ambiguousError) Error() string { return e.err.Error() }

// Unwrap lets guideway.ErrorCode find the error's code.
func (e *ambiguousError) Unwrap() error { return e.err }

// newProblem returns the status and the body of an error response.
func newProblem(err error) (int, Problem) {
	p := Problem{Error: err.Error(), Code: guideway.ErrorCode(err), Fix: guideway.ErrorFix(err)}
	code := cmp.Or(httpStatuses[p.Code], http.StatusInternalServerError)
	var several *ambiguousError
	if errors.As(err, &several) {
		p.Candidates = several.candidates
	}
	var refusal *run.Refusal
	if errors.As(err, &refusal) {
		p.Rule, p.Given, p.Allowed, p.Issues = refusal.Rule, refusal.Given, refusal.Allowed, refusal.Issues
		p.Next, p.RunID, p.Position = refusal.Next, refusal.RunID, refusal.Position
		if refusal.Rule == engine.RulePerson {
			code = http.StatusForbidden
		}
	}
	if p.Code == guideway.CodeInternal {
		// The detail goes to the log only.
		p = Problem{Error: "internal error", Code: guideway.CodeInternal, Fix: "see the server's log"}
	}
	return code, p
}

// writeError answers with an error.
func (a *api) writeError(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // The client has disconnected.
	}
	code, p := newProblem(err)
	if a.UI != nil && a.Browsers != nil && p.RunID != "" && p.Fix == run.ApprovalFix(p.RunID, "") {
		p.Fix = run.ApprovalFix(p.RunID, auth.ServerURL(auth.WithServerURL(r))+"/runs/"+p.RunID)
	}
	if code >= http.StatusInternalServerError {
		a.Logger.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	writeProblem(w, code, p)
}

func writeProblem(w http.ResponseWriter, status int, p Problem) {
	text, err := json.Marshal(p)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"success":false,"error":"internal error","code":"internal"}`)
	}
	writeJSON(w, status, append(text, '\n'))
}

// writeAnswer writes the result of a handler.
func (c *call) writeAnswer(v any) error {
	switch v := v.(type) {
	case responseWritten:
		return nil
	case json.RawMessage:
		writeJSON(c.w, c.status, v)
		return nil
	case nil:
		return c.writeAnswer(object{})
	}
	text, err := json.Marshal(v)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "encode an answer: %w", err)
	}
	members, _ := bytes.CutPrefix(text, []byte("{"))
	if len(members) > 1 {
		members = append([]byte(","), members...)
	}
	writeJSON(c.w, c.status, slices.Concat([]byte(`{"success":true`), members, []byte("\n")))
	return nil
}

// writeJSON writes a text that is already JSON.
func writeJSON(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// clipText shortens the part of a request that an answer repeats.
func clipText(s string) string { return textpart.Shorten(s, 200) }
