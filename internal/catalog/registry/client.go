// Package registry brings the definitions of a registry, and serves those of a
// catalog as one.
//
// A registry answers GET requests below its address:
//
//	index             {format, revision, documents: [{name, size, sha256}]}
//	documents/{sum}   one document, by its SHA-256
//	workflows         {workflows: [...]} or {data: [...]}: whole workflows as JSON
//	workflows/{id}    one of them
//
// The first two are Guideway's, and bring what changed alone; where a registry
// answers them with 404, the others are used, which other systems have too.
package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
)

// Options say which registry is followed; URL is needed.
type Options struct {
	URL string
	// Key gives the key; nil and an empty one mean none. It is asked for at every
	// fetch and kept nowhere.
	Key func() string
	// AllowPrivate lets the registry be at a private address, or be reached without
	// encryption. Addresses of the link, where clouds keep their secrets, are never
	// allowed.
	AllowPrivate bool
	// Timeout is how long one answer may take: 10 seconds.
	Timeout time.Duration
	// Limits bound what a registry may have.
	Limits Limits
	// Pause waits before another attempt; nil sleeps.
	Pause func(context.Context, time.Duration) error
}

// Limits bound what a registry may have. A zero field means the default.
type Limits struct {
	// Bytes bounds one answer: 64 MiB.
	Bytes int64
	// Files bounds the documents: 1,000; FileBytes one of them: 1 MiB.
	Files     int
	FileBytes int64
}

// attempts is how often something is asked for.
const attempts = 3

// The pauses between attempts.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
)

// Client brings what a registry has.
type Client struct {
	opts Options
	base *url.URL
	http *http.Client
}

var _ mirror.Fetcher = (*Client)(nil)

// New checks the address of a registry. Nothing is reached yet.
func New(opts Options) (*Client, error) {
	u, err := url.Parse(strings.TrimSpace(opts.URL))
	bad := func(message, fix string) error {
		return guideway.Errorf(guideway.CodeInvalid, "the address of the registry %s", message).WithFix("%s", fix)
	}
	const form = "write https://host/path"
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, bad("is not one of https", form)
	case u.User != nil:
		return nil, bad("has a user or a password in it", "put the key into GUIDEWAY_REGISTRY_KEY, or name it as token")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, bad("has a query or a fragment", form)
	case u.Scheme == "http" && !opts.AllowPrivate:
		return nil, guideway.Errorf(guideway.CodeForbidden, "the registry would be reached without encryption").
			WithFix("use https, or set allowPrivate for one in your own network")
	}
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	opts.Limits.Bytes = cmp.Or(opts.Limits.Bytes, 64<<20)
	opts.Limits.Files = cmp.Or(opts.Limits.Files, 1_000)
	opts.Limits.FileBytes = cmp.Or(opts.Limits.FileBytes, 1<<20)
	if opts.Pause == nil {
		opts.Pause = ctxsleep.For
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Client{opts: opts, base: u, http: newHTTP(opts)}, nil
}

// Location is the address of the registry.
func (c *Client) Location() string { return c.base.String() }

// Origin says what is followed.
func (c *Client) Origin() string { return "registry:" + c.base.String() }

// newHTTP makes a client that reaches the registry and nothing else.
func newHTTP(opts Options) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: ssrf.Control(opts.AllowPrivate)}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: opts.Timeout,
		MaxResponseHeaderBytes: 1 << 16, ForceAttemptHTTP2: true, IdleConnTimeout: time.Second, MaxIdleConnsPerHost: 2,
	}
	return &http.Client{
		Transport: transport, Timeout: opts.Timeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errRedirect
			}
			return nil
		},
	}
}

var errRedirect = errors.New("it redirects to another host, which is not followed")

// answer is what a registry said.
type answer struct {
	status int
	body   []byte
	etag   string
	retry  time.Duration
}

// get asks for something, again where that may help. tag is the ETag of what is
// there, limit bounds the answer.
func (c *Client) get(ctx context.Context, path, tag string, limit int64) (*answer, error) {
	var failed error
	for attempt := range attempts {
		if attempt > 0 {
			if err := c.opts.Pause(ctx, backoff(attempt, failed)); err != nil {
				return nil, cmp.Or(failed, err)
			}
		}
		a, err := c.once(ctx, path, tag, limit)
		switch {
		case err == nil && !worthAnother(a.status):
			return a, nil
		case err == nil:
			failed = &statusError{status: a.status, retry: a.retry}
		case errors.Is(err, errRedirect) || errors.Is(err, ssrf.ErrPrivate) || errors.Is(err, errTooLarge) || ctx.Err() != nil:
			return nil, c.explain(err)
		default:
			failed = err
		}
	}
	return nil, c.explain(failed)
}

// worthAnother says whether an answer may be another one in a moment.
func worthAnother(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// statusError is an answer that was no answer.
type statusError struct {
	status int
	retry  time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("it answers %d %s", e.status, http.StatusText(e.status))
}

// backoff is the pause before an attempt: what the registry asks for, else one that
// doubles, and in either case a little more, so that clients do not come together.
func backoff(attempt int, failed error) time.Duration {
	wait := firstPause << (attempt - 1)
	var status *statusError
	if errors.As(failed, &status) && status.retry > 0 {
		wait = status.retry
	}
	return min(wait, maxPause) + rand.N(wait/2+1) //nolint:gosec // it is no secret
}

// once asks for something.
func (c *Client) once(ctx context.Context, path, tag string, limit int64) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.String()+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "guideway")
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	if c.opts.Key != nil {
		if key := c.opts.Key(); key != "" {
			req.Header.Set("Authorization", "Bearer "+key)
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &answer{status: resp.StatusCode, etag: resp.Header.Get("ETag"), retry: retryAfter(resp.Header.Get("Retry-After"))}
	if a.status != http.StatusOK {
		return a, nil
	}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(a.body)) > limit {
		return nil, errTooLarge
	}
	return a, nil
}

var errTooLarge = errors.New("its answer is too large")

// retryAfter reads how long a registry wants to be left alone.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 && seconds < 1<<20 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// explain says what is wrong with a registry, without the words of a library that
// could have a key in them.
func (c *Client) explain(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		err = urlError.Err
	}
	code := guideway.CodeUnavailable
	fix := ""
	switch {
	case errors.Is(err, ssrf.ErrPrivate):
		code, fix = guideway.CodeForbidden, "set allowPrivate on the source if the registry is in your own network"
	case errors.Is(err, errRedirect):
		code, fix = guideway.CodeForbidden, "name the new address"
	case errors.Is(err, errTooLarge):
		code, fix = guideway.CodeTooLarge, "allow more with maxBytes"
	}
	wrapped := guideway.Errorf(code, "ask the registry %s: %w", c.base, err)
	if fix != "" {
		wrapped = wrapped.WithFix("%s", fix)
	}
	return wrapped
}

// refused turns a status into what a person can use.
func (c *Client) refused(a *answer) error {
	if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		return guideway.Errorf(guideway.CodeForbidden, "the registry %s wants another key (%d)", c.base, a.status).
			WithFix("set GUIDEWAY_REGISTRY_KEY, or the token of the source")
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the registry %s answers %d %s", c.base, a.status, http.StatusText(a.status))
}

// sumOf is the SHA-256 of a text in hexadecimal digits.
func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
