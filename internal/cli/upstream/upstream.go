// Package upstream implements the commands for upstream MCP servers.
package upstream

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/sanitize"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/spf13/cobra"
)

func NewUpstreamCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "upstream"},
		newUpstreamAddCmd(a, runUpstreamAdd), app.NewPlainCmd(a, runUpstreamList, &cobra.Command{Use: "list"}), newUpstreamShowCmd(a, runUpstreamShow),
		newUpstreamLoginCmd(a, runUpstreamLogin), newUpstreamLogoutCmd(a),
		newUpstreamRemoveCmd(a), newUpstreamSwitchCmd(a, true), newUpstreamSwitchCmd(a, false), newUpstreamRestartCmd(a),
		newUpstreamApproveCmd(a, runUpstreamApprove), newUpstreamLogsCmd(a, runUpstreamLogs), newUpstreamImportCmd(a, runUpstreamImport),
		newUpstreamProjectCmd(a),
	)
}

// loadUpstream returns the configuration and the named upstream in it.
func loadUpstream(a *app.App, name string) (*config.Config, config.Upstream, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, config.Upstream{}, err
	}
	i := slices.IndexFunc(cfg.Upstreams, func(u config.Upstream) bool { return u.Name == name })
	if i < 0 {
		return nil, config.Upstream{}, guideway.Errorf(guideway.CodeNotFound, "there is no upstream %q", name).
			WithFix("guideway upstream list")
	}
	return cfg, cfg.Upstreams[i], nil
}

func runUpstreamList(_ context.Context, o *app.PlainOptions) error {
	cfg, err := o.App.Load()
	if err != nil {
		return err
	}
	rows, managed := []gatewayadmin.Summary{}, server.NewOfflineUpstreamAdmin(o.App, cfg)
	for _, u := range cfg.Upstreams {
		rows = append(rows, managed.Summarize(u, ""))
	}
	more := ""
	if why := toolsetNote(cfg); why != "" {
		more = "\n" + why
	}
	return app.WriteList(o.App.Host, o.JSON, app.Listing[gatewayadmin.Summary]{
		Items: rows, Answer: rows, Empty: "There are no upstreams. To add one: guideway upstream add --help", More: more,
		Table: app.NewTable(2, "NAME", "REACHED BY", "WHERE", "TOOLS", "STATE").AlignRight(3),
		Row: func(r gatewayadmin.Summary) []string {
			tools := "?"
			if r.Tools >= 0 {
				tools = fmt.Sprint(r.Tools)
			}
			return []string{r.Name, r.Reached, app.OneLine(r.Where), tools, server.FormatUpstreamState(&r)}
		},
	})
}

// toolsetNote returns the reason why agents do not see the upstreams, or "".
func toolsetNote(cfg *config.Config) string {
	if cfg.OffersUpstreams() {
		return ""
	}
	return fmt.Sprintf("Agents do not see the upstreams: the toolset \"gateway\" is disabled. Add it to \"toolsets\" in guideway.json, or use --toolsets %s,gateway",
		strings.Join(cfg.Toolsets, ","))
}

type upstreamShowOptions struct {
	app   *app.App
	Name  string
	JSON  bool
	Check bool
}

// upstreamDetails is the answer of guideway upstream show --json.
type upstreamDetails struct {
	gatewayadmin.Summary
	Origin  string               `json:"origin"`
	Config  config.Upstream      `json:"config"`
	Server  *upstream.Info       `json:"server,omitempty"`
	Offered []gateway.ToolStatus `json:"offered,omitempty"`
	Held    []pins.Waiting       `json:"pending,omitempty"`
	Notes   []string             `json:"notes,omitempty"`
}

func newUpstreamShowCmd(a *app.App, run func(context.Context, *upstreamShowOptions) error) *cobra.Command {
	o := &upstreamShowOptions{app: a}
	cmd := &cobra.Command{
		Use:               "show NAME",
		Args:              app.ExactArgs(1, "one name", "guideway upstream show files"),
		ValidArgsFunction: server.CompleteUpstreams(a),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	app.AddJSONFlag(cmd, &o.JSON)
	cmd.Flags().BoolVar(&o.Check, "check", false, "start the upstream and query it")
	return cmd
}

// checkTimeout is the timeout for querying an upstream.
const checkTimeout = time.Minute

// queryUpstream starts an upstream and returns its catalog.
func queryUpstream(ctx context.Context, a *app.App, cfg *config.Config, u config.Upstream) (*upstream.Catalog, error) {
	spec := gatewayadmin.EntryOf(u).Spec
	if err := spec.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	up := upstream.New(spec, server.UpstreamOptions(a, cfg))
	defer up.Close(ctx)
	c, err := up.Refresh(ctx, upstream.Lister(nil)) // a nil Lister supports elicitation: an upstream may offer some tools only to clients with it
	if err != nil {
		for _, line := range up.Log(10) {
			fmt.Fprintln(a.Host.Err, "  "+line)
		}
	}
	return c, err
}

func runUpstreamShow(ctx context.Context, o *upstreamShowOptions) error {
	cfg, u, err := loadUpstream(o.app, o.Name)
	if err != nil {
		return err
	}
	if o.Check {
		if _, err := queryUpstream(ctx, o.app, cfg, u); err != nil {
			return err
		}
	}
	managed := server.NewOfflineUpstreamAdmin(o.app, cfg)
	d := upstreamDetails{Summary: managed.Summarize(u, ""), Origin: u.Origin.String(), Config: gatewayadmin.WithoutSecret(u)}
	if c := upstream.Cached(server.UpstreamCacheDir(cfg), gatewayadmin.EntryOf(u).Spec); c != nil {
		d.Server, d.Notes = &c.Info, slices.Concat(c.Notes, sanitize.Flagged(c))
		d.Offered = gateway.ToolsIn(c, gatewayadmin.EntryOf(u))
		d.Notes = append(d.Notes, RuleNotes(u.Tools, gateway.ToolNames(c))...)
		d.Held = managed.Held(u)
	}
	return o.app.Host.WriteJSONOr(o.JSON, d, func() { printUpstream(o.app, d) })
}

// RuleNotes returns notes on rules for tools that do not exist, and on tools that are
// omitted because another tool already has their name.
func RuleNotes(rules map[string]config.UpstreamTool, offered []string) []string {
	var notes []string
	for _, tool := range slices.Sorted(maps.Keys(rules)) {
		if !slices.Contains(offered, tool) {
			notes = append(notes, fmt.Sprintf("%s: the configuration has a rule for this tool, but the upstream has no such tool", tool))
		}
	}
	first := map[string]string{}
	for _, tool := range offered {
		rule := rules[tool]
		name := cmp.Or(rule.Name, tool)
		if rule.Hide {
			continue
		}
		if other, taken := first[name]; taken {
			notes = append(notes, fmt.Sprintf("%s: omitted, because the tool %s already has the name %s", tool, other, name))
			continue
		}
		first[name] = tool
	}
	return notes
}

// toolMarks returns the notes on a tool for the list.
func (d *upstreamDetails) toolMarks(tool gateway.ToolStatus) string {
	rule := d.Config.Tools[tool.Name]
	if rule.Hide {
		return "  (hidden)"
	}
	var marks []string
	if rule.Name != "" {
		marks = append(marks, "called "+app.OneLine(rule.Name))
	}
	if rule.Description != "" {
		marks = append(marks, "description from the configuration")
	}
	for _, hint := range slices.Sorted(maps.Keys(tool.Annotations)) {
		if tool.Annotations[hint] {
			marks = append(marks, hint)
		}
	}
	if tool.FullName != "" {
		marks = append(marks, "shortened to "+tool.Shown)
	}
	if i := slices.IndexFunc(d.Held, func(w pins.Waiting) bool { return w.Tool == tool.Name }); i >= 0 {
		marks = append(marks, d.Held[i].Why+", withheld")
	}
	if len(marks) == 0 {
		return ""
	}
	return "  (" + strings.Join(marks, ", ") + ")"
}

func printUpstream(a *app.App, d upstreamDetails) {
	out, s := a.Host.Out, a.Host.OutStyles()
	fmt.Fprintf(out, "%s  %s\n", s.Bold(d.Name), server.FormatUpstreamState(&d.Summary))
	line := a.Host.WriteFields(12)
	line("  reached by", d.Reached+": "+app.OneLine(d.Where))
	line("  configured", d.Origin)
	for _, key := range slices.Sorted(maps.Keys(d.Config.Env)) {
		line("  variable", app.OneLine(key)+"="+app.OneLine(d.Config.Env[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Config.Headers)) {
		line("  header", app.OneLine(key)+": "+app.OneLine(d.Config.Headers[key]))
	}
	line("  bearer", d.Config.Bearer)
	line("  login", describeLogin(d.Name, d.Login))
	if o := d.Config.OAuth; o != nil && o.ClientID != "" {
		from := cmp.Or(o.TokenURL+o.Issuer, "the authorization server that the upstream announces")
		line("  oauth", "client "+app.OneLine(o.ClientID)+", tokens from "+app.OneLine(from))
	}
	if d.Server == nil {
		fmt.Fprintf(out, "\nNot queried yet: guideway upstream show %s --check\n", d.Name)
		return
	}
	line("  server", app.OneLine(d.Server.Server.Name)+" "+app.OneLine(d.Server.Server.Version)+", protocol version "+d.Server.Version)
	fmt.Fprintf(out, "\n%s:\n", app.Plural(len(d.Offered), "tool", "tools"))
	for _, tool := range d.Offered {
		fmt.Fprintf(out, "  %s\n", app.OneLine(tool.Name)+d.toolMarks(tool))
	}
	for _, note := range d.Notes {
		fmt.Fprintf(out, "note: %s\n", app.OneLine(note))
	}
	if len(d.Held) > 0 {
		fmt.Fprintf(out, "\n%s for your approval: guideway upstream approve %s\n", app.Plural(len(d.Held), "change waits", "changes wait"), d.Name)
	}
}

type upstreamLogsOptions struct {
	app   *app.App
	Name  string
	Lines int
	JSON  bool
}

// upstreamLogsAnswer is the answer of guideway upstream logs --json.
type upstreamLogsAnswer struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

func newUpstreamLogsCmd(a *app.App, run func(context.Context, *upstreamLogsOptions) error) *cobra.Command {
	o := &upstreamLogsOptions{app: a}
	cmd := &cobra.Command{
		Use:               "logs NAME",
		Args:              app.ExactArgs(1, "one name", "guideway upstream logs files"),
		ValidArgsFunction: server.CompleteUpstreams(a),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	cmd.Flags().IntVarP(&o.Lines, "lines", "n", 50, "number of lines to print, from the end of the log")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runUpstreamLogs(_ context.Context, o *upstreamLogsOptions) error {
	cfg, u, err := loadUpstream(o.app, o.Name)
	if err != nil {
		return err
	}
	lines, err := app.ReadUpstreamLog(app.UpstreamLogDir(cfg), u.Name, max(1, o.Lines))
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "read the log of the upstream %s: %w", u.Name, err).WithFix("make the file readable for this user")
	}
	if o.JSON {
		return app.WriteJSON(o.app.Host.Out, upstreamLogsAnswer{Name: u.Name, Lines: app.OrEmpty(lines)})
	}
	if len(lines) == 0 {
		fmt.Fprintf(o.app.Host.Err, "The log of the upstream %s is empty.\n", u.Name)
	}
	for _, line := range lines {
		fmt.Fprintln(o.app.Host.Out, app.EscapeText(line))
	}
	return nil
}
