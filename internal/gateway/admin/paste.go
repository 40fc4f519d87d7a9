package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/install"
)

// Found is a server in a client's configuration.
type Found struct {
	Name    string `json:"name"`
	Reached string `json:"reached"`
	Where   string `json:"where"`
	// Taken reports whether the server was imported or, in a preview, would be.
	Taken bool     `json:"taken"`
	Notes []string `json:"notes"`
}

// Import imports the servers of a client's configuration: JSON in the format of Claude,
// Cursor, Windsurf and VS Code, the JSON of a single server, or TOML in the format of
// Codex. If chosen is not nil, Import imports only the servers whose upstream gets one of
// the chosen names. If look is true, Import only previews the import.
func (s *Service) Import(ctx context.Context, text string, chosen []string, look bool) ([]Found, error) {
	servers, err := install.Paste(s.Machine, []byte(text))
	if err != nil {
		return nil, err
	}
	s.editing.Lock()
	defer s.editing.Unlock()
	cfg, err := s.loadConfig()
	if err != nil {
		return nil, err
	}
	taken := map[string]string{}
	for _, u := range cfg.Upstreams {
		taken[u.Name] = "an upstream with this name exists"
	}
	list := []Found{}
	var take []config.Upstream
	for _, server := range servers {
		u, notes := UpstreamOf(server)
		e := EntryOf(u)
		row := Found{Name: u.Name, Reached: e.Spec.Kind(), Where: targetOf(u), Notes: notes}
		switch err := checkUpstream(u); {
		case taken[u.Name] != "":
			row.Notes = append(row.Notes, "omitted: "+taken[u.Name])
		case err != nil:
			row.Notes = append(row.Notes, "omitted: "+err.Error())
		case chosen != nil && !slices.Contains(chosen, u.Name):
			row.Notes = append(row.Notes, "omitted: not chosen")
		default:
			row.Taken, taken[u.Name] = true, "an earlier entry has the same name"
			take = append(take, u)
		}
		list = append(list, row)
	}
	if look {
		return list, nil
	}
	for _, u := range take {
		if err := s.writeUpstream(ctx, u); err != nil {
			return nil, guideway.Errorf(guideway.ErrorCode(err), "import %s: %w", u.Name, err).WithFix("%s", guideway.ErrorFix(err))
		}
	}
	return list, nil
}

// UpstreamOf converts a client's server to an upstream with a valid name, and returns
// warnings about it.
func UpstreamOf(s install.Server) (config.Upstream, []string) {
	u := config.Upstream{Disabled: s.Disabled, UpstreamServer: config.UpstreamServer{
		Name: nameOf(s.Name), Command: s.Command, Args: s.Args, Env: s.Env, Dir: s.Dir,
		URL: s.URL, Headers: s.Headers, Bearer: s.Bearer, Timeout: config.UpstreamTime(s.Timeout),
	}}
	if s.SSE {
		u.Transport = upstream.TransportSSE
	}
	for _, name := range s.Hidden {
		if u.Tools == nil {
			u.Tools = map[string]config.UpstreamTool{}
		}
		u.Tools[name] = config.UpstreamTool{Hide: true}
	}
	notes := append([]string{}, s.Notes...)
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(s.Env)), slices.Sorted(maps.Keys(s.Headers))) {
		value := s.Env[key] + s.Headers[key]
		if LooksSecret(key) && !strings.Contains(value, "${") && value != "" {
			notes = append(notes, fmt.Sprintf("%s is stored in plain text; use ${keychain:%s} instead", key, key))
		}
	}
	if s.Bearer != "" && !strings.Contains(s.Bearer, "${") {
		notes = append(notes, "the bearer token is stored in plain text; use ${keychain:"+u.Name+"} instead")
	}
	return u, notes
}

// nameOf returns a valid upstream name made of a server's name, or "" if it has no letters
// and digits.
func nameOf(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, name)
	name = strings.Trim(name, "-.")
	return name[:min(len(name), upstream.MaxNameLength)]
}
