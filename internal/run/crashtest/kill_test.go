package crashtest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// TestKilled checks that nothing is lost if workers are killed at random moments, while
// they open the journal or execute commands, and new ones continue. Two workers use a
// directory at the same time, and one continues while the other one is killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	const each = 50
	kills := crash.Amount(t, "GUIDEWAY_CRASH_KILLS", 40, 40)
	for _, seed := range crash.Seeds(t) {
		for i := range max(kills/each, 1) {
			t.Run(fmt.Sprintf("seed %d/%d", seed, i), func(t *testing.T) {
				t.Parallel()
				j := newJourney(t, workerPlace{Dir: crash.Dir(t)}, seed, uint64(i))
				j.killWorkers(min(kills, each))
				j.checkFinal()
			})
		}
		t.Run(fmt.Sprintf("seed %d/postgres", seed), func(t *testing.T) {
			t.Parallel()
			j := newJourney(t, workerPlace{Dir: crash.Dir(t), Postgres: crash.EmptyPostgres(t)}, seed, uint64(kills))
			j.killWorkers(min(kills, each))
			j.checkFinal()
		})
	}
}

// killTest is a journal that several workers use.
type killTest struct {
	t     *testing.T
	place workerPlace
	seats []*workerSlot
}

// workerSlot runs one worker after the other for the same clients.
type workerSlot struct {
	j      *killTest
	random *rand.Rand
	lanes  []*modelClient
	// opened counts the workers that were killed after they had opened the journal. midst
	// counts the commands in progress at that time.
	opened, midst int
}

func newJourney(t *testing.T, p workerPlace, seed, number uint64) *killTest {
	t.Helper()
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	j := &killTest{t: t, place: p}
	for s := range 2 {
		seat := &workerSlot{j: j, random: rand.New(rand.NewPCG(seed, number<<8|uint64(s)))}
		for l := range 4 {
			name := fmt.Sprintf("client %d of slot %d", l, s)
			random := rand.New(rand.NewPCG(seat.random.Uint64(), 0))
			seat.lanes = append(seat.lanes, newLane(name, random, shelf.projectAt(l%2)))
		}
		j.seats = append(j.seats, seat)
	}
	return j
}

// killWorkers kills the given number of workers.
func (j *killTest) killWorkers(kills int) {
	j.t.Helper()
	var seats sync.WaitGroup
	for _, s := range j.seats {
		seats.Go(func() {
			for range kills / len(j.seats) {
				if err := s.runWorker(); err != nil {
					j.t.Error(err)
					return
				}
			}
		})
	}
	seats.Wait()
	if j.t.Failed() {
		j.t.FailNow()
	}
}

// runWorker runs a worker until it is killed.
func (s *workerSlot) runWorker() error {
	life := crash.WorkerLife[order, reply]{Random: s.random, Check: s.checkRuns, Replies: 12, Rest: 4 * time.Millisecond}
	for _, l := range s.lanes {
		life.Clients = append(life.Clients, func(w *worker) error { return l.sendCommands(w, 1e6) })
	}
	opened, err := life.Run(startWorker(s.j.t, s.j.place))
	if !opened {
		return err
	}
	s.opened++
	for _, l := range s.lanes {
		if l.currentRun().pending != nil {
			s.midst++
		}
	}
	return err
}

// checkRuns compares the runs of the slot's clients with their ledgers. It sometimes
// verifies the whole journal.
func (s *workerSlot) checkRuns(w *worker) error {
	for _, l := range s.lanes {
		led := l.currentRun()
		if led.id == "" {
			continue
		}
		if err := led.checkJournal(w); err != nil {
			return err
		}
		if err := verifyChains(w, led.id); err != nil {
			return err
		}
	}
	if s.random.IntN(10) == 0 {
		return verifyChains(w, "")
	}
	return nil
}

// checkJournal compares a run in a journal with its ledger.
func (led *runLedger) checkJournal(w *worker) error {
	r, err := w.Do(order{Do: opEvents, Run: led.id})
	if err != nil || !r.OK() {
		return fmt.Errorf("read run %s: %w %+v", led.id, err, r)
	}
	happened, err := led.compareEvents(r.Events)
	if err != nil {
		return err
	}
	if !happened && r.Handle != led.handle {
		return fmt.Errorf("run %s has a different handle although no command was sent", led.id)
	}
	return nil
}

// verifyChains makes a worker verify the chains.
func verifyChains(w *worker, id string) error {
	r, err := w.Do(order{Do: opVerify, Run: id})
	if err != nil || !r.OK() {
		return fmt.Errorf("verify: %w %+v", err, r)
	}
	if len(r.Report.Faults) > 0 {
		return fmt.Errorf("Verify reports faults in an intact journal: %+v", r.Report.Faults)
	}
	return nil
}

// checkFinal completes the pending commands and compares all runs.
func (j *killTest) checkFinal() {
	j.t.Helper()
	w := startWorker(j.t, j.place).MustOpen()
	runs, events, opened, midst, commands := 0, 0, 0, 0, 0
	for _, s := range j.seats {
		opened, midst = opened+s.opened, midst+s.midst
		for _, l := range s.lanes {
			if err := l.sendCommands(w, 1); err != nil {
				j.t.Fatal(err)
			}
			commands += l.sent
			for _, led := range l.runs {
				if err := led.checkJournal(w); err != nil {
					j.t.Fatal(err)
				}
				if led.pending != nil {
					j.t.Fatalf("the command %+v is still pending", led.pending.order)
				}
				runs++
				events += len(led.facts)
			}
		}
	}
	r := w.MustDo(order{Do: opVerify})
	if r.Report.Runs != runs || len(r.Report.Faults) > 0 {
		j.t.Errorf("the journal has %d runs, but %d were started; faults: %+v", r.Report.Runs, runs, r.Report.Faults)
	}
	w.Shutdown()
	if opened == 0 || commands < 4 {
		j.t.Errorf("%d workers opened the journal and %d commands were sent: nothing was tested", opened, commands)
	}
	j.t.Logf("%d workers were killed, with %d commands in progress; %d commands, %d runs, %d events", opened, midst, commands, runs, events)
}

// TestComparisonFindsLossAndDoubling checks that compareEvents finds lost, duplicated and
// partly stored commands.
func TestComparisonFindsLossAndDoubling(t *testing.T) {
	t.Parallel()
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	l := newLane("client", rand.New(rand.NewPCG(1, 1)), shelf.inSteps())
	led, _ := l.nextCommand()
	led.id = "r_1"
	l.applyPending(led)
	for range 3 {
		l.newCommand(led)
	}
	led.pending = &pendingCommand{facts: []engine.Event{{Kind: "a"}, {Kind: "b"}}}
	facts := led.facts
	for _, test := range []struct {
		name     string
		facts    []engine.Event
		happened bool
		fails    bool
	}{
		{"all acknowledged commands", facts, false, false},
		{"also the pending command", append(facts[:len(facts):len(facts)], led.pending.facts...), true, false},
		{"half of the pending command", append(facts[:len(facts):len(facts)], led.pending.facts[0]), false, true},
		{"one event is lost", facts[:len(facts)-1], false, true},
		{"one event is duplicated", append(facts[:len(facts):len(facts)], facts[len(facts)-1]), false, true},
	} {
		happened, err := led.compareEvents(eventsOf(test.facts))
		if (err != nil) != test.fails || (happened != test.happened && !test.fails) {
			t.Errorf("%s: happened %v, %v", test.name, happened, err)
		}
	}
}

func eventsOf(facts []engine.Event) []run.Event {
	events := []run.Event{{Seq: 1, Kind: run.KindCreated}}
	for _, fact := range facts {
		events = append(events, run.Event{Seq: int64(len(events) + 1), Kind: string(fact.Kind), Data: encodeFact(fact)})
	}
	return events
}
