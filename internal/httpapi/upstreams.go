package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/manage"
)

// Upstreams is what the API needs of the MCP servers behind the gateway.
type Upstreams interface {
	On() bool
	List() ([]manage.Live, error)
	Show(name string) (*manage.Details, error)
	Projects() ([]manage.Project, error)
	Add(context.Context, config.Upstream) error
	Change(ctx context.Context, base string, next config.Upstream) error
	Remove(ctx context.Context, name, base string) error
	Switch(ctx context.Context, name, base string, on bool) error
	SetProject(ctx context.Context, name, base, project string) error
	SetTool(ctx context.Context, name, base, tool string, rule config.UpstreamTool) error
	Restart(name string) error
	Ask(ctx context.Context, name string) error
	Lines(name string, n int) ([]string, error)
	Review(name string) ([]manage.Waiting, error)
	Approve(name, by string, seen []manage.Seen) error
	Import(ctx context.Context, text string, chosen []string, look bool) ([]manage.Found, error)
}

var _ Upstreams = (*manage.Service)(nil)

func (a *api) upstreamRoutes() []route {
	return []route{
		{"GET", "/api/upstreams", authn.RightRead, a.listUpstreams},
		{"POST", "/api/upstreams", authn.RightManage, a.addUpstream},
		{"GET", "/api/upstreams/{name}", authn.RightRead, a.getUpstream},
		{"PUT", "/api/upstreams/{name}", authn.RightManage, a.changeUpstream},
		{"DELETE", "/api/upstreams/{name}", authn.RightManage, a.removeUpstream},
		{"PUT", "/api/upstreams/{name}/enabled", authn.RightManage, a.switchUpstream},
		{"PUT", "/api/upstreams/{name}/project", authn.RightManage, a.moveUpstream},
		{"PUT", "/api/upstreams/{name}/tools/{tool}", authn.RightManage, a.setUpstreamTool},
		{"POST", "/api/upstreams/{name}/restart", authn.RightManage, a.restartUpstream},
		{"POST", "/api/upstreams/{name}/ask", authn.RightManage, a.askUpstream},
		{"GET", "/api/upstreams/{name}/log", authn.RightManage, a.upstreamLog},
		{"GET", "/api/upstreams/{name}/waiting", authn.RightRead, a.upstreamWaiting},
		{"POST", "/api/upstreams/{name}/approve", authn.RightManage, a.approveTools},
		{"GET", "/api/upstream-projects", authn.RightRead, a.upstreamProjects},
		{"POST", "/api/upstream-import", authn.RightManage, a.importUpstreams},
	}
}

func (a *api) listUpstreams(w http.ResponseWriter, _ *http.Request) error {
	type list struct {
		Success bool `json:"success"`
		// On says that agents are offered them.
		On        bool          `json:"on"`
		Upstreams []manage.Live `json:"upstreams"`
	}
	all, err := a.Upstreams.List()
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, list{true, a.Upstreams.On(), all})
	return nil
}

func (a *api) getUpstream(w http.ResponseWriter, r *http.Request) error {
	return a.tellUpstream(w, http.StatusOK, r.PathValue("name"))
}

// tellUpstream answers with an upstream as it is now.
func (a *api) tellUpstream(w http.ResponseWriter, status int, name string) error {
	type one struct {
		Success bool `json:"success"`
		*manage.Details
	}
	details, err := a.Upstreams.Show(name)
	if err != nil {
		return err
	}
	answer(w, status, one{true, details})
	return nil
}

func (a *api) addUpstream(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name   string          `json:"name"`
		Config config.Upstream `json:"config"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	body.Config.Name = body.Name
	if err := a.Upstreams.Add(committed(r), body.Config); err != nil {
		return err
	}
	w.Header().Set("Location", "/api/upstreams/"+url.PathEscape(body.Name))
	return a.tellUpstream(w, http.StatusCreated, body.Name)
}

// committed is the context of a change: a client that has gone leaves none half
// done.
func committed(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }

func (a *api) changeUpstream(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Base   string          `json:"base"`
		Config config.Upstream `json:"config"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	body.Config.Name = r.PathValue("name")
	return a.changed(w, r, a.Upstreams.Change(committed(r), body.Base, body.Config))
}

// changed answers a change with what is there now.
func (a *api) changed(w http.ResponseWriter, r *http.Request, err error) error {
	if err != nil {
		return err
	}
	return a.tellUpstream(w, http.StatusOK, r.PathValue("name"))
}

func (a *api) removeUpstream(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	base := q.text("base")
	if q.err != nil {
		return q.err
	}
	if err := a.Upstreams.Remove(committed(r), r.PathValue("name"), base); err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]bool{"success": true})
	return nil
}

func (a *api) switchUpstream(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Base    string `json:"base"`
		Enabled bool   `json:"enabled"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	return a.changed(w, r, a.Upstreams.Switch(committed(r), r.PathValue("name"), body.Base, body.Enabled))
}

func (a *api) moveUpstream(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Base    string `json:"base"`
		Project string `json:"project"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	return a.changed(w, r, a.Upstreams.SetProject(committed(r), r.PathValue("name"), body.Base, body.Project))
}

func (a *api) setUpstreamTool(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Base string `json:"base"`
		config.UpstreamTool
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	return a.changed(w, r, a.Upstreams.SetTool(committed(r), r.PathValue("name"), body.Base, r.PathValue("tool"), body.UpstreamTool))
}

func (a *api) restartUpstream(w http.ResponseWriter, r *http.Request) error {
	return a.changed(w, r, a.Upstreams.Restart(r.PathValue("name")))
}

// askTime bounds how long an upstream is waited for.
const askTime = time.Minute

func (a *api) askUpstream(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	return a.changed(w, r, a.Upstreams.Ask(ctx, r.PathValue("name")))
}

func (a *api) upstreamLog(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	n := q.number("lines", 200, 1, 2000)
	if q.err != nil {
		return q.err
	}
	lines, err := a.Upstreams.Lines(r.PathValue("name"), int(n))
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"success": true, "lines": append([]string{}, lines...)})
	return nil
}

func (a *api) upstreamWaiting(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Upstreams.Review(r.PathValue("name"))
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"success": true, "waiting": list})
	return nil
}

func (a *api) approveTools(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Tools []manage.Seen `json:"tools"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	return a.changed(w, r, a.Upstreams.Approve(r.PathValue("name"), approver(r), body.Tools))
}

// approver says who approves, for the record.
func approver(r *http.Request) string {
	g := authn.GrantFrom(r.Context())
	if g.Proof == authn.ProofToken {
		return g.Principal.User + " by the token " + g.Principal.Client
	}
	return g.Principal.User
}

func (a *api) upstreamProjects(w http.ResponseWriter, _ *http.Request) error {
	projects, err := a.Upstreams.Projects()
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"success": true, "projects": projects})
	return nil
}

func (a *api) importUpstreams(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Text   string   `json:"text"`
		Chosen []string `json:"chosen"`
		Look   bool     `json:"look"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	if body.Text == "" {
		return guideway.Errorf(guideway.CodeInvalid, "there is no text to take servers from").
			WithFix(`give "text", a client's configuration`)
	}
	found, err := a.Upstreams.Import(committed(r), body.Text, body.Chosen, body.Look)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]any{"success": true, "found": found})
	return nil
}
