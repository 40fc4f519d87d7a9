package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

const (
	// requestLimit is the time limit of a request without one.
	requestLimit = 30 * time.Second
	// maxBody is the part of an answer's body that is read.
	maxBody = 1 << 20
	// maxRedirects is the maximum number of redirects within one origin.
	maxRedirects = 5
)

var errElsewhere = errors.New("the redirect is not followed")

// executeHTTP requests a URL. A person has approved the address of this machine, if the URL
// has one; every other address must be public.
func (j *job) executeHTTP(ctx context.Context) error {
	limit := requestLimit
	if j.rule.Timeout != "" {
		var err error
		if limit, err = time.ParseDuration(j.rule.Timeout); err != nil {
			return guideway.Errorf(guideway.CodeInvalidDefinition, "the timeout %q of the check is not a duration", j.rule.Timeout).WithFix(`write a duration such as "90s" or "5m"`)
		}
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, j.rule.URL, http.NoBody)
	if err != nil || request.URL.User != nil || !sameOrigin(request.URL, j.template.URL) {
		j.giveUp(fmt.Sprintf("the URL %q is not requested: it is invalid, has a user name, or has a different origin than %s", j.rule.URL, j.template.URL))
		return nil
	}
	request.Header.Set("User-Agent", "guideway-check")
	if send := j.request.Progress; send != nil {
		send("requests " + j.rule.URL)
	}
	client := newClient(request.URL)
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return j.explainRequest(ctx, limit, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return j.explainRequest(ctx, limit, err)
	}
	out := newOutput(maxBody + 1)
	_, _ = out.Write(body)
	out.record(&j.result)
	want := http.StatusOK
	if j.rule.Status != 0 {
		want = j.rule.Status
	}
	if response.StatusCode != want {
		j.fail(fmt.Sprintf("%s answered with the status %d instead of %d", j.rule.URL, response.StatusCode, want))
		return nil
	}
	j.judgeText("the answer of "+j.rule.URL, text{[]string{string(body[:min(len(body), maxBody)])}, len(body) <= maxBody})
	return nil
}

// explainRequest sets the outcome of a request without an answer. Only a refused connection
// is a failure: no server listens there.
func (j *job) explainRequest(ctx context.Context, limit time.Duration, err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, syscall.ECONNREFUSED):
		j.fail(j.rule.URL + " refused the connection")
	case errors.Is(err, errElsewhere):
		j.giveUp(fmt.Sprintf("%s redirects to another origin or more than %d times, which is not followed", j.rule.URL, maxRedirects))
	case errors.Is(err, context.DeadlineExceeded):
		j.giveUp(fmt.Sprintf("%s did not answer within its time limit of %v", j.rule.URL, limit))
	default:
		j.giveUp(fmt.Sprintf("%s did not answer: %v", j.rule.URL, err))
	}
	return nil
}

// sameOrigin reports whether a URL has the scheme, the host and the port of a template, which
// has them as literal text.
func sameOrigin(u *url.URL, template string) bool {
	t, err := url.Parse(template)
	return err == nil && u.Scheme == t.Scheme && u.Host == t.Host
}

// newClient returns a client that connects to the loopback address of a URL, if it has one,
// and else only to public addresses.
func newClient(u *url.URL) *http.Client {
	control := ssrf.Control(false)
	if address, ok := checksfile.LoopbackAddress(u.String()); ok {
		control = loopbackControl(address)
	}
	dialer := &net.Dialer{Timeout: requestLimit, Control: control}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Scheme != u.Scheme || next.URL.Host != u.Host || len(via) > maxRedirects {
				return errElsewhere
			}
			return nil
		},
	}
}

// loopbackControl returns a function for net.Dialer that allows only the port of an approved
// address of this machine.
func loopbackControl(approved string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		u, err := url.Parse(approved)
		got, gotErr := netip.ParseAddrPort(address)
		if err != nil || gotErr != nil || !got.Addr().Unmap().IsLoopback() || u.Port() != fmt.Sprint(got.Port()) {
			return fmt.Errorf("%w: %s", ssrf.ErrPrivate, address)
		}
		return nil
	}
}

// executeTool calls a tool of the gateway. A tool that reports an error fails.
func (j *job) executeTool(ctx context.Context) error {
	if j.opts.Tools == nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the tool %s cannot be called: this command has no gateway", j.rule.Tool).
			WithFix("execute the check in a run that a client of a Guideway server continues")
	}
	if send := j.request.Progress; send != nil {
		send("calls the tool " + j.rule.Tool)
	}
	result, err := j.opts.Tools.CallTool(ctx, j.rule.Tool, j.rule.Arguments)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case guideway.ErrorCode(err) == guideway.CodeNotFound || guideway.ErrorCode(err) == guideway.CodeForbidden:
		return err
	case err != nil:
		j.giveUp(fmt.Sprintf("the call of the tool %s failed: %v", j.rule.Tool, err))
		return nil
	}
	shown := result.Text
	if result.Structured != nil {
		if encoded, err := jsontext.Marshal(result.Structured); err == nil {
			shown = string(encoded)
		}
	}
	out := newOutput(int64(len(shown)))
	_, _ = out.Write([]byte(shown))
	out.record(&j.result)
	condition := j.rule.ResultCondition()
	switch {
	case result.IsError:
		j.fail(fmt.Sprintf("the tool %s reported an error: %s", j.rule.Tool, shorten(result.Text, 500)))
	case j.rule.Result == nil || condition.Holds(lookUp(result.Structured)):
		j.pass()
	default:
		j.fail(fmt.Sprintf("the result of the tool %s does not meet the condition: %s", j.rule.Tool, condition))
	}
	return nil
}

// lookUp returns the variables of a condition on a structured result: its members, or the
// variable "result" if it is no object.
func lookUp(structured any) expr.Lookup {
	if object, ok := structured.(map[string]any); ok {
		return expr.Map(object)
	}
	return expr.Map(map[string]any{"result": structured})
}
