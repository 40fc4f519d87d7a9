package clienthook

import (
	"strings"

	"github.com/guideway-dev/guideway"

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
