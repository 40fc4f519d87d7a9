package sources

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/spf13/cobra"
)

// syncOptions is the command line of guideway sources sync.
type syncOptions struct {
	app   *app.App
	Names []string
	JSON  bool
}

func newSourcesSyncCmd(a *app.App, run func(context.Context, *syncOptions) error) *cobra.Command {
	o := &syncOptions{app: a}
	cmd := &cobra.Command{
		Use:               "sync [NAME...]",
		ValidArgsFunction: CompleteSources(a),
		RunE:              app.RunWithArgs(run, o, &o.Names),
	}
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// syncRow is the result of synchronizing one source.
type syncRow struct {
	Name     string `json:"name"`
	Location string `json:"location"`
	// Before and After are revisions.
	Before    string `json:"before,omitempty"`
	After     string `json:"after,omitempty"`
	Reference string `json:"reference,omitempty"`
	Changed   bool   `json:"changed"`
	Error     string `json:"error,omitempty"`
	Fix       string `json:"fix,omitempty"`
}

func runSourcesSync(ctx context.Context, o *syncOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	followers, err := o.selectSources(o.app.CatalogSources(cfg))
	if err != nil {
		return err
	}
	rows := make([]syncRow, len(followers))
	var fetches sync.WaitGroup
	for i, source := range followers {
		fetches.Go(func() { rows[i] = syncOne(ctx, source) })
	}
	fetches.Wait()
	if err := ctx.Err(); err != nil {
		return app.InterruptedError(err)
	}
	host := o.app.Host
	if err := host.WriteJSONOr(o.JSON, rows, func() {
		for _, row := range rows {
			row.writeText(host)
		}
	}); err != nil {
		return err
	}
	failed := slices.DeleteFunc(rows, func(r syncRow) bool { return r.Error == "" })
	if len(failed) > 0 {
		return guideway.Errorf(guideway.CodeUnavailable, "%s could not be updated", app.Plural(len(failed), "source", "sources"))
	}
	if len(followers) == 0 && !o.JSON {
		fmt.Fprintln(host.Err, "There are no remote sources to update: no repository or registry is configured, or all are disabled or blocked.")
	}
	return nil
}

// selectSources returns the named sources, or all remote sources.
func (o *syncOptions) selectSources(sources []catalog.Source) ([]catalog.Source, error) {
	var chosen []catalog.Source
	known, blocked := map[string]bool{}, map[string]bool{}
	for _, source := range sources {
		info := source.Info().WithLevel()
		_, follows := source.(catalog.Syncer)
		_, fails := source.(*catalog.FailedSource)
		if !follows && !fails {
			continue
		}
		if info.Level == catalog.LevelBlocked {
			blocked[info.Name] = true
			continue
		}
		known[info.Name] = true
		if len(o.Names) == 0 || slices.Contains(o.Names, info.Name) {
			chosen = append(chosen, source)
		}
	}
	for _, name := range o.Names {
		if blocked[name] {
			return nil, guideway.Errorf(guideway.CodeForbidden, "the source %q is blocked", name).
				WithFix("set the trust level of the source to trusted or review, in the setting workflows.trust")
		}
		if !known[name] {
			return nil, guideway.Errorf(guideway.CodeNotFound, "there is no remote source %q", name).WithFix("guideway sources")
		}
	}
	return chosen, nil
}

// syncOne updates one source.
func syncOne(ctx context.Context, source catalog.Source) syncRow {
	row := syncRow{Name: source.Info().Name, Location: source.Info().Location}
	follower, ok := source.(catalog.Syncer)
	var err error
	if ok {
		var done catalog.Synced
		done, err = follower.Sync(ctx)
		row.Before, row.After, row.Changed, row.Reference = done.Before, done.After, done.Changed, follower.SyncState().Reference
	} else {
		_, _, err = source.Documents(ctx)
	}
	if err != nil {
		row.Error, row.Fix = err.Error(), guideway.ErrorFix(err)
	}
	return row
}

// writeText prints the result of a source on one line.
func (r syncRow) writeText(host *app.Host) {
	s := host.OutStyles()
	switch {
	case r.Error != "":
		fmt.Fprintf(host.Out, "%s %s %s\n", s.Bold(r.Name), s.Red("failed:"), app.OneLine(r.Error))
		if r.Fix != "" {
			fmt.Fprintf(host.Out, "  fix: %s\n", app.OneLine(r.Fix))
		}
	case r.Before == r.After:
		fmt.Fprintf(host.Out, "%s is up to date at %s\n", s.Bold(r.Name), r.revisionText())
	case r.Before == "":
		fmt.Fprintf(host.Out, "%s was fetched at %s\n", s.Bold(r.Name), r.revisionText())
	default:
		fmt.Fprintf(host.Out, "%s was updated from %s to %s\n", s.Bold(r.Name), app.ShortRevision(r.Before), r.revisionText())
	}
}

// revisionText returns the revision with the reference that resolved to it.
func (r syncRow) revisionText() string {
	if r.Reference == "" || strings.HasPrefix(r.After, r.Reference) {
		return app.ShortRevision(r.After)
	}
	return fmt.Sprintf("%s (%s)", app.ShortRevision(r.After), app.OneLine(r.Reference))
}
