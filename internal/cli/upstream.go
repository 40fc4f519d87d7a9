package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/manage"
	"github.com/guideway-dev/guideway/internal/mcpserver"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/spf13/cobra"
)

func newUpstreamCmd(a *app) *cobra.Command {
	return newGroupCmd(&cobra.Command{
		Use:   "upstream",
		Short: "Put other MCP servers behind Guideway, and look after them",
		Long: `Other MCP servers are offered to agents through Guideway: their tools come as
NAME__TOOL, where the toolset "gateway" is on. A server is started when it is first
needed. What its tools say is remembered: one that changes later is held back until you
approve it.`,
		Example: `  guideway upstream add files -- npx -y @modelcontextprotocol/server-filesystem /home/me
  guideway upstream add docs --url https://example.com/mcp --bearer '${env:DOCS_TOKEN}'
  guideway upstream list
  guideway serve --toolsets steps,runs,sessions,gateway`,
	},
		newUpstreamAddCmd(a, runUpstreamAdd), newUpstreamListCmd(a), newUpstreamShowCmd(a, runUpstreamShow),
		newUpstreamRemoveCmd(a), newUpstreamSwitchCmd(a, true), newUpstreamSwitchCmd(a, false),
		newUpstreamApproveCmd(a, runUpstreamApprove), newUpstreamLogsCmd(a, runUpstreamLogs), newUpstreamImportCmd(a, runUpstreamImport),
		newUpstreamProjectCmd(a),
	)
}

// loadUpstream finds an upstream of the configuration.
func (a *app) loadUpstream(name string) (*config.Config, config.Upstream, error) {
	cfg, err := a.load()
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

func newUpstreamListCmd(a *app) *cobra.Command {
	return newPlainCmd(a, runUpstreamList, &cobra.Command{
		Use: "list", Short: "List the upstreams, without starting them",
		Example: "  guideway upstream list --json",
	})
}

func runUpstreamList(_ context.Context, o *plainOptions) error {
	cfg, err := o.app.load()
	if err != nil {
		return err
	}
	rows, managed := []manage.Summary{}, o.app.managed(cfg)
	for _, u := range cfg.Upstreams {
		rows = append(rows, managed.Summarize(u))
	}
	more := ""
	if why := toolsetNote(cfg); why != "" {
		more = "\n" + why
	}
	return writeList(o.app.host, o.JSON, listing[manage.Summary]{
		items: rows, answer: rows, empty: "There are no upstreams. See: guideway upstream add --help", more: more,
		table: newTable(2, "NAME", "REACHED BY", "WHERE", "TOOLS", "STATE").alignRight(3),
		row: func(r manage.Summary) []string {
			tools := "?"
			if r.Tools >= 0 {
				tools = fmt.Sprint(r.Tools)
			}
			return []string{r.Name, r.Reached, oneLine(r.Where), tools, stateText(&r)}
		},
	})
}

// sayToolset tells a person why agents do not see the upstreams.
func (a *app) sayToolset(cfg *config.Config) {
	if why := toolsetNote(cfg); why != "" {
		fmt.Fprintf(a.host.Err, "\n%s\n", why)
	}
}

// toolsetNote says why agents do not see the upstreams; empty is that they do.
func toolsetNote(cfg *config.Config) string {
	if slices.Contains(cfg.Toolsets, mcpserver.ToolsetGateway) {
		return ""
	}
	return fmt.Sprintf("Agents do not see them: the toolset \"gateway\" is off. Put it into \"toolsets\" of guideway.json, or start with --toolsets %s,gateway",
		strings.Join(cfg.Toolsets, ","))
}

type upstreamShowOptions struct {
	app   *app
	Name  string
	JSON  bool
	Check bool
}

// upstreamDetails is the answer of guideway upstream show --json.
type upstreamDetails struct {
	manage.Summary
	Origin  string            `json:"origin"`
	Config  config.Upstream   `json:"config"`
	Server  *upstream.Info    `json:"server,omitempty"`
	Offered []string          `json:"offered,omitempty"`
	Held    []gateway.Waiting `json:"held,omitempty"`
	Notes   []string          `json:"notes,omitempty"`
}

func newUpstreamShowCmd(a *app, run func(context.Context, *upstreamShowOptions) error) *cobra.Command {
	o := &upstreamShowOptions{app: a}
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show what an upstream is and what it offers",
		Long: `Show how an upstream is configured and what it offered when it was last asked. With
--check it is started and asked now. Secrets are not shown.`,
		Example:           "  guideway upstream show files\n  guideway upstream show files --check",
		Args:              exactly(1, "one name", "guideway upstream show files"),
		ValidArgsFunction: a.completeUpstreams,
		RunE:              runWithArg(run, o, &o.Name),
	}
	addJSONFlag(cmd, &o.JSON)
	cmd.Flags().BoolVar(&o.Check, "check", false, "start it and ask it now")
	return cmd
}

// checkTime bounds how long an upstream is waited for.
const checkTime = time.Minute

// askUpstream starts an upstream and gives what it offers.
func (a *app) askUpstream(ctx context.Context, cfg *config.Config, u config.Upstream) (*upstream.Catalog, error) {
	spec := manage.EntryOf(u).Spec
	if err := spec.Check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	up := upstream.New(spec, a.upstreamOptions(cfg))
	defer up.Close(ctx)
	c, err := up.RefreshAll(ctx) // what waits for approval may be for clients that can be asked
	if err != nil {
		for _, line := range up.Log(10) {
			fmt.Fprintln(a.host.Err, "  "+line)
		}
	}
	return c, err
}

func runUpstreamShow(ctx context.Context, o *upstreamShowOptions) error {
	cfg, u, err := o.app.loadUpstream(o.Name)
	if err != nil {
		return err
	}
	if o.Check {
		if _, err := o.app.askUpstream(ctx, cfg, u); err != nil {
			return err
		}
	}
	managed := o.app.managed(cfg)
	d := upstreamDetails{Summary: managed.Summarize(u), Origin: u.Origin.String(), Config: manage.WithoutSecret(u)}
	if c := upstream.Cached(upstreamCache(cfg), manage.EntryOf(u).Spec); c != nil {
		d.Server, d.Notes = &c.Info, slices.Concat(c.Notes, gateway.Flagged(c))
		d.Offered = gateway.ToolNames(c)
		d.Notes = append(d.Notes, ruleNotes(u.Tools, d.Offered)...)
		d.Held = managed.Held(u)
	}
	return o.app.host.writeJSONOr(o.JSON, d, func() { o.app.printUpstream(d) })
}

// ruleNotes say which rules of the configuration come to nothing: those of tools that are
// not there, and those that give a tool the name of another one.
func ruleNotes(rules map[string]config.UpstreamTool, offered []string) []string {
	var notes []string
	for _, tool := range slices.Sorted(maps.Keys(rules)) {
		if !slices.Contains(offered, tool) {
			notes = append(notes, fmt.Sprintf("%s: the configuration has a rule for it, and there is no such tool", tool))
		}
	}
	first := map[string]string{}
	for _, tool := range offered {
		rule := rules[tool]
		name := tool
		if rule.Name != "" {
			name = rule.Name
		}
		if rule.Hide {
			continue
		}
		if other, taken := first[name]; taken {
			notes = append(notes, fmt.Sprintf("%s: it is left out, because %s is called %s", tool, other, name))
			continue
		}
		first[name] = tool
	}
	return notes
}

// mark says what is special about a tool.
func (d *upstreamDetails) mark(tool string) string {
	rule := d.Config.Tools[tool]
	if rule.Hide {
		return "  (hidden)"
	}
	var marks []string
	if rule.Name != "" {
		marks = append(marks, "called "+oneLine(rule.Name))
	}
	if rule.Description != "" {
		marks = append(marks, "described anew")
	}
	if i := slices.IndexFunc(d.Held, func(w gateway.Waiting) bool { return w.Tool == tool }); i >= 0 {
		marks = append(marks, d.Held[i].Why+", held back")
	}
	if len(marks) == 0 {
		return ""
	}
	return "  (" + strings.Join(marks, ", ") + ")"
}

func (a *app) printUpstream(d upstreamDetails) {
	out, s := a.host.Out, a.host.outStyles()
	fmt.Fprintf(out, "%s  %s\n", s.bold(d.Name), stateText(&d.Summary))
	fmt.Fprintf(out, "  reached by  %s: %s\n", d.Reached, oneLine(d.Where))
	fmt.Fprintf(out, "  configured  %s\n", d.Origin)
	for _, key := range slices.Sorted(maps.Keys(d.Config.Env)) {
		fmt.Fprintf(out, "  variable    %s=%s\n", oneLine(key), oneLine(d.Config.Env[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Config.Headers)) {
		fmt.Fprintf(out, "  header      %s: %s\n", oneLine(key), oneLine(d.Config.Headers[key]))
	}
	if d.Config.Bearer != "" {
		fmt.Fprintf(out, "  bearer      %s\n", d.Config.Bearer)
	}
	if o := d.Config.OAuth; o != nil {
		from := "where the server says"
		if o.TokenURL+o.Issuer != "" {
			from = o.TokenURL + o.Issuer
		}
		fmt.Fprintf(out, "  oauth       client %s, tokens from %s\n", oneLine(o.ClientID), oneLine(from))
	}
	if d.Server == nil {
		fmt.Fprintf(out, "\nIt was not asked yet: guideway upstream show %s --check\n", d.Name)
		return
	}
	fmt.Fprintf(out, "  server      %s %s, speaks %s\n", oneLine(d.Server.Server.Name), oneLine(d.Server.Server.Version), d.Server.Version)
	fmt.Fprintf(out, "\n%s:\n", plural(len(d.Offered), "tool", "tools"))
	for _, name := range d.Offered {
		fmt.Fprintf(out, "  %s\n", oneLine(name)+d.mark(name))
	}
	for _, note := range d.Notes {
		fmt.Fprintf(out, "note: %s\n", oneLine(note))
	}
	if len(d.Held) > 0 {
		fmt.Fprintf(out, "\n%s for your approval: guideway upstream approve %s\n", plural(len(d.Held), "tool waits", "tools wait"), d.Name)
	}
}

type upstreamLogsOptions struct {
	app   *app
	Name  string
	Lines int
	JSON  bool
}

// upstreamLogsAnswer is the answer of guideway upstream logs --json.
type upstreamLogsAnswer struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
}

func newUpstreamLogsCmd(a *app, run func(context.Context, *upstreamLogsOptions) error) *cobra.Command {
	o := &upstreamLogsOptions{app: a}
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Show what an upstream has said on its error output",
		Example:           "  guideway upstream logs files --lines 200",
		Args:              exactly(1, "one name", "guideway upstream logs files"),
		ValidArgsFunction: a.completeUpstreams,
		RunE:              runWithArg(run, o, &o.Name),
	}
	cmd.Flags().IntVarP(&o.Lines, "lines", "n", 50, "how many lines")
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

func runUpstreamLogs(_ context.Context, o *upstreamLogsOptions) error {
	cfg, u, err := o.app.loadUpstream(o.Name)
	if err != nil {
		return err
	}
	lines, err := lastUpstreamLines(upstreamLogDir(cfg), u.Name, max(1, o.Lines))
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "read the log of the upstream: %w", err)
	}
	if o.JSON {
		return writeJSON(o.app.host.Out, upstreamLogsAnswer{Name: u.Name, Lines: orEmpty(lines)})
	}
	if len(lines) == 0 {
		fmt.Fprintln(o.app.host.Err, "It has said nothing.")
	}
	for _, line := range lines {
		fmt.Fprintln(o.app.host.Out, printable(line))
	}
	return nil
}
