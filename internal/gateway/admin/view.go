package admin

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// State is the state of an upstream.
type State string

// The states.
const (
	// StateWrong: the configuration is invalid. StateDisabled: disabled in the
	// configuration. StateElsewhere: belongs to a project other than the gateway's.
	StateWrong     State = "wrong"
	StateDisabled  State = "disabled"
	StateElsewhere State = "elsewhere"
	// StateIdle: has no session, because none is needed. StateRunning: has a session.
	// StateFailed: has failed and will be retried.
	StateIdle    State = "idle"
	StateRunning State = "running"
	StateFailed  State = "failed"
	// StateOff: the gateway is off.
	StateOff State = "off"
)

// Summary is an upstream in a list.
type Summary struct {
	Name     string `json:"name"`
	Reached  string `json:"reached"`
	Where    string `json:"where"`
	Project  string `json:"project,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
	// Problem is the reason why the upstream's configuration is invalid.
	Problem string `json:"error,omitempty"`
	// Tools and Waiting are from the last catalog; Tools is -1 without one.
	Tools   int        `json:"tools"`
	Waiting int        `json:"waiting"`
	Asked   *time.Time `json:"askedAt,omitempty"`
	// Login is the login of the user, or nil. LoginPossible reports whether a person can log
	// in.
	Login         *upstream.LoginInfo `json:"login,omitempty"`
	LoginPossible bool                `json:"loginPossible,omitempty"`
}

// Summarize returns the summary of an upstream for a user without starting it.
func (s *Service) Summarize(u config.Upstream, user string) Summary {
	e := EntryOf(u)
	row := Summary{Name: u.Name, Reached: e.Spec.Kind(), Where: targetOf(u), Project: u.Project, Disabled: u.Disabled, Tools: -1}
	if err := e.Check(); err != nil {
		row.Problem = err.Error()
		return row
	}
	if row.LoginPossible = e.Spec.CanLogIn(); row.LoginPossible {
		row.Login = upstream.LoginTo(e.Spec, s.optionsOf(user))
	}
	c := s.knownCatalog(e)
	if c == nil {
		return row
	}
	row.Tools, row.Asked = len(c.Tools), &c.Fetched
	if waiting, err := s.waitingTools(e, c); err == nil {
		row.Waiting = len(waiting)
	}
	return row
}

// targetOf returns the command or the URL of an upstream without secrets.
func targetOf(u config.Upstream) string {
	if u.Command == "" {
		return WithoutSecrets(u.URL)
	}
	return WithoutSecrets(strings.Join(append([]string{u.Command}, hideArgs(u.Args)...), " "))
}

// knownCatalog returns the catalog of an upstream, from the gateway or from the cache.
func (s *Service) knownCatalog(e gateway.Entry) *upstream.Catalog {
	if s.Gateway != nil {
		if c := s.Gateway.Known(e.Spec.Name); c != nil {
			return c
		}
	}
	return upstream.Cached(s.CacheDir, e.Spec)
}

// Live is an upstream in a list with its current health.
type Live struct {
	Summary
	State State `json:"state"`
	// Health is set for an upstream in use.
	Health *upstream.Health `json:"health,omitempty"`
	// Base is the version of the configuration that is shown.
	Base string `json:"base"`
}

// List returns all upstreams of the configuration for a user, in its order.
func (s *Service) List(user string) ([]Live, error) {
	cfg, err := s.loadConfig()
	if err != nil {
		return nil, err
	}
	return lists.Map(cfg.Upstreams, func(u config.Upstream) Live { return s.liveOf(u, user) }), nil
}

func (s *Service) liveOf(u config.Upstream, user string) Live {
	row := Live{Summary: s.Summarize(u, user), Base: s.baseOf(u), State: StateOff}
	switch {
	case row.Problem != "":
		row.State = StateWrong
	case u.Disabled:
		row.State = StateDisabled
	case s.Gateway != nil:
		row.State = StateElsewhere
		if h, ok := s.Gateway.Health(u.Name); ok {
			row.State, row.Health = State(h.Condition), &h
		}
	}
	return row
}

// Details describe one upstream completely.
type Details struct {
	Live
	// Config is the upstream's configuration, with secrets hidden.
	Config config.Upstream `json:"config"`
	// Origin is the file that contains the configuration.
	Origin string `json:"origin"`
	// Server describes the server, as reported in its handshake.
	Server *upstream.Info `json:"server,omitempty"`
	// Offered are the upstream's tools. Prompts are the names that clients see for its
	// prompts. Resources is the number of its resources and templates.
	Offered   []gateway.ToolStatus `json:"offered"`
	Prompts   []string             `json:"prompts"`
	Resources int                  `json:"resources"`
	Notes     []string             `json:"notes"`
}

// Show returns the details of an upstream for a user without starting it.
func (s *Service) Show(name, user string) (*Details, error) {
	u, err := s.findUpstream(name)
	if err != nil {
		return nil, err
	}
	d := &Details{
		Live: s.liveOf(u, user), Config: WithoutSecret(u), Origin: u.Origin.String(),
		Offered: []gateway.ToolStatus{}, Prompts: []string{}, Notes: []string{},
	}
	e := EntryOf(u)
	c := s.knownCatalog(e)
	if c == nil || d.Problem != "" {
		return d, nil
	}
	d.Server, d.Resources, d.Notes = &c.Info, len(c.Resources)+len(c.Templates), append(d.Notes, c.Notes...)
	d.Offered = append(d.Offered, gateway.ToolsIn(c, e)...)
	if d.Health == nil {
		return d, nil
	}
	if live := s.Gateway.ToolsOf(name); live != nil {
		d.Offered = live
	}
	d.Prompts = append(d.Prompts, s.Gateway.PromptsOf(name)...)
	d.Notes = append([]string{}, s.Gateway.NotesOf(name)...)
	return d, nil
}

// Project is a group of upstreams.
type Project struct {
	Name      string   `json:"name"`
	Upstreams []string `json:"upstreams"`
}

// Projects returns the projects of all upstreams, by name.
func (s *Service) Projects() ([]Project, error) {
	cfg, err := s.loadConfig()
	if err != nil {
		return nil, err
	}
	of := map[string]*Project{}
	for _, u := range cfg.Upstreams {
		if u.Project == "" {
			continue
		}
		if of[u.Project] == nil {
			of[u.Project] = &Project{Name: u.Project}
		}
		of[u.Project].Upstreams = append(of[u.Project].Upstreams, u.Name)
	}
	list := lists.Map(slices.SortedFunc(maps.Values(of), func(a, b *Project) int { return cmp.Compare(a.Name, b.Name) }), func(p *Project) Project { return *p })
	return list, nil
}
