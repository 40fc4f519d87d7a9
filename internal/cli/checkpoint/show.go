package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

func newCheckpointShowCmd(a *app.App) *cobra.Command {
	return app.NewNameCmd(a, runCheckpointShow, &cobra.Command{
		Use:   "show CHECKPOINT",
		Short: "Show a checkpoint and the variables of its context",
		Long: `Show the metadata of a checkpoint: its session, its storage, and the names and sizes of
its variables. To print the context, use "guideway checkpoint load".`,
		Example: `  guideway checkpoint show c_0dx3k2v9q8f7m5n4p1r6t0w
  guideway checkpoint show c_0dx3k2v9q8f7m5n4p1r6t0w --json`,
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
		Use:   "load {CHECKPOINT|--session SESSION}",
		Short: "Print the context of a checkpoint",
		Long: `Print the context of a checkpoint as it was saved: JSON on one line with sorted keys. If
the checkpoint is damaged, nothing is printed, unless --older selects the latest undamaged
one before it.`,
		Example: `  guideway checkpoint load c_0dx3k2v9q8f7m5n4p1r6t0w > context.json
  guideway checkpoint load --session login-work --keys plan,decisions
  guideway checkpoint load --session login-work --json`,
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
