package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
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

// caller is who commands. A person stands behind a browser or a token that may
// answer gates; whoever else comes by is an agent for all that is known.
func caller(r *http.Request) run.Caller {
	g := authn.GrantFrom(r.Context())
	c := run.Caller{Principal: g.Principal, Via: run.ViaAgent}
	switch {
	case !g.Person():
	case g.Proof == authn.ProofBrowser:
		c.Via = run.ViaBrowser
	case g.Proof == authn.ProofToken:
		c.Via = run.ViaToken
	}
	return c
}

// decode reads a JSON body into one of our structures; no body leaves it as it
// is. The type must be that of JSON, which a page of another origin cannot send
// without asking first.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	body := http.MaxBytesReader(w, r.Body, maxBody)
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
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return guideway.Errorf(guideway.CodeInvalid, "the body is not said to be JSON").
			WithFix("send the header Content-Type: application/json")
	}
	return nil
}

// query reads the parameters of a URL and keeps the first thing that is wrong
// with them.
type query struct {
	r   *http.Request
	err error
}

func (q *query) text(name string) string {
	text := q.r.URL.Query().Get(name)
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		q.wrong(name, text, "text without control characters")
		return ""
	}
	return text
}

// list gives the values of a parameter that may be repeated, or separated by
// commas.
func (q *query) list(name string) []string {
	var list []string
	for _, value := range q.r.URL.Query()[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

// number gives a parameter from low to high, or fallback where it is not there.
func (q *query) number(name string, fallback, low, high int64) int64 {
	text := q.text(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		q.wrong(name, text, "a whole number from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
		return fallback
	}
	return n
}

func (q *query) yes(name string) bool {
	switch text := q.text(name); text {
	case "", "false", "0":
		return false
	case "true", "1":
		return true
	default:
		q.wrong(name, text, "true or false")
		return false
	}
}

func (q *query) time(name string) time.Time {
	text := q.text(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		q.wrong(name, text, "a time such as 2026-01-31T12:00:00Z")
	}
	return t
}

func (q *query) wrong(name, given, allowed string) {
	if q.err == nil {
		q.err = guideway.Errorf(guideway.CodeInvalid, "the parameter %s is %q", name, clip(given)).
			WithFix("give %s", allowed)
	}
}

// idempotencyKey gives the header of that name: the same request with the same
// key is carried out once.
func idempotencyKey(r *http.Request) (string, error) {
	const most = 128
	key := r.Header.Get("Idempotency-Key")
	for _, c := range key {
		if c < ' ' || c > '~' || len(key) > most {
			return "", guideway.Errorf(guideway.CodeInvalid, "the header Idempotency-Key is not one").
				WithFix("give up to %d letters, digits and signs, such as a UUID", most)
		}
	}
	return key, nil
}
