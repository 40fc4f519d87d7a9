package clienthook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// clientTool is the meaning of a tool of a client.
type clientTool struct {
	// names are the names that Claude Code has for such a tool. Policies can use them for
	// every client.
	names []string
	// reads reports that the tool changes nothing.
	reads bool
}

// clientTools returns the tools that clients name differently, by their names.
func clientTools() map[string]clientTool {
	shell, edit, write := clientTool{names: []string{"Bash"}}, clientTool{names: []string{"Edit"}}, clientTool{names: []string{"Write", "Edit"}}
	read, search := clientTool{names: []string{"Read"}, reads: true}, clientTool{names: []string{"Grep"}, reads: true}
	return map[string]clientTool{
		"Read": read, "Grep": search, "Glob": {reads: true}, "LS": {reads: true}, "NotebookRead": {reads: true},
		// Claude Code
		"Write": edit, "MultiEdit": edit, "NotebookEdit": edit, "PowerShell": shell, "Monitor": shell,
		// Codex
		"apply_patch": write, "shell": shell, "exec_command": shell, "local_shell": shell, "write_stdin": shell,
		// Cursor
		"Shell": shell, "Delete": {names: []string{"Write"}}, "Task": {names: []string{"Agent"}},
		// Gemini CLI
		"run_shell_command": shell, "read_file": read, "read_many_files": read, "write_file": write, "replace": edit,
		"glob": {names: []string{"Glob"}, reads: true}, "search_file_content": search, "grep_search": search,
		"list_directory": {names: []string{"LS"}, reads: true}, "web_fetch": {names: []string{"WebFetch"}}, "google_web_search": {names: []string{"WebSearch"}},
		// Copilot CLI
		"bash": shell, "powershell": shell, "write_bash": shell, "write_powershell": shell, "view": read, "create": write, "edit": edit, "str_replace_editor": edit,
		"grep": search, "rg": search, "web_search": {names: []string{"WebSearch"}}, "task": {names: []string{"Agent"}},
	}
}

// isFree reports whether a tool of a client only talks to the user, plans, or finds other
// tools. No policy restricts it, because without it the agent could not continue a run.
func isFree(tool string) bool {
	return slices.Contains([]string{
		"AskUserQuestion", "ask_user", "request_user_input", "TodoWrite", "update_todo", "write_todos", "update_plan",
		"TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "EnterPlanMode", "ExitPlanMode", "exit_plan_mode", "ToolSearch", "tool_search",
	}, tool)
}

// runTools returns the tools of Guideway whose caller works on a run.
func runTools() []string { return []string{"workflow_start", "workflow_continue", "workflow_fork"} }

// splitRunTool returns the run tool that a client's name of a tool ends with, and the part
// before it.
func splitRunTool(name string) (prefix, tool string, ok bool) {
	for _, tool := range runTools() {
		prefix, found := strings.CutSuffix(name, tool)
		if found && (prefix == "" || !isLetterOrDigit(prefix[len(prefix)-1])) {
			return prefix, tool, true
		}
	}
	return "", "", false
}

func isLetterOrDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isGuideways reports whether a tool belongs to the server that has the session's runs. The
// server itself applies policies to the tools of its upstreams.
func (s *Session) isGuideways(tool string) bool {
	if s.Prefix == "" {
		return strings.HasPrefix(tool, "workflow_") || strings.HasPrefix(tool, "machine_")
	}
	return strings.HasPrefix(tool, s.Prefix)
}

// answerBeforeTool decides a call of a tool of the client by the policies of the session's
// runs. The strictest verdict holds.
func (h *Handler) answerBeforeTool(ctx context.Context, ev Event, session *Session) (Answer, error) {
	if isFree(ev.Tool) || session.isGuideways(ev.Tool) {
		return Answer{}, nil
	}
	open, err := h.openRuns(ctx, session)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	for _, r := range open {
		policy := r.Position.Tools
		if ev.Cut {
			policy = withoutArguments(policy)
		}
		verdict, rule := decideCall(policy, ev)
		if verdict > a.Verdict {
			a = Answer{Verdict: verdict, Reason: h.explainVerdict(ev, r, verdict, rule)}
		}
	}
	return a, nil
}

// decideCall returns the verdict of a policy on a call by any of the names of its tool: a
// rule that denies or holds one of them applies, and a rule that allows one of them allows
// the call. The strictest verdict of the policy and its outer policies applies.
func decideCall(p *toolpolicy.Policy, ev Event) (toolpolicy.Verdict, *toolpolicy.Rule) {
	known := clientTools()[ev.Tool]
	hints := map[string]bool{}
	if known.reads {
		hints["readOnly"], hints["destructive"], hints["openWorld"] = true, false, false
	}
	names := append([]string{ev.Tool}, known.names...)
	if direct, ok := strings.CutPrefix(ev.Tool, "mcp__"); ok {
		names = append(names, direct) // the name that the tool has in the gateway
	}
	verdict, rule := toolpolicy.Allowed, (*toolpolicy.Rule)(nil)
	for ; p != nil; p = p.Outer {
		alone := *p
		alone.Outer = nil
		if v, r := decideNames(&alone, names, hints, ev.Arguments); v > verdict {
			verdict, rule = v, r
		}
	}
	return verdict, rule
}

// decideNames is decideCall for a policy without an outer one.
func decideNames(p *toolpolicy.Policy, names []string, hints map[string]bool, args json.RawMessage) (toolpolicy.Verdict, *toolpolicy.Rule) {
	holds := &toolpolicy.Policy{Hold: p.Hold}
	allowed, hold := false, (*toolpolicy.Rule)(nil)
	for _, name := range names {
		c := toolpolicy.Call{Tool: name, Annotations: hints, Arguments: args}
		v, r := p.Decide(c)
		if v == toolpolicy.Denied && r != nil {
			return v, r
		}
		allowed = allowed || v != toolpolicy.Denied
		if v, r := holds.Decide(c); v == toolpolicy.Held {
			hold = r
		}
	}
	switch {
	case !allowed:
		return toolpolicy.Denied, nil
	case hold != nil:
		return toolpolicy.Held, hold
	default:
		return toolpolicy.Allowed, nil
	}
}

// withoutArguments returns the policy for a call whose arguments are unknown: a rule for some
// arguments denies and holds every call of the tool, and allows none.
func withoutArguments(p *toolpolicy.Policy) *toolpolicy.Policy {
	if p == nil {
		return nil
	}
	forAll := func(rules []toolpolicy.Rule) []toolpolicy.Rule {
		rules = slices.Clone(rules)
		for i := range rules {
			rules[i].Arguments = nil
		}
		return rules
	}
	forSome := func(r toolpolicy.Rule) bool { return len(r.Arguments) > 0 }
	return &toolpolicy.Policy{
		Allow: slices.DeleteFunc(slices.Clone(p.Allow), forSome), Deny: forAll(p.Deny), Hold: forAll(p.Hold), Outer: withoutArguments(p.Outer),
	}
}

// explainVerdict returns the text for the agent about a call that is held or denied.
func (h *Handler) explainVerdict(ev Event, r *Run, v toolpolicy.Verdict, rule *toolpolicy.Rule) string {
	at := fmt.Sprintf("step %q of run %s (workflow %s)", clip(stepTitle(r), 100), r.ID, r.Workflow)
	tool := clip(ev.Tool, 100)
	switch {
	case v == toolpolicy.Held && asksInHook(h.Client.ID, ev):
		return fmt.Sprintf("The tool %s needs the approval of a person at %s.", tool, at)
	case v == toolpolicy.Held:
		return fmt.Sprintf("The tool %s needs the approval of a person at %s, and %s cannot ask in a hook. Ask the user to do what %[1]s would do, or to approve the step without it.", tool, at, h.Client.Title)
	case rule != nil:
		return fmt.Sprintf("The tool %s is denied by the rule %s at %s. Do what the step asks without the tool, then call workflow_continue with the handle %s.", tool, rule, at, r.Handle)
	default:
		return fmt.Sprintf("The tool %s is not allowed at %s. The tools of the step: %s. Do what the step asks with these, then call workflow_continue with the handle %s.",
			tool, at, clip(r.Position.Tools.String(), 500), r.Handle)
	}
}

// stepTitle returns the title of a position, or its id.
func stepTitle(r *Run) string {
	if r.Position.Title != "" {
		return r.Position.Title
	}
	return r.Position.ID
}

// openRuns loads the runs of a session that are open.
func (h *Handler) openRuns(ctx context.Context, session *Session) ([]*Run, error) {
	runs, err := h.Open(ctx)
	if err != nil {
		return nil, err
	}
	var open []*Run
	for _, b := range session.Runs {
		r, err := runs.Load(ctx, b.ID)
		switch {
		case guideway.ErrorCode(err) == guideway.CodeNotFound:
		case err != nil:
			return nil, err
		case !r.isEnded():
			open = append(open, r)
		}
	}
	return open, nil
}
