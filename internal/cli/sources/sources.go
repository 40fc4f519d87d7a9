// Package sources implements the commands for definition sources.
package sources

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/spf13/cobra"
)

func NewSourcesCmd(a *app.App, run app.RunFunc[app.PlainOptions]) *cobra.Command {
	cmd := app.NewPlainCmd(a, run, &cobra.Command{Use: "sources"})
	list := app.NewPlainCmd(a, run, &cobra.Command{Use: "list"})
	cmd.AddCommand(list, newSourcesSyncCmd(a, runSourcesSync))
	return cmd
}

// SourceRow is one source in the answer of guideway sources --json.
type SourceRow struct {
	catalog.SourceStatus
	// Shadowed is the number of definitions that sources of higher precedence override.
	Shadowed int `json:"shadowed"`
	// Watched reports whether servers follow changes of the source.
	Watched bool `json:"watched"`
}

// SourceRows returns the sources, highest precedence first.
func SourceRows(cat *catalog.Catalog) []SourceRow {
	snap := cat.Snapshot()
	shadowed := map[string]int{}
	for _, e := range snap.List(catalog.Filter{}) {
		for _, o := range e.Overrides {
			shadowed[o.Source.Name]++
		}
	}
	rows := []SourceRow{}
	for _, status := range slices.Backward(cat.Sources()) {
		rows = append(rows, SourceRow{SourceStatus: status, Shadowed: shadowed[status.Name], Watched: status.Kind == "dir" || status.Kind == "npm" || status.Sync != nil})
	}
	return rows
}

func RunSources(ctx context.Context, o *app.PlainOptions) error {
	_, cat, err := o.App.LoadCatalog(ctx)
	if err != nil {
		return err
	}
	defer cat.Close()
	rows := SourceRows(cat)
	return app.WriteList(o.App.Host, o.JSON, app.Listing[SourceRow]{
		Items: rows, Answer: rows, Empty: "All sources are disabled. To enable a source: guideway help settings",
		Table: app.NewTable(1, "SOURCE", "LOCATION", "SERVED", "SHADOWED", "BROKEN", "TRUST", "STATE").AlignRight(2, 3, 4),
		Row: func(r SourceRow) []string {
			location := cmp.Or(app.OneLine(r.Location), "(bundled)")
			return []string{r.Name, location, fmt.Sprint(r.Served), fmt.Sprint(r.Shadowed), fmt.Sprint(r.Broken), r.trustText(), r.stateText()}
		},
	})
}

// trustText returns the owner of the source, with its level if the source is remote or the
// level is not the default.
func (r SourceRow) trustText() string {
	if r.Level == (catalog.SourceInfo{Trust: r.Trust}).WithLevel().Level && r.Trust != catalog.TrustRemote {
		return string(r.Trust)
	}
	return string(r.Trust) + ", " + string(r.Level)
}

// stateText returns the state of the source as text.
func (r SourceRow) stateText() string {
	switch {
	case r.State == catalog.SourceFailed:
		return "failed: " + app.OneLine(r.Error)
	case r.State == catalog.SourceMissing && r.Optional:
		return "missing (optional)"
	case r.State == catalog.SourceOK && r.Sync != nil:
		state := "at " + app.ShortRevision(r.Sync.Revision)
		if r.Sync.Reference != "" {
			state += " (" + app.OneLine(r.Sync.Reference) + ")"
		}
		if r.Sync.Failure != "" {
			state += ", the last update failed; last successful check " + r.Sync.Checked.Local().Format("2006-01-02 15:04")
		}
		return state
	case r.State == catalog.SourceOK && r.Watched:
		return "ok, watched"
	case r.State == catalog.SourceOK:
		return "ok, not watched"
	default:
		return string(r.State)
	}
}

// CompleteSources completes source names.
func CompleteSources(a *app.App) cobra.CompletionFunc {
	return app.CompleteNames(math.MaxInt, cobra.ShellCompDirectiveNoFileComp, func(ctx context.Context) (names []string, err error) {
		cat, err := a.OpenCachedCatalog(ctx)
		if err != nil {
			return nil, err
		}
		defer cat.Close()
		for _, status := range cat.Sources() {
			names = append(names, status.Name)
		}
		return names, nil
	})
}
