package machine

import "github.com/guideway-dev/guideway/internal/cli/server"

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	engine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// machineRunOptions is the command line of guideway machine run.
type machineRunOptions struct {
	app     *app.App
	Name    string
	Inputs  []string
	Answers []string
	Model   string
	Goal    string
	Record  string
	Demo    bool
	JSON    bool
	Limits  limitFlags
}

// limitFlags are the flags of the budgets.
type limitFlags struct {
	States, Calls, Tokens, ToolCalls int
	Cost                             float64
	Time                             string
}

func (l *limitFlags) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&l.States, "states", 0, "maximum number of states entered")
	f.IntVar(&l.Calls, "calls", 0, "maximum number of model calls")
	f.IntVar(&l.Tokens, "tokens", 0, "maximum number of tokens, input and output")
	f.IntVar(&l.ToolCalls, "tool-calls", 0, "maximum number of tool calls in one agent call")
	f.Float64Var(&l.Cost, "cost", 0, "maximum cost, in the currency of the configured prices")
	f.StringVar(&l.Time, "time", "", "maximum working time as a `duration`, such as 30m or 2h")
}

// parseLimits returns the budgets of the flags.
func (l *limitFlags) parseLimits() (engine.Limits, error) {
	const millionths = 1e6
	out := engine.Limits{States: l.States, Calls: l.Calls, Tokens: l.Tokens, ToolCalls: l.ToolCalls, Cost: int64(l.Cost * millionths)}
	for _, limit := range []struct {
		flag  string
		value float64
	}{
		{"states", float64(l.States)}, {"calls", float64(l.Calls)}, {"tokens", float64(l.Tokens)}, {"tool-calls", float64(l.ToolCalls)}, {"cost", l.Cost},
	} {
		if limit.value < 0 {
			return out, guideway.Errorf(guideway.CodeInvalid, "--%s %v is negative", limit.flag, limit.value).WithFix("--%s 10", limit.flag)
		}
	}
	if l.Time == "" {
		return out, nil
	}
	d, err := parseDuration(l.Time)
	if err != nil {
		return out, err
	}
	out.Millis = d.Milliseconds()
	return out, nil
}

func newMachineRunCmd(a *app.App, do func(context.Context, *machineRunOptions) error) *cobra.Command {
	o := &machineRunOptions{app: a}
	cmd := &cobra.Command{
		Use:               "run {NAME|FILE}",
		Args:              app.ExactArgs(1, "a machine, by name or file", "guideway machine run code-and-review --demo"),
		ValidArgsFunction: completeMachines(a),
		RunE:              app.RunWithArg(do, o, &o.Name),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.Inputs, "input", nil, "set an input as `name=value`, a JSON value or plain text; can be repeated")
	f.StringArrayVar(&o.Answers, "answer", nil, "answer a waiting state once, as `name=value`; can be repeated")
	f.StringVar(&o.Model, "model", "", "`model` of all agents: openai:NAME, anthropic:NAME or scripted:FILE")
	f.StringVar(&o.Goal, "goal", "", "goal of the run, used by search")
	f.StringVar(&o.Record, "record", "", "record the answers of models, tools and people in this `file`, which is replaced, without likely secrets, for guideway machine replay and scripted:FILE")
	f.BoolVar(&o.Demo, "demo", false, "run the bundled recording of the machine")
	f.BoolVar(&o.JSON, "json", false, "print only the result, as JSON")
	o.Limits.addFlags(cmd)
	return cmd
}

// demonstration is the bundled data of a machine for a demonstration, besides the model
// answers.
type demonstration struct {
	Inputs  map[string]json.RawMessage `json:"inputs"`
	Answers map[string]json.RawMessage `json:"answers"`
}

// valuePairs parses NAME=VALUE pairs.
func valuePairs(list []string, fix string) (map[string]json.RawMessage, error) {
	pairs, err := app.ParsePairs(list, fix)
	out := map[string]json.RawMessage{}
	for name, value := range pairs {
		// Keep the value a string: the type of the input determines how it is parsed.
		out[name] = quoteJSON(value)
	}
	return out, err
}

func runMachineRun(ctx context.Context, o *machineRunOptions) error {
	limits, err := o.Limits.parseLimits()
	if err != nil {
		return app.UsageError{Err: err}
	}
	inputs, err := valuePairs(o.Inputs, "--input name=value")
	if err != nil {
		return err
	}
	answers, err := valuePairs(o.Answers, "--answer name=value")
	if err != nil {
		return err
	}
	cfg, resolver, err := server.OpenMachineResolver(ctx, o.app)
	if err != nil {
		return err
	}
	one, err := resolver.Find(o.Name)
	if err != nil {
		return err
	}
	if err := resolver.CheckApproval(one); err != nil {
		return err
	}
	models, err := server.NewMachineModels(o.app, cfg, resolver, o.Model)
	if err != nil {
		return err
	}
	if o.Demo {
		if err := o.useDemonstration(one, models, inputs, answers); err != nil {
			return err
		}
	}
	if err := o.askInputs(ctx, one, inputs); err != nil {
		return err
	}
	return withMachines(ctx, o.app, models, func(ctx context.Context, d *machineDeps) error {
		s, err := d.runs.Start(ctx, d.caller, driver.StartRequest{
			Machine: one.Definition.Name, Definition: one.Definition, Inputs: inputs, Goal: o.Goal, Project: d.here, Limits: limits, Demo: o.Demo,
		})
		if err != nil {
			return err
		}
		s, err = d.driveRun(ctx, s.RunID, answers, o.JSON)
		if o.Record != "" {
			if err := d.writeRecording(context.WithoutCancel(ctx), s.RunID, o.Record); err != nil {
				return err
			}
		}
		return d.writeOutcome(s, err, o.JSON)
	})
}

// askInputs asks at the terminal for missing inputs of the machine. With --json or without
// a terminal, a missing input is an error.
func (o *machineRunOptions) askInputs(ctx context.Context, one *server.ResolvedMachine, inputs map[string]json.RawMessage) error {
	host := o.app.Host
	if o.JSON || !host.InTerminal || !host.OutTerminal {
		return checkInputs(one, inputs)
	}
	t := app.NewPrompter(host)
	for i := range one.Definition.Inputs {
		in := &one.Definition.Inputs[i]
		if _, given := inputs[in.Name]; given || in.Optional {
			continue
		}
		fmt.Fprintln(host.Out, app.OneLine(in.Description))
		text, err := t.AskLine(ctx, app.OneLine(in.Name)+": ")
		if err != nil {
			return ignoreEOF(err)
		}
		if text = strings.TrimSpace(text); text != "" {
			inputs[in.Name] = quoteJSON(text)
		}
	}
	return nil
}

// checkInputs returns an error if an input without a default is missing.
func checkInputs(one *server.ResolvedMachine, inputs map[string]json.RawMessage) error {
	for i := range one.Definition.Inputs {
		in := &one.Definition.Inputs[i]
		if _, given := inputs[in.Name]; !given && !in.Optional && in.Default == nil {
			return guideway.Errorf(guideway.CodeInvalid, "the machine %q needs the input %q, a value of the type %s: %s", one.Definition.Name, in.Name, in.Type, app.OneLine(in.Description)).
				WithFix("--input %s=VALUE", in.Name)
		}
	}
	return nil
}

// useDemonstration sets the bundled recording as the model and adds the demonstration's
// values for missing inputs and answers.
func (o *machineRunOptions) useDemonstration(one *server.ResolvedMachine, models *server.MachineModels, inputs, answers map[string]json.RawMessage) error {
	data, err := one.Recording()
	if err != nil {
		return err
	}
	model, err := server.ScriptedModel(data)
	if err != nil {
		return err
	}
	models.Fixed = &driver.SelectedModel{Model: model, Name: "scripted"}
	var demo demonstration
	if err := json.Unmarshal(data, &demo); err != nil {
		return guideway.Errorf(guideway.CodeInvalidDefinition, "the recording of the machine %q is not valid: %w", one.Definition.Name, err).
			WithFix("correct the JSON of the recording, or run the machine with a model: --model openai:NAME, --model anthropic:NAME or --model scripted:FILE")
	}
	for name, value := range demo.Inputs {
		if _, given := inputs[name]; !given {
			inputs[name] = value
		}
	}
	for name, value := range demo.Answers {
		if _, given := answers[name]; !given {
			answers[name] = value
		}
	}
	return nil
}

// driveRun executes a run until it stops, or needs an input that neither answers nor the
// user supplies.
func (d *machineDeps) driveRun(ctx context.Context, id string, answers map[string]json.RawMessage, quiet bool) (*driver.Status, error) {
	host := d.app.Host
	view := &machineView{out: host.Out, styles: host.OutStyles()}
	observe := view.showUpdate
	if quiet {
		observe = nil
	}
	for {
		driven := d.runs.DriveAttended(ctx, d.caller.User, id, observe)
		view.endLine()
		s, err := d.runs.Status(context.WithoutCancel(ctx), d.caller, id)
		if driven != nil || err != nil {
			if s == nil {
				s = &driver.Status{RunID: id}
			}
			return s, cmp.Or(driven, err)
		}
		asking := waitingRun(s)
		value, ok := json.RawMessage(nil), false
		if asking != nil {
			value, ok = answers[asking.Asks.Name]
		}
		if !ok && !quiet && asking != nil && host.InTerminal && host.OutTerminal {
			value, ok, err = d.askUser(ctx, asking)
			if err != nil {
				return s, err
			}
		}
		if !ok {
			return s, nil
		}
		delete(answers, asking.Asks.Name) // use an answer only once; in a loop, ask the user
		caller := d.caller
		if asking.Asks.Person {
			if err := d.checkPassphrase(ctx); err != nil {
				return s, err
			}
			caller.Via = run.ViaTerminal
		}
		if _, err := d.runs.Input(ctx, caller, asking.RunID, driver.InputAnswer{Question: asking.Question, Value: value}); err != nil {
			return s, err
		}
	}
}

// waitingRun returns the run that waits for an input: s itself, a nested run, or nil.
func waitingRun(s *driver.Status) *driver.Status {
	for s != nil && s.Asks == nil {
		s = s.Child
	}
	return s
}

// writeOutcome prints the result of a run. A run that is paused or cancelled is a failure.
func (d *machineDeps) writeOutcome(s *driver.Status, err error, asJSON bool) error {
	if err != nil {
		return err
	}
	stopped := s.Pause != nil || s.Status == "cancelled"
	return d.app.Host.WriteCheckResult(asJSON, s, stopped, func() { writeStatus(d.app.Host, s) })
}

// askUser asks for an input at the terminal; ok is false if the user answers later.
func (d *machineDeps) askUser(ctx context.Context, s *driver.Status) (value json.RawMessage, ok bool, err error) {
	t := app.NewPrompter(d.app.Host)
	writeInputRequest(d.app.Host, s)
	text, err := t.AskLine(ctx, app.OneLine(s.Asks.Name)+" (leave empty to answer later): ")
	if err != nil || strings.TrimSpace(text) == "" {
		return nil, false, ignoreEOF(err)
	}
	return quoteJSON(strings.TrimSpace(text)), true, nil
}

// checkPassphrase asks for the passphrase of gates that require human approval.
func (d *machineDeps) checkPassphrase(ctx context.Context) error {
	if err := d.app.Host.RequireTerminal(); err != nil {
		return err
	}
	p := app.NewApprover(d.app.Host, d.cfg)
	if err := p.Passphrase.CheckUsable(); err != nil {
		return err
	}
	return p.CheckPassphrase(ctx)
}
