package machine

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	engine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// machineRefOptions is the command line of a command on one run of a machine.
type machineRefOptions struct {
	app     *app.App
	Run     string
	Value   string
	HasText bool
	Outcome string
	Result  string
	Reason  string
	Model   string
	Seq     int64
	JSON    bool
	Accept  bool
	Limits  limitFlags
}

func newMachineStatusCmd(a *app.App, do func(context.Context, *machineRefOptions) error) *cobra.Command {
	o := &machineRefOptions{app: a}
	cmd := &cobra.Command{
		Use:  "status [RUN]",
		Args: app.RangeArgs(0, 1, "at most one run", "guideway machine status"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = strings.Join(args, "")
			return do(cmd.Context(), o)
		},
	}
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// machineRow is one run in a list.
type machineRow struct {
	RunID   string `json:"runId"`
	Machine string `json:"machine"`
	Goal    string `json:"goal,omitempty"`
	Status  string `json:"status"`
	State   string `json:"state,omitempty"`
	Parent  string `json:"parent,omitempty"`
	Updated string `json:"updatedAt"`
}

func runMachineStatus(ctx context.Context, o *machineRefOptions) error {
	return withMachines(ctx, o.app, nil, func(ctx context.Context, d *machineDeps) error {
		if o.Run != "" {
			s, err := d.runs.Status(ctx, d.caller, o.Run)
			if err != nil {
				return err
			}
			return o.app.Host.WriteJSONOr(o.JSON, s, func() { writeStatus(o.app.Host, s) })
		}
		list, err := d.runs.List(ctx, d.caller, run.Filter{})
		if err != nil {
			return err
		}
		rows := []machineRow{}
		for _, r := range list {
			rows = append(rows, machineRow{
				RunID: r.ID, Machine: r.Workflow, Goal: r.Goal, Status: r.Title, State: r.Step, Parent: r.Parent,
				Updated: r.Updated.Format("2006-01-02T15:04:05Z07:00"),
			})
		}
		return app.WriteList(o.app.Host, o.JSON, app.Listing[machineRow]{
			Items: rows, Answer: rows, Empty: "There are no machine runs. To start one: guideway machine run --help",
			Table: app.NewTable(4, "RUN", "MACHINE", "STATUS", "STATE", "GOAL", "CHANGED"),
			Row: func(r machineRow) []string {
				return []string{r.RunID, app.OneLine(r.Machine), r.Status, app.OneLine(r.State), app.OneLine(r.Goal), r.Updated}
			},
		})
	})
}

func newMachineInputCmd(a *app.App, do func(context.Context, *machineRefOptions) error) *cobra.Command {
	o := &machineRefOptions{app: a}
	cmd := &cobra.Command{
		Use:  "input RUN [VALUE]",
		Args: app.RangeArgs(1, 2, "a run and at most one value", "guideway machine input m_0123456789abcdefghjkmnp approve"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if o.HasText = len(args) > 1; o.HasText {
				o.Value = args[1]
			}
			return do(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Outcome, "outcome", "", "outcome of the tool call whose result is unknown: retry, done or failed")
	cmd.Flags().StringVar(&o.Result, "result", "", "result of the tool, for --outcome done")
	cmd.Flags().StringVar(&o.Model, "model", "", "`model` of all agents from now on: openai:NAME, anthropic:NAME or scripted:FILE")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print only the result, as JSON")
	return cmd
}

// continueRun executes a run after a command has changed it, and the runs that wait for it.
func (d *machineDeps) continueRun(ctx context.Context, id string, o *machineRefOptions) error {
	id, err := d.runs.OutermostRun(ctx, d.caller.User, id)
	if err != nil {
		return err
	}
	s, err := d.driveRun(ctx, id, map[string]json.RawMessage{}, o.JSON)
	return d.writeOutcome(s, err, o.JSON)
}

// withModels is like withMachines, for a command that continues a run.
func (o *machineRefOptions) withModels(ctx context.Context, do func(context.Context, *machineDeps) error) error {
	cfg, resolver, err := server.OpenMachineResolver(ctx, o.app)
	if err != nil {
		return err
	}
	models, err := server.NewMachineModels(o.app, cfg, resolver, o.Model)
	if err != nil {
		return err
	}
	return withMachines(ctx, o.app, models, do)
}

func runMachineInput(ctx context.Context, o *machineRefOptions) error {
	return o.withModels(ctx, func(ctx context.Context, d *machineDeps) error {
		if o.Outcome != "" {
			if _, err := d.runs.Decide(ctx, d.caller, o.Run, driver.OutcomeAnswer{Decision: engine.Decision(o.Outcome), Result: o.Result}); err != nil {
				return err
			}
			return d.continueRun(ctx, o.Run, o)
		}
		s, err := d.runs.Status(ctx, d.caller, o.Run)
		if err != nil {
			return err
		}
		caller, question := d.caller, ""
		if waiting := waitingRun(s); waiting != nil && waiting.Asks.Person {
			question = waiting.Question
			writeInputRequest(o.app.Host, waiting)
			if err := d.checkPassphrase(ctx); err != nil {
				return err
			}
			caller.Via = run.ViaTerminal
		}
		var value json.RawMessage
		if o.HasText {
			value = quoteJSON(o.Value)
		}
		if _, err := d.runs.Input(ctx, caller, o.Run, driver.InputAnswer{Question: question, Value: value}); err != nil {
			return err
		}
		return d.continueRun(ctx, o.Run, o)
	})
}

func newMachineResumeCmd(a *app.App, do func(context.Context, *machineRefOptions) error) *cobra.Command {
	o := &machineRefOptions{app: a}
	cmd := &cobra.Command{
		Use:  "resume RUN",
		Args: app.ExactArgs(1, "one run", "guideway machine status, to list the runs"),
		RunE: app.RunWithArg(do, o, &o.Run),
	}
	cmd.Flags().StringVar(&o.Model, "model", "", "`model` of all agents from now on: openai:NAME, anthropic:NAME or scripted:FILE")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print only the result, as JSON")
	cmd.Flags().BoolVar(&o.Accept, "accept-tools", false, "continue with the present tools and hook graphs, even if they changed")
	o.Limits.addFlags(cmd)
	return cmd
}

func runMachineResume(ctx context.Context, o *machineRefOptions) error {
	limits, err := o.Limits.parseLimits()
	if err != nil {
		return app.UsageError{Err: err}
	}
	return o.withModels(ctx, func(ctx context.Context, d *machineDeps) error {
		if o.Accept {
			if err := d.acceptTools(ctx, o.Run); err != nil {
				return err
			}
		}
		if _, err := d.runs.Resume(ctx, d.caller, o.Run, limits); err != nil {
			return err
		}
		return d.continueRun(ctx, o.Run, o)
	})
}

// acceptTools accepts the present tools for a run, after the passphrase.
func (d *machineDeps) acceptTools(ctx context.Context, id string) error {
	if err := d.checkPassphrase(ctx); err != nil {
		return err
	}
	caller := d.caller
	caller.Via = run.ViaTerminal
	_, err := d.runs.AcceptTools(ctx, caller, id)
	return err
}

func newMachineCancelCmd(a *app.App, do func(context.Context, *machineRefOptions) error) *cobra.Command {
	o := &machineRefOptions{app: a}
	cmd := &cobra.Command{
		Use:  "cancel RUN",
		Args: app.ExactArgs(1, "one run", "guideway machine status, to list the runs"),
		RunE: app.RunWithArg(do, o, &o.Run),
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "reason, recorded with the run")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runMachineCancel(ctx context.Context, o *machineRefOptions) error {
	return withMachines(ctx, o.app, nil, func(ctx context.Context, d *machineDeps) error {
		caller := d.caller
		caller.Via = o.app.Host.DetectChannel()
		s, err := d.runs.Cancel(ctx, caller, o.Run, o.Reason)
		if err != nil {
			return err
		}
		return o.app.Host.WriteJSONOr(o.JSON, s, func() { writeStatus(o.app.Host, s) })
	})
}

func newMachineForkCmd(a *app.App, do func(context.Context, *machineRefOptions) error) *cobra.Command {
	o := &machineRefOptions{app: a}
	cmd := &cobra.Command{
		Use:  "fork RUN",
		Args: app.ExactArgs(1, "one run", "guideway machine status, to list the runs"),
		RunE: app.RunWithArg(do, o, &o.Run),
	}
	cmd.Flags().Int64Var(&o.Seq, "seq", 0, "number of the last `event` to copy (default: the last event before the run ended)")
	cmd.Flags().StringVar(&o.Model, "model", "", "`model` of all agents from now on: openai:NAME, anthropic:NAME or scripted:FILE")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print only the result, as JSON")
	return cmd
}

func runMachineFork(ctx context.Context, o *machineRefOptions) error {
	return o.withModels(ctx, func(ctx context.Context, d *machineDeps) error {
		s, err := d.runs.Fork(ctx, d.caller, o.Run, o.Seq)
		if refusal, ok := run.AsRefusal(err); ok && refusal.Rule == run.RuleAbortedByPerson && o.app.Host.RequireTerminal() == nil {
			if err := d.checkPassphrase(ctx); err != nil {
				return err
			}
			caller := d.caller
			caller.Via = run.ViaTerminal
			s, err = d.runs.Fork(ctx, caller, o.Run, o.Seq)
		}
		if err != nil {
			return err
		}
		return d.continueRun(ctx, s.RunID, o)
	})
}

// MachineShowOptions is the command line of guideway machine show.
type MachineShowOptions struct {
	App   *app.App
	Name  string
	Graph string
	JSON  bool
}

func newMachineShowCmd(a *app.App, do func(context.Context, *MachineShowOptions) error) *cobra.Command {
	o := &MachineShowOptions{App: a}
	cmd := &cobra.Command{
		Use:               "show {NAME|FILE|RUN}",
		Args:              app.ExactArgs(1, "a machine or a run", "guideway machine show support-desk"),
		RunE:              app.RunWithArg(do, o, &o.Name),
		ValidArgsFunction: completeMachines(a),
	}
	app.AddGraphFlag(cmd, &o.Graph, "draw the states as a flowchart in this `format`: "+app.GraphMermaid)
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runMachineShow(ctx context.Context, o *MachineShowOptions) error {
	if strings.HasPrefix(o.Name, driver.RunPrefix) {
		return o.showRun(ctx)
	}
	_, resolver, err := server.OpenMachineResolver(ctx, o.App)
	if err != nil {
		return err
	}
	return o.ShowMachine(resolver)
}

// showMachine prints a machine: a summary, and then all that an approval covers.
func showMachine(h *app.Host, one *server.ResolvedMachine) error {
	st, d := h.OutStyles(), one.Definition
	fmt.Fprintf(h.Out, "%s  %s\n%s\n", st.Bold(app.OneLine(d.Name)), st.Faint(app.FormatSource(one.Source, one.Revision)+", "+one.Path), app.EscapeText(d.Description))
	for _, o := range one.Overrides {
		fmt.Fprintln(h.Out, st.Faint(fmt.Sprintf("Overrides %s of %s (%s): guideway machine show %s@%s", o.Version, o.Source.Name, app.OneLine(o.Path), app.OneLine(d.Name), o.Source.Name)))
	}
	for i := range d.Inputs {
		in := &d.Inputs[i]
		fmt.Fprintf(h.Out, "\nInput %s (%s): %s", st.Bold(app.OneLine(in.Name)), in.Type, app.OneLine(in.Description))
		if in.Default != nil {
			fmt.Fprintf(h.Out, " (default: %s)", app.OneLine(string(in.Default)))
		}
	}
	fmt.Fprintf(h.Out, "\nOutput %s (%s): %s\n", st.Bold(app.OneLine(d.Output.Name)), d.Output.Type, app.OneLine(d.Output.Description))
	fmt.Fprintln(h.Out)
	for i := range d.Agents {
		a := &d.Agents[i]
		r := d.Roles[a.Role]
		fmt.Fprintf(h.Out, "Agent %s: level %s, in the conversation %s as %s%s\n", st.Bold(app.OneLine(a.Role)), r.Level, app.OneLine(a.Context), a.Side, toolsText(r))
	}
	fmt.Fprintln(h.Out)
	for i := range d.States {
		s := &d.States[i]
		does := ""
		switch {
		case s.Agent != "":
			does = "agent " + s.Agent
		case s.Ask != nil:
			does = "waits for " + s.Ask.Name
		case s.Sub != nil:
			does = "machine " + s.Sub.Machine
		}
		fmt.Fprintf(h.Out, "State %s  %s\n", st.Bold(app.OneLine(s.Name)), st.Faint(app.OneLine(does)))
	}
	text, err := d.ReviewText()
	if err != nil {
		return err
	}
	writePart(h, "Definition", text)
	if d.Script != "" {
		writePart(h, "Script "+app.OneLine(d.ScriptFile), visible.EscapeScript(d.Script))
	}
	return nil
}

// writePart prints a text with a heading; hidden characters are escaped.
func writePart(h *app.Host, heading, text string) {
	fmt.Fprintf(h.Out, "\n%s\n", h.OutStyles().Bold(heading))
	for line := range strings.SplitSeq(strings.TrimRight(visible.EscapeText(text), "\n"), "\n") {
		if line != "" {
			line = "  " + line
		}
		fmt.Fprintln(h.Out, line)
	}
}

// toolsText returns the tools that a role may use.
func toolsText(r *machinedef.Role) string {
	var parts []string
	for _, t := range r.Parsing {
		parts = append(parts, t.Name)
	}
	parts = append(parts, r.Included...)
	if r.HasExcluded {
		parts = append(parts, strings.TrimSuffix("all tools except "+strings.Join(r.Excluded, ", "), " except "))
	}
	if len(parts) == 0 {
		return ""
	}
	return ", uses " + app.OneLine(strings.Join(parts, ", "))
}

// showRun lists the events of a run.
func (o *MachineShowOptions) showRun(ctx context.Context) error {
	return withMachines(ctx, o.App, nil, func(ctx context.Context, d *machineDeps) error {
		events, err := d.runs.Events(ctx, d.caller, o.Name)
		if err != nil {
			return err
		}
		host := o.App.Host
		if o.JSON {
			return app.WriteJSON(host.Out, events)
		}
		for _, e := range events {
			fmt.Fprintf(host.Out, "%5d  %s  %-16s %s\n", e.Seq, e.At.Format("15:04:05.000"), e.Kind, app.OneLine(eventText(e)))
		}
		return nil
	})
}

// eventText returns an event as short text.
func eventText(e run.Event) string {
	var f engine.Event
	if json.Unmarshal(e.Data, &f) != nil || f.Kind == "" {
		return ""
	}
	parts := []string{f.State, f.Function, f.Agent, f.Model, f.Machine}
	if f.Tool != nil {
		parts = append(parts, f.Tool.Name)
	}
	if f.Next != "" {
		parts = append(parts, "→ "+f.Next)
	}
	if f.Error != nil {
		parts = append(parts, "failed: "+errorText(f.Error))
	}
	if f.Pause != nil {
		parts = append(parts, f.Pause.Message)
	}
	if f.Unknown {
		parts = append(parts, "(outcome unknown)")
	}
	if f.Response != nil {
		parts = append(parts, f.Response.Message.Content)
	}
	return app.Truncate(strings.Join(strings.Fields(strings.Join(parts, " ")), " "), 120)
}
