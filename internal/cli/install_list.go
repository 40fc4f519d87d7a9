package cli

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/install"
)

// installRow is one client in the answer of guideway install --json.
type installRow struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	Scope   string `json:"scope"`
	State   string `json:"state"`
	Path    string `json:"path"`
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// listInstall shows what is installed where.
func listInstall(ctx context.Context, o *installOptions, req install.Request) error {
	env := o.Host.installEnv(o.GOOS)
	scope := install.Scope(o.Scope)
	answers := []installRow{}
	t := table{flexible: 2}
	t.add("CLIENT", "STATE", "CONFIG")
	for _, c := range install.Clients() {
		if scope == install.ScopeProject && c.Project == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		s := install.Inspect(ctx, env, c, scope, req)
		answers = append(answers, installRow{
			Client: c.ID, Title: c.Title, Scope: o.Scope, State: installWord(string(s.State)),
			Path: s.Path, Command: s.Command, Reason: s.Reason,
		})
		config := s.Path
		if s.Reason != "" {
			config = strings.TrimSpace(config + " (" + s.Reason + ")")
		}
		t.add(c.ID, string(s.State), config)
	}
	return o.Host.writeJSONOr(o.JSON, answers, func() { t.write(o.Host.Out, o.Host.terminalWidth(), o.Host.outStyles()) })
}
