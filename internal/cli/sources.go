package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/spf13/cobra"
)

// sourcesOptions is the command line of guideway sources.
type sourcesOptions struct {
	app  *app
	JSON bool
}

func newSourcesCmd(a *app, run func(context.Context, *sourcesOptions) error) *cobra.Command {
	o := &sourcesOptions{app: a}
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "List where workflows come from, in order of precedence",
		Long: `List the sources of workflows. Of two definitions with one id the one whose source
stands higher is served; the other is shadowed, and found as ID@SOURCE.`,
		Example: "  guideway sources\n  guideway sources --json\n  guideway sources sync",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	list := &cobra.Command{
		Use: "list", Short: "List them, as \"guideway sources\" does", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	list.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	cmd.AddCommand(list, newSourcesSyncCmd(a, runSourcesSync))
	return cmd
}

// sourceRow is one source in the answer of guideway sources --json.
type sourceRow struct {
	catalog.SourceStatus
	// Shadowed counts the definitions that a higher source takes the place of.
	Shadowed int `json:"shadowed"`
	// Watched says that changes are noticed while Guideway serves.
	Watched bool `json:"watched"`
}

// sourceRows lists the sources, the highest first.
func sourceRows(cat *catalog.Catalog) []sourceRow {
	snap := cat.Snapshot()
	shadowed := map[string]int{}
	for _, e := range snap.List(catalog.Filter{}) {
		for _, o := range e.Overrides {
			shadowed[o.Source.Name]++
		}
	}
	rows := []sourceRow{}
	for _, status := range slices.Backward(cat.Sources()) {
		rows = append(rows, sourceRow{SourceStatus: status, Shadowed: shadowed[status.Name], Watched: status.Kind == "dir" || status.Kind == "npm" || status.Sync != nil})
	}
	return rows
}

func runSources(ctx context.Context, o *sourcesOptions) error {
	cfg, err := o.app.load()
	if err != nil {
		return err
	}
	cat, err := o.app.openCatalog(ctx, cfg, false)
	if err != nil {
		return err
	}
	defer cat.Close()
	host, rows := o.app.host, sourceRows(cat)
	if o.JSON {
		return writeJSON(host.Out, rows)
	}
	if len(rows) == 0 {
		fmt.Fprintln(host.Err, "There are no sources: all of them are switched off. See: guideway help settings")
		return nil
	}
	t := table{right: map[int]bool{2: true, 3: true, 4: true}, flexible: 1}
	t.add("SOURCE", "LOCATION", "SERVED", "SHADOWED", "PROBLEMS", "TRUST", "STATE")
	for _, r := range rows {
		location := r.Location
		if location == "" {
			location = "(in the program)"
		}
		t.add(r.Name, oneLine(location), fmt.Sprint(r.Served), fmt.Sprint(r.Shadowed), fmt.Sprint(r.Broken), r.trust(), r.state())
	}
	t.write(host.Out, host.terminalWidth(), host.outStyles())
	return nil
}

// trust says who answers for the source, and where that matters how far it is
// trusted.
func (r sourceRow) trust() string {
	if r.Level == (catalog.SourceInfo{Trust: r.Trust}).WithLevel().Level && r.Trust != catalog.TrustRemote {
		return string(r.Trust)
	}
	return string(r.Trust) + ", " + string(r.Level)
}

// state says how the source is, for a person.
func (r sourceRow) state() string {
	switch {
	case r.State == catalog.SourceFailed:
		return "failed: " + oneLine(r.Error)
	case r.State == catalog.SourceMissing && r.Optional:
		return "not there (optional)"
	case r.State == catalog.SourceOK && r.Sync != nil:
		state := "at " + shortRevision(r.Sync.Revision)
		if r.Sync.Reference != "" {
			state += " (" + oneLine(r.Sync.Reference) + ")"
		}
		if r.Sync.Failure != "" {
			state += ", not reached since " + r.Sync.Checked.Local().Format("2006-01-02 15:04")
		}
		return state
	case r.State == catalog.SourceOK && r.Watched:
		return "ok, watched"
	case r.State == catalog.SourceOK:
		return "ok, fixed"
	default:
		return string(r.State)
	}
}
