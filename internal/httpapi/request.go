package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/run"
)

// maxBody is the maximum size of a request body.
const maxBody = 1 << 20

// call is a request to a route.
type call struct {
	*http.Request

	w http.ResponseWriter
	// status is the status of the answer.
	status int
	// err is the first error of a parameter.
	err error
}

// handler answers a call. Its result is encoded as a JSON object with the added member
// "success": true. nil is the empty object, and json.RawMessage is the whole answer.
type handler func(*call) (any, error)

// object is an answer without a declared type.
type object map[string]any

// addText adds a member if it is not empty.
func (o object) addText(name, text string) object {
	if text != "" {
		o[name] = text
	}
	return o
}

// responseWritten is returned by a handler that has written the response.
type responseWritten struct{}

// encodeWhole returns v as a complete answer, without an added member success.
func encodeWhole(v any) (any, error) {
	text, err := json.Marshal(v)
	return json.RawMessage(append(text, '\n')), err
}

// withBody returns a handler that decodes the JSON body first.
func withBody[T any](handle func(*call, T) (any, error)) handler {
	return func(c *call) (any, error) {
		var body T
		if err := c.decodeBody(&body); err != nil {
			return nil, err
		}
		return handle(c, body)
	}
}

// setCreated sets the status 201 and the header Location.
func (c *call) setCreated(collection, id string) {
	c.w.Header().Set("Location", collection+url.PathEscape(id))
	c.status = http.StatusCreated
}

// replaceNil returns list, or an empty one if it is nil, so that its JSON is never null.
func replaceNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (c *call) authGrant() auth.Grant { return auth.GrantFrom(c.Context()) }

func (c *call) userName() string { return c.authGrant().Principal.User }

// runCaller returns the caller of a command: a person if the credential counts as a
// person's, otherwise an agent.
func (c *call) runCaller() run.Caller {
	g := c.authGrant()
	by := run.Caller{Principal: g.Principal, Via: run.ViaAgent}
	switch {
	case !g.Person():
	case g.Proof == auth.ProofBrowser:
		by.Via = run.ViaBrowser
	case g.Proof == auth.ProofToken:
		by.Via = run.ViaToken
	}
	return by
}

// decodeBody decodes a JSON body. An empty body leaves into unchanged. The content type
// must be JSON, which a page of another origin cannot send without a preflight request.
func (c *call) decodeBody(into any) error {
	body := http.MaxBytesReader(c.w, c.Body, maxBody)
	dec := json.NewDecoder(body)
	dec.UseNumber() // A float would round the numbers that are returned to the caller.
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil && dec.More() {
		err = errors.New("more than one value")
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		err = fmt.Errorf("%q has a value of the wrong type, %s", cmp.Or(wrong.Field, "the whole body"), wrong.Value)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return guideway.Errorf(guideway.CodeTooLarge, "the body is larger than %d bytes", maxBody).
			WithFix("send a smaller body")
	case err != nil:
		return guideway.Errorf(guideway.CodeInvalid, "the body is invalid: %s", strings.TrimPrefix(err.Error(), "json: ")).
			WithFix("write the body as /api/docs describes it for this path")
	}
	given := c.Header.Get("Content-Type")
	if mediaType, _, err := mime.ParseMediaType(given); err != nil || mediaType != "application/json" {
		return guideway.Errorf(guideway.CodeInvalid, "the Content-Type of the body is %q, not application/json", clipText(given)).
			WithFix("send the header Content-Type: application/json")
	}
	return nil
}

// textParam returns a query parameter. Like the other parameter methods it records the
// first error in c.err.
func (c *call) textParam(name string) string {
	text := c.URL.Query().Get(name)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		c.failParam(name, text, "UTF-8 text without control characters")
		return ""
	}
	return text
}

// listParam returns the values of a parameter that may be repeated or separated by commas.
func (c *call) listParam(name string) []string {
	var list []string
	for _, value := range c.URL.Query()[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

// intParam returns a parameter between low and high, or fallback if it is missing.
func (c *call) intParam(name string, fallback, low, high int64) int64 {
	text := c.textParam(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		c.failParam(name, text, "a whole number from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
		return fallback
	}
	return n
}

func (c *call) boolParam(name string) bool {
	switch text := c.textParam(name); text {
	case "", "false", "0":
		return false
	case "true", "1":
		return true
	default:
		c.failParam(name, text, "true or false")
		return false
	}
}

func (c *call) timeParam(name string) time.Time {
	text := c.textParam(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		c.failParam(name, text, "a time such as 2026-01-31T12:00:00Z")
	}
	return t
}

func (c *call) failParam(name, given, allowed string) {
	if c.err == nil {
		c.err = guideway.Errorf(guideway.CodeInvalid, "the parameter %s has the invalid value %q", name, clipText(given)).
			WithFix("use %s", allowed)
	}
}

// idempotencyKey returns the header Idempotency-Key. A request that is repeated with the same
// key is executed once.
func (c *call) idempotencyKey() (string, error) {
	const most = 128
	key := c.Header.Get("Idempotency-Key")
	for _, char := range key {
		if char < ' ' || char > '~' || len(key) > most {
			return "", guideway.Errorf(guideway.CodeInvalid, "the header Idempotency-Key %q is longer than %d characters, or has a character that is not printable ASCII", clipText(key), most).
				WithFix("use up to %d letters, digits and punctuation characters, such as a UUID", most)
		}
	}
	return key, nil
}

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
