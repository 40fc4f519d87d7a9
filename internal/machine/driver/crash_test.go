package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// tenCalls is the configuration of a machine that makes ten model calls and twelve tool
// calls with the answers of tenScript.
const tenCalls = `{
  "workflow_name": "ten", "description": "Ten calls.", "input": {"name": "task", "type": "string", "description": "What to do."},
  "output": {"name": "done", "type": "string", "description": "What was done."},
  "contexts": [{"name": "talk"}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "tools": {"s__key": {"retry": "key"}, "s__ask": {"retry": "ask"}},
  "states": [
    {"name": "start", "pre_handler": "ask", "agent": "worker", "post_handler": "note", "transition_handler": "more"},
    {"name": "again", "pre_handler": "ask", "agent": "worker", "post_handler": "note", "transition_handler": "more"},
    {"name": "stop", "input": "common_data.done"}
  ]
}`

const tenRoles = `{"worker": {"systemMessage": "Work.", "includedTools": ["s__*"], "reminder": "Go on."}}`

// tenHandlers returns handlers that run two rounds and count their calls in common_data, so
// that the output shows if the result of a handler is applied twice.
func tenHandlers() handlers {
	return handlers{
		"ask": func(t *this) (any, error) {
			t.addMessage("talk", llm.User, fmt.Sprintf("round %v", t.data["round"]))
			return nil, nil
		},
		"note": func(t *this) (any, error) {
			n, _ := t.data["round"].(float64)
			t.data["round"] = n + 1
			t.data["done"] = t.stringVar("done") + t.lastMessage().Content + ";"
			t.addMessage("talk", llm.Assistant, t.lastMessage().Content)
			return nil, nil
		},
		"more": func(t *this) (any, error) {
			if t.data["round"] == 2.0 {
				return "stop", nil
			}
			return "again", nil
		},
	}
}

// tenScript returns the answers of the model. Each of its two rounds has four answers with
// one or two tool calls, and then a text.
func tenScript() string {
	call := func(names ...string) string {
		var calls []string
		for i, n := range names {
			calls = append(calls, fmt.Sprintf(`{"name": %q, "arguments": {"n": %d}}`, n, i))
		}
		return `{"tool_calls": [` + strings.Join(calls, ",") + `], "usage": {"input": 10, "output": 5}}`
	}
	round := func(n int) []string {
		return []string{
			call("s__safe", "s__key"), call("s__ask"), call("s__safe"), call("s__key", "s__ask"),
			fmt.Sprintf(`{"content": "round %d done", "usage": {"input": 10, "output": 5}}`, n),
		}
	}
	return "[" + strings.Join(append(round(0), round(1)...), ",") + "]"
}

func newTen(t *testing.T, journal *memory) *rig {
	t.Helper()
	r := newRig(t, journal, []*machinedef.Definition{parseMachine(t, tenCalls, tenRoles)}, tenHandlers(), tenScript())
	r.tools.infos = []machineengine.ToolInfo{newTool("s__safe", true), newTool("s__key", false), newTool("s__ask", false)}
	r.reopen()
	return r
}

// outcome is the part of a status that must not depend on crashes.
type outcome struct {
	Status machineengine.Status
	Output string
	States []string
}

func outcomeOf(s *driver.Status) outcome {
	return outcome{s.Status, string(s.Output), s.States}
}

// crash is a point where the process dies: at a write, or before or after a call.
type crash struct {
	kind string
	n    int
}

// arm configures the fakes so that the process dies at the point.
func (c crash) arm(r *rig, journal *memory) {
	count := 0
	at := func() {
		if count++; count == c.n {
			journal.kill()
		}
	}
	switch c.kind {
	case "write":
		journal.dies = c.n
	case "before-model":
		r.model.before = func(llm.Request) { at() }
	case "after-model":
		r.model.after = func(llm.Request) { at() }
	case "before-tool":
		r.tools.before = at
	case "after-tool":
		r.tools.after = at
	}
}

// TestCrash kills the process at every write and before and after every call, and restarts
// it. It checks that the outcome does not change, that no recorded answer is requested
// again, and that a tool call is repeated only if its outcome is unknown and its policy
// allows a retry.
func TestCrash(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.driveRun(whole.startRun("ten", map[string]any{"task": "x"})))
	if want.Status != machineengine.StatusCompleted || len(whole.model.requests) != 10 || len(whole.tools.calls) != 12 {
		t.Fatalf("undisturbed: %+v, %d requests, %d calls", want, len(whole.model.requests), len(whole.tools.calls))
	}
	writes := whole.journal.(*memory).writes
	var points []crash
	for n := 2; n <= writes; n++ { // the first write creates the run
		points = append(points, crash{"write", n})
	}
	for n := 1; n <= 10; n++ {
		points = append(points, crash{"before-model", n}, crash{"after-model", n})
	}
	for n := 1; n <= 12; n++ {
		points = append(points, crash{"before-tool", n}, crash{"after-tool", n})
	}
	// One write creates the run, one takes the lease, and one ends the run. Each call has a
	// write for its intent and the previous result. Each of the two states has a write for
	// the previous result before its handlers.
	if calls, states := 10+12, 2; writes != 3+calls+states {
		t.Errorf("%d writes for %d calls and %d handlers", writes, calls, states)
	}
	// Each first crash is tested alone, and, without -short, with a second crash at every
	// third write after it.
	for _, first := range points {
		seconds := []crash{{}}
		for n := len(points) % 3; n < writes-1 && !testing.Short(); n += 3 {
			seconds = append(seconds, points[n])
		}
		for _, second := range seconds {
			t.Run(fmt.Sprintf("%s-%d-%s-%d", first.kind, first.n, second.kind, second.n), func(t *testing.T) {
				t.Parallel()
				crashTwice(t, want, first, second)
			})
		}
	}
}

func crashTwice(t *testing.T, want outcome, first, second crash) {
	journal := newMemory()
	r := newTen(t, journal)
	id := r.startRun("ten", map[string]any{"task": "x"})
	first.arm(r, journal)
	if err := r.Drive(t.Context(), anna.User, id, nil); err == nil && !journal.isDead() {
		t.Fatal("the process did not die")
	}
	crashes := 1
	for range 10 {
		journal.revive()
		r.model.before, r.model.after, r.tools.before, r.tools.after = nil, nil, nil, nil
		if crashes == 1 && second.kind != "" {
			journal.dies = journal.writes + second.n
			crashes++
		}
		r.reopen() // continue in a new process
		err := r.Drive(t.Context(), anna.User, id, nil)
		if err != nil {
			continue
		}
		s := r.runStatus(id)
		if s.Status.Ended() {
			break
		}
		if s.Pause == nil || s.Pause.Code != machineengine.ErrorKindUnknownOutcome || s.Pause.Tool.Name != "s__ask" {
			t.Fatalf("the run stopped with the status %+v", s)
		}
		// A person has checked: if the tool ran, they enter its result.
		decision, result := machineengine.DecideRetry, ""
		if countCalls(r, s.Pause.Tool.Key) > 0 {
			decision, result = machineengine.DecideDone, "done "+s.Pause.Tool.Arguments
		}
		if _, err := r.Decide(t.Context(), anna, id, driver.OutcomeAnswer{Decision: decision, Result: result}); err != nil && !journal.isDead() {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, outcomeOf(r.runStatus(id))); diff != "" {
		t.Fatal(diff)
	}
	paidOnce(t, r, id)
}

// TestOutage checks that a run continues by itself after the store was not available for 30
// seconds, and after a write that succeeds but returns a conflict: no received answer is lost,
// and no call is repeated.
func TestOutage(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.driveRun(whole.startRun("ten", map[string]any{"task": "x"})))
	writes := whole.journal.(*memory).writes
	for n := 3; n <= writes; n++ { // the first two writes are the start event and the lease
		for _, lost := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				journal := newMemory()
				r := newTen(t, journal)
				id := r.startRun("ten", map[string]any{"task": "x"})
				if lost {
					journal.lost = n
				} else {
					journal.fails = n
				}
				begun := time.Now()
				if s := r.driveRun(id); cmp.Diff(want, outcomeOf(s)) != "" || len(r.model.requests) != 10 || len(r.tools.calls) != 12 {
					t.Errorf("write %d, lost %v: %+v, %d requests, %d calls", n, lost, s, len(r.model.requests), len(r.tools.calls))
				}
				if took := time.Since(begun); !lost && (took < outage || took > outage+2*time.Second) {
					t.Errorf("write %d: the run took %s", n, took)
				}
				paidOnce(t, r, id)
			})
		}
	}
}

// TestInterruptedResult checks that the answer of a model or the result of a tool is
// recorded if the drive is stopped when it arrives, and that the call is not repeated.
func TestInterruptedResult(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 10+12; n++ {
		r := newTen(t, newMemory())
		id := r.startRun("ten", map[string]any{"task": "x"})
		ctx, stop := context.WithCancel(t.Context())
		count := 0
		at := func() {
			if count++; count == n {
				stop()
			}
		}
		r.model.after, r.tools.after = func(llm.Request) { at() }, at
		if err := r.Drive(ctx, anna.User, id, nil); guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("the drive was stopped after call %d: %v", n, err)
		}
		stop()
		if s := r.driveRun(id); !s.Status.Ended() || len(r.model.requests) != 10 || len(r.tools.calls) != 12 {
			t.Errorf("the run was resumed after call %d: %+v, %d requests, %d calls", n, s, len(r.model.requests), len(r.tools.calls))
		}
		paidOnce(t, r, id)
	}
}

// TestRequestKeys checks that a request that is sent again after a crash has the same key, and
// that every other request of a run has a different one, also after an error.
func TestRequestKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine(`, "next_state": "start"`, `, "budgets": {"calls": 4}`), smallRoles)}, smallHandlers(),
			`[{"content": "one"}, {"fault": "500"}, {"content": "two"}, {"content": "three"}]`)
		id := r.startRun("small", nil)
		ctx, stop := context.WithCancel(t.Context())
		r.model.before = func(llm.Request) { stop() } // the answer does not arrive
		if err := r.Drive(ctx, anna.User, id, nil); err == nil {
			t.Fatal("the drive was not interrupted")
		}
		r.model.before = nil
		r.driveRun(id)
		var keys []string
		for _, q := range r.model.requests {
			keys = append(keys, q.Key)
		}
		if len(keys) < 4 || keys[0] != keys[1] || len(slices.Compact(slices.Clone(keys))) != len(keys)-1 {
			t.Errorf("the keys are %q", keys)
		}
	})
}

// TestRetryDecisionIsValidOnce checks that a decision to retry a tool call allows one
// attempt. If the process is killed during the retry, the run asks for another decision.
func TestRetryDecisionIsValidOnce(t *testing.T) {
	t.Parallel()
	journal := newMemory()
	r := newTen(t, journal)
	r.model.answers = answersOf(t, `[{"tool_calls": [{"name": "s__ask", "arguments": {}}]}, {"content": "fine"}, {"content": "fine"}]`)
	id := r.startRun("ten", map[string]any{"task": "x"})
	for n := 1; n <= 7; n++ {
		r.tools.after = journal.kill
		if err := r.Drive(t.Context(), anna.User, id, nil); err == nil {
			t.Fatal("the process did not die")
		}
		journal.revive()
		r.tools.after = nil
		r.reopen()
		s := r.driveRun(id)
		if len(r.tools.calls) != n || s.Pause == nil || s.Pause.Code != machineengine.ErrorKindUnknownOutcome || s.Pause.Tool.Retry != "ask" {
			t.Fatalf("after %d lost attempts, the tool was called %d times, and the status is %+v", n, len(r.tools.calls), s.Pause)
		}
		if _, err := r.Decide(t.Context(), anna, id, driver.OutcomeAnswer{Decision: machineengine.DecideRetry}); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted || len(r.tools.calls) != 8 {
		t.Errorf("%+v after %d calls", s, len(r.tools.calls))
	}
}

// countCalls returns the number of executed calls with a key.
func countCalls(r *rig, key string) int {
	n := 0
	for _, c := range r.tools.calls {
		if c.Key == key {
			n++
		}
	}
	return n
}

// paidOnce checks by the run's events that no request or tool call was repeated after its
// result was recorded.
func paidOnce(t *testing.T, r *rig, id string) {
	t.Helper()
	events, err := r.Events(t.Context(), anna, id)
	if err != nil {
		t.Fatal(err)
	}
	unknown, answers := 0, 0
	calls := map[string]int{}
	unknownTools := map[string]int{}
	for _, e := range events {
		var fact machineengine.Event
		if err := json.Unmarshal(e.Data, &fact); err != nil {
			t.Fatal(err)
		}
		switch {
		case fact.Kind == machineengine.KindModelResult && fact.Unknown:
			unknown++
		case fact.Kind == machineengine.KindModelResult:
			answers++
		case fact.Kind == machineengine.KindToolResult && fact.Unknown:
			unknownTools[fact.Tool.Key]++
		case fact.Kind == machineengine.KindToolResult || fact.Kind == machineengine.KindToolDecided && fact.Decision != machineengine.DecideRetry:
			calls[fact.Tool.Key]++
		}
	}
	if answers != 10 || len(r.model.requests) > answers+unknown {
		t.Errorf("%d requests were sent, for %d answers and %d unknown outcomes", len(r.model.requests), answers, unknown)
	}
	sent := map[string]int{}
	for _, c := range r.tools.calls {
		sent[c.Key]++
		if c.Name == "s__ask" && sent[c.Key] > 1 {
			t.Errorf("the tool that must not be repeated ran %d times for the call %s", sent[c.Key], c.Key)
		}
	}
	for key, n := range sent {
		if calls[key] != 1 || n > 1+unknownTools[key] {
			t.Errorf("the call %s has %d results, was sent %d times and had an unknown outcome %d times", key, calls[key], n, unknownTools[key])
		}
	}
}
