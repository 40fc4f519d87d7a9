package driver_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
)

// failingMachine returns the machine of tenCalls with a text added to each state that has
// an agent, and with a state "mended".
func failingMachine(t *testing.T, more string) *machinedef.Definition {
	t.Helper()
	config := strings.ReplaceAll(tenCalls, `"transition_handler": "more"}`, `"transition_handler": "more"`+more+`}`)
	config = strings.Replace(config, `{"name": "stop"`, `{"name": "mended", "post_handler": "mended"}, {"name": "stop"`, 1)
	return parseMachine(t, config, tenRoles)
}

// failingScript returns the script of the model with a number of consecutive errors at one
// request. Each failed request is an additional entry in the script.
func failingScript(t *testing.T, at, times int, fault string) string {
	t.Helper()
	var good []json.RawMessage
	if err := json.Unmarshal([]byte(tenScript()), &good); err != nil {
		t.Fatal(err)
	}
	bad := json.RawMessage(fmt.Sprintf(`{"content": "stop", "tool_calls": [{"name": "s__ask", "arguments": {"n": 0}}], "fault": %q}`, fault))
	if fault == slow {
		bad = json.RawMessage(`{"content": "stop", "delay": 3600}`)
	}
	var all []json.RawMessage
	for i, g := range good {
		for range times {
			if i == at {
				all = append(all, bad)
			}
		}
		all = append(all, g)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// slow is an answer that takes longer than the request's timeout.
const slow = "slow"

// TestSilentModel checks that a request to a model that does not answer ends after the time
// limit, and that the run then pauses with the limit in its reason.
func TestSilentModel(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine(`, "max_retries": 0`, ""), smallRoles)}, smallHandlers(), `{"rules": [{"content": "late", "delay": 100000}]}`)
			r.model.timeout = limit
			begun := time.Now()
			s := r.driveRun(r.startRun("small", nil))
			want := cmp.Or(limit, 5*time.Minute)
			if took := time.Since(begun); s.Pause == nil || s.Pause.Code != string(llm.Timeout) || !strings.Contains(s.Pause.Message, want.String()) || took != want {
				t.Errorf("after %s: %+v", took, s.Pause)
			}
		})
	}
}

// TestEveryErrorAtEveryCall injects each error of the scripted model and a timeout at each
// of ten requests, once and permanently. It checks that the run retries, calls the error
// handler, or pauses with the reason, and that no tool call of a failed answer is executed.
func TestEveryErrorAtEveryCall(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.driveRun(whole.startRun("ten", map[string]any{"task": "x"})))
	transient := map[string]bool{
		scripted.FaultRateLimit: true, scripted.FaultServer: true, scripted.FaultAuth: false, scripted.FaultContext: true,
		scripted.FaultRefusal: false, scripted.FaultCut: true, scripted.FaultEmpty: true, slow: true,
	}
	for _, fault := range append(scripted.Faults(), slow) {
		again, known := transient[fault]
		if !known && fault != scripted.FaultMalformed { // malformed arguments are tested by TestMalformedArguments
			t.Errorf("the test has no case for the fault %s", fault)
		}
		for at := range 10 {
			if !known {
				break
			}
			t.Run(fmt.Sprintf("%s-%d", fault, at), func(t *testing.T) {
				t.Parallel()
				f := faultAt{fault: fault, at: at, transient: again, want: want}
				synctest.Test(t, func(t *testing.T) { f.checkOnce(t) })
				synctest.Test(t, func(t *testing.T) { f.checkPermanent(t) })
				synctest.Test(t, func(t *testing.T) { f.checkErrorHandler(t) })
			})
		}
	}
}

// faultAt is an error at one request.
type faultAt struct {
	fault     string
	at        int
	transient bool
	want      outcome
}

func (f faultAt) newRig(t *testing.T, more string, times int) (*rig, string) {
	t.Helper()
	h := tenHandlers()
	h["mend"] = func(*this) (any, error) { return "mended", nil }
	h["mended"] = func(t *this) (any, error) { t.data["done"] = "mended"; return nil, nil }
	r := newRig(t, newMemory(), []*machinedef.Definition{failingMachine(t, more)}, h, failingScript(t, f.at, times, f.fault))
	r.tools.infos = []machineengine.ToolInfo{newTool("s__safe", true), newTool("s__key", false), newTool("s__ask", false)}
	return r, r.startRun("ten", map[string]any{"task": "x"})
}

// checkOnce checks that a transient error is retried, and that any other pauses the run
// until it is resumed. The outcome is the same as without the error.
func (f faultAt) checkOnce(t *testing.T) {
	t.Helper()
	r, id := f.newRig(t, "", 1)
	s := r.driveRun(id)
	if !f.transient {
		f.checkPaused(t, r, s, 1)
		if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{}); err != nil {
			t.Fatal(err)
		}
		s = r.driveRun(id)
	}
	if diff := gocmp.Diff(f.want, outcomeOf(s)); diff != "" || len(r.model.requests) != 11 || len(r.tools.calls) != 12 {
		t.Errorf("once: %d requests, %d calls, %s", len(r.model.requests), len(r.tools.calls), diff)
	}
}

// checkPermanent tests a permanent error: the run makes as many attempts as its machine
// allows and then pauses.
func (f faultAt) checkPermanent(t *testing.T) {
	t.Helper()
	r, id := f.newRig(t, `, "max_retries": 2`, 20)
	attempts := 1
	if f.transient {
		attempts = 3
	}
	if f.fault == scripted.FaultContext { // the request is retried with a shorter conversation
		attempts = 4
	}
	f.checkPaused(t, r, r.driveRun(id), attempts)
}

// checkPaused checks that the run is paused in its state with the reason, and that no tool
// call of a failed answer was executed.
func (f faultAt) checkPaused(t *testing.T, r *rig, s *driver.Status, attempts int) {
	t.Helper()
	states := f.want.States[:1+f.at/5]
	tools := toolsBefore()[f.at]
	if s.Status != machineengine.StatusPaused || s.Pause.Error == nil || s.Pause.Message == "" || s.Output != nil {
		t.Fatalf("the run stopped with the status %+v", s)
	}
	if diff := gocmp.Diff(states, s.States); diff != "" || len(r.tools.calls) != tools || len(r.model.requests) != f.at+attempts {
		t.Errorf("%d requests, not %d; %d calls, not %d; %s", len(r.model.requests), f.at+attempts, len(r.tools.calls), tools, diff)
	}
}

// toolsBefore returns the number of tool calls before each request.
func toolsBefore() []int { return []int{0, 2, 3, 4, 6, 6, 8, 9, 10, 12} }

// checkErrorHandler checks that, after a permanent error, the run continues in the state
// that the error handler returns.
func (f faultAt) checkErrorHandler(t *testing.T) {
	t.Helper()
	r, id := f.newRig(t, `, "max_retries": 1, "error_handler": "mend"`, 20)
	s := r.driveRun(id)
	if s.Status != machineengine.StatusCompleted || string(s.Output) != `"mended"` || s.States[len(s.States)-1] != "mended" {
		t.Errorf("the run with an error handler is %+v", s)
	}
}

// TestMalformedArguments checks that no tool call with truncated arguments is executed, and
// that the run continues after one such answer. After many, the budget of tool calls pauses
// the run. If the arguments of a parsing tool are truncated, the request is repeated.
func TestMalformedArguments(t *testing.T) {
	t.Parallel()
	for at := range 10 {
		f := faultAt{fault: scripted.FaultMalformed, at: at}
		r, id := f.newRig(t, "", 1)
		if s := r.driveRun(id); s.Status != machineengine.StatusCompleted || len(r.tools.calls) != 12 {
			t.Errorf("malformed arguments at request %d: %+v after %d tool calls", at, s, len(r.tools.calls))
		}
		r, id = f.newRig(t, "", 2*machinedef.DefaultToolCalls)
		s := r.driveRun(id)
		if p := s.Pause; s.Status != machineengine.StatusPaused || p.Code != machineengine.PauseBudget || p.Budget != "toolCalls" || p.Used != machinedef.DefaultToolCalls {
			t.Errorf("permanently malformed arguments at request %d: %+v, %+v", at, s.Status, p)
		}
		if tools := toolsBefore()[at]; len(r.tools.calls) != tools || len(r.model.requests) > at-at%5+machinedef.DefaultToolCalls+1 {
			t.Errorf("permanently malformed arguments at request %d: %d tool calls, want %d, in %d requests", at, len(r.tools.calls), tools, len(r.model.requests))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		parsing := `{"worker": {"systemMessage": "Work.", "parsingTools": [{"type": "function", "parsingOnly": true, "function":
			{"name": "tell", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}}]}}`
		script := `[{"tool_calls": [{"name": "tell", "arguments": {"a": "far too long to be cut"}}], "fault": "malformed"},
			{"tool_calls": [{"name": "tell", "arguments": {}}]}, {"tool_calls": [{"name": "tell", "arguments": {"a": "b"}}]}]`
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), parsing)}, smallHandlers(), script)
		if s := r.driveRun(r.startRun("small", nil)); s.Status != machineengine.StatusCompleted || len(r.model.requests) != 3 {
			t.Errorf("%+v after %d requests", s, len(r.model.requests))
		}
	})
}

// TestBudgetEdges checks that each budget pauses the run when it is exhausted, that the run
// resumes only with a higher limit, and that a limit raised by one allows one more step.
// The outcome equals the outcome of a run without pauses.
func TestBudgetEdges(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.driveRun(whole.startRun("ten", map[string]any{"task": "x"})))
	tests := []struct {
		budget string
		limit  func(n int) machineengine.Limits
		// last is the limit with which the run ends if the limit is raised by one at every
		// stop. used returns the usage at a stop.
		last int
		used func(*driver.Status) int
	}{
		{"states", func(n int) machineengine.Limits { return machineengine.Limits{States: n} }, 2, func(s *driver.Status) int { return s.Usage.States }},
		{"calls", func(n int) machineengine.Limits { return machineengine.Limits{Calls: n} }, 10, func(s *driver.Status) int { return s.Usage.Calls }},
		{"tokens", func(n int) machineengine.Limits { return machineengine.Limits{Tokens: n * 15} }, 10, func(s *driver.Status) int { return (s.Usage.Input + s.Usage.Output) / 15 }},
		{"cost", func(n int) machineengine.Limits { return machineengine.Limits{Cost: int64(n) * 30} }, 10, func(s *driver.Status) int { return int(s.Cost*1e6+0.5) / 30 }},
		{"toolCalls", func(n int) machineengine.Limits { return machineengine.Limits{ToolCalls: n} }, 6, nil},
		{"time", func(n int) machineengine.Limits { return machineengine.Limits{Millis: int64(n) * 1000} }, 10, func(s *driver.Status) int { return int(s.Usage.Seconds) }},
	}
	for _, tt := range tests {
		t.Run(tt.budget, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newTen(t, newMemory())
				r.model.price = 2_000_000
				if tt.budget == "time" {
					r.model.answers = answersOf(t, delayedScript(t, 1))
				}
				started, err := r.Start(t.Context(), anna, driver.StartRequest{
					Machine: "ten", Inputs: map[string]json.RawMessage{"task": json.RawMessage(`"x"`)}, Limits: tt.limit(1),
				})
				if err != nil {
					t.Fatal(err)
				}
				id := started.RunID
				s := r.driveRun(id)
				pauses := 0
				for n := 1; s.Status == machineengine.StatusPaused && n < 20; n++ {
					pauses++
					if p := s.Pause; p.Code != machineengine.PauseBudget || p.Budget != tt.budget || p.Used != p.Limit || s.Output != nil {
						t.Fatalf("after %d: %+v", n, s.Pause)
					}
					if tt.used != nil && tt.used(s) != n {
						t.Errorf("with a budget of %d, the run used %d", n, tt.used(s))
					}
					for _, less := range []machineengine.Limits{{}, tt.limit(n), tt.limit(n - 1), otherBudgets(tt.budget)} {
						if _, err := r.Resume(t.Context(), anna, id, less); guideway.ErrorCode(err) != guideway.CodeRefused {
							t.Errorf("the run resumed without a higher limit: %v", err)
						}
					}
					if again := r.driveRun(id); again.Seq != s.Seq {
						t.Error("the run continued without a command")
					}
					r.reopen() // continue in a new process
					if _, err := r.Resume(t.Context(), anna, id, tt.limit(n+1)); err != nil {
						t.Fatal(err)
					}
					s = r.driveRun(id)
				}
				if diff := gocmp.Diff(want, outcomeOf(s)); diff != "" || len(r.model.requests) != 10 || len(r.tools.calls) != 12 {
					t.Errorf("%d requests, %d calls, %s", len(r.model.requests), len(r.tools.calls), diff)
				}
				// After the last raise the run completes, even if its last call exhausts
				// the budget: steps that use nothing of the budget still run.
				if pauses < tt.last-1 || pauses > tt.last {
					t.Errorf("the run paused %d times, want %d or one less", pauses, tt.last)
				}
			})
		})
	}
}

// otherBudgets returns a high limit for one budget that is not the tested one.
func otherBudgets(budget string) machineengine.Limits {
	if budget == "toolCalls" {
		return machineengine.Limits{States: 900}
	}
	return machineengine.Limits{ToolCalls: 900}
}

// TestBudgetWithin checks that the limits of a sub-machine are capped by the remaining
// budget of its parent. After the budget is raised, the run resumes by the id of the
// parent.
func TestBudgetWithin(t *testing.T) {
	t.Parallel()
	deep := strings.Replace(smallMachine(`, "transition_handler": "loop"`, ""), `"small"`, `"deep"`, 1)
	around := strings.Replace(strings.Replace(outer, `"machine": "waiting", "inputs": {"topic": "common_data.what"}`, `"machine": "deep"`, 1),
		`"states": [`, `"budgets": {"calls": 4}, "states": [`, 1)
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, deep, smallRoles), parseMachine(t, around, smallRoles)}, smallHandlers(), `{"rules": [{"content": "again"}]}`)
	id := r.startRun("outer", map[string]any{"what": "x"})
	s := r.driveRun(id)
	if len(r.model.requests) != 4 || s.Child == nil || s.Child.Pause == nil || s.Child.Pause.Budget != "calls" || s.Child.Pause.Limit != 3 {
		t.Fatalf("%d requests: %+v", len(r.model.requests), s)
	}
	if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{Calls: 3}); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("the run resumed without a higher limit: %v", err)
	}
	if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{Calls: 5}); err != nil {
		t.Fatal(err)
	}
	if s = r.driveRun(id); len(r.model.requests) != 6 || s.Child.Pause == nil {
		t.Errorf("after raising the limit by 2: %d requests, %+v", len(r.model.requests), s)
	}
}

// delayedScript returns the answers of tenScript, each with a delay.
func delayedScript(t *testing.T, seconds int) string {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(tenScript()), &all); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		a["delay"] = seconds
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
