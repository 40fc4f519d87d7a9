package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// loginWait is the maximum time for which a call waits for a login.
const loginWait = 2 * time.Minute

// loginQuestion is the ID of the question to open the page for the login.
const loginQuestion = "login"

// codeLogin is the MCP error code of a request that needs a page to be opened first.
const codeLogin = -32042

// loginPoll is the interval of looks for the login of a person, which any instance may store.
const loginPoll = 500 * time.Millisecond

// sendAfterLogin handles a call that its upstream refused because a person must log in. It
// asks the client to open the page of the upstream in the dashboard, waits for the login and
// sends the call again, once. Only a browser that is logged in to the dashboard can start a
// login there: the URL of the page is no secret. If the client cannot open pages, or no
// login follows, it returns refused.
func (g *Gateway) sendAfterLogin(ctx context.Context, c *Client, a route, r Request, refused error) (json.RawMessage, error) {
	params := g.loginForm(ctx, c, a.member)
	if params == nil {
		return nil, refused
	}
	var answer json.RawMessage
	if st, _ := g.sealer.openState(r.State, c.stateOwner(), a.shown); st.Login { // A request without a state has no answer.
		members, _ := jsonrpc.Members(responsesOf(r.Responses)) // An invalid answer is a refusal.
		answer = members[loginQuestion]
	} else {
		if c.Modern {
			return c.inputResult([]question{{ID: loginQuestion, Method: "elicitation/create", Params: params}},
				g.sealer.sealState(state{User: c.stateOwner(), Tool: a.shown, Approved: r.approved, Login: true}))
		}
		var failure *jsonrpc.Error
		if answer, failure = c.Ask(ctx, "elicitation/create", params); failure != nil {
			return nil, loginError(refused, params)
		}
	}
	if jsonrpc.TextMember(answer, "action") != "accept" {
		return nil, refused
	}
	if !g.awaitLogin(ctx, c, a.member) {
		return nil, cmp.Or(context.Cause(ctx), refused)
	}
	return g.sendOnce(ctx, c, a, r)
}

// awaitLogin waits until the user of a client has logged in to an upstream, and reports whether
// that happened in time.
func (g *Gateway) awaitLogin(ctx context.Context, c *Client, m *member) bool {
	ctx, cancel := context.WithTimeout(ctx, loginWait)
	defer cancel()
	poll := time.NewTicker(loginPoll)
	defer poll.Stop()
	for person := g.personOf(c, m); person == "" || !m.HasLogin(person); {
		select {
		case <-m.Closing(): // A login of the local user restarts the upstream.
			return true
		case <-poll.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// loginForm returns the question to open the page of an upstream in the dashboard, or nil if the
// client cannot open it.
func (g *Gateway) loginForm(ctx context.Context, c *Client, m *member) json.RawMessage {
	var modes struct {
		URL json.RawMessage `json:"url"`
	}
	if json.Unmarshal(c.Capabilities.Elicitation, &modes) != nil || modes.URL == nil || !c.Modern && c.Ask == nil {
		return nil
	}
	page := g.loginPage(ctx, m)
	if page == "" {
		return nil
	}
	return jsonrpc.Object(
		jsonrpc.Member{Key: "mode", Value: json.RawMessage(`"url"`)}, jsonrpc.Member{Key: "elicitationId", Value: jsonrpc.Text(rand.Text())},
		jsonrpc.Member{Key: "url", Value: jsonrpc.Text(page)},
		jsonrpc.Member{Key: "message", Value: jsonrpc.Text("The call needs a login to the MCP server " + m.Name() + ". Open its page in Guideway, and log in there.")})
}

// loginPage returns the URL of the page on which a person logs in to an upstream, or "".
func (g *Gateway) loginPage(ctx context.Context, m *member) string {
	return g.pageURL(ctx, "/gateway/"+url.PathEscape(m.Name()))
}

// loginError returns the MCP error of a request that needs a login.
func loginError(refused error, params json.RawMessage) error {
	return &jsonrpc.Error{
		Code: codeLogin, Message: refused.Error(),
		Data: jsonrpc.Object(jsonrpc.Member{Key: "elicitations", Value: jsonrpc.List(params)}),
	}
}

// explainLogin adds to a refusal how the user of a client logs in: only the local user has the
// command. It returns other errors unchanged.
func (g *Gateway) explainLogin(ctx context.Context, c *Client, m *member, err error) error {
	var required *upstream.LoginRequired
	if g.personOf(c, m) == "" || !errors.As(err, &required) {
		return err
	}
	return &upstream.LoginRequired{Err: guideway.Errorf(guideway.CodeUnauthorized, "the user %q is not logged in to %s: %w", c.Principal.User, m.Name(), required.Err).
		WithFix("log in on the page of the upstream in the dashboard: %s", cmp.Or(g.loginPage(ctx, m), "/gateway/"+m.Name()))}
}

// requireLogin returns the refusal of a tool that the client does not see because its upstream
// lists its tools after a login only. It returns nil if a login would not help.
func (g *Gateway) requireLogin(ctx context.Context, c *Client, name string) error {
	for _, m := range g.allMembers() {
		if g.personOf(c, m) == "" || m.NoPrefix || !strings.HasPrefix(name, m.namePrefix()) || !g.accessOf(ctx).mayAllow(m) {
			continue
		}
		var required *upstream.LoginRequired
		err := g.explainLogin(ctx, c, m, g.fetchLists(ctx, c, m))
		if !errors.As(err, &required) {
			return nil
		}
		if params := g.loginForm(ctx, c, m); params != nil {
			return loginError(err, params)
		}
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error() + "; " + guideway.ErrorFix(err)}
	}
	return nil
}
