package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/install"
	"golang.org/x/term"
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
	env := o.machine()
	scope := install.Scope(o.Scope)
	answers := []installRow{}
	rows := [][]string{{"CLIENT", "STATE", "CONFIG"}}
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
		rows = append(rows, []string{c.ID, string(s.State), config})
	}
	if o.JSON {
		return encodeInstall(o, answers)
	}
	fmt.Fprint(o.Host.Out, installTable(rows, installWidth(o.Host)))
	return nil
}

// installWidth is the width of the terminal; 0 where nobody looks at one.
func installWidth(host *Host) int {
	file, ok := host.Out.(*os.File)
	if !host.OutTerminal || !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// installTable aligns rows in columns and cuts the lines at the width, if it is
// not 0.
func installTable(rows [][]string, width int) string {
	var widest []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widest) {
				widest = append(widest, 0)
			}
			widest[i] = max(widest[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widest[i]-utf8.RuneCountInString(cell)+2))
			}
		}
		text := []rune(strings.TrimRight(line.String(), " "))
		if width > 1 && len(text) > width {
			text = append(text[:width-1], '…')
		}
		out.WriteString(string(text) + "\n")
	}
	return out.String()
}
