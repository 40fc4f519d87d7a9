package checkpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

func newCheckpointShowCmd(a *app.App) *cobra.Command {
	return app.NewNameCmd(a, runCheckpointShow, &cobra.Command{
		Use:               "show CHECKPOINT",
		Args:              oneCheckpoint("show"),
		ValidArgsFunction: completeCheckpoints(a, 1),
	})
}

// checkpointShowAnswer is the answer of guideway checkpoint show --json.
type checkpointShowAnswer struct {
	Checkpoint checkpoint.Record `json:"checkpoint"`
	// Variables are the variables of the context; nil if the context cannot be read.
	Variables []variableSize   `json:"variables"`
	Problem   string           `json:"error,omitempty"`
	Store     checkpoint.Store `json:"store"`
}

// variableSize is a variable of a context.
type variableSize struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Bytes int    `json:"bytes"`
}

func runCheckpointShow(ctx context.Context, o *app.NameOptions) error {
	return o.App.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		record, err := d.Checkpoints.Get(ctx, d.User, o.Name)
		if err != nil {
			return notFoundError(ctx, d, "list", o.Name, err)
		}
		answer := checkpointShowAnswer{Checkpoint: record, Problem: record.Problem, Store: d.Checkpoints.Store()}
		loaded, err := d.Checkpoints.Load(ctx, d.User, checkpoint.LoadRequest{ID: o.Name})
		switch {
		case err != nil:
			answer.Problem = err.Error()
		case loaded.Degraded != nil:
			answer.Problem = loaded.Degraded.Problem
		default:
			answer.Problem = ""
			answer.Variables = variableSizes(loaded.Context)
		}
		host := o.App.Host
		host.WriteCheckpointWarnings(answer.Store, nil)
		return host.WriteJSONOr(o.JSON, answer, func() { answer.writeText(host) })
	})
}

// variableSizes returns the variables of a context, largest first.
func variableSizes(text json.RawMessage) []variableSize {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(text, &values) // a checkpoint always contains an object
	list := []variableSize{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, variableSize{Name: name, Kind: jsonKind(values[name]), Bytes: len(values[name])})
	}
	slices.SortStableFunc(list, func(a, b variableSize) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list
}

// jsonKind returns the kind of a JSON value.
func jsonKind(text json.RawMessage) string {
	switch text[0] {
	case '{':
		return "object"
	case '[':
		return "list"
	case '"':
		return "text"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	default:
		return "number"
	}
}

func (a *checkpointShowAnswer) writeText(host *app.Host) {
	r := a.Checkpoint
	s := host.OutStyles()
	row := host.WriteFields(10)
	row("Checkpoint", s.Bold(r.ID))
	session := r.Session
	if r.Run != "" {
		session += fmt.Sprintf(", a run, at event %d", r.RunSeq)
	}
	row("Session", session)
	parent := r.Parent
	if r.Branch {
		parent += ", which has another successor"
	}
	row("Follows", parent)
	saved := fmt.Sprintf("%s, %s, %s", app.FormatTime(r.Created), host.FormatAge(r.Created), r.Kind)
	if r.Agent != "" {
		saved += ", by " + app.OneLine(r.Agent)
	}
	row("Saved", saved)
	row("Workflow", app.OneLine(r.Workflow))
	row("Project", app.OneLine(r.Project))
	row("Name", app.OneLine(r.Name))
	row("Tags", app.OneLine(strings.Join(r.Tags, ", ")))
	row("Size", storageText(r))
	if a.Problem != "" {
		row("State", s.Red("cannot be read: "+app.OneLine(a.Problem)))
		return
	}
	row("State", s.Green("ok"))
	fmt.Fprintln(host.Out)
	app.WriteRows(host, app.NewTable(0, "VARIABLE", "KIND", "SIZE").AlignRight(2), a.Variables, func(v variableSize) []string {
		return []string{app.OneLine(v.Name), v.Kind, app.FormatBytes(int64(v.Bytes))}
	})
}

// storageText returns the size of a checkpoint and its storage.
func storageText(r checkpoint.Record) string {
	words := app.FormatBytes(r.Bytes)
	if r.Tokens > 0 {
		words += ", " + app.Plural(int(r.Tokens), "token", "tokens")
	}
	words += ", stored in " + app.FormatBytes(r.Stored)
	if r.Base != "" {
		words += " as a delta to " + r.Base
	}
	if r.Key != "" {
		words += ", encrypted"
	}
	return words
}

// checkpointLoadOptions is the command line of guideway checkpoint load.
type checkpointLoadOptions struct {
	app     *app.App
	ID      string
	Session string
	Keys    []string
	Older   bool
	JSON    bool
}

func newCheckpointLoadCmd(a *app.App, run func(context.Context, *checkpointLoadOptions) error) *cobra.Command {
	o := &checkpointLoadOptions{app: a}
	cmd := &cobra.Command{
		Use:               "load {CHECKPOINT|--session SESSION}",
		Args:              byIDOrSession("load", &o.Session),
		ValidArgsFunction: completeCheckpoints(a, 1),
		RunE:              app.RunWithArg(run, o, &o.ID),
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "load the last checkpoint of the session or run with this `id`")
	f.StringSliceVar(&o.Keys, "keys", nil, "print only these `variables`")
	f.BoolVar(&o.Older, "older", false, "if the checkpoint is damaged, load the latest undamaged one before it")
	f.BoolVar(&o.JSON, "json", false, "print the context and the metadata as JSON")
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	return cmd
}

func runCheckpointLoad(ctx context.Context, o *checkpointLoadOptions) error {
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		loaded, err := d.Checkpoints.Load(ctx, d.User, checkpoint.LoadRequest{ID: o.ID, Session: o.Session, Keys: o.Keys})
		if err != nil {
			return notFoundError(ctx, d, "load", o.ID, err)
		}
		host := o.app.Host
		host.WriteCheckpointWarnings(loaded.Store, loaded.Warnings)
		if damage := loaded.Degraded; damage != nil {
			if !o.Older {
				return guideway.Errorf(guideway.CodeInternal, "the checkpoint %s is damaged: %s", damage.Wanted, app.OneLine(damage.Problem)).
					WithFix("guideway checkpoint load %s, to load the latest undamaged checkpoint before %s", loaded.ID, damage.Wanted)
			}
			fmt.Fprintf(host.Err, "The checkpoint %s is damaged; loaded %s, saved at %s, instead.\n", damage.Wanted, loaded.ID, app.FormatTime(loaded.Created))
		}
		if len(loaded.Missing) > 0 {
			fmt.Fprintf(host.Err, "Variables not in the context: %s\n", app.OneLine(strings.Join(loaded.Missing, ", ")))
		}
		if len(loaded.Heads) > 0 && o.ID == "" {
			fmt.Fprintf(host.Err, "The session has branches; the context is from the most recent checkpoint. The other branches end with %s\n", strings.Join(loaded.Heads, ", "))
		}
		if o.JSON {
			return app.WriteJSON(host.Out, loaded)
		}
		if _, err := fmt.Fprintf(host.Out, "%s\n", loaded.Context); err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "write the context to the output: %w", err)
		}
		return nil
	})
}

// checkpointDiffOptions is the command line of guideway checkpoint diff.
type checkpointDiffOptions struct {
	app      *app.App
	From, To string
	JSON     bool
}

func newCheckpointDiffCmd(a *app.App, run func(context.Context, *checkpointDiffOptions) error) *cobra.Command {
	o := &checkpointDiffOptions{app: a}
	cmd := &cobra.Command{
		Use:               "diff A B",
		Args:              app.ExactArgs(2, "two checkpoints, by their ids", "guideway checkpoint diff A B; guideway checkpoint list prints the ids"),
		ValidArgsFunction: completeCheckpoints(a, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.From, o.To = args[0], args[1]
			return run(cmd.Context(), o)
		},
	}
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runCheckpointDiff(ctx context.Context, o *checkpointDiffOptions) error {
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		difference, err := d.Checkpoints.Diff(ctx, d.User, o.From, o.To)
		if err != nil {
			return userError(err)
		}
		o.app.Host.WriteCheckpointWarnings(difference.Store, nil)
		return o.app.Host.WriteJSONOr(o.JSON, difference, func() { o.writeText(difference) })
	})
}

func (o *checkpointDiffOptions) writeText(d *checkpoint.Difference) {
	host := o.app.Host
	s := host.OutStyles()
	fmt.Fprintf(host.Out, "%s %s, %s, %s\n", s.Red("---"), d.From.ID, app.FormatTime(d.From.Created), checkpointTitle(d.From))
	fmt.Fprintf(host.Out, "%s %s, %s, %s\n", s.Green("+++"), d.To.ID, app.FormatTime(d.To.Created), checkpointTitle(d.To))
	if len(d.Changes) == 0 {
		fmt.Fprintln(host.Out, "No differences.")
		return
	}
	for _, c := range d.Changes {
		fmt.Fprintf(host.Out, "\n%s\n", s.Bold(app.OneLine(c.Path)))
		if c.Op != "added" {
			fmt.Fprintln(host.Out, s.Red("- "+valueText(c.Before)))
		}
		if c.Op != "removed" {
			fmt.Fprintln(host.Out, s.Green("+ "+valueText(c.After)))
		}
	}
	if d.More {
		fmt.Fprintf(host.Out, "\nMore than %d changes; to compare the rest, load both checkpoints.\n", len(d.Changes))
	}
}

// valueText returns a value on one line. Strings are kept in JSON form, so that line
// breaks and terminal control characters are visible.
func valueText(value json.RawMessage) string { return app.OneLine(string(value)) }

func NewStatsCmd(a *app.App) *cobra.Command {
	return app.NewPlainCmd(a, runStats, &cobra.Command{Use: "stats"})
}

func runStats(ctx context.Context, o *app.PlainOptions) error {
	return o.App.ListCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		stats, err := d.Checkpoints.Stats(ctx, d.User.User)
		if err != nil {
			return err
		}
		o.App.Host.WriteCheckpointWarnings(stats.Store, nil)
		return o.App.Host.WriteJSONOr(o.JSON, stats, func() { writeStats(o.App.Host, stats) })
	})
}

func writeStats(host *app.Host, stats *checkpoint.Stats) {
	s := host.OutStyles()
	fmt.Fprintf(host.Out, "Location    %s\n", stats.Store.Mode)
	fmt.Fprintf(host.Out, "Kept        %s of %s\n", app.Plural(stats.Count, "checkpoint", "checkpoints"), app.Plural(stats.Series, "session", "sessions"))
	fmt.Fprintf(host.Out, "Contexts    %s\n", app.FormatBytes(stats.Bytes))
	stored := app.FormatBytes(stats.Stored)
	if stats.Ratio > 0 {
		stored += fmt.Sprintf(", ratio %.1f", stats.Ratio)
	}
	if stats.Limit > 0 {
		stored += fmt.Sprintf(", %.1f %% of the limit of %s", 100*float64(stats.Stored)/float64(stats.Limit), app.FormatBytes(stats.Limit))
	}
	fmt.Fprintf(host.Out, "Stored      %s\n", stored)
	if stats.Count == 0 {
		return
	}
	fmt.Fprintf(host.Out, "Last used   %s\n\n%s\n", host.FormatAge(stats.Newest), s.Bold("Largest sessions"))
	app.WriteRows(host, app.NewTable(0, "SESSION", "WORKFLOW", "CHECKPOINTS", "CONTEXTS", "STORED", "RATIO", "LAST USED").AlignRight(2, 3, 4, 5), stats.Sessions,
		func(line checkpoint.Series) []string {
			return []string{
				line.Session, app.OrDash(app.OneLine(line.Workflow)), fmt.Sprint(line.Count), app.FormatBytes(line.Bytes), app.FormatBytes(line.Stored),
				ratioText(line.Bytes, line.Stored), host.FormatAge(line.Touched),
			}
		})
	fmt.Fprintf(host.Out, "\n%s\n", s.Bold("Growth"))
	app.WriteRows(host, app.NewTable(0, "DAY", "CHECKPOINTS", "CONTEXTS", "STORED", "RATIO").AlignRight(1, 2, 3, 4), stats.Growth, func(day checkpoint.Day) []string {
		return []string{day.Date, fmt.Sprint(day.Checkpoints), app.FormatBytes(day.Bytes), app.FormatBytes(day.Stored), ratioText(day.Bytes, day.Stored)}
	})
}

// ratioText returns the compression ratio as text.
func ratioText(bytes, stored int64) string {
	if stored == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(bytes)/float64(stored))
}
