package httpapi

import (
	"context"
	"net/url"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

func (a *api) upstreamRoutes() []route {
	return []route{
		{"GET", "/api/upstreams", auth.RightRead, a.listUpstreams},
		{"POST", "/api/upstreams", auth.RightManage, withBody(a.addUpstream)},
		{"GET", "/api/upstreams/{name}", auth.RightRead, a.getUpstream},
		{"PUT", "/api/upstreams/{name}", auth.RightManage, withBody(a.changeUpstream)},
		{"DELETE", "/api/upstreams/{name}", auth.RightManage, a.removeUpstream},
		{"PUT", "/api/upstreams/{name}/enabled", auth.RightManage, withBody(a.switchUpstream)},
		{"PUT", "/api/upstreams/{name}/project", auth.RightManage, withBody(a.moveUpstream)},
		{"PUT", "/api/upstreams/{name}/tools/{tool}", auth.RightManage, withBody(a.setUpstreamTool)},
		{"POST", "/api/upstreams/{name}/restart", auth.RightManage, a.restartUpstream},
		{"POST", "/api/upstreams/{name}/login", auth.RightLogin, a.loginUpstream},
		{"DELETE", "/api/upstreams/{name}/login", auth.RightLogin, a.logoutUpstream},
		{"POST", "/api/upstream-logins", auth.RightLogin, withBody(a.finishUpstreamLogin)},
		{"POST", "/api/upstreams/{name}/ask", auth.RightManage, a.askUpstream},
		{"GET", "/api/upstreams/{name}/log", auth.RightManage, a.upstreamLog},
		{"GET", "/api/upstreams/{name}/waiting", auth.RightRead, a.upstreamWaiting},
		{"POST", "/api/upstreams/{name}/approve", auth.RightManage, withBody(a.approveTools)},
		{"GET", "/api/upstream-projects", auth.RightRead, a.upstreamProjects},
		{"POST", "/api/upstream-import", auth.RightManage, withBody(a.importUpstreams)},
	}
}

// listUpstreams returns the upstreams. The member on reports whether agents can use them.
func (a *api) listUpstreams(c *call) (any, error) {
	all, err := a.Upstreams.List(c.userName())
	return object{"on": a.Upstreams.On(), "upstreams": all}, err
}

func (a *api) getUpstream(c *call) (any, error) {
	return a.Upstreams.Show(c.PathValue("name"), c.userName())
}

type addUpstreamBody struct {
	Name   string          `json:"name"`
	Config config.Upstream `json:"config"`
}

func (a *api) addUpstream(c *call, body addUpstreamBody) (any, error) {
	body.Config.Name = body.Name
	if err := a.Upstreams.Add(c.withoutCancel(), body.Config); err != nil {
		return nil, err
	}
	c.setCreated("/api/upstreams/", body.Name)
	return a.Upstreams.Show(body.Name, c.userName())
}

// withoutCancel returns the context of a change. A change completes even if the client
// disconnects.
func (c *call) withoutCancel() context.Context { return context.WithoutCancel(c.Context()) }

type changeUpstreamBody struct {
	Base   string          `json:"base"`
	Config config.Upstream `json:"config"`
}

func (a *api) changeUpstream(c *call, body changeUpstreamBody) (any, error) {
	body.Config.Name = c.PathValue("name")
	return a.showChanged(c, a.Upstreams.Change(c.withoutCancel(), body.Base, body.Config))
}

// showChanged answers a change with the current state of the upstream.
func (a *api) showChanged(c *call, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return a.getUpstream(c)
}

func (a *api) removeUpstream(c *call) (any, error) {
	base := c.textParam("base")
	if c.err != nil {
		return nil, c.err
	}
	return nil, a.Upstreams.Remove(c.withoutCancel(), c.PathValue("name"), base)
}

type switchUpstreamBody struct {
	Base    string `json:"base"`
	Enabled bool   `json:"enabled"`
}

func (a *api) switchUpstream(c *call, body switchUpstreamBody) (any, error) {
	return a.showChanged(c, a.Upstreams.Switch(c.withoutCancel(), c.PathValue("name"), body.Base, body.Enabled))
}

type moveUpstreamBody struct {
	Base    string `json:"base"`
	Project string `json:"project"`
}

func (a *api) moveUpstream(c *call, body moveUpstreamBody) (any, error) {
	return a.showChanged(c, a.Upstreams.SetProject(c.withoutCancel(), c.PathValue("name"), body.Base, body.Project))
}

type upstreamToolBody struct {
	config.UpstreamTool

	Base string `json:"base"`
}

func (a *api) setUpstreamTool(c *call, body upstreamToolBody) (any, error) {
	return a.showChanged(c, a.Upstreams.SetTool(c.withoutCancel(), c.PathValue("name"), body.Base, c.PathValue("tool"), body.UpstreamTool))
}

func (a *api) restartUpstream(c *call) (any, error) {
	return a.showChanged(c, a.Upstreams.Restart(c.PathValue("name")))
}

func (a *api) loginUpstream(c *call) (any, error) {
	return a.Upstreams.StartLogin(c.Context(), c.PathValue("name"), c.userName(), c.browser())
}

func (a *api) logoutUpstream(c *call) (any, error) {
	return a.showChanged(c, a.Upstreams.Logout(c.withoutCancel(), c.PathValue("name"), c.userName()))
}

// browser identifies the session of the browser, or is "" if another client sends the request.
func (c *call) browser() string {
	if c.authGrant().Proof != auth.ProofBrowser {
		return ""
	}
	return digest.Hex(c.Header.Get(auth.KeyHeader))
}

// upstreamLoginBody has the parameters of the redirect of a login.
type upstreamLoginBody struct {
	Query string `json:"query"`
}

// finishUpstreamLogin ends a login for the page to which the authorization server has sent the
// browser.
func (a *api) finishUpstreamLogin(c *call, body upstreamLoginBody) (any, error) {
	query, err := url.ParseQuery(body.Query)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, `"query" is not a query: %w`, err).WithFix("send the query of the redirect unchanged")
	}
	name, err := a.Upstreams.FinishLogin(c.withoutCancel(), query, c.userName(), c.browser())
	if guideway.ErrorCode(err) == guideway.CodeUnauthorized { // the credential of this request is valid
		err = guideway.Errorf(guideway.CodeRefused, "%w", err).WithFix("%s", guideway.ErrorFix(err))
	}
	return object{"upstream": name}, err
}

// upstreamTime is the time limit for an upstream's answer.
const upstreamTime = time.Minute

func (a *api) askUpstream(c *call) (any, error) {
	ctx, cancel := context.WithTimeout(c.Context(), upstreamTime)
	defer cancel()
	return a.showChanged(c, a.Upstreams.Ask(ctx, c.PathValue("name"), c.userName()))
}

func (a *api) upstreamLog(c *call) (any, error) {
	n := c.intParam("lines", 200, 1, 2000)
	if c.err != nil {
		return nil, c.err
	}
	lines, err := a.Upstreams.Lines(c.PathValue("name"), int(n))
	return object{"lines": replaceNil(lines)}, err
}

func (a *api) upstreamWaiting(c *call) (any, error) {
	list, err := a.Upstreams.Review(c.PathValue("name"))
	return object{"waiting": list}, err
}

type approveBody struct {
	Tools []gatewayadmin.Seen `json:"tools"`
}

func (a *api) approveTools(c *call, body approveBody) (any, error) {
	g := c.authGrant()
	by := g.Principal.User // The approval records this name.
	if g.Proof == auth.ProofToken {
		by += " by the token " + g.Principal.Client
	}
	return a.showChanged(c, a.Upstreams.Approve(c.PathValue("name"), by, body.Tools))
}

func (a *api) upstreamProjects(*call) (any, error) {
	projects, err := a.Upstreams.Projects()
	return object{"projects": projects}, err
}

// importBody is a client's configuration and the servers to import from it.
type importBody struct {
	Text   string   `json:"text"`
	Chosen []string `json:"chosen"`
	Look   bool     `json:"look"`
}

func (a *api) importUpstreams(c *call, body importBody) (any, error) {
	if body.Text == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the text to import is empty").
			WithFix(`set "text" to a client's configuration`)
	}
	found, err := a.Upstreams.Import(c.withoutCancel(), body.Text, body.Chosen, body.Look)
	return object{"found": found}, err
}
