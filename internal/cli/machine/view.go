package machine

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	engine "github.com/guideway-dev/guideway/internal/machine/engine"
)

// machineView prints the progress of a run: states, messages and calls of agents, and
// usage.
type machineView struct {
	out    io.Writer
	styles app.Styles
	// lineOpen reports whether the current line is not finished.
	lineOpen bool
	// streamed reports whether parts of the next answer were already printed.
	streamed bool
}

// endLine finishes the current line.
func (v *machineView) endLine() {
	if v.lineOpen {
		fmt.Fprintln(v.out)
		v.lineOpen = false
	}
}

func (v *machineView) writeLine(format string, args ...any) {
	v.endLine()
	fmt.Fprintf(v.out, format+"\n", args...)
}

// showUpdate prints an update of the run.
func (v *machineView) showUpdate(u driver.Update) {
	pad := strings.Repeat("  ", u.Depth)
	if u.Event == nil {
		v.showDelta(u, pad)
		return
	}
	switch e := u.Event; e.Kind {
	case engine.KindStateEntered:
		v.writeLine("%s%s %s", pad, v.styles.Cyan("▸"), v.styles.Bold(app.OneLine(e.State)))
	case engine.KindModelIntent:
		v.streamed = false
		v.writeLine("%s  %s %s", pad, app.OneLine(e.Agent), v.styles.Faint("("+app.OneLine(e.Model)+")"))
	case engine.KindModelResult:
		v.showAnswer(u, e, pad)
	case engine.KindToolIntent:
		v.writeLine("%s  %s %s", pad, v.styles.Yellow("→ "+app.OneLine(e.Tool.Name)), v.styles.Faint(app.Truncate(app.OneLine(e.Tool.Arguments), 100)))
	case engine.KindToolResult:
		v.showResult(e, pad)
	case engine.KindSubIntent:
		v.writeLine("%s  machine %s %s", pad, app.OneLine(e.Machine), v.styles.Faint(e.Run))
	case engine.KindHandlerResult:
		for _, text := range e.Console {
			v.writeLine("%s  %s", pad, v.styles.Faint("console: "+app.OneLine(text)))
		}
		if e.Error != nil {
			v.writeLine("%s  %s", pad, v.styles.Red(errorText(e.Error)))
		}
	}
}

// showDelta prints a part of an answer.
func (v *machineView) showDelta(u driver.Update, pad string) {
	if u.Delta.Text == "" {
		return
	}
	if !v.lineOpen {
		fmt.Fprint(v.out, pad+"    ")
		v.lineOpen, v.streamed = true, true
	}
	fmt.Fprint(v.out, strings.ReplaceAll(app.EscapeText(u.Delta.Text), "\n", "\n"+pad+"    "))
}

func (v *machineView) showAnswer(u driver.Update, e *engine.Event, pad string) {
	v.endLine()
	if e.Response != nil {
		if !v.streamed && e.Response.Message.Content != "" {
			v.writeLine("%s    %s", pad, app.EscapeText(e.Response.Message.Content))
		}
		for _, c := range e.Response.Message.ToolCalls {
			v.writeLine("%s    %s", pad, v.styles.Faint(app.Truncate(app.OneLine(c.Function.Name+" "+c.Function.Arguments), 120)))
		}
	}
	if e.Error != nil {
		v.writeLine("%s  %s", pad, v.styles.Red(errorText(e.Error)))
	}
	v.writeLine("%s  %s", pad, v.styles.Faint(usageText(u.Usage)))
}

func (v *machineView) showResult(e *engine.Event, pad string) {
	switch {
	case e.Unknown:
		v.writeLine("%s  %s", pad, v.styles.Red("← result unknown: "+app.OneLine(e.Tool.Name)))
	case e.Result.Error:
		v.writeLine("%s  %s", pad, v.styles.Red("← "+app.Truncate(app.OneLine(e.Result.Content), 100)))
	default:
		v.writeLine("%s  %s", pad, v.styles.Faint("← "+app.Truncate(app.OneLine(e.Result.Content), 100)))
	}
}

// errorText returns an error with its location.
func errorText(f *engine.RunError) string {
	text := app.OneLine(f.Message)
	if f.File != "" && f.Line > 0 {
		text = fmt.Sprintf("%s:%d:%d: %s", app.OneLine(f.File), f.Line, f.Column, text)
	}
	return text
}

// usageText returns the usage of a run as text.
func usageText(s engine.Usage) string {
	const millionths = 1e6
	text := fmt.Sprintf("%s, %d input and %d output tokens", app.Plural(s.Calls, "model call", "model calls"), s.Tokens.Input, s.Tokens.Output)
	if s.Cost > 0 {
		text += fmt.Sprintf(", cost %.4f", float64(s.Cost)/millionths)
	}
	return text
}

// valueText returns a string value unchanged, and any other value as JSON.
func valueText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return app.EscapeText(text)
	}
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return app.EscapeText(string(value))
	}
	return app.EscapeText(b.String())
}

// writeInputRequest prints the input that a run waits for.
func writeInputRequest(h *app.Host, s *driver.Status) {
	st := h.OutStyles()
	fmt.Fprintf(h.Out, "\n%s %s\n", st.Bold("Waits for "+app.OneLine(s.Asks.Name)+":"), app.EscapeText(s.Asks.Description))
	if len(s.Asks.Show) > 0 {
		fmt.Fprintf(h.Out, "%s\n", valueText(s.Asks.Show))
	}
	if len(s.Asks.Options) > 0 {
		fmt.Fprintf(h.Out, "One of: %s\n", app.OneLine(strings.Join(s.Asks.Options, ", ")))
	}
}

// writeStatus prints the status of a run and the next command.
func writeStatus(h *app.Host, s *driver.Status) {
	st := h.OutStyles()
	fmt.Fprintf(h.Out, "\n%s %s is %s.\n", st.Bold(app.OneLine(s.Machine)), st.Faint(s.RunID), s.Status)
	if s.Revision != "" {
		fmt.Fprintln(h.Out, st.Faint("From "+app.FormatSource(app.OneLine(s.Source), s.Revision)))
	}
	if len(s.States) > 0 {
		fmt.Fprintf(h.Out, "States: %s\n", app.OneLine(strings.Join(s.States, " → ")))
	}
	used := fmt.Sprintf("%s, %d input and %d output tokens", app.Plural(s.Usage.Calls, "model call", "model calls"), s.Usage.Input, s.Usage.Output)
	if s.Usage.ToolCalls > 0 {
		used += ", " + app.Plural(s.Usage.ToolCalls, "tool call", "tool calls")
	}
	if s.Cost > 0 {
		used += fmt.Sprintf(", cost %.4f", s.Cost)
	}
	fmt.Fprintf(h.Out, "Used: %s\n", used)
	if s.Unknown != "" {
		fmt.Fprintf(h.Out, "Outcome unknown: %s\n", app.OneLine(s.Unknown))
	}
	writePause(h, s)
	if waiting := waitingRun(s); waiting != nil {
		writeInputRequest(h, waiting)
	}
	if len(s.Output) > 0 {
		fmt.Fprintf(h.Out, "\n%s\n", valueText(s.Output))
	}
	if next := nextCommand(s); next != "" {
		fmt.Fprintf(h.Out, "try: %s\n", next)
	}
}

// writePause prints why a run, or the nested run that it waits for, is paused.
func writePause(h *app.Host, s *driver.Status) {
	at := stoppedRun(s)
	if at.Pause == nil {
		return
	}
	where := "Paused"
	if at != s {
		where = fmt.Sprintf("Paused in %s (%s)", app.OneLine(at.Machine), at.RunID)
	}
	fmt.Fprintf(h.Out, "%s: %s\n", where, h.OutStyles().Red(app.OneLine(at.Pause.Message)))
	if at.Pause.Fix != "" {
		fmt.Fprintf(h.Out, "  %s\n", app.OneLine(at.Pause.Fix))
	}
	if f := at.Pause.Error; f != nil && f.Line > 0 {
		fmt.Fprintf(h.Out, "  at %s:%d:%d\n", app.OneLine(f.File), f.Line, f.Column)
	}
}

// nextCommand returns the command that continues a run, or "". It names the run itself,
// also if a nested run waits: continuing only the nested run would not continue its parent.
func nextCommand(s *driver.Status) string {
	at := stoppedRun(s)
	switch {
	case at.Asks != nil:
		return "guideway machine input " + s.RunID + " VALUE"
	case at.Pause != nil && at.Pause.Code == engine.ErrorKindUnknownOutcome:
		return "guideway machine input " + s.RunID + " --outcome {retry|done|failed}"
	case at.Pause != nil && at.Pause.Code == engine.PauseBudget:
		budget := at.Pause.Budget
		if budget == "toolCalls" {
			budget = "tool-calls"
		}
		return "guideway machine resume " + s.RunID + " --" + budget + " N"
	case at.Pause != nil, !s.Status.Ended() && at.Status.Ended() && s.Driver == "", at.Status == engine.StatusRunning && at.Driver == "":
		return "guideway machine resume " + s.RunID
	}
	return ""
}

// stoppedRun returns the most deeply nested run that a run waits for, or the run itself.
func stoppedRun(s *driver.Status) *driver.Status {
	for s.Child != nil {
		s = s.Child
	}
	return s
}

// parseDuration parses a duration such as 30m.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, guideway.Errorf(guideway.CodeInvalid, "--time %q is not a duration above zero", text).WithFix("write a number and a unit: 90s, 30m, 2h")
	}
	return d, nil
}

// ignoreEOF returns nil for io.EOF, which means that the user did not answer.
func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
