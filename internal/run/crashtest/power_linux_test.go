package crashtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// entry is a command sent to a run. Entries are in the order sent; each was sent after the
// previous one was acknowledged.
type entry struct {
	// life and reply identify the line that acknowledged the command.
	life, reply int
	pending     *pendingCommand
	// id is the id of the run, handle its handle after the command.
	id, handle string
}

// recording has the writes of workers and the ledgers of their clients.
type recording struct {
	place   workerPlace
	lives   [][]*call
	history map[*runLedger][]entry
}

// recordWorkers runs two consecutive workers with some clients and records all their
// writes.
func recordWorkers(t *testing.T, seed uint64, commands int) *recording {
	t.Helper()
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{place: workerPlace{Dir: dir}, history: map[*runLedger][]entry{}}
	logs := t.TempDir()
	random := rand.New(rand.NewPCG(seed, 0))
	var lanes []*modelClient
	for i := range 2 {
		lanes = append(lanes, newLane(fmt.Sprintf("client %d", i), rand.New(rand.NewPCG(random.Uint64(), 0)), shelf.projectAt(i)))
	}
	for life := range 2 {
		log := filepath.Join(logs, fmt.Sprint(life))
		w := startWorker(t, r.place, traceCommand(t, log)...).MustOpen()
		errs := make([]error, len(lanes))
		var writing sync.Mutex
		var clients sync.WaitGroup
		for i, l := range lanes {
			clients.Go(func() { errs[i] = r.sendCommands(w, l, life, commands/2, &writing) })
		}
		clients.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		w.Shutdown()
		calls, err := readTrace(log)
		if err != nil {
			t.Fatal(err)
		}
		r.lives = append(r.lives, calls)
	}
	return r
}

// sendCommands sends commands and records which reply acknowledged which command.
func (r *recording) sendCommands(w *worker, l *modelClient, life, commands int, writing *sync.Mutex) error {
	for range commands {
		led, p := l.nextCommand()
		number, replied := w.Send(p.order)
		answer, err := replied()
		if err == nil {
			err = l.applyReply(led, answer)
		}
		if err != nil {
			return fmt.Errorf("%+v: %w", p.order, err)
		}
		writing.Lock()
		r.history[led] = append(r.history[led], entry{life: life, reply: number, pending: p, id: led.id, handle: led.handle})
		writing.Unlock()
	}
	return nil
}

// moment is the beginning or the end of a call.
type moment struct {
	at   int
	call *call
	end  bool
}

// callMoments returns the beginnings and ends of calls, in order.
func callMoments(calls []*call) []moment {
	var list []moment
	for _, c := range calls {
		list = append(list, moment{c.begin, c, false})
		if c.end > 0 {
			list = append(list, moment{c.end, c, true})
		}
	}
	slices.SortStableFunc(list, func(a, b moment) int { return a.at - b.at })
	return list
}

// replyNumbers returns the numbers of the lines that a call writes to standard output.
func (c *call) replyNumbers() []int {
	if c.name != "write" || c.args[0].word != "1" {
		return nil
	}
	var ids []int
	for line := range bytes.Lines(c.args[1].data) {
		if id, ok := crash.ReplyNumber(line); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// visitCuts replays the recording and calls visit at random moments, with the file system
// and the acknowledged commands at that moment.
func (r *recording) visitCuts(l *crashFS, random *rand.Rand, cuts int, visit func(acknowledged map[[2]int]bool) error) error {
	total := 0
	for _, calls := range r.lives {
		total += len(callMoments(calls))
	}
	chosen := map[int]int{}
	for range cuts {
		chosen[random.IntN(total)]++
	}
	chosen[total-1]++
	acknowledged := map[[2]int]bool{}
	at := 0
	for life, calls := range r.lives {
		l.closeAll()
		for _, m := range callMoments(calls) {
			var err error
			if m.end {
				err = l.endCall(m.call)
			} else {
				err = l.beginCall(m.call)
				for _, id := range m.call.replyNumbers() {
					acknowledged[[2]int{life, id}] = true
				}
			}
			if err != nil {
				return err
			}
			for range chosen[at] {
				if err := visit(acknowledged); err != nil {
					return fmt.Errorf("power loss after %d of %d moments: %w", at+1, total, err)
				}
			}
			at++
		}
	}
	return nil
}

// ledgersAt returns the ledgers of the clients after the given acknowledgements.
func (r *recording) ledgersAt(acknowledged map[[2]int]bool) []*modelClient {
	var lanes []*modelClient
	for led, entries := range r.history {
		l := newLane("after "+led.request, rand.New(rand.NewPCG(1, 1)), led.project)
		then := &runLedger{project: led.project, request: led.request}
		l.runs = []*runLedger{then}
		for _, e := range entries {
			if e.pending.refusal != nil {
				then.tried++
			}
			then.pending = e.pending
			if !acknowledged[[2]int{e.life, e.reply}] {
				break
			}
			then.id, then.handle = e.id, e.handle
			if e.pending.refusal != nil {
				then.refused++
				then.pending = nil
				continue
			}
			l.applyPending(then)
		}
		lanes = append(lanes, l)
	}
	return lanes
}

// checkSurvivors starts a worker on the files after a power failure, compares it with the
// acknowledged commands, and continues.
func (r *recording) checkSurvivors(t *testing.T, dir string, acknowledged map[[2]int]bool) error {
	w := startWorker(t, workerPlace{Dir: dir})
	defer w.Kill()
	first, err := w.Opened()
	if err != nil || !first.OK() {
		return fmt.Errorf("a worker cannot open its journal: %w %+v %s", err, first, w.Stderr())
	}
	if err := verifyChains(w, ""); err != nil {
		return err
	}
	for _, l := range r.ledgersAt(acknowledged) {
		led := l.runs[0]
		if led.id == "" {
			continue // the client has not received the id of the run
		}
		if err := led.checkJournal(w); err != nil {
			return err
		}
		if err := l.sendCommands(w, 2); err != nil {
			return err
		}
		if err := l.runs[0].checkJournal(w); err != nil {
			return err
		}
	}
	return verifyChains(w, "")
}

// TestPowerLoss simulates power failures at random moments: synced data survives, other
// data survives at random. All acknowledged commands are stored.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	for _, seed := range crash.Seeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := recordWorkers(t, seed, 160)
			random := rand.New(rand.NewPCG(seed, 1))
			l := newLayer(r.place.Dir)
			n := 0
			err := r.visitCuts(l, random, crash.Amount(t, "GUIDEWAY_CRASH_CUTS", 20, 20), func(acknowledged map[[2]int]bool) error {
				n++
				m := lossMode(random.IntN(int(mercies)))
				if m != keepSome && random.IntN(2) == 0 {
					m = keepSome
				}
				dir := filepath.Join(t.TempDir(), fmt.Sprint(n))
				if err := l.writeSurvivors(dir, m, random); err != nil {
					return err
				}
				if err := r.checkSurvivors(t, dir, acknowledged); err != nil {
					return fmt.Errorf("cut %d, mercy %d: %w", n, m, err)
				}
				return os.RemoveAll(dir)
			})
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d power failures in a recording of %d and %d calls", n, len(r.lives[0]), len(r.lives[1]))
		})
	}
}

// TestPowerLossFindsMissingSyncs tests crashFS itself: if the syncs of the write-ahead log
// are ignored, a power failure loses acknowledged commands.
func TestPowerLossFindsMissingSyncs(t *testing.T) {
	t.Parallel()
	r := recordWorkers(t, 1, 20)
	l := newLayer(r.place.Dir)
	l.careless = "-wal"
	lost := 0
	err := r.visitCuts(l, rand.New(rand.NewPCG(1, 1)), 20, func(acknowledged map[[2]int]bool) error {
		if len(acknowledged) < 5 {
			return nil
		}
		dir := filepath.Join(t.TempDir(), "left")
		if err := l.writeSurvivors(dir, keepNothing, rand.New(rand.NewPCG(1, 1))); err != nil {
			return err
		}
		if r.checkSurvivors(t, dir, acknowledged) != nil {
			lost++
		}
		return os.RemoveAll(dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	if lost == 0 {
		t.Error("a journal that never syncs loses nothing")
	}
}
