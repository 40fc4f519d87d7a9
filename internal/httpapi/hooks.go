package httpapi

import (
	"encoding/json"

	"github.com/guideway-dev/guideway"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// hookRoutes returns the routes of hook graphs. Only a person may change, enable, disable
// or test a graph, or change a module, because hook graphs guard against agents.
func (a *api) hookRoutes() []route {
	return []route{
		{"GET", "/api/hooks", auth.RightRead, a.listHooks},
		{"GET", "/api/hooks/{id}", auth.RightRead, a.getHook},
		{"PUT", "/api/hooks/{id}", auth.RightDefine, requirePerson(withBody(a.saveHook))},
		{"DELETE", "/api/hooks/{id}", auth.RightDefine, requirePerson(a.deleteHook)},
		{"GET", "/api/hooks/{id}/export", auth.RightRead, a.exportHook},
		{"POST", "/api/hooks/{id}/enable", auth.RightDefine, requirePerson(withBody(a.enableHook))},
		{"POST", "/api/hooks/{id}/disable", auth.RightDefine, requirePerson(a.disableHook)},
		{"GET", "/api/hooks/{id}/versions", auth.RightRead, a.hookVersions},
		{"GET", "/api/hooks/{id}/versions/{version}", auth.RightRead, a.hookVersion},
		{"POST", "/api/hooks/{id}/versions/{version}/restore", auth.RightDefine, requirePerson(withBody(a.restoreHook))},
		{"GET", "/api/hook-modules/{id}", auth.RightRead, a.hookModule},
		{"PUT", "/api/hook-modules/{id}", auth.RightDefine, requirePerson(withBody(a.saveHookModule))},
		{"GET", "/api/hook-types", auth.RightRead, a.hookTypes},
		{"POST", "/api/hook-check", auth.RightWork, withBody(a.checkHook)},
		{"POST", "/api/hook-test", auth.RightWork, requirePerson(withBody(a.testHook))},
	}
}

// requirePerson refuses all credentials except a browser in which a person has logged in.
func requirePerson(handle handler) handler {
	return func(c *call) (any, error) {
		if c.authGrant().Proof != auth.ProofBrowser {
			return nil, guideway.Errorf(guideway.CodeForbidden, "this credential cannot change, enable, disable or test hook graphs and modules").
				WithFix("use a browser that is logged in (guideway open), or guideway hooks at a terminal")
		}
		return handle(c)
	}
}

func (a *api) listHooks(c *call) (any, error) { return a.Hooks.List(c.Context()) }

func (a *api) getHook(c *call) (any, error) { return a.Hooks.Get(c.Context(), c.PathValue("id")) }

// saveHookBody is a new version of a graph, as JSON or as the text of its file.
type saveHookBody struct {
	Source string          `json:"source"`
	Base   string          `json:"base"`
	Graph  json.RawMessage `json:"graph"`
	Text   string          `json:"text"`
}

func (a *api) saveHook(c *call, body saveHookBody) (any, error) {
	if (len(body.Graph) == 0) == (body.Text == "") {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the body must have either a graph or a text").WithFix(`set either "graph" or "text"`)
	}
	return a.Hooks.Save(c.Context(), hookadmin.SaveRequest{
		ID: c.PathValue("id"), Source: body.Source, Base: body.Base, Graph: body.Graph, Text: body.Text, Who: c.userName(),
	})
}

func (a *api) deleteHook(c *call) (any, error) {
	source, base := c.textParam("source"), c.textParam("base")
	if c.err != nil {
		return nil, c.err
	}
	return nil, a.Hooks.Remove(c.Context(), c.PathValue("id"), source, base)
}

func (a *api) exportHook(c *call) (any, error) {
	text, err := a.Hooks.Export(c.Context(), c.PathValue("id"))
	return json.RawMessage(text), err
}

type enableHookBody struct {
	Pin   string `json:"pin"`
	Order *int   `json:"order"`
}

// enableHook approves exactly the graph that the pin names.
func (a *api) enableHook(c *call, body enableHookBody) (any, error) {
	return nil, a.Hooks.Enable(c.Context(), hookadmin.EnableRequest{ID: c.PathValue("id"), Pin: body.Pin, Order: body.Order, Who: c.userName()})
}

func (a *api) disableHook(c *call) (any, error) {
	return nil, a.Hooks.Disable(c.Context(), c.PathValue("id"))
}

func (a *api) hookVersions(c *call) (any, error) {
	list, err := a.Hooks.Versions(c.Context(), c.PathValue("id"))
	return object{"versions": list}, err
}

func (a *api) hookVersion(c *call) (any, error) {
	return a.Hooks.Version(c.Context(), c.PathValue("id"), c.PathValue("version"))
}

type restoreHookBody struct {
	Base string `json:"base"`
}

func (a *api) restoreHook(c *call, body restoreHookBody) (any, error) {
	return a.Hooks.Restore(c.Context(), c.PathValue("id"), c.PathValue("version"), body.Base, c.userName())
}

func (a *api) hookModule(c *call) (any, error) {
	module, err := a.Hooks.GetModule(c.Context(), c.PathValue("id"))
	return object{"module": module}, err
}

type saveModuleBody struct {
	Source string `json:"source"`
	Base   string `json:"base"`
	Script string `json:"script"`
}

func (a *api) saveHookModule(c *call, body saveModuleBody) (any, error) {
	module, err := a.Hooks.SaveModule(c.Context(), hookadmin.SaveRequest{
		ID: c.PathValue("id"), Source: body.Source, Base: body.Base, Text: body.Script, Who: c.userName(),
	})
	return object{"module": module}, err
}

// hookTypes returns the TypeScript declarations of the script API.
func (a *api) hookTypes(*call) (any, error) { return object{"types": sandbox.Types()}, nil }

// hookDocument is a graph or a module that need not be valid, as JSON or as text.
type hookDocument struct {
	Graph  json.RawMessage `json:"graph"`
	Text   string          `json:"text"`
	Source string          `json:"source"`
}

func (d *hookDocument) checkRequest() hookadmin.CheckRequest {
	if len(d.Graph) > 0 {
		return hookadmin.CheckRequest{Text: string(d.Graph), Source: d.Source}
	}
	return hookadmin.CheckRequest{Text: d.Text, Source: d.Source}
}

// checkHook returns the diagnostics of a graph or a module. It stores nothing.
func (a *api) checkHook(c *call, body hookDocument) (any, error) {
	return a.Hooks.Check(c.Context(), body.checkRequest())
}

// testHookBody is a graph and a sample request for it.
type testHookBody struct {
	hookDocument

	Request   json.RawMessage            `json:"request"`
	Response  json.RawMessage            `json:"response"`
	Client    string                     `json:"client"`
	Server    string                     `json:"server"`
	Variables map[string]json.RawMessage `json:"variables"`
}

// testHook runs a graph on a sample, with its scripts in the sandbox and without an
// upstream.
func (a *api) testHook(c *call, body testHookBody) (any, error) {
	return a.Hooks.Try(c.Context(), hookadmin.TryRequest{CheckRequest: body.checkRequest(), Sample: hookadmin.Sample{
		Request: body.Request, Response: body.Response, Client: body.Client, Server: body.Server, Variables: body.Variables, Owner: c.userName(), Detail: true,
	}})
}
