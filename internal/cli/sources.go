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
stands higher is served; the other is shadowed.`,
		Example: "  guideway sources\n  guideway sources --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
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
func sourceRows(snap *catalog.Snapshot) []sourceRow {
	shadowed := map[string]int{}
	for _, e := range snap.List(catalog.Filter{}) {
		for _, o := range e.Overrides {
			shadowed[o.Source.Name]++
		}
	}
	rows := []sourceRow{}
	for _, status := range slices.Backward(snap.Sources()) {
		rows = append(rows, sourceRow{SourceStatus: status, Shadowed: shadowed[status.Name], Watched: status.Kind == "dir"})
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
	host, rows := o.app.host, sourceRows(cat.Snapshot())
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
		t.add(r.Name, oneLine(location), fmt.Sprint(r.Served), fmt.Sprint(r.Shadowed), fmt.Sprint(r.Broken), string(r.Trust), r.state())
	}
	t.write(host.Out, host.terminalWidth(), host.outStyles())
	return nil
}

// state says how the source is, for a person.
func (r sourceRow) state() string {
	switch {
	case r.State == catalog.SourceFailed:
		return "failed: " + oneLine(r.Error)
	case r.State == catalog.SourceMissing && r.Optional:
		return "not there (optional)"
	case r.State == catalog.SourceOK && r.Watched:
		return "ok, watched"
	case r.State == catalog.SourceOK:
		return "ok, fixed"
	default:
		return string(r.State)
	}
}
