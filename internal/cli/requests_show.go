package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/requestlog"
	"github.com/spf13/cobra"
)

func newRequestsShowCmd(a *app) *cobra.Command {
	return newNameCmd(a, runRequestsShow, &cobra.Command{
		Use:     "show REQUEST",
		Short:   "Show one request, and what each hook did to it",
		Example: "  guideway requests show q_06bmyb2ad4ft47c6abwmtxs\n  guideway requests show q_06bmyb2ad4ft47c6abwmtxs --json",
		Args:    exactly(1, "one request, by its id", "guideway requests show q_06bmyb2ad4ft47c6abwmtxs; guideway requests list shows the ids"),
	})
}

func runRequestsShow(ctx context.Context, o *nameOptions) error {
	return o.app.withRequests(ctx, func(ctx context.Context, d *requestDesk) error {
		if d.log == nil {
			return guideway.Errorf(guideway.CodeNotFound, "there is no request %q: nothing is recorded yet", o.Name).WithFix("guideway requests list")
		}
		e, err := d.log.Get(ctx, d.user, o.Name)
		if err != nil {
			return err
		}
		host := o.app.host
		return host.writeJSONOr(o.JSON, e, func() { writeRequest(host, e, d.cfg.Requests.Bodies) })
	})
}

func writeRequest(host *Host, e *requestlog.Entry, bodies bool) {
	s, out := host.outStyles(), host.Out
	line := host.writeFields(9)
	line("Request", e.ID)
	line("When", e.At.Local().Format(time.RFC3339)+", "+host.ago(e.At))
	line("For", e.Method+" "+toolWords(&requestlog.Entry{Method: "tools/call", Upstream: e.Upstream, Tool: e.Tool}))
	line("Project", oneLine(e.Project))
	line("Client", oneLine(e.Client))
	line("Token", oneLine(e.Token))
	line("Status", s.request(e.Status))
	line("Error", oneLine(e.Error))
	line("Took", millisecondWords(e.MS)+" ms")
	line("Sizes", bytesWords(e.BytesIn)+" in, "+bytesWords(e.BytesOut)+" out")
	line("Trace", e.TraceID)
	for i := range e.Graphs {
		fmt.Fprintf(out, "\n%s  %s\n", s.bold("Hook graph "+oneLine(e.Graphs[i].ID)), e.Graphs[i].Outcome)
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
		fmt.Fprintf(out, "\n%s\n%s\n", s.bold(part.name), printable(part.body.Text))
		if part.body.Cut {
			fmt.Fprintln(out, s.faint("(cut)"))
		}
	}
	if e.Request == nil && e.Response == nil && !bodies {
		fmt.Fprintln(host.Err, "\nWhat was sent is not kept; the setting requests.bodies keeps it from now on.")
	}
}

// writeNode prints what one node of a hook graph did.
func writeNode(out io.Writer, s styles, n *requestlog.Node) {
	name := oneLine(n.ID)
	if n.Label != "" {
		name += " (" + oneLine(n.Label) + ")"
	}
	note := ""
	switch {
	case n.Pending:
		note = "  had not ended yet"
	case n.Skipped:
		note = "  not sent: a hook had answered"
	case n.Branch != "":
		note = "  " + string(n.Branch)
	}
	if n.Aside {
		note = "  aside" + note
	}
	fmt.Fprintf(out, "  %8s ms  %-9s  %s%s\n", millisecondWords(n.MS), n.Kind, name, s.faint(note))
	if n.Error != nil {
		place := ""
		if n.Error.Line > 0 {
			place = fmt.Sprintf(" (%s:%d:%d)", oneLine(n.Error.File), n.Error.Line, n.Error.Column)
		}
		fmt.Fprintf(out, "               %s\n", s.red(oneLine(n.Error.Code+": "+n.Error.Message)+place))
	}
	for _, c := range n.Changes {
		values := ""
		if c.Before != nil {
			values += " from " + oneLine(string(c.Before))
		}
		if c.After != nil {
			values += " to " + oneLine(string(c.After))
		}
		fmt.Fprintf(out, "               %s %s%s\n", c.Op, oneLine(c.Pointer), cut(values, 400))
	}
	for _, l := range n.Console {
		fmt.Fprintf(out, "               %s\n", s.faint(oneLine(l.Level+": "+l.Text)))
	}
}
