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

// trackedRun is one run under several workers, with the person who handles its pauses.
type trackedRun struct {
	t       *testing.T
	outside *fakeServers
	place   location
	task    string
	id      string
	// unsentCalls is the number of calls that a halted worker may still make, because it
	// had decided on them before it halted.
	unsentCalls int
	// deaths counts the workers that ended before the run.
	deaths int
	// points is the number of points passed in all workers.
	points int
	// halted is set if the run is halted at its point in a live worker, done if it has
	// ended.
	halted, done bool
	// end is the final status, events are the events of the run.
	end    reply
	events []run.Event
}

// crashPlan is the point at which a run halts, 0 for none. kills is set if the worker kills
// itself there.
type crashPlan struct {
	point int
	kills bool
}

// driveRun makes a worker drive the run to its end or to its breakpoint. The death of the
// worker is not an error.
func (j *trackedRun) driveRun(w *worker, d crashPlan) error {
	first := func(o order) order {
		o.Task, o.Point, o.Kills = j.task, d.point, d.kills
		return o
	}
	if r, err := w.Opened(); err != nil || !r.OK() {
		return j.recordDeath(err, r)
	}
	if j.id == "" {
		r, err := w.Do(first(order{Do: opStart}))
		if err != nil || r.Halted || !r.OK() {
			return j.recordDeath(err, r)
		}
		j.id = r.Run
	}
	for {
		r, err := w.Do(first(order{Do: opDrive, Run: j.id}))
		if err != nil || r.Halted || !r.OK() {
			return j.recordDeath(err, r)
		}
		if r.Status.Ended() {
			return j.readResult(w, r)
		}
		next, err := j.nextOrder(r)
		if err != nil {
			return err
		}
		if r, err = w.Do(next); err != nil || r.Halted || !r.OK() {
			return j.recordDeath(err, r)
		}
	}
}

// readResult reads the events of a run that has ended.
func (j *trackedRun) readResult(w *worker, end reply) error {
	r, err := w.Do(order{Do: opEvents, Run: j.id, Task: j.task})
	if err != nil || !r.OK() {
		return j.recordDeath(err, r)
	}
	j.end, j.events = end, r.Events
	if r, err = w.Do(order{Do: opVerify, Run: j.id, Task: j.task}); err != nil || !r.OK() {
		return j.recordDeath(err, r)
	}
	if len(r.Report.Faults) > 0 {
		return fmt.Errorf("Verify reports errors in an intact journal: %+v", r.Report.Faults)
	}
	j.done = true
	return nil
}

// recordDeath records that the run halted or its worker died. It returns an unexpected
// error.
func (j *trackedRun) recordDeath(err error, r reply) error {
	if err == nil && !r.Halted {
		return fmt.Errorf("%s: %s", r.Code, r.Message)
	}
	j.deaths++
	j.points += r.Points
	j.halted = r.Halted
	return nil
}

// nextOrder returns the person's order for a run that is paused because the outcome of a
// call is unknown. After a model call, the person resumes the run. After a tool call, the
// person lets the run retry it, or, if a tool that must not be repeated has run, enters its
// result.
func (j *trackedRun) nextOrder(r reply) (order, error) {
	p := r.Pause
	switch {
	case r.Status != machineengine.StatusPaused || p.Code != machineengine.ErrorKindUnknownOutcome:
		return order{}, fmt.Errorf("the run is paused with the status %s: %+v", r.Status, p)
	case p.Tool == nil:
		return order{Do: opResume, Run: j.id, Task: j.task}, nil
	case p.Tool.Name != "s__ask":
		if p.Tool.Attempt < 5 {
			return order{}, fmt.Errorf("the run asks a person about %s after %d attempts", p.Tool.Name, p.Tool.Attempt)
		}
		return order{Do: opDecide, Run: j.id, Task: j.task, Decision: machineengine.DecideRetry}, nil
	case j.outside.countTool(j.id, p.Tool.Key) > 0:
		return order{Do: opDecide, Run: j.id, Task: j.task, Decision: machineengine.DecideDone, Result: resultOf(*p.Tool)}, nil
	}
	return order{Do: opDecide, Run: j.id, Task: j.task, Decision: machineengine.DecideRetry}, nil
}

// checkRun compares a finished run with the requests to the fake servers: the output is
// correct, and nothing was requested again after its answer was recorded.
func (j *trackedRun) checkRun() {
	j.t.Helper()
	if e := j.end; e.Status != machineengine.StatusCompleted || e.Output != wantedOutput || !slices.Equal(e.States, []string{"start", "again"}) {
		j.t.Fatalf("the run ended with the status %s and the output %s after %v", e.Status, e.Output, e.States)
	}
	var facts []machineengine.Event
	for _, e := range j.events {
		var f machineengine.Event
		switch e.Kind {
		case driver.KindLeaseTaken, driver.KindLeaseReleased:
			continue
		}
		if err := json.Unmarshal(e.Data, &f); err != nil {
			j.t.Fatal(err)
		}
		facts = append(facts, f)
	}
	j.checkRequests(facts)
	j.checkTools(facts)
}

// checkRequests checks that each model call has one answer, and was not sent more often
// than its intent was recorded.
func (j *trackedRun) checkRequests(facts []machineengine.Event) {
	j.t.Helper()
	sent, _, _ := j.outside.copyCounts(j.task, j.id)
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
		j.t.Errorf("%d model calls have an answer and %d were sent, want %d", place, len(sent), requests)
	}
	for i, n := range sent {
		if n > intents[i] {
			j.t.Errorf("request %d was sent %d times, with %d intents", i, n, intents[i])
		}
	}
}

// checkTools checks that each tool call has one result and ran only as often as its policy
// allows.
func (j *trackedRun) checkTools(facts []machineengine.Event) {
	j.t.Helper()
	_, ran, names := j.outside.copyCounts(j.task, j.id)
	begun := j.unsentCalls
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
		j.t.Errorf("%d calls ran and %d have results, want %d", len(ran), len(results), calls)
	}
	for key, n := range ran {
		switch {
		case results[key] != 1:
			j.t.Errorf("the call %s of %s has %d results", key, names[key], results[key])
		case names[key] == "s__ask" && n == 2 && begun > 0:
			begun--
		case names[key] != "s__safe" && n != 1:
			j.t.Errorf("%s ran %d times for the call %s", names[key], n, key)
		case n > intents[key]:
			j.t.Errorf("%s ran %d times, with %d intents", names[key], n, intents[key])
		}
	}
}

// countPoints returns the number of points of an undisturbed run. It also creates the
// store.
func countPoints(t *testing.T, o *fakeServers, p location) int {
	t.Helper()
	w := startWorker(t, p).MustOpen()
	j := &trackedRun{t: t, outside: o, place: p, task: "undisturbed"}
	j.id = w.MustDo(order{Do: opStart, Task: j.task}).Run
	r := w.MustDo(order{Do: opDrive, Run: j.id, Task: j.task})
	if err := j.readResult(w, r); err != nil {
		t.Fatal(err)
	}
	w.Shutdown()
	j.checkRun()
	// One write creates the run, one takes the lease, and one ends the run. Each call has a
	// write for its intent and the previous result. Each of the two states has a write for
	// the previous result before its handlers. Each write and each call has one point
	// before and one after it.
	if want := 2*(3+requests+calls+2) + 2*(requests+calls); r.Points != want {
		t.Errorf("a run has %d points, want %d: an intent must be written before its call, and a result before any other action", r.Points, want)
	}
	return r.Points
}
