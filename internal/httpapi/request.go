package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/run"
)

// maxBody bounds the body of a request.
const maxBody = 1 << 20

// call is a request to a route.
type call struct {
	*http.Request

	w http.ResponseWriter
	// status is that of the answer.
	status int
	// err is the first error of the parameters.
	err error
}

// handler answers a call. The JSON object of the value gets the member "success": true.
// nil is the empty object, and json.RawMessage is the whole answer.
type handler func(*call) (any, error)

// object is an answer without a type of its own.
type object map[string]any

// addText adds a member that is left out if it is empty.
func (o object) addText(name, text string) object {
	if text != "" {
		o[name] = text
	}
	return o
}

// responseWritten is returned by a handler that has written the response.
type responseWritten struct{}

// encodeWhole returns v as an answer without the member success, or with its own.
func encodeWhole(v any) (any, error) {
	text, err := json.Marshal(v)
	return json.RawMessage(append(text, '\n')), err
}

// withBody returns a handler that decodes the JSON body first.
func withBody[T any](handle func(*call, T) (any, error)) handler {
	return func(c *call) (any, error) {
		var body T
		if err := c.decode(&body); err != nil {
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

// replaceNil returns list, or an empty one, so that its JSON is never null.
func replaceNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (c *call) authGrant() authn.Grant { return authn.GrantFrom(c.Context()) }

func (c *call) userName() string { return c.authGrant().Principal.User }

// caller returns the caller of a command: a person for a browser or a token that may
// answer gates, and else an agent.
func (c *call) caller() run.Caller {
	g := c.authGrant()
	by := run.Caller{Principal: g.Principal, Via: run.ViaAgent}
	switch {
	case !g.Person():
	case g.Proof == authn.ProofBrowser:
		by.Via = run.ViaBrowser
	case g.Proof == authn.ProofToken:
		by.Via = run.ViaToken
	}
	return by
}

// decode reads a JSON body into one of our structures; no body leaves it as it
// is. The type must be that of JSON, which a page of another origin cannot send
// without asking first.
func (c *call) decode(into any) error {
	body := http.MaxBytesReader(c.w, c.Body, maxBody)
	dec := json.NewDecoder(body)
	dec.UseNumber() // a float would round what the caller gets back
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil && dec.More() {
		err = errors.New("more than one value")
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return guideway.Errorf(guideway.CodeTooLarge, "the body is larger than %d bytes", maxBody).
			WithFix("send less")
	case err != nil:
		return guideway.Errorf(guideway.CodeInvalid, "the body is not what this route takes: %s", strings.TrimPrefix(err.Error(), "json: ")).
			WithFix("see the route in /api/openapi.json")
	}
	if mediaType, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return guideway.Errorf(guideway.CodeInvalid, "the body is not said to be JSON").
			WithFix("send the header Content-Type: application/json")
	}
	return nil
}

// textParam returns a parameter of the URL. As the other methods for parameters it keeps
// the first error in c.err.
func (c *call) textParam(name string) string {
	text := c.URL.Query().Get(name)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		c.failParam(name, text, "text without control characters")
		return ""
	}
	return text
}

// listParam returns the values of a parameter that may be repeated, or separated by
// commas.
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

// intParam returns a parameter from low to high, or fallback if it is missing.
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
		c.err = guideway.Errorf(guideway.CodeInvalid, "the parameter %s is %q", name, clip(given)).
			WithFix("give %s", allowed)
	}
}

// idempotencyKey returns the header of that name: the same request with the same
// key is carried out once.
func (c *call) idempotencyKey() (string, error) {
	const most = 128
	key := c.Header.Get("Idempotency-Key")
	for _, char := range key {
		if char < ' ' || char > '~' || len(key) > most {
			return "", guideway.Errorf(guideway.CodeInvalid, "the header Idempotency-Key is not one").
				WithFix("give up to %d letters, digits and signs, such as a UUID", most)
		}
	}
	return key, nil
}
