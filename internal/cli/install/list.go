package install

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/install"
)

// InstallRow is one client in the answer of guideway install --json.
type InstallRow struct {
	Client  string `json:"client"`
	Title   string `json:"title"`
	Scope   string `json:"scope"`
	State   string `json:"state"`
	Path    string `json:"path"`
	Command string `json:"command,omitempty"`
	URL     string `json:"url,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// listInstall prints the clients and their installations.
func listInstall(ctx context.Context, o *InstallOptions, req install.Request) error {
	env := o.Host.InstallEnv(o.GOOS)
	scope := install.Scope(o.Scope)
	answers := []InstallRow{}
	var rows [][]string
	for _, c := range install.Clients() {
		if scope == install.ScopeProject && c.Project == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return app.InterruptedError(err)
		}
		s := install.Inspect(ctx, env, c, scope, req)
		answers = append(answers, InstallRow{
			Client: c.ID, Title: c.Title, Scope: o.Scope, State: installWord(string(s.State)),
			Path: s.Path, Command: s.Command, URL: s.URL, Reason: s.Reason,
		})
		config := s.Path
		if s.Reason != "" {
			config = strings.TrimSpace(config + " (" + s.Reason + ")")
		}
		rows = append(rows, []string{c.ID, string(s.State), config})
	}
	return app.WriteList(o.Host, o.JSON, app.Listing[[]string]{
		Items: rows, Answer: answers, Table: app.NewTable(2, "CLIENT", "STATE", "CONFIG"), Row: func(row []string) []string { return row },
	})
}
