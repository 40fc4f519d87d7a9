package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
)

// smallMachine returns a machine with one agent; more is added to its first state, rest to
// the machine.
func smallMachine(more, rest string) string {
	return `{
  "workflow_name": "small", "description": "d", "inputs": [], "output": {"name": "done", "type": "string", "description": "d"},
  "contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "go"}]}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "states": [
    {"name": "start", "agent": "worker", "post_handler": "keep"` + more + `},
    {"name": "mended", "post_handler": "mended"},
    {"name": "stop"}
  ]` + rest + `}`
}

func smallHandlers() handlers {
	return handlers{
		"keep":   func(t *this) (any, error) { t.data["done"] = t.lastMessage().Content; return nil, nil },
		"mended": func(t *this) (any, error) { t.data["done"] = "mended"; return nil, nil },
		"mend": func(t *this) (any, error) {
			t.data["why"] = t.Error.Kind
			return "mended", nil
		},
		"loop": func(*this) (any, error) { return "start", nil },
		"lost": func(*this) (any, error) { return "nowhere", nil },
		"odd":  func(*this) (any, error) { return map[string]any{"then": 1}, nil },
		"bad":  func(*this) (any, error) { return nil, errors.New("it broke") },
	}
}

// TestModelErrors checks that a model error leads to a retry, to the error handler, or to a
// pause with a message, and that the content of a failed answer is never the output.
func TestModelErrors(t *testing.T) {
	t.Parallel()
	const good = `{"content": "fine"}`
	fault := func(kind string) string { return fmt.Sprintf(`{"content": "half of it", "fault": %q}`, kind) }
	for _, kind := range []string{"429", "500", "401", "context", "refusal", "cut", "empty"} {
		transient := kind != "401" && kind != "refusal"
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				script := func(n int) string { return "[" + strings.Repeat(fault(kind)+",", n) + good + "]" }
				// A transient error is retried, any other pauses the run.
				r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(), script(1))
				s := r.driveRun(r.startRun("small", nil))
				if transient && (s.Status != machineengine.StatusCompleted || string(s.Output) != `"fine"`) {
					t.Errorf("after one %s error, the run is %s with the output %s", kind, s.Status, s.Output)
				}
				if !transient && (s.Status != machineengine.StatusPaused || len(r.model.requests) != 1 || s.Pause.Error == nil || s.Output != nil) {
					t.Errorf("after one %s error, the run is %+v", kind, s)
				}
				// Repeated errors pause the run, which completes after enough resumes.
				r = newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine(`, "max_retries": 1`, ""), smallRoles)}, smallHandlers(), script(5))
				id := r.startRun("small", nil)
				s = r.driveRun(id)
				if s.Status != machineengine.StatusPaused || s.Pause.Message == "" || s.Output != nil {
					t.Errorf("after many %s errors, the run is %+v", kind, s)
				}
				for s.Status == machineengine.StatusPaused {
					if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{}); err != nil {
						t.Fatal(err)
					}
					s = r.driveRun(id)
				}
				if string(s.Output) != `"fine"` {
					t.Errorf("resumed: %+v", s)
				}
				// If there is an error handler, it chooses the next state.
				r = newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine(`, "max_retries": 1, "error_handler": "mend"`, ""), smallRoles)}, smallHandlers(), script(9))
				s = r.driveRun(r.startRun("small", nil))
				if s.Status != machineengine.StatusCompleted || string(s.Output) != `"mended"` {
					t.Errorf("the run with an error handler is %+v", s)
				}
			})
		})
	}
}

const smallRoles = `{"worker": {"systemMessage": "Work."}}`

// TestRetryAfter checks that a retry waits as long as the server requests, and that the run
// pauses if the server requests two hours.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(),
			`[{"fault": "429", "retry_after": 90}, {"content": "fine"}]`)
		if s := r.driveRun(r.startRun("small", nil)); s.Status != machineengine.StatusCompleted || time.Since(begun) < 90*time.Second || time.Since(begun) > 100*time.Second {
			t.Errorf("%s after %s", s.Status, time.Since(begun))
		}
		r = newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(),
			`[{"fault": "429", "retry_after": 7200}, {"content": "fine"}]`)
		if s := r.driveRun(r.startRun("small", nil)); s.Status != machineengine.StatusPaused || !strings.Contains(s.Pause.Message, "2h0m0s") {
			t.Errorf("%+v", s.Pause)
		}
	})
}

// TestHandlerErrors checks that the run pauses with the position of the error if a handler
// fails, and with the returned value if a handler returns no known state.
func TestHandlerErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ more, code, message string }{
		{`, "transition_handler": "lost"`, machineengine.ErrorKindTransition, `"nowhere"`},
		{`, "transition_handler": "odd"`, machineengine.ErrorKindTransition, `{"then":1}`},
		{`, "pre_handler": "bad"`, machineengine.ErrorKindHandler, "it broke"},
		{`, "transition_handler": "bad", "error_handler": "bad"`, machineengine.ErrorKindHandler, "it broke"},
	}
	for _, tt := range tests {
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine(tt.more, ""), smallRoles)}, smallHandlers(), `[{"content": "fine"}]`)
		s := r.driveRun(r.startRun("small", nil))
		if s.Status != machineengine.StatusPaused || s.Pause.Code != tt.code || !strings.Contains(s.Pause.Message, tt.message) {
			t.Errorf("%s: %+v", tt.more, s.Pause)
		}
		if tt.code == machineengine.ErrorKindHandler && (s.Pause.Error.Line != 3 || s.Pause.Error.File == "") {
			t.Errorf("%s: the error has no position: %+v", tt.more, s.Pause.Error)
		}
	}
}

// TestBudgets checks that each budget pauses an endless machine, that the run does not
// resume without a higher limit, and that it continues up to the raised limit.
func TestBudgets(t *testing.T) {
	t.Parallel()
	rules := `{"rules": [{"content": "again", "usage": {"input": 100, "output": 50}}]}`
	for budget, raise := range map[string]machineengine.Limits{
		"states": {States: 7}, "calls": {Calls: 7}, "tokens": {Tokens: 7 * 150}, "cost": {Cost: 7 * 150 * 2},
	} {
		limits := map[string]string{"states": `"states": 4`, "calls": `"calls": 4`, "tokens": `"tokens": 600`, "cost": `"cost": 0.0012`}[budget]
		d := parseMachine(t, smallMachine(`, "transition_handler": "loop"`, `, "budgets": {`+limits+`}`), smallRoles)
		r := newRig(t, newMemory(), []*machinedef.Definition{d}, smallHandlers(), rules)
		r.model.price = 2_000_000
		id := r.startRun("small", nil)
		s := r.driveRun(id)
		if s.Status != machineengine.StatusPaused || s.Pause.Code != machineengine.PauseBudget || s.Pause.Budget != budget || len(r.model.requests) != 4 || s.Usage.Calls != 4 {
			t.Errorf("%s: %s, %+v, %d requests", budget, s.Status, s.Pause, len(r.model.requests))
		}
		if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{}); guideway.ErrorCode(err) != guideway.CodeRefused {
			t.Errorf("%s: the run resumed without a higher limit: %v", budget, err)
		}
		if _, err := r.Resume(t.Context(), anna, id, raise); err != nil {
			t.Fatal(err)
		}
		if s = r.driveRun(id); s.Status != machineengine.StatusPaused || len(r.model.requests) != 7 {
			t.Errorf("%s: raised: %s, %d requests", budget, s.Status, len(r.model.requests))
		}
	}
}

// waiting requests an input, and outer runs waiting as a sub-machine.
const (
	waiting = `{
  "workflow_name": "waiting", "description": "d", "inputs": [{"name": "topic", "type": "string", "description": "d"}],
  "output": {"name": "decision", "type": "string", "description": "d"},
  "contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "go"}]}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "states": [
    {"name": "start", "agent": "worker", "next_state": "ask"},
    {"name": "ask", "input": {"name": "decision", "type": "string", "description": "Go on?", "options": ["yes", "no"], "show": "common_data.topic", "approval": "human"}},
    {"name": "stop"}
  ]}`
	outer = `{
  "workflow_name": "outer", "description": "d", "inputs": [{"name": "what", "type": "string", "description": "d"}],
  "output": {"name": "inner", "type": "string", "description": "d"},
  "contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "go"}]}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "states": [
    {"name": "start", "agent": "worker", "next_state": "deep"},
    {"name": "deep", "sub_machine": {"machine": "waiting", "inputs": {"topic": "common_data.what"}, "output": "inner"}, "next_state": "after"},
    {"name": "after", "agent": "worker"},
    {"name": "stop"}
  ]}`
)

// TestInput checks that a run waits for a person, refuses the answers of an agent and of
// another user, and continues in another process.
func TestInput(t *testing.T) {
	t.Parallel()
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, waiting, smallRoles), parseMachine(t, outer, smallRoles)}, handlers{},
		`[{"content": "one"}, {"content": "two"}, {"content": "three"}]`)
	id := r.startRun("outer", map[string]any{"what": "the plan"})
	s := r.driveRun(id)
	inner := s.Child
	if s.Status != machineengine.StatusWaiting || inner == nil || inner.Asks == nil || string(inner.Asks.Show) != `"the plan"` || !inner.Asks.Person {
		t.Fatalf("%+v", s)
	}
	if _, err := r.answerInput(anna, id, json.RawMessage(`"yes"`)); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("an agent answered for a person: %v", err)
	}
	person := anna
	person.Via = run.ViaTerminal
	if _, err := r.answerInput(person, id, json.RawMessage(`"maybe"`)); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("the run accepted an unknown option: %v", err)
	}
	bert := person
	bert.User = "bert"
	if _, err := r.answerInput(bert, id, json.RawMessage(`"yes"`)); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("the run of another user is visible: %v", err)
	}
	r.reopen()
	if _, err := r.answerInput(person, id, json.RawMessage(`"yes"`)); err != nil {
		t.Fatal(err)
	}
	s = r.driveRun(id)
	if s.Status != machineengine.StatusCompleted || string(s.Output) != `"yes"` || s.Usage.Calls != 3 {
		t.Errorf("%+v", s)
	}
	if _, err := r.answerInput(person, id, json.RawMessage(`"yes"`)); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("the run accepted an input that it does not wait for: %v", err)
	}
}

// TestFork checks that a fork at an event has the outcome of the original run, and repeats
// no request that was answered before the event.
func TestFork(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	id := whole.startRun("ten", map[string]any{"task": "x"})
	want := outcomeOf(whole.driveRun(id))
	events, err := whole.Events(t.Context(), anna, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events[1:] {
		before := 0
		for _, f := range events[:e.Seq] {
			if f.Kind == string(machineengine.KindModelResult) {
				before++
			}
		}
		whole.model.requests = nil
		s, err := whole.Fork(t.Context(), anna, id, e.Seq)
		if e.Kind == string(machineengine.KindCompleted) || e.Seq == events[len(events)-1].Seq {
			if guideway.ErrorCode(err) != guideway.CodeRefused {
				t.Errorf("a fork at the end returns %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := whole.driveRun(s.RunID)
		for got.Status == machineengine.StatusPaused { // forked between intent and result
			if _, err := whole.Decide(t.Context(), anna, s.RunID, driver.OutcomeAnswer{Decision: machineengine.DecideDone, Result: "done " + got.Pause.Tool.Arguments}); err != nil {
				t.Fatal(err)
			}
			got = whole.driveRun(s.RunID)
		}
		if diff := cmp.Diff(want, outcomeOf(got)); diff != "" || len(whole.model.requests) != 10-before {
			t.Errorf("forked at %d (%s): %d requests, %s", e.Seq, e.Kind, len(whole.model.requests), diff)
		}
	}
}

// TestLease checks that a second process cannot drive a run while the first one holds the
// lease. If the second process assumes that the first one is dead, it takes over the lease,
// and the first one writes nothing more.
func TestLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := newMemory()
		r := newRig(t, journal, []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(), `[{"content": "fine", "delay": 600}]`, shares)
		r.model.timeout = time.Hour
		id := r.startRun("small", nil)
		first := make(chan error, 1)
		go func() { first <- r.Drive(t.Context(), anna.User, id, nil) }()
		synctest.Wait()
		other := newRig(t, journal, []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(), `[{"content": "other"}]`, shares)
		<-time.After(300 * time.Second) // much longer than an instance may be silent
		synctest.Wait()
		if err := other.Drive(t.Context(), anna.User, id, nil); guideway.ErrorCode(err) != guideway.CodeConflict {
			t.Errorf("a second process can drive the run: %v", err)
		}
		// The other process wrongly assumes that the first is dead: the first must not
		// write its answer.
		clear(journal.instances)
		if s := other.driveRun(id); s.Status != machineengine.StatusCompleted || string(s.Output) != `"other"` {
			t.Errorf("%+v", s)
		}
		if err := <-first; err == nil {
			t.Error("the process that lost the lease did not return an error")
		}
		if s := other.runStatus(id); string(s.Output) != `"other"` {
			t.Errorf("the process that lost the lease changed the run: %+v", s)
		}
	})
}

// TestCancel tests that the driver of a cancelled run stops.
func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(), `[{"content": "fine", "delay": 3600}]`)
		id := r.startRun("small", nil)
		done := make(chan error, 1)
		go func() { done <- r.Drive(t.Context(), anna.User, id, nil) }()
		synctest.Wait()
		if s, err := r.Cancel(t.Context(), anna, id, "enough"); err != nil || s.Status != machineengine.StatusCancelled {
			t.Fatalf("%+v, %v", s, err)
		}
		if err := <-done; err != nil {
			t.Errorf("Drive returned %v", err)
		}
		if s := r.runStatus(id); s.Status != machineengine.StatusCancelled || s.Output != nil {
			t.Errorf("%+v", s)
		}
	})
}

// TestToolErrors tests that tool errors are reported to the agent, and that only allowed
// tools are called.
func TestToolErrors(t *testing.T) {
	t.Parallel()
	d := parseMachine(t, smallMachine("", ""), `{"worker": {"systemMessage": "Work.", "includedTools": ["s__*"]}}`)
	r := newRig(t, newMemory(), []*machinedef.Definition{d}, smallHandlers(), `[
		{"tool_calls": [{"name": "s__a", "arguments": "{\"cut"}, {"name": "other__x", "arguments": {}}, {"name": "s__none", "arguments": {}}, {"name": "s__a", "arguments": {}}]},
		{"content": "fine"}]`)
	r.tools.infos = []machineengine.ToolInfo{newTool("s__a", false), newTool("other__x", true)}
	r.tools.call = func(machineengine.ToolCall) (machineengine.ToolResult, error) {
		return machineengine.ToolResult{}, fmt.Errorf("server unavailable: %w", driver.ErrNotCalled)
	}
	if s := r.driveRun(r.startRun("small", nil)); s.Status != machineengine.StatusCompleted || len(r.tools.calls) != 1 {
		t.Fatalf("%+v, %d calls", s, len(r.tools.calls))
	}
	told := r.model.requests[1].Messages
	var results []string
	for _, m := range told {
		if m.Role == llm.Tool {
			results = append(results, m.Content)
		}
	}
	want := []string{"not a JSON object", `"other__x" is not available`, `"s__none" is not available`, "server unavailable"}
	for i, part := range want {
		if i >= len(results) || !strings.Contains(results[i], part) {
			t.Errorf("the agent got the results %q", results)
		}
	}
}

// TestInterrupted checks that Drive returns an error when its context ends, and that the
// run continues later.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(),
			`{"rules": [{"content": "fine", "delay": 60}]}`)
		id := r.startRun("small", nil)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := r.Drive(ctx, anna.User, id, nil); guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("interrupted: %v", err)
		}
		if s := r.runStatus(id); s.Unknown == "" || s.Driver != "" {
			t.Errorf("the status does not report the unknown outcome: %+v", s)
		}
		if s := r.driveRun(id); s.Status != machineengine.StatusCompleted {
			t.Errorf("%+v", s)
		}
		if rec, err := r.List(t.Context(), anna, run.Filter{}); err != nil || len(rec) != 1 || rec[0].Status != engine.StatusCompleted {
			t.Errorf("List returned %+v, %v", rec, err)
		}
	})
}

// TestBoundsApplyToSubMachines checks that the model of a sub-machine is requested with the
// same StartRequest.Allow and Guided as the model of its parent.
func TestBoundsApplyToSubMachines(t *testing.T) {
	t.Parallel()
	asked := map[string]string{}
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, waiting, smallRoles), parseMachine(t, outer, smallRoles)}, handlers{},
		`[{"content": "one"}, {"content": "two"}, {"content": "three"}]`)
	r.opts.Models = wanted{r.model, asked}
	r.reopen()
	s, err := r.Start(t.Context(), anna, driver.StartRequest{
		Machine: "outer", Inputs: map[string]json.RawMessage{"what": json.RawMessage(`"x"`)}, Allow: json.RawMessage(`{"tools":["a"]}`), Guided: []string{"r_1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	waiting := r.driveRun(s.RunID)
	if diff := cmp.Diff(map[string]string{"outer": `{"tools":["a"]}[r_1]`, "waiting": `{"tools":["a"]}[r_1]`}, asked); diff != "" {
		t.Error(diff)
	}
	// The guided runs of a client that answers the sub-machine restrict its parent too, and
	// a fork.
	answer := driver.InputAnswer{Question: askedQuestion(waiting), Value: json.RawMessage(`"yes"`), Guided: []string{"r_2", "r_1"}}
	if _, err := r.Input(t.Context(), asPerson(), s.RunID, answer); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.driveRun(s.RunID)
	if got := asked["outer"]; got != `{"tools":["a"]}[r_1 r_2]` {
		t.Errorf("after the answer, the scope of the outer machine is %s", got)
	}
	clear(asked)
	forked, err := r.Fork(t.Context(), asPerson(), s.RunID, 2)
	if err != nil {
		t.Fatal(err)
	}
	r.driveRun(forked.RunID)
	if got := asked["outer"]; got != `{"tools":["a"]}[r_1]` {
		t.Errorf("the scope of the fork is %s", got)
	}
}

// wanted records the values of Allow and Guided with which each machine requests its model.
type wanted struct {
	driver.Models
	asked map[string]string
}

func (w wanted) Model(f driver.RunScope, level machinedef.Level, name string) (driver.SelectedModel, error) {
	w.asked[f.Machine] = fmt.Sprint(string(f.Allow), f.Guided)
	return w.Models.Model(f, level, name)
}

// TestAnswersNameTheirQuestion checks that an input is refused if it names no question or
// an earlier one.
func TestAnswersNameTheirQuestion(t *testing.T) {
	t.Parallel()
	twice := strings.Replace(waiting, `"approval": "human"}},
    {"name": "stop"}`, `"approval": "human"}, "next_state": "again"},
    {"name": "again", "input": {"name": "second", "type": "string", "description": "Delete all?", "options": ["yes", "no"], "approval": "human"}},
    {"name": "stop"}`, 1)
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, twice, smallRoles)}, handlers{}, `[{"content": "one"}]`)
	id := r.startRun("waiting", map[string]any{"topic": "t"})
	first := askedQuestion(r.driveRun(id))
	input := func(question string) error {
		_, err := r.Input(t.Context(), asPerson(), id, driver.InputAnswer{Question: question, Value: json.RawMessage(`"yes"`)})
		return err
	}
	checkRefusal(t, "without a question", input(""), driver.RuleQuestion)
	if err := input(first); err != nil {
		t.Fatal(err)
	}
	s := r.driveRun(id)
	if s.Status != machineengine.StatusWaiting || s.Asks == nil || s.Asks.Name != "second" || s.Question == first {
		t.Fatalf("after the first answer: %+v", s)
	}
	checkRefusal(t, "the second answer to the first question", input(first), driver.RuleQuestion)
	checkRefusal(t, "without a question", input(""), driver.RuleQuestion)
	_, _ = r.Input(t.Context(), anna, id, driver.InputAnswer{Value: json.RawMessage(`"yes"`)}) // a recorded refusal
	if again := r.runStatus(id).Question; again != s.Question {
		t.Errorf("a refused input changes the question from %s to %s", s.Question, again)
	}
	if err := input(s.Question); err != nil {
		t.Fatal(err)
	}
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted {
		t.Errorf("after both answers the run is %s", s.Status)
	}
}
