package driver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
)

const (
	pinnedRoles   = `{"worker": {"systemMessage": "Work.", "includedTools": ["s__*"]}}`
	pinnedMachine = `{
  "workflow_name": "pinned", "description": "Works twice.", "inputs": [],
  "output": {"name": "answer", "type": "string", "description": "The answer."},
  "contexts": [{"name": "talk"}], "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "states": [{"name": "start", "agent": "worker", "next_state": "again"}, {"name": "again", "agent": "worker"}, {"name": "stop"}]
}`
	nestingMachine = `{
  "workflow_name": "nesting", "description": "Runs pinned.", "inputs": [],
  "output": {"name": "answer", "type": "string", "description": "The answer."}, "contexts": [{"name": "talk"}], "agents": [{"agent_role": "idle", "context": "talk", "role": "assistant"}],
  "states": [{"name": "start", "sub_machine": {"machine": "pinned", "output": "answer"}}, {"name": "stop"}]
}`
)

// pinnedTool returns a tool of an upstream with its hash and the hash of a hook graph.
func pinnedTool(name, hash, hook string) machineengine.ToolInfo {
	t := newTool(name, true)
	if t.Hash = hash; hook != "" {
		t.Hooks = map[string]string{"guard": hook}
	}
	return t
}

// person is anna at a terminal.
func person() run.Caller {
	c := anna
	c.Via = run.ViaTerminal
	return c
}

// newPinned returns a rig with the machines pinned and nesting, whose tools are s__get and
// s__put, and a Background on it.
func newPinned(t *testing.T, journal *memory, change ...func(*driver.Options)) (*rig, *driver.Background) {
	t.Helper()
	r := newRig(t, journal, []*machinedef.Definition{parseMachine(t, pinnedMachine, pinnedRoles), parseMachine(t, nestingMachine, `{"idle": {"systemMessage": "Wait."}}`)}, nil,
		`{"rules": [{"content": "fine"}]}`, append([]func(*driver.Options){schedules}, change...)...)
	r.tools.offer(pinnedTool("s__get", "get-1", "guard-1"), pinnedTool("s__put", "put-1", ""))
	b := driver.NewBackground(r.Service, 2, nil)
	t.Cleanup(b.Close)
	return r, b
}

// startHeld starts a run whose job no worker has executed yet.
func (r *rig) startHeld(t *testing.T, name string) string {
	t.Helper()
	s, err := r.Start(t.Context(), anna, driver.StartRequest{Machine: name})
	if err != nil {
		t.Fatal(err)
	}
	return s.RunID
}

// kinds returns the kinds of the events of a run.
func (r *rig) kinds(id string) (list []string) {
	r.t.Helper()
	events, err := r.Events(r.t.Context(), anna, id)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events {
		list = append(list, e.Kind)
	}
	return list
}

// TestPinsRefuse checks that a worker whose tools or hook graphs differ from those at the
// start of a run leaves the run alone, reports the difference, and continues the run after
// they are restored, without a command.
func TestPinsRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tools []machineengine.ToolInfo
		want  string
	}{
		"changed tool": {[]machineengine.ToolInfo{pinnedTool("s__get", "get-2", "guard-1"), pinnedTool("s__put", "put-1", "")}, "the tool s__get has changed from get-1 to get-2"},
		"removed tool": {[]machineengine.ToolInfo{pinnedTool("s__get", "get-1", "guard-1")}, "the tool s__put (put-1) is missing"},
		"no tools":     {nil, "the tool s__put (put-1) is missing; the tool s__get (get-1) is missing"},
		"changed hook": {[]machineengine.ToolInfo{pinnedTool("s__get", "get-1", "guard-2"), pinnedTool("s__put", "put-1", "")}, "the hook graph guard has changed from guard-1 to guard-2"},
		"removed hook": {[]machineengine.ToolInfo{pinnedTool("s__get", "get-1", ""), pinnedTool("s__put", "put-1", "")}, "the hook graph guard (guard-1) is missing"},
	} {
		for _, machine := range []string{"pinned", "nesting"} {
			t.Run(name+"/"+machine, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					r, b := newPinned(t, newMemory(), func(o *driver.Options) {
						o.Models.(*model).before = func(llm.Request) { <-time.After(time.Second) }
					})
					had := r.tools.infos
					id := r.startHeld(t, machine)
					synctest.Wait() // the first request is in progress
					r.tools.offer(c.tools...)
					<-time.After(10 * time.Minute)
					s := r.runStatus(id)
					if machine == "nesting" {
						if s.Status != machineengine.StatusWaiting || !strings.Contains(s.Reason, c.want) {
							t.Errorf("the outer run is %+v", s)
						}
						s = s.Child
					}
					if s.Status != machineengine.StatusPaused || s.Pause.Code != machineengine.PauseTools || !strings.HasSuffix(s.Pause.Message, ": "+c.want) || !strings.Contains(s.Pause.Fix, "--accept-tools") {
						t.Errorf("the run is %s: %+v", s.Status, s.Pause)
					}
					if len(r.model.requests) != 1 || s.State != "again" {
						t.Errorf("%d requests, in the state %s", len(r.model.requests), s.State)
					}
					var refusal *run.Refusal
					if _, err := b.Resume(t.Context(), anna, id, machineengine.Limits{}); !errors.As(err, &refusal) || refusal.Rule != driver.RuleTools {
						t.Errorf("resumed: %v", err)
					}
					all, inner := r.kinds(id), r.kinds(s.RunID)
					<-time.After(time.Hour)
					if now := append(r.kinds(id), r.kinds(s.RunID)...); len(now) != len(all)+len(inner) {
						t.Errorf("the run has more events after an hour: %v", now)
					}
					r.tools.offer(had...)
					<-time.After(2 * time.Minute)
					if s := r.runStatus(id); s.Status != machineengine.StatusCompleted || len(r.model.requests) != 2 {
						t.Errorf("after the tools are back, the run is %+v after %d requests", s, len(r.model.requests))
					}
				})
			})
		}
	}
}

// TestPinsAllowAdditions checks that a tool and a hook graph that appear after the start of
// a run do not stop the run, and that its agents are not offered the tool.
func TestPinsAllowAdditions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := newPinned(t, newMemory(), func(o *driver.Options) {
			o.Models.(*model).before = func(llm.Request) { <-time.After(time.Second) }
		})
		own := newTool("s__own", true) // a tool of this program is not pinned
		id := r.startHeld(t, "pinned")
		synctest.Wait()
		put := pinnedTool("s__put", "put-1", "")
		put.Hooks = map[string]string{"added": "added-1"}
		r.tools.offer(pinnedTool("s__get", "get-1", "guard-1"), put, pinnedTool("s__new", "new-1", ""), own)
		<-time.After(time.Minute)
		if s := r.runStatus(id); s.Status != machineengine.StatusCompleted {
			t.Fatalf("%+v", s)
		}
		var names []string
		for _, tool := range r.model.requests[1].Tools {
			names = append(names, tool.Name)
		}
		if slices.Sort(names); strings.Join(names, " ") != "s__get s__own s__put" {
			t.Errorf("the second request offers %v", names)
		}
	})
}

// TestPinsSlowUpstream checks that a worker whose upstream is not connected yet continues the
// run a moment later, without a pause.
func TestPinsSlowUpstream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := newMemory()
		r, first := newPinned(t, journal)
		first.Close()
		had := r.tools.infos
		id := r.startHeld(t, "pinned")
		r.tools.offer()
		r.reopen()
		b := driver.NewBackground(r.Service, 2, nil)
		defer b.Close()
		synctest.Wait()
		r.tools.offer(had...)
		<-time.After(time.Minute)
		if s := r.runStatus(id); s.Status != machineengine.StatusCompleted || slices.Contains(r.kinds(id), string(machineengine.KindPaused)) {
			t.Errorf("%+v %v", s, r.kinds(id))
		}
	})
}

// TestPinsOtherWorker checks that another worker, which has the tools of a run, continues
// it, and that the worker without them does not drive it.
func TestPinsOtherWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := newMemory()
		r, lacks := newPinned(t, journal)
		lacks.Close()
		id := r.startHeld(t, "pinned")
		r.tools.offer(pinnedTool("s__get", "get-2", ""))
		r.reopen()
		lacks = driver.NewBackground(r.Service, 2, nil)
		defer lacks.Close()
		<-time.After(20 * time.Second)
		if s := r.runStatus(id); s.Status != machineengine.StatusPaused || slices.Contains(r.kinds(id), driver.KindLeaseTaken) {
			t.Fatalf("%+v %v", s, r.kinds(id))
		}
		other, _ := newPinned(t, journal)
		<-time.After(5 * time.Minute)
		if s := r.runStatus(id); s.Status != machineengine.StatusCompleted || len(r.model.requests) != 0 || len(other.model.requests) != 2 {
			t.Errorf("%+v: %d and %d requests", s, len(r.model.requests), len(other.model.requests))
		}
	})
}

// TestPinsAccept checks that only a person can accept changed tools for a run, that the
// acceptance is an event, and that an agent's fork does not inherit it.
func TestPinsAccept(t *testing.T) {
	t.Parallel()
	for _, machine := range []string{"pinned", "nesting"} {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, b := newPinned(t, newMemory(), func(o *driver.Options) {
					o.Models.(*model).before = func(llm.Request) { <-time.After(time.Second) }
				})
				id := r.startHeld(t, machine)
				synctest.Wait()
				r.tools.offer(pinnedTool("s__get", "get-2", ""))
				<-time.After(time.Minute)
				var refusal *run.Refusal
				if _, err := b.AcceptTools(t.Context(), anna, id); !errors.As(err, &refusal) || refusal.Rule != driver.RulePerson || refusal.Next != nil {
					t.Errorf("an agent accepted the tools: %v", err)
				}
				if _, err := b.AcceptTools(t.Context(), person(), id); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				s := r.runStatus(id)
				if s.Status != machineengine.StatusCompleted || !slices.Contains(r.kinds(id), string(machineengine.KindToolsAccepted)) {
					t.Errorf("%+v %v", s, r.kinds(id))
				}
				if last := r.model.requests[1]; len(last.Tools) != 1 || last.Tools[0].Name != "s__get" {
					t.Errorf("the tools after the acceptance are %+v", last.Tools)
				}
				if _, err := b.AcceptTools(t.Context(), person(), id); !errors.As(err, &refusal) || refusal.Rule != driver.RuleEnded {
					t.Errorf("accepted the tools of an ended run: %v", err)
				}
				if machine == "nesting" {
					return
				}
				f, err := b.Fork(t.Context(), anna, id, 0)
				if err != nil || slices.Contains(r.kinds(f.RunID), string(machineengine.KindToolsAccepted)) {
					t.Errorf("the fork of an agent: %v", err)
				}
			})
		})
	}
}

// TestPinsAttended checks that a command gets the reason why it cannot drive a run, and that
// the run is not changed.
func TestPinsAttended(t *testing.T) {
	t.Parallel()
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, pinnedMachine, pinnedRoles)}, nil, `{"rules": [{"content": "fine"}]}`)
	r.tools.offer(pinnedTool("s__get", "get-1", ""))
	id := r.startRun("pinned", nil)
	r.tools.offer(pinnedTool("s__get", "get-2", ""))
	var refusal *run.Refusal
	if err := r.Drive(t.Context(), anna.User, id, nil); !errors.As(err, &refusal) || refusal.Rule != driver.RuleTools {
		t.Errorf("driven: %v", err)
	}
	if _, err := r.AcceptTools(t.Context(), person(), id); err != nil {
		t.Fatal(err)
	}
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted {
		t.Errorf("%+v", s)
	}
}

// brokenJournal is a journal whose runs cannot be read while broken is closed or a time has
// not come.
type brokenJournal struct {
	*memory
	until time.Time
	// hold, if set, is called before each read of a run.
	hold func(context.Context) error
}

func (j *brokenJournal) Run(ctx context.Context, id string) (run.Record, error) {
	if j.hold != nil {
		if err := j.hold(ctx); err != nil {
			return run.Record{}, err
		}
	}
	if time.Now().Before(j.until) {
		return run.Record{}, guideway.Errorf(guideway.CodeUnavailable, "the database does not answer")
	}
	return j.memory.Run(ctx, id)
}

// TestJobSurvives checks that the job of a run is executed again if the store is not
// available before the lease is taken, or if the process ends at that time.
func TestJobSurvives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := newMemory()
		r, first := newPinned(t, journal)
		first.Close()
		id := r.startHeld(t, "pinned")
		broken := &brokenJournal{memory: journal, until: time.Now().Add(time.Minute)}
		r.opts.Journal = broken
		r.reopen()
		b := driver.NewBackground(r.Service, 2, nil)
		<-time.After(3 * time.Minute)
		b.Close()
		if s := r.runStatus(id); s.Status != machineengine.StatusCompleted {
			t.Errorf("after an outage of a minute: %+v", s)
		}
		id = r.startHeld(t, "pinned")
		reached := make(chan struct{})
		broken.hold = func(ctx context.Context) error {
			close(reached)
			<-ctx.Done()
			return ctx.Err()
		}
		r.reopen()
		b = driver.NewBackground(r.Service, 2, nil)
		<-reached
		b.Close()
		broken.hold = nil
		r.reopen()
		b = driver.NewBackground(r.Service, 2, nil)
		<-time.After(time.Minute)
		b.Close()
		if s := r.runStatus(id); s.Status != machineengine.StatusCompleted {
			t.Errorf("after the end of a process before the lease: %+v", s)
		}
	})
}
