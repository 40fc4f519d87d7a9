// Package registry fetches the definitions of a registry, and serves the definitions of a
// catalog as a registry.
//
// A registry answers GET requests below its URL:
//
//	index             {format, revision, documents: [{name, size, sha256}]}
//	documents/{sum}   one document, by its SHA-256
//	workflows         a list of workflows as JSON: [...], {workflows: [...]} or {data: [...]}
//	workflows/{id}    one workflow, by its id
//
// The first two paths are Guideway's own and transfer only changed documents. If a registry
// has no such index, the client uses the last two, which other systems also have.
package registry

import (
	"cmp"
	"context"
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

// Options configure a Client; URL is required.
type Options struct {
	URL string
	// Key returns the key for the registry. A nil function or an empty key means that no
	// key is sent. The function is called for every request, and the key is not stored.
	Key func() string
	// AllowPrivate allows a registry at a private address, or without encryption.
	// Link-local addresses and the metadata services of clouds are never allowed.
	AllowPrivate bool
	// Timeout limits the time of one answer; 0 means 10 seconds.
	Timeout time.Duration
	// Limits bound the content of a registry.
	Limits mirror.Limits
	// Pause waits before another attempt; nil sleeps.
	Pause func(context.Context, time.Duration) error
}

// attempts is the number of attempts for a request.
const attempts = 3

// The pauses between attempts.
const (
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
)

// Client fetches the content of a registry.
type Client struct {
	opts Options
	base *url.URL
	http *http.Client
}

var _ mirror.Fetcher = (*Client)(nil)

// New checks the URL of a registry. It makes no connection.
func New(opts Options) (*Client, error) {
	u, err := url.Parse(strings.TrimSpace(opts.URL))
	bad := func(message, fix string) error {
		return guideway.Errorf(guideway.CodeInvalid, "the address of the registry %s", message).WithFix("%s", fix)
	}
	const form = "write https://host/path"
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, bad("is not an http or https URL with a host", form)
	case u.User != nil:
		return nil, bad("has a user or a password in it", "remove them from the address, and set GUIDEWAY_REGISTRY_KEY, or \"token\" of the source")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, bad("has a query or a fragment", form)
	case u.Scheme == "http" && !opts.AllowPrivate:
		return nil, guideway.Errorf(guideway.CodeForbidden, "the connection to the registry would not be encrypted, which is not allowed").
			WithFix("use https, or set \"allowPrivate\" of the source for a registry in your own network")
	}
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	opts.Limits = opts.Limits.WithDefaults()
	if opts.Pause == nil {
		opts.Pause = ctxsleep.For
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return &Client{opts: opts, base: u, http: newHTTP(opts)}, nil
}

// Location returns the URL of the registry.
func (c *Client) Location() string { return c.base.String() }

// Origin identifies the registry.
func (c *Client) Origin() string { return "registry:" + c.base.String() }

// newHTTP makes a client that only connects to the registry.
func newHTTP(opts Options) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: ssrf.Control(opts.AllowPrivate)}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: opts.Timeout,
		MaxResponseHeaderBytes: 1 << 16, ForceAttemptHTTP2: true, IdleConnTimeout: time.Second, MaxIdleConnsPerHost: 2,
	}
	return &http.Client{
		Transport: transport, Timeout: opts.Timeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return fmt.Errorf("%w: %s", errRedirect, req.URL.Redacted())
			}
			if len(via) > maxRedirects {
				return errRedirects
			}
			return nil
		},
	}
}

// maxRedirects limits the redirects of a request.
const maxRedirects = 3

var (
	errRedirect  = errors.New("the server redirects to a different host or scheme, which is not followed")
	errRedirects = fmt.Errorf("the server redirects more than %d times", maxRedirects)
)

// answer is the answer of a registry.
type answer struct {
	status int
	body   []byte
	etag   string
	retry  time.Duration
}

// getWithRetry sends a GET request, and retries transient errors. tag is the ETag of the
// copy, limit bounds the answer.
func (c *Client) getWithRetry(ctx context.Context, path, tag string, limit int64) (*answer, error) {
	var failed error
	for attempt := range attempts {
		if attempt > 0 {
			if err := c.opts.Pause(ctx, retryDelay(attempt, failed)); err != nil {
				return nil, cmp.Or(failed, err)
			}
		}
		a, err := c.sendRequest(ctx, path, tag, limit)
		switch {
		case err == nil && !isTransient(a.status):
			return a, nil
		case err == nil:
			failed = &statusError{status: a.status, retry: a.retry}
		case errors.Is(err, errRedirect) || errors.Is(err, ssrf.ErrPrivate) || errors.Is(err, errTooLarge) || ctx.Err() != nil:
			return nil, c.requestError(err)
		default:
			failed = err
		}
	}
	return nil, c.requestError(failed)
}

// isTransient reports whether a retry may succeed.
func isTransient(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// statusError is an answer with an error status.
type statusError struct {
	status int
	retry  time.Duration
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server responded with %d %s", e.status, http.StatusText(e.status))
}

// retryDelay returns the pause before an attempt: the pause that the registry requests, or
// else a pause that doubles with each attempt. A random part is added, so that clients do
// not retry at the same time.
func retryDelay(attempt int, failed error) time.Duration {
	wait := firstPause << (attempt - 1)
	var status *statusError
	if errors.As(failed, &status) && status.retry > 0 {
		wait = status.retry
	}
	return min(wait, maxPause) + rand.N(wait/2+1) //nolint:gosec // the pause is no secret
}

// sendRequest sends one request.
func (c *Client) sendRequest(ctx context.Context, path, tag string, limit int64) (*answer, error) {
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
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if int64(len(a.body)) > limit {
		return nil, fmt.Errorf("%w: %d bytes", errTooLarge, limit)
	}
	return a, nil
}

var errTooLarge = errors.New("the response is larger than the limit of the source")

// retryAfter reads the pause that a registry requests.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 && seconds < 1<<20 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// requestError describes an error of a registry, and omits library messages that could
// contain a key.
func (c *Client) requestError(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		err = urlError.Err
	}
	code := guideway.CodeUnavailable
	fix := ""
	switch {
	case errors.Is(err, ssrf.ErrPrivate):
		code, fix = guideway.CodeForbidden, "set \"allowPrivate\" of the source if the registry is in your own network"
	case errors.Is(err, errRedirects):
		code, fix = guideway.CodeForbidden, "check the address of the registry; its redirects may form a loop"
	case errors.Is(err, errRedirect):
		code, fix = guideway.CodeForbidden, "use the address that the registry redirects to"
	case errors.Is(err, errTooLarge):
		code, fix = guideway.CodeTooLarge, "raise maxBytes of the source, or maxFileSize for a single document"
	}
	wrapped := guideway.Errorf(code, "request the registry %s: %w", c.base, err)
	if fix != "" {
		wrapped = wrapped.WithFix("%s", fix)
	}
	return wrapped
}

// statusFix turns a status into an error with a fix.
func (c *Client) statusFix(a *answer) error {
	if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		return guideway.Errorf(guideway.CodeForbidden, "the registry %s denied access: %d %s", c.base, a.status, http.StatusText(a.status)).
			WithFix("set GUIDEWAY_REGISTRY_KEY, or \"token\" of the source, to a key that the registry accepts; a key that is set may be wrong, revoked or expired")
	}
	err := guideway.Errorf(guideway.CodeUnavailable, "the registry %s responded with %d %s", c.base, a.status, http.StatusText(a.status))
	if a.status == http.StatusNotFound {
		err = err.WithFix("check the address of the registry")
	}
	return err
}
