package clienthook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	runID  = "r_06h0fdqzetem4a4tc6kt0z0"
	handle = "h_fvddqb01z7f6gqpvrcg22"
)

// fakeRuns is a store with one run.
type fakeRuns struct {
	run    *clienthook.Run
	steps  []clienthook.CompletedStep
	hooked []string
	stops  []int
	// held reports that a held call of the run's client waits for a person.
	held bool
}

func newRuns() *fakeRuns {
	return &fakeRuns{
		run: &clienthook.Run{
			ID: runID, Handle: handle, Workflow: "demo", Goal: "add retries", Status: engine.StatusRunning,
			Position: engine.Position{
				Kind: engine.PositionStep, ID: "plan", Title: "Plan", Prompt: "Write the plan.",
				Criteria: []string{"Name the places to edit."},
				Tools: &toolpolicy.Policy{
					Deny: []toolpolicy.Rule{{Tool: "Edit"}, {Tool: "*create_issue"}, {Tool: "Bash", Arguments: map[string]string{"command": "*forbidden*"}}},
					Hold: []toolpolicy.Rule{{Tool: "Bash", Arguments: map[string]string{"command": "git push*"}}},
				},
			},
		},
		steps: []clienthook.CompletedStep{{Step: "look", Output: "cart.go:12 retries nothing"}},
	}
}

func (f *fakeRuns) Find(_ context.Context, token string) (*clienthook.Run, error) {
	if token != f.run.Handle {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no handle %q", token)
	}
	return f.run, nil
}

func (f *fakeRuns) Load(_ context.Context, id string) (*clienthook.Run, error) {
	if id != f.run.ID {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no run %q", id)
	}
	return f.run, nil
}

func (f *fakeRuns) LastSteps(context.Context, string) ([]clienthook.CompletedStep, error) {
	return f.steps, nil
}

func (f *fakeRuns) HasHeldCall(_ context.Context, id string) (bool, error) {
	return f.held && id == f.run.ID, nil
}

func (f *fakeRuns) RecordHooked(_ context.Context, _, client string) error {
	f.hooked = append(f.hooked, client)
	return nil
}

func (f *fakeRuns) RecordStop(_ context.Context, _, _ string, refusals int) error {
	f.stops = append(f.stops, refusals)
	return nil
}

// rig is a handler of a client on one run.
type rig struct {
	*clienthook.Handler
	runs *fakeRuns
	dir  string
}

func newRig(t *testing.T, client string) *rig {
	t.Helper()
	c, err := clienthook.FindClient(client)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{runs: newRuns(), dir: t.TempDir()}
	r.Handler = &clienthook.Handler{
		Client: c, Sessions: &clienthook.Sessions{Dir: r.dir, Now: time.Now}, StoreName: "the store of /data",
		Open: func(context.Context) (clienthook.Runs, error) { return r.runs, nil },
	}
	return r
}

// fixtures returns the names of the recorded events of a client: EVENT or EVENT.CASE.
func fixtures(t *testing.T, client string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", client, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the events of %s: %q, %v", client, files, err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return names
}

// answer answers a recorded event.
func (r *rig) answer(t *testing.T, name string) clienthook.Output {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", r.Client.ID, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("HANDLE"), []byte(handle)), []byte("RUN"), []byte(runID))
	event, _, _ := strings.Cut(name, ".")
	return r.Answer(t.Context(), event, bytes.NewReader(data))
}

// bind binds the session of the recorded events to the run.
func (r *rig) bind(t *testing.T) {
	t.Helper()
	names := fixtures(t, r.Client.ID)
	i := slices.IndexFunc(names, func(name string) bool { return strings.HasSuffix(name, ".start") })
	if out := r.answer(t, names[i]); !isEmpty(out) {
		t.Fatalf("%s: %s: %s%s", r.Client.ID, names[i], out.Out, out.Err)
	}
	if len(r.runs.hooked) != 1 {
		t.Fatalf("%s: %s records %q, want one report", r.Client.ID, names[i], r.runs.hooked)
	}
}

// isEmpty reports whether an answer lets the client go on and contains no text.
func isEmpty(out clienthook.Output) bool {
	text := strings.TrimSpace(string(out.Out))
	return (text == "" || text == "{}") && len(out.Err) == 0
}

// effect returns the effect that the documentation of the client gives an answer.
func effect(t *testing.T, client, name string, out clienthook.Output) string {
	t.Helper()
	if client == "claude-code" && name == "PreCompact" && len(out.Out) > 0 {
		return "context" // plain text
	}
	if isEmpty(out) {
		return "allow"
	}
	var a struct {
		Decision, Permission, PermissionDecision, Reason string
		Followup                                         string `json:"followup_message"`
		AdditionalContext                                string
		Additional                                       string `json:"additional_context"`
		SystemMessage                                    string
		UserMessage                                      string `json:"user_message"`
		PermissionDecisionReason                         string
		HookSpecificOutput                               struct{ HookEventName, PermissionDecision, PermissionDecisionReason, AdditionalContext string }
	}
	if text := bytes.TrimSpace(out.Out); len(text) > 0 {
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatalf("%s %s: %v in %s", client, name, err, text)
		}
	}
	inner := a.HookSpecificOutput
	switch {
	case a.Followup != "", a.Decision == "block" && a.Reason != "":
		return "refuse"
	case strings.HasPrefix(name, "AfterAgent") && a.Decision == "deny" && a.Reason != "":
		return "refuse"
	case a.Decision == "deny" && a.Reason != "", a.Permission == "deny" && a.UserMessage != "",
		a.PermissionDecision == "deny" && a.PermissionDecisionReason != "", inner.PermissionDecision == "deny" && inner.PermissionDecisionReason != "":
		return "deny"
	case a.Permission == "ask", a.PermissionDecision == "ask", inner.PermissionDecision == "ask":
		return "ask"
	case a.AdditionalContext != "", a.Additional != "", inner.AdditionalContext != "":
		return "context"
	case a.SystemMessage != "", a.UserMessage != "", len(out.Out) == 0 || string(out.Out) == "{}":
		return "notice"
	default:
		return string(out.Out)
	}
}

// wantEffect returns the effect that an event must have in a session with an open run, by
// the last part of its name.
func wantEffect(client, name string) string {
	event, what, _ := strings.Cut(name, ".")
	cursorTwice := event == "preToolUse" && (what == "shell" || what == "mcp") // Cursor asks again with a better event
	switch {
	case cursorTwice, what == "aborted", event == "SubagentStop", what == "subagent": // the run does not belong to the subagent
		return "allow"
	case what == "edit", what == "mcp":
		return "deny"
	case what == "shell" && event != "PostToolUse":
		if client == "codex" || client == "gemini" {
			return "deny" // these cannot ask in a hook
		}
		return "ask"
	case strings.EqualFold(event, "Stop"), event == "AfterAgent":
		return "refuse"
	case event == "SessionStart", client == "claude-code" && event == "PreCompact":
		return "context"
	case strings.EqualFold(event, "PreCompact"), event == "PreCompress":
		return "notice"
	default:
		return "allow"
	}
}

// TestEveryEventOfEveryClient walks the recorded events of every client: in a session with
// an open run, each illegal call and stop is blocked in the form that the client expects,
// and no legal call or stop is blocked.
func TestEveryEventOfEveryClient(t *testing.T) {
	t.Parallel()
	for _, c := range clienthook.Clients() {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			var golden strings.Builder
			for _, name := range fixtures(t, c.ID) {
				r := newRig(t, c.ID)
				r.bind(t)
				out := r.answer(t, name)
				if got, want := effect(t, c.ID, name, out), wantEffect(c.ID, name); got != want {
					t.Errorf("%s: the effect is %q, want %q: %s%s", name, got, want, out.Out, out.Err)
				}
				fmt.Fprintf(&golden, "-- %s --\n%s\n", name, strings.TrimSpace(string(out.Out)+string(out.Err)))
			}
			compareGolden(t, filepath.Join("testdata", c.ID, "answers.golden"), golden.String())
		})
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestSessionWithoutRunIsNotAffected checks that in a session without a run no event opens
// the store or has an answer, also if errors are denied.
func TestSessionWithoutRunIsNotAffected(t *testing.T) {
	t.Parallel()
	for _, c := range clienthook.Clients() {
		for _, name := range fixtures(t, c.ID) {
			if strings.HasSuffix(name, ".start") || strings.HasSuffix(name, ".subagent") {
				continue
			}
			r := newRig(t, c.ID)
			r.Deny = true
			r.Open = func(context.Context) (clienthook.Runs, error) {
				t.Errorf("%s: %s opens the store", c.ID, name)
				return nil, errors.New("no store")
			}
			if out := r.answer(t, name); !isEmpty(out) {
				t.Errorf("%s: %s is answered %s%s", c.ID, name, out.Out, out.Err)
			}
		}
	}
}

// stopEvent returns the event of a client that ends a turn.
func stopEvent(client string) string {
	return map[string]string{"cursor": "stop", "gemini": "AfterAgent"}[client]
}

// TestStopIsRefusedThreeTimes checks that a stop is refused three times in a row at each
// position, and that the next one is allowed and recorded once.
func TestStopIsRefusedThreeTimes(t *testing.T) {
	t.Parallel()
	for _, c := range clienthook.Clients() {
		stop := stopEvent(c.ID)
		if stop == "" {
			stop = "Stop"
		}
		r := newRig(t, c.ID)
		r.bind(t)
		for round := range 2 {
			var got []string
			for range 5 {
				got = append(got, effect(t, c.ID, stop, r.answer(t, stop)))
			}
			if want := []string{"refuse", "refuse", "refuse", "allow", "allow"}; !slices.Equal(got, want) {
				t.Errorf("%s: the stops of round %d have the effects %q, want %q", c.ID, round, got, want)
			}
			if want := slices.Repeat([]int{3}, round+1); !slices.Equal(r.runs.stops, want) {
				t.Errorf("%s: the stops %v are recorded, want %v", c.ID, r.runs.stops, want)
			}
			r.runs.run.Handle = "h_the_next_position_00000" // the run has made progress
		}
	}
}

// TestLegalStops checks that an agent may stop when its run has ended or waits for a person,
// and that an ended run leaves the session.
func TestLegalStops(t *testing.T) {
	t.Parallel()
	t.Run("held call", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, "claude-code")
		r.bind(t)
		r.runs.held = true
		if out := r.answer(t, "Stop"); !isEmpty(out) {
			t.Errorf("while a call waits for a person, the stop is answered %s", out.Out)
		}
		r.runs.held = false
		if got := effect(t, "claude-code", "Stop", r.answer(t, "Stop")); got != "refuse" {
			t.Errorf("after the answer, the effect of a stop is %q, want refuse", got)
		}
	})
	for name, change := range map[string]func(*clienthook.Run){
		"completed":      func(r *clienthook.Run) { r.Status = engine.StatusCompleted },
		"aborted":        func(r *clienthook.Run) { r.Status = engine.StatusAborted },
		"gate":           func(r *clienthook.Run) { r.Position.Kind = engine.PositionGate },
		"human approval": func(r *clienthook.Run) { r.Position.Person = true },
		"dead end":       func(r *clienthook.Run) { r.Position.DeadEnd = true },
		"deleted":        func(r *clienthook.Run) { r.ID = "r_another" },
	} {
		r := newRig(t, "claude-code")
		r.bind(t)
		change(r.runs.run)
		if out := r.answer(t, "Stop"); !isEmpty(out) {
			t.Errorf("%s: the stop is answered %s", name, out.Out)
		}
		files, _ := filepath.Glob(filepath.Join(r.dir, "*.json"))
		if bound := name == "gate" || name == "human approval" || name == "dead end"; bound != (len(files) == 1) {
			t.Errorf("%s: the session has the files %q", name, files)
		}
	}
}

// TestSubagentIsHeldByItsOwnRun checks that a subagent may not stop while the run that it
// started is open, and that the run then holds the main agent.
func TestSubagentIsHeldByItsOwnRun(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"claude-code", "codex", "copilot"} {
		r := newRig(t, client)
		r.answer(t, "PostToolUse.subagent")
		if out := r.answer(t, "Stop"); !isEmpty(out) {
			t.Errorf("%s: the main agent is held by the run of the subagent: %s", client, out.Out)
		}
		var got []string
		for range 4 {
			got = append(got, effect(t, client, "SubagentStop", r.answer(t, "SubagentStop")))
		}
		got = append(got, effect(t, client, "Stop", r.answer(t, "Stop")))
		if want := []string{"refuse", "refuse", "refuse", "allow", "refuse"}; !slices.Equal(got, want) {
			t.Errorf("%s: the effects are %q, want %q", client, got, want)
		}
	}
}

// TestSubagentOfCopilot checks that the policy of a run of the main agent applies to the calls
// of a subagent, whose events have a session of their own, and that only SubagentStop decides
// the stop of a subagent, which Copilot CLI reports by two events.
func TestSubagentOfCopilot(t *testing.T) {
	t.Parallel()
	r := newRig(t, "copilot")
	r.bind(t)
	text := fmt.Sprintf(`{"session_id":"part","agent_id":"part","parent_agent_id":%q,"tool_name":"Edit","tool_input":{}}`, sessionOf(t, r))
	if out := r.Answer(t.Context(), "PreToolUse", strings.NewReader(text)); effect(t, "copilot", "PreToolUse", out) != "deny" {
		t.Errorf("a denied call of a subagent is answered %s", out.Out)
	}
	r.answer(t, "PostToolUse.subagent")
	if out := r.answer(t, "Stop.subagent"); !isEmpty(out) || len(r.runs.hooked) != 2 {
		t.Errorf("Stop in a subagent is answered %s; %d reports", out.Out, len(r.runs.hooked))
	}
}

// TestRestatedAfterCompaction checks that a client without an event after a compaction gets
// the position after its next call, once.
func TestRestatedAfterCompaction(t *testing.T) {
	t.Parallel()
	for client, events := range map[string][2]string{
		"cursor": {"preCompact", "postToolUse.read"}, "gemini": {"PreCompress", "AfterTool.read"}, "copilot": {"PreCompact", "PostToolUse.read"},
	} {
		r := newRig(t, client)
		r.bind(t)
		r.answer(t, events[0])
		first, second := r.answer(t, events[1]), r.answer(t, events[1])
		if effect(t, client, events[1], first) != "context" || !strings.Contains(string(first.Out), handle) || !isEmpty(second) {
			t.Errorf("%s: the calls after the compaction are answered %s and %s", client, first.Out, second.Out)
		}
	}
}

// TestPolicyNamesOfClients checks that a policy with the names of Claude Code holds for the
// tools of every client, and that a policy that allows only some tools does not deny the
// tools without which the agent could not continue the run.
func TestPolicyNamesOfClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		client, tool string
		policy       toolpolicy.Policy
		want         string
	}{
		{"gemini", "read_file", toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Read"}}}, "allow"},
		{"gemini", "write_file", toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Read"}}}, "deny"},
		{"gemini", "write_todos", toolpolicy.Policy{Allow: []toolpolicy.Rule{}}, "allow"},
		{"codex", "apply_patch", toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "Write"}}}, "deny"},
		{"codex", "apply_patch", toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Edit"}}}, "allow"},
		{"codex", "apply_patch", toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "apply_patch"}}}, "deny"},
		{"claude-code", "Grep", toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "*", Annotations: map[string]bool{"readOnly": true}}}}, "allow"},
		{"claude-code", "Bash", toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "*", Annotations: map[string]bool{"readOnly": true}}}}, "deny"},
		{"claude-code", "mcp__github__search", toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "github__*"}}}, "deny"},
		{"claude-code", "mcp__guideway__github__search", toolpolicy.Policy{Allow: []toolpolicy.Rule{}}, "allow"},
		{"claude-code", "Edit", toolpolicy.Policy{}, "allow"},
		{"gemini", "read_file", toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Read"}}, Outer: &toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "read_file"}}}}, "allow"},
		{"gemini", "read_file", toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "Read"}}, Outer: &toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "read*"}}}}, "deny"},
		{"cursor", "Delete", toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "Write"}}}, "deny"},
	} {
		r := newRig(t, tt.client)
		r.bind(t)
		r.runs.run.Position.Tools = &tt.policy
		event := map[string]string{"gemini": "BeforeTool", "cursor": "preToolUse"}[tt.client]
		if event == "" {
			event = "PreToolUse"
		}
		session := sessionOf(t, r)
		text := fmt.Sprintf(`{"session_id":%q,"tool_name":%q,"tool_input":{}}`, session, tt.tool)
		out := r.Answer(t.Context(), event, strings.NewReader(text))
		if got := effect(t, tt.client, event, out); got != tt.want {
			t.Errorf("%s: %s is answered %q, want %q: %s", tt.client, tt.tool, got, tt.want, out.Out)
		}
	}
}

// sessionOf returns the session of the recorded events of a client.
func sessionOf(t *testing.T, r *rig) string {
	t.Helper()
	names := fixtures(t, r.Client.ID)
	stop := names[slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, "Stop") || name == "AfterAgent" })]
	data, err := os.ReadFile(filepath.Join("testdata", r.Client.ID, stop+".json"))
	var p struct {
		SessionID      string `json:"session_id"`
		ConversationID string `json:"conversation_id"`
	}
	if err = errors.Join(err, json.Unmarshal(data, &p)); err != nil {
		t.Fatal(err)
	}
	return p.SessionID + p.ConversationID
}
