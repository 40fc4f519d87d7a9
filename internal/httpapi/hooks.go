package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/hookdesk"
	"github.com/guideway-dev/guideway/internal/script"
)

// Hooks is what the API needs of the desk of hook graphs.
type Hooks interface {
	List(context.Context) (*hookdesk.List, error)
	Get(ctx context.Context, id string) (*hookdesk.Detail, error)
	Export(ctx context.Context, id string) ([]byte, error)
	Check(context.Context, hookdesk.CheckRequest) (*hookdesk.Verdict, error)
	Try(context.Context, hookdesk.TryRequest) (*hookdesk.Trial, error)
	Save(context.Context, hookdesk.SaveRequest) (*hookdesk.Detail, error)
	Remove(ctx context.Context, id, source, base string) error
	Enable(context.Context, hookdesk.EnableRequest) (replaced []string, err error)
	Disable(ctx context.Context, id string) error
	Versions(ctx context.Context, id string) ([]hookdesk.Version, error)
	Version(ctx context.Context, id, version string) (*hookdesk.VersionText, error)
	Restore(ctx context.Context, id, version, base, who string) (*hookdesk.Detail, error)
	GetModule(ctx context.Context, id string) (*hookdesk.ModuleText, error)
	SaveModule(context.Context, hookdesk.SaveRequest) (*hookdesk.ModuleText, error)
}

var _ Hooks = (*hookdesk.Desk)(nil)

// hookRoutes are those of hook graphs. What runs a script, writes a graph or has
// one stand around calls is a person's: an agent that could take down its guards
// would have none.
func (a *api) hookRoutes() []route {
	return []route{
		{"GET", "/api/hooks", authn.RightRead, a.listHooks},
		{"GET", "/api/hooks/{id}", authn.RightRead, a.getHook},
		{"PUT", "/api/hooks/{id}", authn.RightWork, byPerson(a.saveHook)},
		{"DELETE", "/api/hooks/{id}", authn.RightWork, byPerson(a.deleteHook)},
		{"GET", "/api/hooks/{id}/export", authn.RightRead, a.exportHook},
		{"POST", "/api/hooks/{id}/enable", authn.RightAnswer, byPerson(a.enableHook)},
		{"POST", "/api/hooks/{id}/disable", authn.RightAnswer, byPerson(a.disableHook)},
		{"GET", "/api/hooks/{id}/versions", authn.RightRead, a.hookVersions},
		{"GET", "/api/hooks/{id}/versions/{version}", authn.RightRead, a.hookVersion},
		{"POST", "/api/hooks/{id}/versions/{version}/restore", authn.RightWork, byPerson(a.restoreHook)},
		{"GET", "/api/hook-modules/{id}", authn.RightRead, a.hookModule},
		{"PUT", "/api/hook-modules/{id}", authn.RightWork, byPerson(a.saveHookModule)},
		{"GET", "/api/hook-types", authn.RightRead, a.hookTypes},
		{"POST", "/api/hook-check", authn.RightWork, a.checkHook},
		{"POST", "/api/hook-test", authn.RightWork, byPerson(a.testHook)},
	}
}

// byPerson lets a browser through that a person has logged in, and nobody else.
func byPerson(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if g := authn.GrantFrom(r.Context()); g.Proof != authn.ProofBrowser {
			return guideway.Errorf(guideway.CodeForbidden, "only a person works on hook graphs here").
				WithFix("use a browser that is logged in, or 'guideway hooks' at a terminal")
		}
		return handle(w, r)
	}
}

// who is the user of a request, for what is recorded.
func who(r *http.Request) string { return authn.GrantFrom(r.Context()).Principal.User }

func (a *api) listHooks(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Hooks.List(r.Context())
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, struct {
		Success bool `json:"success"`
		*hookdesk.List
	}{true, list})
	return nil
}

// answerHook answers with a graph.
func answerHook(w http.ResponseWriter, detail *hookdesk.Detail, err error) error {
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, struct {
		Success bool `json:"success"`
		*hookdesk.Detail
	}{true, detail})
	return nil
}

func (a *api) getHook(w http.ResponseWriter, r *http.Request) error {
	detail, err := a.Hooks.Get(r.Context(), r.PathValue("id"))
	return answerHook(w, detail, err)
}

// saveHookBody is a new version of a graph: as JSON, or as the text of its file.
type saveHookBody struct {
	Source string          `json:"source"`
	Base   string          `json:"base"`
	Graph  json.RawMessage `json:"graph"`
	Text   string          `json:"text"`
}

func (a *api) saveHook(w http.ResponseWriter, r *http.Request) error {
	var body saveHookBody
	if err := decode(w, r, &body); err != nil {
		return err
	}
	if (len(body.Graph) == 0) == (body.Text == "") {
		return guideway.Errorf(guideway.CodeInvalid, "the body has no graph, or two").WithFix("give one of 'graph' and 'text'")
	}
	detail, err := a.Hooks.Save(r.Context(), hookdesk.SaveRequest{
		ID: r.PathValue("id"), Source: body.Source, Base: body.Base, Graph: body.Graph, Text: body.Text, Who: who(r),
	})
	return answerHook(w, detail, err)
}

func (a *api) deleteHook(w http.ResponseWriter, r *http.Request) error {
	q := query{r: r}
	source, base := q.text("source"), q.text("base")
	if q.err != nil {
		return q.err
	}
	if err := a.Hooks.Remove(r.Context(), r.PathValue("id"), source, base); err != nil {
		return err
	}
	return done(w)
}

func done(w http.ResponseWriter) error {
	answer(w, http.StatusOK, struct {
		Success bool `json:"success"`
	}{true})
	return nil
}

func (a *api) exportHook(w http.ResponseWriter, r *http.Request) error {
	text, err := a.Hooks.Export(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	answerText(w, http.StatusOK, text)
	return nil
}

// enableHook approves exactly the graph that the pin names.
func (a *api) enableHook(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Pin     string `json:"pin"`
		Replace bool   `json:"replace"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	replaced, err := a.Hooks.Enable(r.Context(), hookdesk.EnableRequest{ID: r.PathValue("id"), Pin: body.Pin, Replace: body.Replace, Who: who(r)})
	if err != nil {
		return err
	}
	if replaced == nil {
		replaced = []string{}
	}
	answer(w, http.StatusOK, struct {
		Success bool `json:"success"`
		// Replaced are the graphs that were turned off for it.
		Replaced []string `json:"replaced"`
	}{true, replaced})
	return nil
}

func (a *api) disableHook(w http.ResponseWriter, r *http.Request) error {
	if err := a.Hooks.Disable(r.Context(), r.PathValue("id")); err != nil {
		return err
	}
	return done(w)
}

func (a *api) hookVersions(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Hooks.Versions(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, struct {
		Success  bool               `json:"success"`
		Versions []hookdesk.Version `json:"versions"`
	}{true, list})
	return nil
}

func (a *api) hookVersion(w http.ResponseWriter, r *http.Request) error {
	v, err := a.Hooks.Version(r.Context(), r.PathValue("id"), r.PathValue("version"))
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, struct {
		Success bool `json:"success"`
		*hookdesk.VersionText
	}{true, v})
	return nil
}

func (a *api) restoreHook(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Base string `json:"base"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	detail, err := a.Hooks.Restore(r.Context(), r.PathValue("id"), r.PathValue("version"), body.Base, who(r))
	return answerHook(w, detail, err)
}

// answerModule answers with a module.
func answerModule(w http.ResponseWriter, module *hookdesk.ModuleText, err error) error {
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, struct {
		Success bool                 `json:"success"`
		Module  *hookdesk.ModuleText `json:"module"`
	}{true, module})
	return nil
}

func (a *api) hookModule(w http.ResponseWriter, r *http.Request) error {
	module, err := a.Hooks.GetModule(r.Context(), r.PathValue("id"))
	return answerModule(w, module, err)
}

func (a *api) saveHookModule(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Source string `json:"source"`
		Base   string `json:"base"`
		Script string `json:"script"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	module, err := a.Hooks.SaveModule(r.Context(), hookdesk.SaveRequest{
		ID: r.PathValue("id"), Source: body.Source, Base: body.Base, Text: body.Script, Who: who(r),
	})
	return answerModule(w, module, err)
}

// hookTypes gives what scripts can use, as a TypeScript declaration file.
func (a *api) hookTypes(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, struct {
		Success bool   `json:"success"`
		Types   string `json:"types"`
	}{true, script.Types()})
	return nil
}

// hookDocument is a graph that may not be saved yet: as JSON, or as a text.
type hookDocument struct {
	Graph  json.RawMessage `json:"graph"`
	Text   string          `json:"text"`
	Source string          `json:"source"`
}

func (d *hookDocument) request() hookdesk.CheckRequest {
	if len(d.Graph) > 0 {
		return hookdesk.CheckRequest{Text: string(d.Graph), Source: d.Source}
	}
	return hookdesk.CheckRequest{Text: d.Text, Source: d.Source}
}

// checkHook says what there is to say of a graph or a module. It keeps nothing.
func (a *api) checkHook(w http.ResponseWriter, r *http.Request) error {
	var body hookDocument
	if err := decode(w, r, &body); err != nil {
		return err
	}
	verdict, err := a.Hooks.Check(r.Context(), body.request())
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, struct {
		Success bool `json:"success"`
		*hookdesk.Verdict
	}{true, verdict})
	return nil
}

// testHook takes a sample through a graph, with its scripts in the sandbox and
// without any server.
func (a *api) testHook(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		hookDocument
		Request   json.RawMessage            `json:"request"`
		Response  json.RawMessage            `json:"response"`
		Client    string                     `json:"client"`
		Server    string                     `json:"server"`
		Variables map[string]json.RawMessage `json:"variables"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	trial, err := a.Hooks.Try(r.Context(), hookdesk.TryRequest{CheckRequest: body.request(), Sample: hookdesk.Sample{
		Request: body.Request, Response: body.Response, Client: body.Client, Server: body.Server, Variables: body.Variables, Owner: who(r), Detail: true,
	}})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, struct {
		Success bool `json:"success"`
		*hookdesk.Trial
	}{true, trial})
	return nil
}
