package requests

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/spf13/cobra"
)

func newRequestsShowCmd(a *app.App) *cobra.Command {
	return app.NewNameCmd(a, runRequestsShow, &cobra.Command{
		Use:     "show REQUEST",
		Short:   "Show a request and the actions of its hooks",
		Example: "  guideway requests show q_06bmyb2ad4ft47c6abwmtxs\n  guideway requests show q_06bmyb2ad4ft47c6abwmtxs --json",
		Args:    app.ExactArgs(1, "the id of a request", "guideway requests show q_06bmyb2ad4ft47c6abwmtxs; guideway requests list prints the ids"),
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
