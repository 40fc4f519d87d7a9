package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// newNested returns a machine "outer" that runs the machine "small". The parameters are
// added to the state of outer that runs small, and to the first state of small.
func newNested(t *testing.T, more, smallMore, script string) *rig {
	t.Helper()
	around := strings.Replace(outer, `"machine": "waiting", "inputs": {"topic": "common_data.what"}, "output": "inner"}`, `"machine": "small", "output": "inner"}`+more, 1)
	around = strings.Replace(around, `{"name": "stop"}`, `{"name": "mended", "post_handler": "mendedOuter"}, {"name": "stop"}`, 1)
	h := smallHandlers()
	h["mendOuter"] = func(s *this) (any, error) {
		s.data["inner"] = s.Error.Kind + ": " + s.Error.Message
		return "mended", nil
	}
	h["mendedOuter"] = func(*this) (any, error) { return nil, nil }
	return newRig(t, newMemory(), []*machinedef.Definition{
		parseMachine(t, smallMachine(smallMore, ""), smallRoles), parseMachine(t, around, smallRoles),
	}, h, script, func(o *driver.Options) { o.Owner = "test" })
}

// resumeRun resumes a run by its id and drives it.
func (r *rig) resumeRun(id string) *driver.Status {
	r.t.Helper()
	if _, err := r.Resume(r.t.Context(), anna, id, machineengine.Limits{}); err != nil {
		r.t.Fatalf("resume %s: %v", id, err)
	}
	return r.driveRun(id)
}

// TestResumeAfterSubMachineEnded checks that a run resumes if its sub-machine ended while
// the run was not driven: the sub-machine was resumed by its own id, was cancelled, or
// ended right before a crash.
func TestResumeAfterSubMachineEnded(t *testing.T) {
	t.Parallel()
	script := `[{"content": "one"}, {"fault": "401"}, {"content": "two"}, {"content": "three"}, {"content": "four"}]`
	t.Run("completed", func(t *testing.T) {
		t.Parallel()
		r := newNested(t, "", "", script)
		id := r.startRun("outer", map[string]any{"what": "x"})
		s := r.driveRun(id)
		if s.Status != machineengine.StatusWaiting || s.Child == nil || s.Child.Pause == nil {
			t.Fatalf("%+v", s)
		}
		if inner := r.resumeRun(s.Child.RunID); inner.Status != machineengine.StatusCompleted {
			t.Fatalf("the sub-machine is %s", inner.Status)
		}
		if s = r.resumeRun(id); s.Status != machineengine.StatusCompleted || string(s.Output) != `"two"` {
			t.Errorf("%+v", s)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		r := newNested(t, "", "", script)
		id := r.startRun("outer", map[string]any{"what": "x"})
		s := r.driveRun(id)
		if _, err := r.Cancel(t.Context(), anna, s.Child.RunID, "no longer needed"); err != nil {
			t.Fatal(err)
		}
		if s = r.resumeRun(id); s.Status != machineengine.StatusPaused || !strings.Contains(s.Pause.Message, "no longer needed") {
			t.Fatalf("%+v", s)
		}
		// After another resume, the run starts the sub-machine again.
		if s = r.resumeRun(id); s.Status != machineengine.StatusCompleted || string(s.Output) != `"two"` {
			t.Errorf("%+v", s)
		}
	})
	t.Run("crash", func(t *testing.T) {
		t.Parallel()
		closed := 0
		for dies := 1; ; dies++ {
			r := newNested(t, "", "", `[{"content": "one"}, {"content": "two"}, {"content": "three"}]`)
			journal := r.journal.(*memory)
			id := r.startRun("outer", map[string]any{"what": "x"})
			journal.dies = journal.writes + dies
			err := r.Drive(t.Context(), anna.User, id, nil)
			if err == nil {
				break
			}
			journal.revive()
			r.reopen()
			if s := r.runStatus(id); s.Child != nil && s.Child.Status.Ended() {
				closed++
			}
			if s := r.resumeRun(id); s.Status != machineengine.StatusCompleted || string(s.Output) != `"two"` {
				t.Errorf("killed at write %d: %+v", dies, s)
			}
		}
		if closed == 0 {
			t.Error("no crash occurred between the end of the sub-machine and the record of its result")
		}
	})
}

// TestPausedSubMachineIsResumedByItsParent checks that the next call of a run whose
// sub-machine is paused names the run, and that resuming the run also resumes the
// sub-machine.
func TestPausedSubMachineIsResumedByItsParent(t *testing.T) {
	t.Parallel()
	r := newNested(t, "", "", `[{"content": "one"}, {"fault": "401"}, {"content": "two"}, {"content": "three"}]`)
	id := r.startRun("outer", map[string]any{"what": "x"})
	if s := r.driveRun(id); s.Next == nil || s.Next.Arguments["runId"] != id {
		t.Errorf("next: %+v", s.Next)
	}
	if s := r.resumeRun(id); s.Status != machineengine.StatusCompleted || string(s.Output) != `"two"` {
		t.Errorf("%+v", s)
	}
}

// TestStatusIncludesSubMachine checks that the status of a run includes the usage of its
// sub-machine in progress, and the reason why the sub-machine does not continue.
func TestStatusIncludesSubMachine(t *testing.T) {
	t.Parallel()
	usage := `, "usage": {"input": 10, "output": 5}`
	r := newNested(t, "", "", `[{"content": "one"`+usage+`}, {"fault": "401"}, {"content": "two"`+usage+`}]`)
	r.model.price = 1_000_000
	s := r.driveRun(r.startRun("outer", map[string]any{"what": "x"}))
	if s.Usage.Calls != 2 || s.Usage.Input != 10 || s.Cost != s.Child.Cost+15e-6 || s.Usage.Calls != s.Child.Usage.Calls+1 {
		t.Errorf("usage %+v, of the sub-machine %+v", s.Usage, s.Child.Usage)
	}
	if !strings.Contains(s.Reason, s.Child.RunID) || !strings.Contains(s.Reason, s.Child.Pause.Message) {
		t.Errorf("the reason is %q, that of the sub-machine %q", s.Reason, s.Child.Pause.Message)
	}
	if _, err := r.Cancel(t.Context(), anna, s.RunID, "no longer needed"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{s.RunID, s.Child.RunID} {
		if ended := r.runStatus(id); ended.Reason != "no longer needed" {
			t.Errorf("%s: %q", ended.Machine, ended.Reason)
		}
	}
}

// TestEndOfSubMachineContinuesRun checks that a server continues a run when a person resumes
// or cancels its sub-machine, and that a fork of its sub-machine does not concern the run.
func TestEndOfSubMachineContinuesRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(context.Context, *driver.Background, string) (*driver.Status, error)
		want machineengine.Status
		text string
	}{
		{"resume", func(ctx context.Context, b *driver.Background, id string) (*driver.Status, error) {
			return b.Resume(ctx, anna, id, machineengine.Limits{})
		}, machineengine.StatusCompleted, `"two"`},
		{"cancel", func(ctx context.Context, b *driver.Background, id string) (*driver.Status, error) {
			return b.Cancel(ctx, anna, id, "no longer needed")
		}, machineengine.StatusPaused, "no longer needed"},
		{"fork", func(ctx context.Context, b *driver.Background, id string) (*driver.Status, error) {
			return b.Fork(ctx, anna, id, 0)
		}, machineengine.StatusWaiting, "is paused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newNested(t, "", "", `[{"content": "one"}, {"fault": "401"}, {"content": "two"}, {"content": "three"}]`)
				schedules(&r.opts)
				r.reopen()
				id := r.startRun("outer", map[string]any{"what": "x"})
				inner := r.driveRun(id).Child.RunID
				b := driver.NewBackground(r.Service, 2, nil)
				defer b.Close()
				if _, err := tt.end(t.Context(), b, inner); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				s := r.runStatus(id)
				text := string(s.Output) + s.Reason
				if s.Pause != nil {
					text += s.Pause.Message
				}
				if s.Status != tt.want || !strings.Contains(text, tt.text) {
					t.Errorf("%s, %s", s.Status, text)
				}
			})
		})
	}
}

// TestErrorHandlerOfSubMachine checks that the error handler of a state runs if its
// sub-machine fails permanently, and that both runs end. The result is the same if the
// process is killed at any write.
func TestErrorHandlerOfSubMachine(t *testing.T) {
	t.Parallel()
	const more = `, "error_handler": "mendOuter"`
	for name, tt := range map[string]struct{ inner, script, want string }{
		"model":   {"", `[{"content": "one"}, {"fault": "401"}, {"content": "two"}]`, "401"},
		"handler": {`, "pre_handler": "bad"`, `[{"content": "one"}, {"content": "two"}]`, "it broke"},
		"state":   {`, "transition_handler": "lost"`, `[{"content": "one"}, {"content": "two"}, {"content": "three"}]`, "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for dies := 0; ; dies++ {
				r := newNested(t, more, tt.inner, tt.script)
				journal := r.journal.(*memory)
				id := r.startRun("outer", map[string]any{"what": "x"})
				if dies > 0 {
					journal.dies = journal.writes + dies
				}
				err := r.Drive(t.Context(), anna.User, id, nil)
				if dies > 0 && err == nil {
					break
				}
				journal.revive()
				r.reopen()
				s := r.runStatus(id)
				if err != nil {
					s = r.driveRun(id)
				}
				var output string
				_ = json.Unmarshal(s.Output, &output)
				if s.Status != machineengine.StatusCompleted || !strings.HasPrefix(output, machineengine.ErrorKindSubMachine) || !strings.Contains(output, tt.want) {
					t.Fatalf("killed at write %d: %s, output %q, pause %+v", dies, s.Status, output, s.Pause)
				}
				for _, rec := range journal.records {
					if inner := r.runStatus(rec.ID); !inner.Status.Ended() {
						t.Errorf("killed at write %d: the run of %s is %s", dies, inner.Machine, inner.Status)
					}
				}
			}
		})
	}
}

// TestPausedSubMachineIsNotAnError checks that the run waits for a person if the budget of
// its sub-machine is exhausted, even if the state has an error handler.
func TestPausedSubMachineIsNotAnError(t *testing.T) {
	t.Parallel()
	r := newNested(t, `, "error_handler": "mendOuter"`, `, "transition_handler": "loop"`, `{"rules": [{"content": "again"}]}`)
	s, err := r.Start(t.Context(), anna, driver.StartRequest{
		Machine: "outer", Inputs: map[string]json.RawMessage{"what": json.RawMessage(`"x"`)}, Limits: machineengine.Limits{Calls: 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s = r.driveRun(s.RunID); s.Status != machineengine.StatusWaiting || s.Child == nil || s.Child.Pause == nil || s.Child.Pause.Code != machineengine.PauseBudget {
		t.Errorf("%+v", s)
	}
}

// TestEditedRunIsNotDriven checks that a run is neither resumed nor driven after an edit of
// its events or its record.
func TestEditedRunIsNotDriven(t *testing.T) {
	t.Parallel()
	const script = `[{"content": "one"}, {"fault": "401"}, {"content": "two"}]`
	for name, edit := range map[string]func(m *memory, id string){
		"none": func(*memory, string) {},
		"an event": func(m *memory, id string) {
			e := &m.events[id][len(m.events[id])-1]
			e.Data = json.RawMessage(strings.Replace(string(e.Data), "401", "402", 1) + " ")
		},
		"each event": func(m *memory, id string) {
			for i := range m.events[id] {
				m.events[id][i].At = m.events[id][i].At.Add(time.Second)
			}
		},
		"the head in the record is changed": func(m *memory, id string) {
			rec := m.records[id]
			rec.Head = append([]byte{}, rec.Head...)
			rec.Head[0] ^= 1
			m.records[id] = rec
		},
		"the record is rolled back": func(m *memory, id string) {
			rec := m.records[id]
			rec.Seq--
			m.records[id] = rec
		},
		"the record and its events are rolled back": func(m *memory, id string) {
			rec := m.records[id]
			rec.Seq--
			m.records[id], m.events[id] = rec, m.events[id][:rec.Seq]
		},
		"the definition in the record is changed": func(m *memory, id string) {
			rec := m.records[id]
			rec.Hash = m.records[rec.Parent].Hash
			m.records[id] = rec
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newNested(t, "", "", script)
			id := r.startRun("outer", map[string]any{"what": "x"})
			inner := r.driveRun(id).Child.RunID
			edit(r.journal.(*memory), inner)
			r.reopen()
			requests := len(r.model.requests)
			_, resumed := r.Resume(t.Context(), anna, inner, machineengine.Limits{})
			driven := r.Drive(t.Context(), anna.User, inner, nil)
			if name == "none" {
				if resumed != nil || driven != nil {
					t.Errorf("unedited: %v, %v", resumed, driven)
				}
				return
			}
			for _, err := range []error{resumed, driven} {
				if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(fmt.Sprint(err), "cannot be trusted") {
					t.Errorf("got %v", err)
				}
			}
			if len(r.model.requests) != requests {
				t.Error("the model was called")
			}
		})
	}
}

// TestInputTypes checks that values of the declared type are accepted, and that null and
// values of other types are refused, at the start and as the answer to a question.
func TestInputTypes(t *testing.T) {
	t.Parallel()
	values := map[machinedef.Type]string{
		machinedef.TypeString: `"a"`, machinedef.TypeNumber: `1.5`, machinedef.TypeBoolean: `true`, machinedef.TypeObject: `{"a":null}`, machinedef.TypeArray: `[null]`,
	}
	for kind := range values {
		first := strings.Replace(waiting, `"name": "topic", "type": "string"`, fmt.Sprintf(`"name": "topic", "type": %q`, kind), 1)
		later := strings.Replace(first, `"type": "string", "description": "Go on?", "options": ["yes", "no"]`, fmt.Sprintf(`"type": %q, "description": "Go on?"`, kind), 1)
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, later, smallRoles)}, handlers{}, `{"rules": [{"content": "one"}]}`)
		person := anna
		person.Via = run.ViaTerminal
		id := ""
		start := func(value string) error {
			s, err := r.Start(t.Context(), anna, driver.StartRequest{Machine: "waiting", Inputs: map[string]json.RawMessage{"topic": json.RawMessage(value)}})
			if err == nil {
				id = s.RunID
			}
			return err
		}
		if err := start(values[kind]); err != nil {
			t.Fatalf("%s: %s is refused: %v", kind, values[kind], err)
		}
		if s := r.driveRun(id); s.Asks == nil || s.Asks.Type != kind {
			t.Fatalf("%s: %+v", kind, s)
		}
		answer := func(value string) error {
			_, err := r.answerInput(person, id, json.RawMessage(value))
			return err
		}
		for name, give := range map[string]func(string) error{"start": start, "input": answer} {
			bad := []string{`null`, ` null `}
			for other, value := range values {
				if other != kind {
					bad = append(bad, value)
				}
			}
			if kind != machinedef.TypeString {
				bad = append(bad, `"null"`, `""`)
			}
			for _, value := range bad {
				if err := give(value); guideway.ErrorCode(err) != guideway.CodeInvalid {
					t.Errorf("%s of %s: %s is accepted: %v", name, kind, value, err)
				}
			}
		}
		if err := answer(values[kind]); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
