package requests

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/spf13/cobra"
)

func newRequestsShowCmd(a *app.App) *cobra.Command {
	return app.NewNameCmd(a, runRequestsShow, &cobra.Command{
		Use:  "show REQUEST",
		Args: app.ExactArgs(1, "the id of a request", "guideway requests show q_06bmyb2ad4ft47c6abwmtxs; guideway requests list prints the ids"),
	})
}

func runRequestsShow(ctx context.Context, o *app.NameOptions) error {
	return withRequests(ctx, o.App, func(ctx context.Context, d *requestDeps) error {
		if d.log == nil {
			return guideway.Errorf(guideway.CodeNotFound, "there is no request %q: no requests are recorded yet", o.Name).
				WithFix("check that the setting requests.record is on, and let a client call an upstream")
		}
		e, err := d.log.Get(ctx, d.user, o.Name)
		if err != nil {
			return err
		}
		host := o.App.Host
		return host.WriteJSONOr(o.JSON, e, func() { writeRequest(host, e, d.cfg.Requests.Bodies) })
	})
}

func writeRequest(host *app.Host, e *requestlog.Entry, bodies bool) {
	s, out := host.OutStyles(), host.Out
	line := host.WriteFields(9)
	line("Request", e.ID)
	line("When", e.At.Local().Format(time.RFC3339)+", "+host.FormatAge(e.At))
	line("For", e.Method+" "+toolText(&requestlog.Entry{Method: "tools/call", Upstream: e.Upstream, Tool: e.Tool}))
	line("Project", app.OneLine(e.Project))
	line("Client", app.OneLine(e.Client))
	line("Token", app.OneLine(e.Token))
	line("Status", statusStyled(s, e.Status))
	line("Error", app.OneLine(e.Error))
	line("Held call", e.HeldCall)
	line("Took", formatMilliseconds(e.MS)+" ms")
	line("Sizes", app.FormatBytes(e.BytesIn)+" in, "+app.FormatBytes(e.BytesOut)+" out")
	line("Trace", e.TraceID)
	for i := range e.Graphs {
		fmt.Fprintf(out, "\n%s  %s\n", s.Bold("Hook graph "+app.OneLine(e.Graphs[i].ID)), e.Graphs[i].Outcome)
		for n := range e.Graphs[i].Nodes {
			writeNode(out, s, &e.Graphs[i].Nodes[n])
		}
	}
	for _, part := range []struct {
		name string
		body *requestlog.Body
	}{{"Arguments", e.Request}, {"Answer", e.Response}} {
		if part.body == nil {
			continue
		}
		fmt.Fprintf(out, "\n%s\n%s\n", s.Bold(part.name), app.EscapeText(part.body.Text))
		if part.body.Cut {
			fmt.Fprintln(out, s.Faint("(truncated)"))
		}
	}
	if e.Request == nil && e.Response == nil && !bodies {
		fmt.Fprintln(host.Err, "\nThe contents were not recorded; to record them, turn on the setting requests.bodies.")
	}
}

// writeNode prints the actions of a node of a hook graph.
func writeNode(out io.Writer, s app.Styles, n *requestlog.Node) {
	name := app.OneLine(n.ID)
	if n.Label != "" {
		name += " (" + app.OneLine(n.Label) + ")"
	}
	note := ""
	switch {
	case n.Pending:
		note = "  not finished"
	case n.Skipped:
		note = "  not sent: a hook answered"
	case n.Branch != "":
		note = "  " + string(n.Branch)
	}
	if n.FireAndForget {
		note = "  fire-and-forget" + note
	}
	fmt.Fprintf(out, "  %8s ms  %-9s  %s%s\n", formatMilliseconds(n.MS), n.Kind, name, s.Faint(note))
	if n.Error != nil {
		place := ""
		if n.Error.Line > 0 {
			place = fmt.Sprintf(" (%s:%d:%d)", app.OneLine(n.Error.File), n.Error.Line, n.Error.Column)
		}
		fmt.Fprintf(out, "               %s\n", s.Red(app.OneLine(n.Error.Code+": "+n.Error.Message)+place))
	}
	for _, c := range n.Changes {
		values := ""
		if c.Before != nil {
			values += " from " + app.OneLine(string(c.Before))
		}
		if c.After != nil {
			values += " to " + app.OneLine(string(c.After))
		}
		fmt.Fprintf(out, "               %s %s%s\n", c.Op, app.OneLine(c.Pointer), app.Truncate(values, 400))
	}
	for _, l := range n.Console {
		fmt.Fprintf(out, "               %s\n", s.Faint(app.OneLine(l.Level+": "+l.Text)))
	}
}

// requestsTailOptions is the command line of guideway requests tail.
type requestsTailOptions struct {
	app    *app.App
	Filter requestFilter
	Lines  int
	JSON   bool
}

func newRequestsTailCmd(a *app.App, run func(context.Context, *requestsTailOptions) error) *cobra.Command {
	o := &requestsTailOptions{app: a}
	cmd := &cobra.Command{
		Use:  "tail [WORD...]",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Filter.Words = args
			if o.Lines < 0 || o.Lines > 10_000 {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--lines %d is not between 0 and 10000", o.Lines).WithFix("--lines 10")}
			}
			return run(cmd.Context(), o)
		},
	}
	o.Filter.addFlags(a, cmd)
	cmd.Flags().IntVarP(&o.Lines, "lines", "n", 10, "number of earlier requests to print first (up to 10000)")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print each request as a line of JSON")
	return cmd
}

// tailInterval is the polling interval.
const tailInterval = 500 * time.Millisecond

// tailPage is the maximum number of entries that one poll prints; earlier ones are skipped.
const tailPage = 10_000

func runRequestsTail(ctx context.Context, o *requestsTailOptions) error {
	cfg, person, err := o.app.LoadUser()
	if err != nil {
		return err
	}
	f, err := o.Filter.toLogFilter(o.app.Host, person.User)
	if err != nil {
		return app.UsageError{Err: err}
	}
	log := server.NewRequestLog(cfg)
	defer log.Close()
	f.Limit = o.Lines
	begun := false
	tick := time.NewTicker(tailInterval)
	defer tick.Stop()
	for {
		reader, err := log.Read(ctx)
		if err == nil && reader != nil {
			err = o.showNew(ctx, reader, &f, begun)
			begun = true
		} else if reader == nil {
			f.Limit, begun = tailPage, true // from now on all entries are new
		}
		if ctx.Err() != nil {
			return nil // Ctrl-C is the normal end of the command
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// showNew prints new entries.
func (o *requestsTailOptions) showNew(ctx context.Context, reader *requestlog.Log, f *requestlog.Filter, begun bool) error {
	latest, err := reader.Latest(ctx)
	if err != nil {
		return err
	}
	if begun && latest == f.After {
		return nil
	}
	if f.Limit > 0 {
		list, err := reader.List(ctx, *f)
		if err != nil {
			return err
		}
		slices.Reverse(list)
		for i := range list {
			if err := o.writeEntry(&list[i]); err != nil {
				return err
			}
			latest = max(latest, list[i].Num)
		}
	}
	f.After, f.Limit = latest, tailPage
	return nil
}

func (o *requestsTailOptions) writeEntry(e *requestlog.Entry) error {
	host := o.app.Host
	if o.JSON {
		text, err := jsontext.Marshal(e)
		if err == nil {
			_, err = host.Out.Write(append(visible.EscapeJSON(text), '\n'))
		}
		return err
	}
	text := fmt.Sprintf("%s  %s  %8s ms  %s", e.At.Local().Format("15:04:05.000"), statusStyled(host.OutStyles(), e.Status), formatMilliseconds(e.MS), toolText(e))
	if e.Error != "" {
		text += "  " + app.OneLine(e.Error)
	}
	_, err := fmt.Fprintln(host.Out, text)
	return err
}

// requestsPruneOptions is the command line of guideway requests prune.
type requestsPruneOptions struct {
	app       *app.App
	OlderThan time.Duration
	MaxSize   int64
	JSON      bool
}

func newRequestsPruneCmd(a *app.App, run func(context.Context, *requestsPruneOptions) error) *cobra.Command {
	o := &requestsPruneOptions{app: a}
	var older, most string
	cmd := &cobra.Command{
		Use:  "prune",
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if older != "" {
				if o.OlderThan, err = config.ParseDuration(older); err != nil || o.OlderThan <= 0 {
					return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--older-than %q is not an age above zero", older).WithFix("--older-than 7d")}
				}
			}
			if most != "" {
				if o.MaxSize, err = config.ParseSize(most); err != nil || o.MaxSize <= 0 {
					return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--max-size %q is not a size above zero", most).WithFix("--max-size 50MB")}
				}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&older, "older-than", "", "delete requests older than this `age`, such as 7d")
	cmd.Flags().StringVar(&most, "max-size", "", "delete the oldest requests until the log has at most this `size`, such as 50MB")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// requestsPruneAnswer is the answer of guideway requests prune --json.
type requestsPruneAnswer struct {
	Pruned int64              `json:"pruned"`
	Record requestlog.Summary `json:"record"`
}

func runRequestsPrune(ctx context.Context, o *requestsPruneOptions) error {
	return withRequests(ctx, o.app, func(ctx context.Context, d *requestDeps) error {
		answer := requestsPruneAnswer{}
		age, most := o.OlderThan, o.MaxSize
		if age == 0 && most == 0 {
			age, most = d.cfg.Requests.Retention, d.cfg.Requests.MaxSize
		}
		if d.log != nil {
			before := time.Time{}
			if age > 0 {
				before = o.app.Host.CurrentTime().Add(-age)
			}
			var err error
			if answer.Pruned, err = d.log.Prune(ctx, before, most); err != nil {
				return err
			}
			if answer.Record, err = d.log.Summary(ctx); err != nil {
				return err
			}
		}
		return o.app.Host.WriteResult(o.JSON, answer, fmt.Sprintf("Deleted: %s; %s left, %s", app.Plural(int(answer.Pruned), "request", "requests"),
			app.Plural(int(answer.Record.Count), "is", "are"), app.FormatBytes(answer.Record.Bytes)))
	})
}
