//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// journey is the life of one run under several workers, with the person who looks
// after it.
type journey struct {
	t       *testing.T
	outside *outside
	place   place
	task    string
	id      string
	// begun is how many calls a halted worker may still make: those that it had
	// decided on, and let go of, when it was halted.
	begun int
	// deaths counts the workers that have ended before the run had.
	deaths int
	// points is how many it has come by in all of its lives.
	points int
	// halted says that it stands at its point in a worker that is there, done that
	// it is at its end.
	halted, done bool
	// end is where the run stands at its end, events is what it has had.
	end    reply
	events []run.Event
}

// doom is where a life of a run ends: at a point, 0 for none, and whether the worker
// ends itself there or the run alone halts.
type doom struct {
	point int
	kills bool
}

// live has a worker lead the run as far as it comes: to its end, or to where it
// halts. A worker that died is no error.
func (j *journey) live(w *worker, d doom) error {
	first := func(o order) order {
		o.Task, o.Point, o.Kills = j.task, d.point, d.kills
		return o
	}
	if r, err := w.Opened(); err != nil || !r.OK() {
		return j.died(err, r)
	}
	if j.id == "" {
		r, err := w.Do(first(order{Do: opStart}))
		if err != nil || r.Halted || !r.OK() {
			return j.died(err, r)
		}
		j.id = r.Run
	}
	for {
		r, err := w.Do(first(order{Do: opDrive, Run: j.id}))
		if err != nil || r.Halted || !r.OK() {
			return j.died(err, r)
		}
		if r.Status.Ended() {
			return j.read(w, r)
		}
		next, err := j.decide(r)
		if err != nil {
			return err
		}
		if r, err = w.Do(next); err != nil || r.Halted || !r.OK() {
			return j.died(err, r)
		}
	}
}

// read reads a run that has ended.
func (j *journey) read(w *worker, end reply) error {
	r, err := w.Do(order{Do: opEvents, Run: j.id, Task: j.task})
	if err != nil || !r.OK() {
		return j.died(err, r)
	}
	j.end, j.events = end, r.Events
	if r, err = w.Do(order{Do: opVerify, Run: j.id, Task: j.task}); err != nil || !r.OK() {
		return j.died(err, r)
	}
	if len(r.Report.Faults) > 0 {
		return fmt.Errorf("verify finds faults where there are none: %+v", r.Report.Faults)
	}
	j.done = true
	return nil
}

// died is the end of a life: the run's point, the worker's death, or an error that it
// should not have had.
func (j *journey) died(err error, r reply) error {
	if err == nil && !r.Halted {
		return fmt.Errorf("%s: %s", r.Code, r.Message)
	}
	j.deaths++
	j.points += r.Points
	j.halted = r.Halted
	return nil
}

// decide is what the person orders for a run that rests: of a tool that must not be
// repeated they look whether it has run; to anything else they say go on.
func (j *journey) decide(r reply) (order, error) {
	p := r.Pause
	switch {
	case r.Status != machineengine.StatusPaused || p.Code != machineengine.ErrorKindUnknownOutcome:
		return order{}, fmt.Errorf("the run rests as %s: %+v", r.Status, p)
	case p.Tool == nil:
		return order{Do: opResume, Run: j.id, Task: j.task}, nil
	case p.Tool.Name != "s__ask":
		if p.Tool.Attempt < 5 {
			return order{}, fmt.Errorf("a person is asked about %s after %d attempts", p.Tool.Name, p.Tool.Attempt)
		}
		return order{Do: opDecide, Run: j.id, Task: j.task, Decision: machineengine.DecideRetry}, nil
	case j.outside.ran(j.id, p.Tool.Key) > 0:
		return order{Do: opDecide, Run: j.id, Task: j.task, Decision: machineengine.DecideDone, Result: resultOf(*p.Tool)}, nil
	}
	return order{Do: opDecide, Run: j.id, Task: j.task, Decision: machineengine.DecideRetry}, nil
}

// judge compares a run that has ended with what was asked outside: it has the
// output of every run, and nothing was asked again once its answer was kept.
func (j *journey) judge() {
	j.t.Helper()
	if e := j.end; e.Status != machineengine.StatusCompleted || e.Output != wanted || !slices.Equal(e.States, []string{"start", "again"}) {
		j.t.Fatalf("the run ends as %s with %s after %v", e.Status, e.Output, e.States)
	}
	var facts []machineengine.Event
	for _, e := range j.events {
		var f machineengine.Event
		switch e.Kind {
		case driver.KindLeaseTaken, driver.KindLeaseKept, driver.KindLeaseReleased:
			continue
		}
		if err := json.Unmarshal(e.Data, &f); err != nil {
			j.t.Fatal(err)
		}
		facts = append(facts, f)
	}
	j.judgeRequests(facts)
	j.judgeTools(facts)
}

// judgeRequests checks each place of the run: it has one answer, and was not sent
// more often than it was intended.
func (j *journey) judgeRequests(facts []machineengine.Event) {
	j.t.Helper()
	sent, _, _ := j.outside.of(j.task, j.id)
	place, intents := 0, map[int]int{}
	for _, f := range facts {
		switch {
		case f.Kind == machineengine.KindModelIntent:
			intents[place]++
		case f.Kind == machineengine.KindModelResult && !f.Unknown:
			if f.Error != nil {
				j.t.Errorf("request %d failed: %+v", place, f.Error)
			}
			place++
		}
	}
	if place != requests || len(sent) != requests {
		j.t.Errorf("%d places have an answer, and %d were asked, of %d", place, len(sent), requests)
	}
	for i, n := range sent {
		if n > intents[i] {
			j.t.Errorf("request %d was sent %d times, and intended %d times", i, n, intents[i])
		}
	}
}

// judgeTools checks each call: it has one result, and was carried out as often as
// its policy allows.
func (j *journey) judgeTools(facts []machineengine.Event) {
	j.t.Helper()
	_, ran, names := j.outside.of(j.task, j.id)
	begun := j.begun
	results, intents := map[string]int{}, map[string]int{}
	for _, f := range facts {
		switch {
		case f.Kind == machineengine.KindToolIntent:
			intents[f.Tool.Key]++
		case f.Kind == machineengine.KindToolResult && !f.Unknown, f.Kind == machineengine.KindToolDecided && f.Decision != machineengine.DecideRetry:
			results[f.Tool.Key]++
		}
	}
	if len(ran) != calls || len(results) != calls {
		j.t.Errorf("%d calls ran and %d have results, of %d", len(ran), len(results), calls)
	}
	for key, n := range ran {
		switch {
		case results[key] != 1:
			j.t.Errorf("the call %s of %s has %d results", key, names[key], results[key])
		case names[key] == "s__ask" && n == 2 && begun > 0:
			begun--
		case names[key] != "s__safe" && n != 1:
			j.t.Errorf("%s was carried out %d times for %s", names[key], n, key)
		case n > intents[key]:
			j.t.Errorf("%s was carried out %d times, and intended %d times", names[key], n, intents[key])
		}
	}
}

// points is how many an undisturbed life has; it opens the store, too.
func points(t *testing.T, o *outside, p place) int {
	t.Helper()
	w := hire(t, p).MustOpen()
	j := &journey{t: t, outside: o, place: p, task: "undisturbed"}
	j.id = w.MustDo(order{Do: opStart, Task: j.task}).Run
	r := w.MustDo(order{Do: opDrive, Run: j.id, Task: j.task})
	if err := j.read(w, r); err != nil {
		t.Fatal(err)
	}
	w.Dismiss()
	j.judge()
	// One write begins the run, one takes the lease, each call has an intent before
	// it, with the result of the one before, each of two states has the result before
	// its handlers, and the last one has the end; a call is one point before and after.
	if want := 2*(3+requests+calls+2) + 2*(requests+calls); r.Points != want {
		t.Errorf("a life has %d points, not %d: an intent must be kept before its call, and a result before anything else is done", r.Points, want)
	}
	return r.Points
}
