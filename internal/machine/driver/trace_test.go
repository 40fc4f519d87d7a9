package driver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
)

// traces is a Tracer that records each activity with its parents and its end.
type traces struct {
	begun []string
	ended map[string]int
	open  int
}

type placeKey struct{}

func (t *traces) Begin(ctx context.Context, a driver.Activity) (context.Context, func(driver.ActivityResult)) {
	name := string(a.Kind) + ":"
	switch a.Kind {
	case driver.ActivityRun:
		name += a.Machine
	case driver.ActivityState:
		name += a.State
	case driver.ActivityModel:
		name += fmt.Sprint(a.Attempt)
	case driver.ActivityTool:
		name += a.Tool.Name
	}
	above, _ := ctx.Value(placeKey{}).(string)
	place := above + "/" + name
	t.begun = append(t.begun, place)
	t.open++
	return context.WithValue(ctx, placeKey{}, place), func(e driver.ActivityResult) {
		t.open--
		end := string(a.Kind) + " " + string(e.Status)
		if e.Pause != nil {
			end += " " + e.Pause.Code
		}
		if e.Err != nil {
			end += " failed"
		}
		t.ended[end]++
	}
}

// TestTraces tests the nesting of activities: a sub-machine is within its state, and a
// failed request is an activity. Every activity ends, also if the run pauses or waits.
func TestTraces(t *testing.T) {
	t.Parallel()
	told := &traces{ended: map[string]int{}}
	traced := func(o *driver.Options) { o.Tracer = told }
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, waiting, smallRoles), parseMachine(t, outer, smallRoles)}, handlers{},
		`[{"content": "one"}, {"content": "two"}, {"content": "three"}]`, traced)
	r.driveRun(r.startRun("outer", map[string]any{"what": "the plan"}))
	want := []string{
		"/run:outer", "/run:outer/state:start", "/run:outer/state:start/model:1", "/run:outer/state:deep", "/run:outer/state:deep/run:waiting",
		"/run:outer/state:deep/run:waiting/state:start", "/run:outer/state:deep/run:waiting/state:start/model:1", "/run:outer/state:deep/run:waiting/state:ask",
	}
	if diff := cmp.Diff(want, told.begun); diff != "" {
		t.Error(diff)
	}
	if told.open != 0 || told.ended["run waiting"] != 1 || told.ended["model "] != 2 {
		t.Errorf("%d spans are open, the ended ones are %v", told.open, told.ended)
	}
	*told = traces{ended: map[string]int{}}
	r = newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(), `[{"content": "no", "fault": "401"}]`, traced)
	r.driveRun(r.startRun("small", nil))
	if told.open != 0 || told.ended["model  failed"] != 1 || told.ended["run paused auth"] != 1 || told.ended["state paused auth"] != 1 {
		t.Errorf("%d spans are open, the ended ones are %v", told.open, told.ended)
	}
}
