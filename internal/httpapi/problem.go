package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
)

// Problem is how every error looks.
type Problem struct {
	// Success is false.
	Success bool `json:"success"`
	// Error says what happened.
	Error string        `json:"error"`
	Code  guideway.Code `json:"code"`
	// Fix says what to do.
	Fix string `json:"fix,omitempty"`
	// Path is the request's, where there is nothing at it.
	Path string `json:"path,omitempty"`
	// Rule and what follows tell of a refused move in a run; see run.Refusal.
	Rule     string          `json:"rule,omitempty"`
	Given    any             `json:"given,omitempty"`
	Allowed  any             `json:"allowed,omitempty"`
	Issues   []string        `json:"issues,omitempty"`
	Next     *run.Call       `json:"next,omitempty"`
	RunID    string          `json:"runId,omitempty"`
	Position *guide.Position `json:"position,omitempty"`
	// Candidates are the paths of the documents that an ambiguous request may
	// mean.
	Candidates []string `json:"candidates,omitempty"`
}

// status is the table of codes and HTTP statuses.
func status(code guideway.Code) int {
	switch code {
	case guideway.CodeInvalid:
		return http.StatusBadRequest
	case guideway.CodeInvalidDefinition:
		return http.StatusUnprocessableEntity
	case guideway.CodeNotFound:
		return http.StatusNotFound
	case guideway.CodeConflict, guideway.CodeRefused:
		return http.StatusConflict
	case guideway.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case guideway.CodeUnauthorized:
		return http.StatusUnauthorized
	case guideway.CodeForbidden:
		return http.StatusForbidden
	case guideway.CodeUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// ambiguous is an error that names what a request may mean.
type ambiguous struct {
	err        *guideway.Error
	candidates []string
}

func (e *ambiguous) Error() string { return e.err.Error() }

// Unwrap gives the error's code to guideway.ErrorCode.
func (e *ambiguous) Unwrap() error { return e.err }

// problemOf gives the status and the form of an error.
func problemOf(err error) (int, Problem) {
	p := Problem{Error: err.Error(), Code: guideway.ErrorCode(err), Fix: guideway.ErrorFix(err)}
	code := status(p.Code)
	var several *ambiguous
	if errors.As(err, &several) {
		p.Candidates = several.candidates
	}
	var refusal *run.Refusal
	if errors.As(err, &refusal) {
		p.Rule, p.Given, p.Allowed, p.Issues = refusal.Rule, refusal.Given, refusal.Allowed, refusal.Issues
		p.Next, p.RunID, p.Position = refusal.Next, refusal.RunID, refusal.Position
		if refusal.Rule == guide.RulePerson {
			code = http.StatusForbidden
		}
	}
	if p.Code == guideway.CodeInternal {
		// The detail is the log's.
		p = Problem{Error: "internal error", Code: guideway.CodeInternal, Fix: "look into the server's log"}
	}
	return code, p
}

// fail answers with an error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody is left to tell
	}
	code, p := problemOf(err)
	if code >= http.StatusInternalServerError {
		a.Logger.Error("answer a request", "method", r.Method, "path", r.URL.Path, "error", err)
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

// writeAnswer writes what a handler returned.
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

// writeJSON writes what is JSON already.
func writeJSON(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) //nolint:gosec // G705: it is JSON, said to be, and not sniffed; and the client may be gone
}

// clip bounds what an answer repeats of a request.
func clip(s string) string {
	const limit = 200
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
