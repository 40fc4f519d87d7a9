package driver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
)

// failing is the machine with ten requests, with something added to each state that
// has an agent.
func failing(t *testing.T, more string) *machinedef.Definition {
	t.Helper()
	config := strings.ReplaceAll(tenCalls, `"transition_handler": "more"}`, `"transition_handler": "more"`+more+`}`)
	config = strings.Replace(config, `{"name": "stop"`, `{"name": "mended", "post_handler": "mended"}, {"name": "stop"`, 1)
	return define(t, config, tenRoles)
}

// failingScript is that of the model, where request at fails so many times in a
// row. A request that fails is one more in the script.
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

// slow is an answer that takes longer than a request may.
const slow = "slow"

// TestEveryFaultAtEveryCall has each fault of the scripted model at each of ten
// requests, once and for ever, with an error handler and without: it ends in another
// attempt, the error handler, or a pause that says why. What a failed answer wanted,
// a state or a tool, is never done.
func TestEveryFaultAtEveryCall(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.drive(whole.begin("ten", map[string]any{"task": "x"})))
	transient := map[string]bool{
		scripted.FaultRateLimit: true, scripted.FaultServer: true, scripted.FaultAuth: false, scripted.FaultContext: true,
		scripted.FaultRefusal: false, scripted.FaultCut: true, scripted.FaultEmpty: true, slow: true,
	}
	for _, fault := range append(scripted.Faults(), slow) {
		again, known := transient[fault]
		if !known && fault != scripted.FaultMalformed { // which is no fault of a request: TestMalformedArguments
			t.Errorf("nothing is said of the fault %s", fault)
		}
		for at := range 10 {
			if !known {
				break
			}
			t.Run(fmt.Sprintf("%s-%d", fault, at), func(t *testing.T) {
				t.Parallel()
				f := faultAt{fault: fault, at: at, transient: again, want: want}
				synctest.Test(t, func(t *testing.T) { f.once(t) })
				synctest.Test(t, func(t *testing.T) { f.forEver(t) })
				synctest.Test(t, func(t *testing.T) { f.handled(t) })
			})
		}
	}
}

// faultAt is a fault at one request.
type faultAt struct {
	fault     string
	at        int
	transient bool
	want      outcome
}

func (f faultAt) rig(t *testing.T, more string, times int) (*rig, string) {
	t.Helper()
	h := tenHandlers()
	h["mend"] = func(*this) (any, error) { return "mended", nil }
	h["mended"] = func(t *this) (any, error) { t.data["done"] = "mended"; return nil, nil }
	r := newRig(t, newMemory(), []*machinedef.Definition{failing(t, more)}, h, failingScript(t, f.at, times, f.fault))
	r.tools.infos = []machineengine.ToolInfo{tool("s__safe", true), tool("s__key", false), tool("s__ask", false)}
	return r, r.begin("ten", map[string]any{"task": "x"})
}

// once: repeated where that may help, else paused, and the same outcome in the end.
func (f faultAt) once(t *testing.T) {
	t.Helper()
	r, id := f.rig(t, "", 1)
	s := r.drive(id)
	if !f.transient {
		f.rests(t, r, s, 1)
		if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{}); err != nil {
			t.Fatal(err)
		}
		s = r.drive(id)
	}
	if diff := cmp.Diff(f.want, outcomeOf(s)); diff != "" || len(r.model.requests) != 11 || len(r.tools.calls) != 12 {
		t.Errorf("once: %d requests, %d calls, %s", len(r.model.requests), len(r.tools.calls), diff)
	}
}

// forEver: so many attempts as are allowed, and a pause.
func (f faultAt) forEver(t *testing.T) {
	t.Helper()
	r, id := f.rig(t, `, "max_retries": 2`, 20)
	attempts := 1
	if f.transient {
		attempts = 3
	}
	if f.fault == scripted.FaultContext { // which is repeated with less of the conversation
		attempts = 4
	}
	f.rests(t, r, r.drive(id), attempts)
}

// rests: the run stands where it stood, with the reason, and nothing was done of
// what the failed answers wanted.
func (f faultAt) rests(t *testing.T, r *rig, s *driver.Status, attempts int) {
	t.Helper()
	states := f.want.States[:1+f.at/5]
	tools := toolsBefore()[f.at]
	if s.Status != machineengine.StatusPaused || s.Pause.Fault == nil || s.Pause.Message == "" || s.Output != nil {
		t.Fatalf("it rests at %+v", s)
	}
	if diff := cmp.Diff(states, s.States); diff != "" || len(r.tools.calls) != tools || len(r.model.requests) != f.at+attempts {
		t.Errorf("%d requests, not %d; %d calls, not %d; %s", len(r.model.requests), f.at+attempts, len(r.tools.calls), tools, diff)
	}
}

// toolsBefore counts the calls of tools before each request.
func toolsBefore() []int { return []int{0, 2, 3, 4, 6, 6, 8, 9, 10, 12} }

// handled: the error handler has the word, once.
func (f faultAt) handled(t *testing.T) {
	t.Helper()
	r, id := f.rig(t, `, "max_retries": 1, "error_handler": "mend"`, 20)
	s := r.drive(id)
	if s.Status != machineengine.StatusCompleted || string(s.Output) != `"mended"` || s.States[len(s.States)-1] != "mended" {
		t.Errorf("with an error handler: %+v", s)
	}
}

// TestMalformedArguments has the arguments of a call cut at each request that wants
// tools: nothing is called by them, the agent is told, and the run goes on; where that
// never ends, the budget of rounds pauses it. Of a parsing tool it is an answer that is
// no answer.
func TestMalformedArguments(t *testing.T) {
	t.Parallel()
	for at := range 10 {
		f := faultAt{fault: scripted.FaultMalformed, at: at}
		r, id := f.rig(t, "", 1)
		if s := r.drive(id); s.Status != machineengine.StatusCompleted || len(r.tools.calls) != 12 {
			t.Errorf("at request %d: %+v after %d calls", at, s, len(r.tools.calls))
		}
		r, id = f.rig(t, "", 2*machinedef.DefaultToolCalls)
		s := r.drive(id)
		if p := s.Pause; s.Status != machineengine.StatusPaused || p.Code != machineengine.PauseBudget || p.Budget != "toolCalls" || p.Used != machinedef.DefaultToolCalls {
			t.Errorf("at request %d for ever: %+v, %+v", at, s.Status, p)
		}
		if tools := toolsBefore()[at]; len(r.tools.calls) != tools || len(r.model.requests) > at-at%5+machinedef.DefaultToolCalls+1 {
			t.Errorf("at request %d for ever: %d calls, not %d, in %d requests", at, len(r.tools.calls), tools, len(r.model.requests))
		}
	}
	synctest.Test(t, func(t *testing.T) {
		parsing := `{"worker": {"systemMessage": "Work.", "parsingTools": [{"type": "function", "parsingOnly": true, "function":
			{"name": "tell", "description": "d", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}}]}}`
		script := `[{"tool_calls": [{"name": "tell", "arguments": {"a": "far too long to be cut"}}], "fault": "malformed"},
			{"tool_calls": [{"name": "tell", "arguments": {}}]}, {"tool_calls": [{"name": "tell", "arguments": {"a": "b"}}]}]`
		r := newRig(t, newMemory(), []*machinedef.Definition{define(t, small("", ""), parsing)}, smallHandlers(), script)
		if s := r.drive(r.begin("small", nil)); s.Status != machineengine.StatusCompleted || len(r.model.requests) != 3 {
			t.Errorf("%+v after %d requests", s, len(r.model.requests))
		}
	})
}

// TestBudgetEdges stops each budget exactly where it is used up, not one earlier and
// not one later, keeps what there is, refuses to go on with what is no more than
// that, and goes on with one more for one more. The outcome is that of a run which
// had it all at once.
func TestBudgetEdges(t *testing.T) {
	t.Parallel()
	whole := newTen(t, newMemory())
	want := outcomeOf(whole.drive(whole.begin("ten", map[string]any{"task": "x"})))
	tests := []struct {
		budget string
		limit  func(n int) machineengine.Limits
		// steps is how often it is raised by one until nothing is missing, and used
		// what was used when it stops for the nth time.
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
					r.model.answers = answersOf(t, delayed(t, 1))
				}
				started, err := r.Start(t.Context(), anna, driver.StartRequest{
					Machine: "ten", Inputs: map[string]json.RawMessage{"task": json.RawMessage(`"x"`)}, Limits: tt.limit(1),
				})
				if err != nil {
					t.Fatal(err)
				}
				id := started.RunID
				s := r.drive(id)
				pauses := 0
				for n := 1; s.Status == machineengine.StatusPaused && n < 20; n++ {
					pauses++
					if p := s.Pause; p.Code != machineengine.PauseBudget || p.Budget != tt.budget || p.Used != p.Limit || s.Output != nil {
						t.Fatalf("after %d: %+v", n, s.Pause)
					}
					if tt.used != nil && tt.used(s) != n {
						t.Errorf("with a budget for %d it has used %d", n, tt.used(s))
					}
					for _, less := range []machineengine.Limits{{}, tt.limit(n), tt.limit(n - 1), other(tt.budget)} {
						if _, err := r.Resume(t.Context(), anna, id, less); guideway.ErrorCode(err) != guideway.CodeRefused {
							t.Errorf("it goes on with no more than it has used up: %v", err)
						}
					}
					if again := r.drive(id); again.Seq != s.Seq {
						t.Error("it went on by itself")
					}
					r.open() // another process, as it may be days later
					if _, err := r.Resume(t.Context(), anna, id, tt.limit(n+1)); err != nil {
						t.Fatal(err)
					}
					s = r.drive(id)
				}
				if diff := cmp.Diff(want, outcomeOf(s)); diff != "" || len(r.model.requests) != 10 || len(r.tools.calls) != 12 {
					t.Errorf("%d requests, %d calls, %s", len(r.model.requests), len(r.tools.calls), diff)
				}
				// At the last raise nothing is missing: what is used up to the brim by
				// the last call stops nothing that is still to be done for free.
				if pauses < tt.last-1 || pauses > tt.last {
					t.Errorf("it paused %d times, of %d", pauses, tt.last)
				}
			})
		})
	}
}

// other is more of all budgets but one, of those that are not to be tried.
func other(budget string) machineengine.Limits {
	if budget == "toolCalls" {
		return machineengine.Limits{States: 900}
	}
	return machineengine.Limits{ToolCalls: 900}
}

// TestBudgetWithin bounds a machine within another one by what is left of the
// budget around it; raised, it goes on by the run that everybody knows.
func TestBudgetWithin(t *testing.T) {
	t.Parallel()
	deep := strings.Replace(small(`, "transition_handler": "loop"`, ""), `"small"`, `"deep"`, 1)
	around := strings.Replace(strings.Replace(outer, `"machine": "waiting", "inputs": {"topic": "common_data.what"}`, `"machine": "deep"`, 1),
		`"states": [`, `"budgets": {"calls": 4}, "states": [`, 1)
	r := newRig(t, newMemory(), []*machinedef.Definition{define(t, deep, smallRoles), define(t, around, smallRoles)}, smallHandlers(), `{"rules": [{"content": "again"}]}`)
	id := r.begin("outer", map[string]any{"what": "x"})
	s := r.drive(id)
	if len(r.model.requests) != 4 || s.Child == nil || s.Child.Pause == nil || s.Child.Pause.Budget != "calls" || s.Child.Pause.Limit != 3 {
		t.Fatalf("%d requests: %+v", len(r.model.requests), s)
	}
	if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{Calls: 3}); guideway.ErrorCode(err) != guideway.CodeRefused {
		t.Errorf("it goes on without more: %v", err)
	}
	if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{Calls: 5}); err != nil {
		t.Fatal(err)
	}
	if s = r.drive(id); len(r.model.requests) != 6 || s.Child.Pause == nil {
		t.Errorf("raised by 2: %d requests, %+v", len(r.model.requests), s)
	}
}

// delayed is the script of the model with every answer so many seconds late.
func delayed(t *testing.T, seconds int) string {
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
