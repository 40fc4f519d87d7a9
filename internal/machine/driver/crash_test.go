package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// tenCalls is a machine with ten calls of models and six of tools.
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

// tenHandlers do two rounds; what they do is counted in common_data, so that a
// handler whose result counted twice shows.
func tenHandlers() handlers {
	return handlers{
		"ask": func(t *this) (any, error) {
			t.say("talk", llm.User, fmt.Sprintf("round %v", t.data["round"]))
			return nil, nil
		},
		"note": func(t *this) (any, error) {
			n, _ := t.data["round"].(float64)
			t.data["round"] = n + 1
			t.data["done"] = t.text("done") + t.last().Content + ";"
			t.say("talk", llm.Assistant, t.last().Content)
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

// tenScript is what the model answers: in each round two rounds of two tools, one
// tool, and at last a text.
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
	r := newRig(t, journal, []*machinedef.Definition{define(t, tenCalls, tenRoles)}, tenHandlers(), tenScript())
	r.tools.infos = []machineengine.ToolInfo{tool("s__safe", true), tool("s__key", false), tool("s__ask", false)}
	r.opts.Alive = func(string) bool { return false } // who held a lease is dead
	r.open()
	return r
}

// outcome is what must be the same whatever happened on the way.
type outcome struct {
	Status machineengine.Status
	Output string
	States []string
}

func outcomeOf(s *driver.Status) outcome {
	return outcome{s.Status, string(s.Output), s.States}
}

// crash says where the process dies: at a write, or before or after a call of
// something outside.
type crash struct {
	kind string
	n    int
}

// die has the process die there.
func (c crash) die(r *rig, journal *memory) {
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

// TestCrash kills the process at every write and around every call, and goes on:
// the outcome is the same, no answer that was kept is paid for again, and each tool
// ran once, unless its outcome was unknown and its policy allows another time.
func TestCrash(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.drive(whole.begin("ten", map[string]any{"task": "x"})))
	if want.Status != machineengine.StatusCompleted || len(whole.model.requests) != 10 || len(whole.tools.calls) != 12 {
		t.Fatalf("undisturbed: %+v, %d requests, %d calls", want, len(whole.model.requests), len(whole.tools.calls))
	}
	writes := whole.journal.(*memory).writes
	var points []crash
	for n := 2; n <= writes; n++ { // the first one begins the run
		points = append(points, crash{"write", n})
	}
	for n := 1; n <= 10; n++ {
		points = append(points, crash{"before-model", n}, crash{"after-model", n})
	}
	for n := 1; n <= 12; n++ {
		points = append(points, crash{"before-tool", n}, crash{"after-tool", n})
	}
	// One begins the run, one takes the lease, each call has an intent, in one write
	// with the result before, a handler has the result before it kept, and the last
	// one has the end.
	if calls, states := 10+12, 2; writes != 3+calls+states {
		t.Errorf("%d writes for %d calls and %d handlers behind them", writes, calls, states)
	}
	// Two crashes in one run: the second at every third write after the first.
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
	id := r.begin("ten", map[string]any{"task": "x"})
	first.die(r, journal)
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
		r.open() // another process
		err := r.Drive(t.Context(), anna.User, id, nil)
		if err != nil {
			continue
		}
		s := r.status(id)
		if s.Status.Ended() {
			break
		}
		if s.Pause == nil || s.Pause.Code != machineengine.FaultUnknown || s.Pause.Tool.Name != "s__ask" {
			t.Fatalf("the run rests at %+v", s)
		}
		// A person has looked: if the tool ran, they say what it answered.
		decision, result := machineengine.DecideRetry, ""
		if ran(r, s.Pause.Tool.Key) > 0 {
			decision, result = machineengine.DecideDone, "done "+s.Pause.Tool.Arguments
		}
		if _, err := r.Decide(t.Context(), anna, id, decision, result); err != nil && !journal.isDead() {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, outcomeOf(r.status(id))); diff != "" {
		t.Fatal(diff)
	}
	paidOnce(t, r, id)
}

// TestWritesGoWrong has each write fail once, or be made and answered with a
// conflict: the process that goes on pays for nothing twice either.
func TestWritesGoWrong(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.drive(whole.begin("ten", map[string]any{"task": "x"})))
	writes := whole.journal.(*memory).writes
	for n := 3; n <= writes; n++ { // behind the first event and the lease
		for _, lost := range []bool{false, true} {
			journal := newMemory()
			r := newTen(t, journal)
			id := r.begin("ten", map[string]any{"task": "x"})
			if lost {
				journal.lost = n
			} else {
				journal.fails = n
			}
			err := r.Drive(t.Context(), anna.User, id, nil)
			// With the last one the lease is given back: then nobody holds it.
			if lost != (err == nil) && n < writes {
				t.Errorf("write %d, lost %v: %v", n, lost, err)
			}
			if s := r.drive(id); cmp.Diff(want, outcomeOf(s)) != "" || len(r.model.requests) != 10 || len(r.tools.calls) != 12 {
				t.Errorf("write %d, lost %v: %+v, %d requests, %d calls", n, lost, s, len(r.model.requests), len(r.tools.calls))
			}
			paidOnce(t, r, id)
		}
	}
}

// TestInterruptedResult stops the drive as soon as an answer or a result is there:
// it is kept, and nothing is asked again.
func TestInterruptedResult(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 10+12; n++ {
		r := newTen(t, newMemory())
		id := r.begin("ten", map[string]any{"task": "x"})
		ctx, stop := context.WithCancel(t.Context())
		count := 0
		at := func() {
			if count++; count == n {
				stop()
			}
		}
		r.model.after, r.tools.after = func(llm.Request) { at() }, at
		if err := r.Drive(ctx, anna.User, id, nil); guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("stopped behind call %d: %v", n, err)
		}
		stop()
		if s := r.drive(id); !s.Status.Ended() || len(r.model.requests) != 10 || len(r.tools.calls) != 12 {
			t.Errorf("stopped behind call %d: %+v, %d requests, %d calls", n, s, len(r.model.requests), len(r.tools.calls))
		}
		paidOnce(t, r, id)
	}
}

// TestARetryCountsOnce has somebody repeat a call whose outcome was not known, and
// the process die in that attempt, too: they are asked again.
func TestARetryCountsOnce(t *testing.T) {
	t.Parallel()
	journal := newMemory()
	r := newTen(t, journal)
	r.model.answers = answersOf(t, `[{"tool_calls": [{"name": "s__ask", "arguments": {}}]}, {"content": "fine"}, {"content": "fine"}]`)
	id := r.begin("ten", map[string]any{"task": "x"})
	for n := 1; n <= 7; n++ {
		r.tools.after = journal.kill
		if err := r.Drive(t.Context(), anna.User, id, nil); err == nil {
			t.Fatal("the process did not die")
		}
		journal.revive()
		r.tools.after = nil
		r.open()
		s := r.drive(id)
		if len(r.tools.calls) != n || s.Pause == nil || s.Pause.Code != machineengine.FaultUnknown || s.Pause.Tool.Retry != "ask" {
			t.Fatalf("after %d attempts that were lost the tool was called %d times, and the run rests at %+v", n, len(r.tools.calls), s.Pause)
		}
		if _, err := r.Decide(t.Context(), anna, id, machineengine.DecideRetry, ""); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.drive(id); s.Status != machineengine.StatusCompleted || len(r.tools.calls) != 8 {
		t.Errorf("%+v after %d calls", s, len(r.tools.calls))
	}
}

// ran counts how often a call was carried out.
func ran(r *rig, key string) int {
	n := 0
	for _, c := range r.tools.calls {
		if c.Key == key {
			n++
		}
	}
	return n
}

// paidOnce checks by the run's events that no request was sent again after its
// answer was kept, and no tool called again after its result was.
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
			t.Errorf("the tool that must not be repeated ran %d times for %s", sent[c.Key], c.Key)
		}
	}
	for key, n := range sent {
		if calls[key] != 1 || n > 1+unknownTools[key] {
			t.Errorf("the call %s has %d results, was sent %d times and was unknown %d times", key, calls[key], n, unknownTools[key])
		}
	}
}
