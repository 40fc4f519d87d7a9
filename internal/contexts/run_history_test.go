package contexts

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// eventList is a run service with the events of one run.
type eventList struct {
	Runs
	events []run.Event
	read   int
}

func (l *eventList) Events(_ context.Context, _ run.Caller, _ run.Ref, after int64, limit int) ([]run.Event, error) {
	page := l.events[after:min(int(after)+limit, len(l.events))]
	l.read += len(page)
	return page, nil
}

func (l *eventList) runDetails() *run.Details {
	last := l.events[len(l.events)-1]
	return &run.Details{Record: run.Record{ID: "r_a", Seq: last.Seq, Head: last.MAC}}
}

// completedSteps returns events whose MACs begin with a mark.
func completedSteps(t *testing.T, n int, mark string) (events []run.Event) {
	t.Helper()
	for i := range n {
		data, err := json.Marshal(engine.Event{Kind: engine.EventStepCompleted, Step: "work", Output: fmt.Sprintf("Part %d of %s was moved.", i, mark)})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, run.Event{Seq: int64(i) + 1, Kind: string(engine.EventStepCompleted), Data: data, MAC: fmt.Append(nil, mark, i)})
	}
	return events
}

// TestHistoryOfOtherEvents checks that a process with a cached history reads only later
// events, that it reads all events again if those it has read were replaced, and that the
// history then equals the history of a new process.
func TestHistoryOfOtherEvents(t *testing.T) {
	t.Parallel()
	first, restored := completedSteps(t, 600, "first"), completedSteps(t, 600, "other")
	list := &eventList{}
	s := &Service{o: Options{Runs: list}}
	caller := run.Caller{Principal: guideway.Principal{User: "ada"}}
	for _, stage := range []struct {
		name   string
		events []run.Event
		most   int
	}{
		{"the first read", first[:400], 400 + 400/eventPage + 1},
		{"more events", first, 200 + 200/eventPage + 1},
		{"no more events", first, 0},
		{"the same number of different events", restored, 600 + 600/eventPage + 1},
		{"different events before the last one", append(slices.Clone(restored[:500]), first[500:]...), 700},
	} {
		list.events, list.read = stage.events, 0
		got, err := s.loadHistory(t.Context(), caller, list.runDetails())
		if err != nil {
			t.Fatal(err)
		}
		if list.read > stage.most {
			t.Errorf("%s: %d events were read, want at most %d", stage.name, list.read, stage.most)
		}
		want, err := (&Service{o: s.o}).loadHistory(t.Context(), caller, list.runDetails())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)); d != "" {
			t.Errorf("%s (-new process +got):\n%s", stage.name, d)
		}
	}
}
