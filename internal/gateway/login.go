package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/url"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// loginWait is the maximum time for which a call waits for a login.
const loginWait = 2 * time.Minute

// loginQuestion is the ID of the question to open the page for the login.
const loginQuestion = "login"

// codeLogin is the MCP error code of a request that needs a page to be opened first.
const codeLogin = -32042

// sendAfterLogin handles a call that its upstream refused because a person must log in. It
// asks the client to open the page of the upstream in the dashboard, waits for the login and
// sends the call again, once. Only a browser that is logged in to the dashboard can start a
// login there: the URL of the page is no secret. If the client cannot open pages, or no
// login follows, it returns refused.
func (g *Gateway) sendAfterLogin(ctx context.Context, c *Client, a route, r Request, refused error) (json.RawMessage, error) {
	page := g.loginPage(ctx, c, a.member)
	if page == "" {
		return nil, refused
	}
	var answer json.RawMessage
	if st, _ := g.sealer.openState(r.State, c.stateOwner(), a.shown); st.Login { // A request without a state has no answer.
		members, _ := jsonrpc.Members(responsesOf(r.Responses)) // An invalid answer is a refusal.
		answer = members[loginQuestion]
	} else {
		params := jsonrpc.Object(
			jsonrpc.Member{Key: "mode", Value: json.RawMessage(`"url"`)}, jsonrpc.Member{Key: "elicitationId", Value: jsonrpc.Text(rand.Text())},
			jsonrpc.Member{Key: "url", Value: jsonrpc.Text(page)},
			jsonrpc.Member{Key: "message", Value: jsonrpc.Text("The call needs a login to the MCP server " + a.member.Name() + ". Open its page in Guideway, and log in there.")})
		if c.Modern {
			return c.inputResult([]question{{ID: loginQuestion, Method: "elicitation/create", Params: params}},
				g.sealer.sealState(state{User: c.stateOwner(), Tool: a.shown, Approved: r.approved, Login: true}))
		}
		var failure *jsonrpc.Error
		if answer, failure = c.Ask(ctx, "elicitation/create", params); failure != nil {
			return nil, &jsonrpc.Error{
				Code: codeLogin, Message: refused.Error(),
				Data: jsonrpc.Object(jsonrpc.Member{Key: "elicitations", Value: append(append(json.RawMessage{'['}, params...), ']')}),
			}
		}
	}
	if jsonrpc.TextMember(answer, "action") != "accept" {
		return nil, refused
	}
	late := time.NewTimer(loginWait)
	defer late.Stop()
	select {
	case <-a.member.Closing(): // A login restarts the upstream.
	case <-late.C:
		return nil, refused
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return g.sendOnce(ctx, c, a, r)
}

// loginPage returns the URL of the page on which a person logs in to an upstream, or "" if the
// client cannot open it.
func (g *Gateway) loginPage(ctx context.Context, c *Client, m *member) string {
	var modes struct {
		URL json.RawMessage `json:"url"`
	}
	if json.Unmarshal(c.Capabilities.Elicitation, &modes) != nil || modes.URL == nil || !c.Modern && c.Ask == nil {
		return ""
	}
	return g.pageURL(ctx, "/gateway/"+url.PathEscape(m.Name()))
}
