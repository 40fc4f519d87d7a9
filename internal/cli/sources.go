package cli

import (
	"cmp"
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
		RunE:    runWith(run, o),
	}
	addJSONFlag(cmd, &o.JSON)
	list := &cobra.Command{
		Use: "list", Short: "List them, as \"guideway sources\" does", Args: noArgs,
		RunE: runWith(run, o),
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
	_, cat, err := o.app.loadCatalog(ctx)
	if err != nil {
		return err
	}
	defer cat.Close()
	rows := sourceRows(cat)
	return writeList(o.app.host, o.JSON, listing[sourceRow]{
		items: rows, answer: rows, empty: "There are no sources: all of them are switched off. See: guideway help settings",
		table: newTable(1, "SOURCE", "LOCATION", "SERVED", "SHADOWED", "PROBLEMS", "TRUST", "STATE").alignRight(2, 3, 4),
		row: func(r sourceRow) []string {
			location := cmp.Or(oneLine(r.Location), "(in the program)")
			return []string{r.Name, location, fmt.Sprint(r.Served), fmt.Sprint(r.Shadowed), fmt.Sprint(r.Broken), r.trust(), r.state()}
		},
	})
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

func (a *app) completeSources(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	cfg, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cat, err := a.openCatalogAsItIs(cmd.Context(), cfg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer cat.Close()
	var names []string
	for _, status := range cat.Sources() {
		names = append(names, status.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
