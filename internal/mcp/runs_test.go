package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRunFromStartToEnd checks that a run completes by the suggested next calls, over every
// transport and with both protocol versions, and that illegal calls are refused.
func TestRunFromStartToEnd(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions() {
		for _, transportName := range transportNames() {
			t.Run(transportName+" "+version, func(t *testing.T) {
				t.Parallel()
				r := newTestServer(t)
				cs := connectClient(t, r.server, transportName, "ann", version, nil)
				started := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded", "goal": "Refactor the auth module"})
				if positionID(started) != "step plan" || started["status"] != "running" || len(textMember(started, "handle")) > 24 {
					t.Fatalf("workflow_start = %v", started)
				}
				bad := callRefused(t, cs, "workflow_continue", map[string]any{"handle": started["handle"], "output": "no plan"}, "criteria-failed")
				if d := cmp.Diff([]any{"say PLAN"}, bad["issues"]); d != "" {
					t.Errorf("issues (-want +got):\n%s", d)
				}
				gateless := followNext(t, cs, bad, map[string]any{"output": "the PLAN"})
				if positionID(gateless) != "step agree" {
					t.Fatalf("after the plan, the run is at %v", gateless)
				}
				again := callTool(t, cs, "workflow_continue", map[string]any{"handle": started["handle"], "output": "the PLAN"})
				if again["replayed"] != true || again["handle"] != gateless["handle"] {
					t.Errorf("the same call again returns %v", again)
				}
				stale := callRefused(t, cs, "workflow_continue", map[string]any{"handle": started["handle"], "output": "another PLAN"}, run.RuleStaleHandle)
				if !strings.Contains(encodeJSON(t, stale["allowed"]), "workflow_fork") {
					t.Errorf("the refusal offers no fork: %v", stale)
				}
				atGate := followNext(t, cs, gateless, map[string]any{"output": "agreed"})
				unanswered := callRefused(t, cs, "workflow_continue", map[string]any{"handle": atGate["handle"], "output": "on and on"}, "gate-unanswered")
				unknown := callRefused(t, cs, "workflow_continue", map[string]any{"handle": atGate["handle"], "answer": map[string]any{"optionId": "perhaps"}}, engine.RuleUnknownOption)
				asked := callTool(t, cs, "workflow_status", map[string]any{"handle": atGate["handle"]})
				found := callTool(t, cs, "workflow_resume", map[string]any{"query": "auth module"})
				for _, said := range []string{textMember(atGate, "hint"), textMember(asked, "hint"), textMember(unanswered, "fix"), textMember(unknown, "fix"), textMember(found, "hint")} {
					if !strings.Contains(said, "ask the user") {
						t.Errorf("at a gate for the user, the text for the agent is %q", said)
					}
				}
				waiting := followNext(t, cs, atGate, nil)
				if positionID(atGate) != "gate agree" || positionID(waiting) != "context large" || waiting["status"] != "waiting" {
					t.Fatalf("gate %v, then %v", atGate, waiting)
				}
				last := callTool(t, cs, "workflow_continue", map[string]any{"handle": waiting["handle"], "context": map[string]any{"size": "small"}})
				if positionID(last) != "step report" {
					t.Fatalf("after the context, the run is at %v", last)
				}
				for _, early := range []any{started, bad, gateless, stale, atGate, waiting} {
					if strings.Contains(encodeJSON(t, early), "SECRET") {
						t.Errorf("the answer shows a step that is not reached: %v", early)
					}
				}
				done := followNext(t, cs, last, map[string]any{"output": "done"})
				if done["status"] != "completed" || done["next"] != nil {
					t.Errorf("the last answer is %v", done)
				}
				status := callTool(t, cs, "workflow_status", map[string]any{"handle": started["handle"]})
				if status["handle"] != done["handle"] {
					t.Errorf("workflow_status of an old handle = %v, want the handle %v", status, done["handle"])
				}
			})
		}
	}
}

// TestResumeForkAbort checks that another conversation can find a run by words of its goal
// and continue it, that a fork is a new run at the position of its handle, and that an
// aborted run cannot continue.
func TestResumeForkAbort(t *testing.T) {
	t.Parallel()
	for _, version := range protocolVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := newTestServer(t)
			first := connectClient(t, r.server, "memory", "ann", version, nil)
			callTool(t, first, "workflow_start", map[string]any{"workflowId": "manned", "goal": "Publish the newsletter"})
			started := callTool(t, first, "workflow_start", map[string]any{"workflowId": "guarded", "goal": "Refactor the auth module"})
			planned := callTool(t, first, "workflow_continue", map[string]any{"handle": started["handle"], "output": "PLAN A"})
			_ = first.Close()

			cs := connectClient(t, r.server, "memory", "ann", version, nil)
			found := callTool(t, cs, "workflow_resume", map[string]any{"query": "resume the auth refactoring"})
			list := found["candidates"].([]any)
			best := list[0].(map[string]any)
			if best["runId"] != started["runId"] || best["handle"] != planned["handle"] || best["why"] == "" {
				t.Fatalf("workflow_resume = %v", found)
			}
			resumed := followNext(t, cs, best, map[string]any{"output": "agreed"})
			if positionID(resumed) != "gate agree" {
				t.Errorf("the continued run is at %v", resumed)
			}
			all := callTool(t, cs, "workflow_resume", nil)["candidates"].([]any)
			second := all[1].(map[string]any)
			if len(all) != 2 || strings.Contains(encodeJSON(t, second["position"]), "prompt") {
				t.Errorf("workflow_resume without words returns %v", all)
			}
			if again := followNext(t, cs, second, nil); again["runId"] != second["runId"] {
				t.Errorf("the next call of a candidate returns %v", again)
			}
			if none := callTool(t, cs, "workflow_resume", map[string]any{"query": "zeppelin"}); len(none["candidates"].([]any)) != 0 || none["hint"] == nil {
				t.Errorf("words that match no run return %v", none)
			}

			fork := callTool(t, cs, "workflow_fork", map[string]any{"handle": started["handle"], "requestId": "one"})
			if positionID(fork) != "step plan" || fork["runId"] == started["runId"] {
				t.Errorf("workflow_fork = %v", fork)
			}
			if again := callTool(t, cs, "workflow_fork", map[string]any{"handle": started["handle"], "requestId": "one"}); again["runId"] != fork["runId"] {
				t.Errorf("the same request made a second run: %v", again)
			}
			callRefused(t, cs, "workflow_fork", map[string]any{"runId": started["runId"], "seq": 999}, run.RuleUnknownSeq)
			aborted := callTool(t, cs, "workflow_abort", map[string]any{"runId": fork["runId"], "reason": "enough"})
			if aborted["status"] != "aborted" {
				t.Errorf("workflow_abort = %v", aborted)
			}
			callRefused(t, cs, "workflow_continue", map[string]any{"handle": aborted["handle"], "output": "PLAN"}, "run-ended")
		})
	}
}

// To another user, a run, its handles and its resource do not exist: the answers equal the
// answers for unknown runs, handles and resources.
func TestRunsOfOthersAreNotFound(t *testing.T) {
	t.Parallel()
	const unknownRun = "r_00000000000000000000000"
	for _, version := range protocolVersions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := newTestServer(t)
			ann := connectClient(t, r.server, "memory", "ann", version, nil)
			bob := connectClient(t, r.server, "memory", "bob", version, nil)
			a := callTool(t, ann, "workflow_start", map[string]any{"workflowId": "guarded", "goal": "Mine"})
			handle, id := textMember(a, "handle"), textMember(a, "runId")
			for _, tool := range []string{"workflow_continue", "workflow_status", "workflow_fork", "workflow_abort"} {
				callRefused(t, bob, tool, map[string]any{"handle": handle}, run.RuleUnknownHandle)
				if tool == "workflow_continue" {
					continue
				}
				theirs := callRefused(t, bob, tool, map[string]any{"runId": id}, run.RuleUnknownRun)
				never := callRefused(t, bob, tool, map[string]any{"runId": unknownRun}, run.RuleUnknownRun)
				sameID := cmp.Transformer("sameID", func(text string) string { return strings.ReplaceAll(text, id, unknownRun) })
				if d := cmp.Diff(never, theirs, sameID); d != "" {
					t.Errorf("%s answers differently for an existing run of another user:\n%s", tool, d)
				}
			}
			if list := callTool(t, bob, "workflow_resume", map[string]any{"query": "mine"})["candidates"].([]any); len(list) != 0 {
				t.Errorf("bob finds %v", list)
			}
			uri := "guideway://runs/" + id
			if _, err := bob.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Error("bob reads ann's run")
			}
			for _, c := range []struct {
				cs   *mcp.ClientSession
				want []string
			}{{ann, []string{id}}, {bob, []string{}}} {
				if got := completeArgument(t, c.cs, "guideway://runs/{runId}", "runId", "r_", nil); !slices.Equal(got, c.want) {
					t.Errorf("completion = %v, want %v", got, c.want)
				}
			}
			read, err := ann.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil {
				t.Fatal(err)
			}
			var details struct {
				RunID    string
				Client   string
				Position struct{ ID string }
				Project  run.Project
				Events   []run.Event
			}
			if err := json.Unmarshal([]byte(read.Contents[0].Text), &details); err != nil || details.RunID != id || details.Position.ID != "plan" ||
				details.Client != "test" || details.Project != currentProject(t.Context()) || len(details.Events) == 0 {
				t.Errorf("the resource = %+v, %v", details, err)
			}
			if strings.Contains(read.Contents[0].Text, "SECRET") {
				t.Errorf("the resource shows a later step: %s", read.Contents[0].Text)
			}
		})
	}
}

func completeArgument(t *testing.T, cs *mcp.ClientSession, uri, name, value string, given map[string]string) []string {
	t.Helper()
	res, err := cs.Complete(t.Context(), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: uri},
		Argument: mcp.CompleteParamsArgument{Name: name, Value: value},
		Context:  &mcp.CompleteContext{Arguments: given},
	})
	if err != nil {
		t.Fatal(err)
	}
	return res.Completion.Values
}

// TestRunToolErrors checks that the error of a bad call names the field and suggests a next
// call, and that no bad call moves the run.
func TestRunToolErrors(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded"})
	handle := textMember(a, "handle")
	tests := []struct {
		name, tool     string
		args           map[string]any
		field, message string
		next           string
	}{
		{"no handle", "workflow_continue", map[string]any{"output": "x"}, "handle", "required", `workflow_resume`},
		{"no run", "workflow_status", nil, "handle", "handle or runId is required", `workflow_resume`},
		{"an answer as text", "workflow_continue", map[string]any{"handle": handle, "answer": "confirm"}, "answer", "answer must be an object", `"name":"output"`},
		{"an answer with an unknown member", "workflow_continue", map[string]any{"handle": handle, "answer": map[string]any{"option": "confirm"}}, "answer", `no member "option"`, `"name":"output"`},
		{"an option that is not a string", "workflow_continue", map[string]any{"handle": handle, "answer": map[string]any{"optionId": 1}}, "answer", "answer.optionId must be a string", `"name":"output"`},
		{"neither option nor decline", "workflow_continue", map[string]any{"handle": handle, "answer": map[string]any{"note": "x"}}, "answer", "either", `"name":"output"`},
		{"decline as text", "workflow_continue", map[string]any{"handle": handle, "answer": map[string]any{"decline": "yes"}}, "answer", "answer.decline must be true or false", `"name":"output"`},
		{"a skip without a reason", "workflow_continue", map[string]any{"handle": handle, "skip": map[string]any{}}, "skip", "skip.reason is required", `"name":"output"`},
		{"a number as text", "workflow_fork", map[string]any{"handle": handle, "seq": "2"}, "seq", "whole number", handle},
		{"half a number", "workflow_fork", map[string]any{"handle": handle, "seq": 2.5}, "seq", "whole number", handle},
		{"a relative project", "workflow_start", map[string]any{"workflowId": "guarded", "project": "src/app"}, "project", "neither an absolute path", `"workflowId":"guarded"`},
		{"an output that is too long", "workflow_continue", map[string]any{"handle": handle, "output": strings.Repeat("x", 1<<20+1)}, "output", "at most", handle},
	}
	for _, tt := range tests {
		res, isError := callRaw(t, cs, tt.tool, tt.args)
		if !isError || textMember(res, "field") != tt.field || !strings.Contains(textMember(res, "error"), tt.message) || res["code"] != "invalid" {
			t.Errorf("%s: %v", tt.name, res)
		}
		if next := encodeJSON(t, res["next"]); !strings.Contains(next, tt.next) || len(next) > 2048 {
			t.Errorf("%s: next = %s, want it to contain %s", tt.name, next, tt.next)
		}
	}
	callRefused(t, cs, "workflow_start", map[string]any{"workflowId": "nope"}, run.RuleUnknownWorkflow)
	callRefused(t, cs, "workflow_start", map[string]any{"workflowId": "small", "context": map[string]any{"_currentLoop": 1}}, "server-variable")
	if still := callTool(t, cs, "workflow_status", map[string]any{"handle": handle}); still["handle"] != handle {
		t.Errorf("a bad call has moved the run: %v", still)
	}
}

// The suggested call is legal: it omits optional arguments that would be refused in turn.
func TestSuggestedRunCallsAreLegal(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	started := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "manned"})
	handle := started["handle"]
	long := strings.Repeat("x", 1<<20+1)
	tests := []struct {
		name string
		args map[string]any
		want map[string]any
	}{
		{"an output that is too long", map[string]any{"handle": handle, "output": long}, map[string]any{"handle": handle}},
		{"an unknown parameter", map[string]any{"handle": handle, "result": "done"}, map[string]any{"handle": handle}},
		{"a wrong answer", map[string]any{"handle": handle, "answer": "yes"}, map[string]any{"handle": handle}},
		{"an option and decline together", map[string]any{"handle": handle, "answer": map[string]any{"optionId": "confirm", "decline": true}}, map[string]any{"handle": handle}},
		{"a skip without a reason", map[string]any{"handle": handle, "skip": map[string]any{}}, map[string]any{"handle": handle}},
		{"a context that is not an object", map[string]any{"handle": handle, "output": "a draft", "context": "x"}, map[string]any{"handle": handle, "output": "a draft"}},
		{"nothing", map[string]any{}, map[string]any{}},
	}
	for _, tt := range tests {
		res, isError := callRaw(t, cs, "workflow_continue", tt.args)
		_, next := nextCallOf(t, res)
		if diff := cmp.Diff(tt.want, next); !isError || diff != "" {
			t.Errorf("%s: next (-want +got):\n%s", tt.name, diff)
		}
	}
	res, _ := callRaw(t, cs, "workflow_continue", map[string]any{"handle": handle, "output": long})
	if moved := followNext(t, cs, res, map[string]any{"output": "a draft"}); positionID(moved) != "gate draft" {
		t.Errorf("the call that the error names: %v", moved)
	}
}

// A run records the project in which it was started: the project of the server, or the
// project in the call.
func TestProjectsOfRuns(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	dir := t.TempDir()
	begun := map[string]string{}
	for name, project := range map[string]any{"here": nil, "by id": "ba9876543210", "by path": dir, "elsewhere": "/not/on/this/machine", "on another system": `C:\work\app`} {
		a := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "guarded", "project": project, "goal": name})
		d, err := r.runs.GetWithEvents(t.Context(), run.Caller{Principal: guideway.Principal{User: "ann"}}, run.Ref{RunID: textMember(a, "runId")})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Project.ID) != 12 || project != nil && d.Project.ID == currentProject(t.Context()).ID {
			t.Errorf("%s: project %+v", name, d.Project)
		}
		begun[name] = d.Project.ID
	}
	if begun["here"] != currentProject(t.Context()).ID || begun["by id"] != "ba9876543210" {
		t.Errorf("projects = %v", begun)
	}
	list := callTool(t, cs, "workflow_resume", map[string]any{"project": dir})["candidates"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["goal"] != "by path" {
		t.Errorf("workflow_resume for a directory returns %v", list)
	}
}

// A call without a principal shows and starts nothing.
func TestRunsNeedAPrincipal(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "", "2026-07-28", nil)
	for tool, args := range map[string]map[string]any{
		"workflow_start": {"workflowId": "guarded"}, "workflow_resume": nil, "workflow_status": {"runId": "r_1"},
		"workrail_create_session": {"workflowId": "w", "sessionId": "s"}, "workrail_open_dashboard": nil, "workflow_list": nil,
	} {
		if res, isError := callRaw(t, cs, tool, args); !isError || res["code"] != "unauthorized" {
			t.Errorf("%s: %v", tool, res)
		}
	}
	if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "guideway://sessions/0123456789ab/w/s"}); err == nil {
		t.Error("a resource could be read")
	}
}

// failingJournal is a journal in which no run can be created.
type failingJournal struct {
	run.Journal
	err error
}

func (f failingJournal) Create(context.Context, run.Definition, run.Commit) error { return f.err }

// TestFailingService checks that the answer has the error of a failing store, but not the
// text of an internal error.
func TestFailingService(t *testing.T) {
	t.Parallel()
	for code, want := range map[guideway.Code]string{
		guideway.CodeUnavailable: "the disk is full", guideway.CodeInternal: "workflow_start failed; see the server's log",
	} {
		r := newTestServer(t, func(o *mcpserver.Options) {
			var err error
			o.Runs, err = run.New(run.Options{
				Journal:     failingJournal{newStore(t), guideway.Errorf(code, "the disk is full").WithFix("make room")},
				Definitions: startableCatalog{o.Catalog}, Key: bytes.Repeat([]byte{7}, run.KeySize),
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
		res, isError := callRaw(t, cs, "workflow_start", map[string]any{"workflowId": "guarded"})
		if !isError || res["code"] != string(code) || res["error"] != want {
			t.Errorf("%s: %v", code, res)
		}
	}
}

// TestLargeContextKeepsOutput checks that the refusal of a context that is too large
// contains its size, the limit in bytes and a fix, and keeps the output in the suggested
// call.
func TestLargeContextKeepsOutput(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("b"))
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "routed"})
	send := func(text string) textAndStructure {
		return callText(t, cs, "workflow_continue", map[string]any{
			"handle": started["handle"], "output": "looked", "context": map[string]any{"text": text},
		})
	}
	refused := send(strings.Repeat("\u20ac", 90_000))
	if memberAt(refused.structure, "rule") != "context-too-large" || memberAt(refused.structure, "given") != 270_011.0 || memberAt(refused.structure, "allowed") != 262_144.0 ||
		memberAt(refused.structure, "next/arguments/output") != "looked" || memberAt(refused.structure, "next/arguments/context") != nil || !strings.Contains(refused.texts[0], "store large texts in files") {
		t.Errorf("too large: %v", refused.structure)
	}
	if fits := send(strings.Repeat("x", 200_000)); memberAt(fits.structure, "rule") != nil {
		t.Errorf("within the limit: %v", fits.structure)
	}
}
