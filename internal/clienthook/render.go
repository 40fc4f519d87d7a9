package clienthook

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// format returns what the process writes for an answer. A notice or an error also goes to
// standard error, which every client logs.
func (c Client) format(ev Event, a Answer, err error) Output {
	var out Output
	if ev.Kind != "" {
		out.Out = c.render(ev, a)
	} else if c.ID == "cursor" {
		out.Out = []byte("{}")
	}
	report := a.Notice
	if err != nil {
		report = err.Error()
	}
	if report != "" {
		out.Err = []byte("guideway: " + strings.ReplaceAll(report, "\n", " ") + "\n")
	}
	return out
}

// object is an answer in JSON.
type object map[string]any

// add adds a text, unless it is empty.
func (o object) add(key, text string) {
	if text != "" {
		o[key] = text
	}
}

// encode returns the JSON, or nil for an object without members, which lets the client go on.
func (o object) encode() []byte {
	if len(o) == 0 {
		return nil
	}
	text, err := jsontext.Marshal(map[string]any(o))
	if err != nil {
		return nil // texts and objects of texts always marshal
	}
	return append(text, '\n')
}

// asksInHook reports whether the client asks the user if the answer to an event is "ask".
func asksInHook(client string, ev Event) bool {
	switch client {
	case "claude-code", "copilot":
		return true
	case "cursor":
		return ev.Name == "beforeShellExecution" || ev.Name == "beforeMCPExecution"
	default:
		return false
	}
}

// renderClaudeCode writes an answer for Claude Code.
func renderClaudeCode(ev Event, a Answer) []byte {
	if ev.Kind == KindCompaction {
		return []byte(a.Context) // plain text is appended to the instructions of the compaction
	}
	return renderClaudeForm("claude-code", ev, a)
}

// renderCodex writes an answer for Codex. Codex refuses members that it does not know, and
// the decision "ask".
func renderCodex(ev Event, a Answer) []byte { return renderClaudeForm("codex", ev, a) }

// renderClaudeForm writes an answer in the form of Claude Code, which Codex has taken over.
func renderClaudeForm(client string, ev Event, a Answer) []byte {
	o, inner := object{}, object{}
	o.add("systemMessage", a.Notice)
	if a.Refused {
		o["decision"], o["reason"] = "block", a.Reason
	}
	if a.Verdict != toolpolicy.Allowed {
		inner["permissionDecision"], inner["permissionDecisionReason"] = decisionWord(client, ev, a.Verdict), a.Reason
	}
	inner.add("additionalContext", a.Context)
	if len(inner) > 0 {
		inner["hookEventName"] = ev.Name
		o["hookSpecificOutput"] = inner
	}
	return o.encode()
}

// decisionWord returns "ask" for a held call if the client asks the user, and "deny"
// otherwise.
func decisionWord(client string, ev Event, v toolpolicy.Verdict) string {
	if v == toolpolicy.Held && asksInHook(client, ev) {
		return "ask"
	}
	return "deny"
}

// renderCursor writes an answer for Cursor, which expects an object in any case.
func renderCursor(ev Event, a Answer) []byte {
	o := object{}
	switch {
	case a.Verdict != toolpolicy.Allowed:
		o["permission"] = decisionWord("cursor", ev, a.Verdict)
		o["user_message"], o["agent_message"] = a.Reason, a.Reason
	case a.Refused:
		o["followup_message"] = a.Reason
	case ev.Kind == KindCompaction:
		o.add("user_message", a.Notice)
	default:
		o.add("additional_context", a.Context)
	}
	if len(o) == 0 {
		return []byte("{}")
	}
	return o.encode()
}

// renderGemini writes an answer for Gemini CLI, which cannot ask the user in a hook.
func renderGemini(ev Event, a Answer) []byte {
	o := object{}
	o.add("systemMessage", a.Notice)
	if a.Refused || a.Verdict != toolpolicy.Allowed {
		o["decision"], o["reason"] = "deny", a.Reason
	}
	if a.Context != "" && ev.Kind != KindCompaction {
		o["hookSpecificOutput"] = object{"hookEventName": ev.Name, "additionalContext": a.Context}
	}
	return o.encode()
}

// renderCopilot writes an answer for Copilot CLI, which shows a notice only in its log.
func renderCopilot(ev Event, a Answer) []byte {
	o := object{}
	if a.Verdict != toolpolicy.Allowed {
		o["permissionDecision"], o["permissionDecisionReason"] = decisionWord("copilot", ev, a.Verdict), a.Reason
	}
	if a.Refused {
		o["decision"], o["reason"] = "block", a.Reason
	}
	if ev.Kind != KindCompaction {
		o.add("additionalContext", a.Context)
	}
	return o.encode()
}

// AllowUnread returns the answer to an event that was not read because of an error. Without
// the settings it is not known whether the session has a run, so the client goes on.
func (c Client) AllowUnread(err error) Output {
	return c.format(Event{}, Answer{}, guideway.Errorf(guideway.CodeUnavailable, "%w; the event is allowed", err))
}

// The limits of a restated position, in tokens by the estimate of clipTokens. The exact
// number of tokens is at most 1,500: see TestRestatedPositionIsBounded.
const (
	maxRestatedTokens = 1200
	maxGoalTokens     = 150
	maxPromptTokens   = 500
	maxCriteriaTokens = 350
	maxStepTokens     = 80
	maxFormTokens     = 300
	maxShownRuns      = 3
)

// restateRuns returns the positions of the open runs of a session as a text for the agent.
func (h *Handler) restateRuns(ctx context.Context, session *Session) (Answer, error) {
	open, err := h.openRuns(ctx, session)
	if err != nil || len(open) == 0 {
		return Answer{}, err
	}
	runs, err := h.Open(ctx)
	if err != nil {
		return Answer{}, err
	}
	var text strings.Builder
	shown := min(len(open), maxShownRuns)
	for _, r := range open[len(open)-shown:] {
		last, err := runs.LastSteps(ctx, r.ID)
		if err != nil {
			return Answer{}, err
		}
		text.WriteString(clipTokens(positionText(r, last), maxRestatedTokens/shown-10))
		text.WriteString("\n")
	}
	names := make([]string, 0, shown)
	for _, r := range open {
		names = append(names, fmt.Sprintf("run %s is at %q", r.ID, stepTitle(r)))
	}
	return Answer{Context: text.String(), Notice: clip(strings.Join(names, ", "), 300)}, nil
}

// positionText returns the position of a run, its criteria, the last steps and the next
// call.
func positionText(r *Run, last []CompletedStep) string {
	var b strings.Builder
	fmt.Fprintf(&b, "You work on run %s of the Guideway workflow %s. The server keeps its state; the run is not finished.\n", r.ID, r.Workflow)
	if r.Goal != "" {
		fmt.Fprintf(&b, "Goal: %s\n", clipTokens(r.Goal, maxGoalTokens))
	}
	if len(last) > 0 {
		b.WriteString("Last completed steps:\n")
		for _, s := range last {
			fmt.Fprintf(&b, "- %s: %s\n", clipTokens(s.Step, maxStepTokens/4), clipTokens(strings.Join(strings.Fields(s.Output), " "), maxStepTokens))
		}
	}
	pos := r.Position
	fmt.Fprintf(&b, "Current %s: %s\n", pos.Kind, clipTokens(stepTitle(r), maxStepTokens/4))
	if pos.Loop != nil {
		fmt.Fprintf(&b, "Round %d of the loop %s\n", pos.Loop.Round, clipTokens(pos.Loop.ID, maxStepTokens/4))
	}
	// The next call precedes the long texts, so that no limit cuts it off.
	b.WriteString(nextText(r))
	if text := strings.TrimSpace(pos.Message + "\n" + pos.Prompt); text != "" {
		fmt.Fprintf(&b, "%s\n", clipTokens(text, maxPromptTokens))
	}
	if len(pos.Criteria) > 0 {
		fmt.Fprintf(&b, "The output must meet:\n%s\n", clipTokens("- "+strings.Join(pos.Criteria, "\n- "), maxCriteriaTokens))
	}
	if !pos.Tools.IsZero() {
		fmt.Fprintf(&b, "Tools: %s\n", clipTokens(pos.Tools.String(), maxStepTokens))
	}
	return b.String()
}

// nextText returns the call that continues a run.
func nextText(r *Run) string {
	switch {
	case r.Position.DeadEnd:
		return fmt.Sprintf("No input continues the run: call workflow_fork with runId %s, or workflow_abort.\n", r.ID)
	case r.Position.Person:
		return fmt.Sprintf("The run waits for a person. After their answer, call workflow_status with handle %s.\n", r.Handle)
	case r.Position.Kind == engine.PositionGate:
		return fmt.Sprintf("The run waits for the user's answer. After the answer, call workflow_continue with handle %s.\n", r.Handle)
	default:
		return fmt.Sprintf("Next: workflow_continue with handle %s. workflow_status with the same handle shows the whole position.\n", r.Handle)
	}
}

// refusedStopText returns the text for an agent whose stop is refused for the nth time in a
// row.
func refusedStopText(r *Run, n int) string {
	pos := r.Position
	var b strings.Builder
	fmt.Fprintf(&b, "Run %s of the workflow %s is open and waits for you, not for a person (refused stop %d of %d).\n", r.ID, r.Workflow, n, maxRefusedStops)
	fmt.Fprintf(&b, "Current %s: %s\n", pos.Kind, clipTokens(stepTitle(r), maxStepTokens/4))
	if len(pos.Criteria) > 0 {
		fmt.Fprintf(&b, "The output must meet:\n%s\n", clipTokens("- "+strings.Join(pos.Criteria, "\n- "), maxCriteriaTokens))
	}
	fmt.Fprintf(&b, "Do what the position asks and call workflow_continue with handle %s and with these arguments:\n%s\n", r.Handle, clipTokens(formText(pos), maxFormTokens))
	fmt.Fprintf(&b, "workflow_status with the same handle shows the whole position. "+
		"If the user no longer wants the run, call workflow_abort with their reason. If only the user can decide how to continue, state your question and stop again.")
	return b.String()
}

// formText returns the arguments that the next call at a position must have.
func formText(pos engine.Position) string {
	var lines []string
	for _, f := range pos.Fields() {
		if f.Optional {
			continue
		}
		line := "- " + f.Name
		if f.Description != "" {
			line += ": " + f.Description
		}
		if len(f.Choices) > 0 {
			line += "; one of: " + engine.JoinValues(f.Choices)
		}
		lines = append(lines, clipTokens(line, maxStepTokens))
	}
	return strings.Join(lines, "\n")
}

// clipTokens shortens a text to at most a number of tokens, by an estimate. The tokenizer
// itself takes longer to load than a hook may take.
func clipTokens(text string, most int) string {
	left, word, consonants := most*tokenUnits, 0, 0
	for i, r := range text {
		if word++; r == ' ' || r == '\n' {
			word = 0
		}
		if consonants++; r < 'a' || r > 'z' || strings.ContainsRune("aeiouy", r) {
			consonants = 0
		}
		if left -= unitsOf(r, word < longWord && consonants < longRun); left < 0 {
			return text[:i] + "…"
		}
	}
	return text
}

const (
	// tokenUnits is the number of units in a token.
	tokenUnits = 3
	// A word of at least longWord characters, or with at least longRun consonants in a row,
	// is not counted as a word of a natural language.
	longWord, longRun = 20, 3
)

// unitsOf returns a cautious estimate of the units of a character (see tokenUnits). A
// lower-case letter of a word of a natural language, or a space, is one unit; any other
// character below U+0800 is two; one of the rest of the basic plane is a token, and one
// outside of it is three tokens.
func unitsOf(r rune, natural bool) int {
	switch {
	case r >= 'a' && r <= 'z' && natural, r == ' ':
		return 1
	case r < 0x800:
		return 2
	case r < 0x10000:
		return tokenUnits
	default:
		return 3 * tokenUnits
	}
}
