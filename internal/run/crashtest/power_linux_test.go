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

// entry is a command of a run in the order in which they were sent, each after
// the one before it was acknowledged.
type entry struct {
	// life and reply say which line acknowledged it.
	life, reply int
	pending     *pending
	// id and handle are the run's after it.
	id, handle string
}

// recording is what workers wrote, and what their clients know.
type recording struct {
	place   place
	lives   [][]*call
	history map[*ledger][]entry
}

// record has two workers, one after the other, serve some clients while all
// that they write is recorded.
func record(t *testing.T, seed uint64, commands int) *recording {
	t.Helper()
	shelf, err := newShelf()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{place: place{Dir: dir}, history: map[*ledger][]entry{}}
	logs := t.TempDir()
	random := rand.New(rand.NewPCG(seed, 0))
	var lanes []*lane
	for i := range 2 {
		lanes = append(lanes, newLane(fmt.Sprintf("client %d", i), rand.New(rand.NewPCG(random.Uint64(), 0)), shelf.of(i)))
	}
	for life := range 2 {
		log := filepath.Join(logs, fmt.Sprint(life))
		w := hire(t, r.place, tracer(t, log)...).MustOpen()
		errs := make([]error, len(lanes))
		var writing sync.Mutex
		var clients sync.WaitGroup
		for i, l := range lanes {
			clients.Go(func() { errs[i] = r.drive(w, l, life, commands/2, &writing) })
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

// drive sends commands and notes which reply acknowledged which.
func (r *recording) drive(w *worker, l *lane, life, commands int, writing *sync.Mutex) error {
	for range commands {
		led, p := l.next()
		number, replied := w.Send(p.order)
		answer, err := replied()
		if err == nil {
			err = l.acknowledge(led, answer)
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

// moments are the beginnings and ends of calls, in order.
func moments(calls []*call) []moment {
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

// replies are the numbers of the lines that a call writes to standard output.
func (c *call) replies() []int {
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

// cuts replays the recording and calls visit at each of some random moments,
// with the layer as it was, and what had been acknowledged by then.
func (r *recording) cuts(l *layer, random *rand.Rand, cuts int, visit func(acknowledged map[[2]int]bool) error) error {
	total := 0
	for _, calls := range r.lives {
		total += len(moments(calls))
	}
	chosen := map[int]int{}
	for range cuts {
		chosen[random.IntN(total)]++
	}
	chosen[total-1]++
	acknowledged := map[[2]int]bool{}
	at := 0
	for life, calls := range r.lives {
		l.reboot()
		for _, m := range moments(calls) {
			var err error
			if m.end {
				err = l.end(m.call)
			} else {
				err = l.begin(m.call)
				for _, id := range m.call.replies() {
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

// known are the ledgers of the clients when so much was acknowledged.
func (r *recording) known(acknowledged map[[2]int]bool) []*lane {
	var lanes []*lane
	for led, entries := range r.history {
		l := newLane("after "+led.request, rand.New(rand.NewPCG(1, 1)), led.project)
		then := &ledger{project: led.project, request: led.request}
		l.runs = []*ledger{then}
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
			l.happened(then)
		}
		lanes = append(lanes, l)
	}
	return lanes
}

// check starts a worker on what a power loss has left, compares it with what was
// acknowledged, and has it go on.
func (r *recording) check(t *testing.T, dir string, acknowledged map[[2]int]bool) error {
	w := hire(t, place{Dir: dir})
	defer w.Kill()
	first, err := w.Opened()
	if err != nil || !first.OK() {
		return fmt.Errorf("a worker does not open its journal: %w %+v %s", err, first, w.Stderr())
	}
	if err := verified(w, ""); err != nil {
		return err
	}
	for _, l := range r.known(acknowledged) {
		led := l.runs[0]
		if led.id == "" {
			continue // nobody knows of it
		}
		if err := led.check(w); err != nil {
			return err
		}
		if err := l.drive(w, 2); err != nil {
			return err
		}
		if err := l.runs[0].check(w); err != nil {
			return err
		}
	}
	return verified(w, "")
}

// TestPowerLoss cuts the power at random moments: what was synced is kept, and
// of the rest what chance leaves. Everything that was acknowledged is there.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	for _, seed := range crash.Seeds(t) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			r := record(t, seed, 160)
			random := rand.New(rand.NewPCG(seed, 1))
			l := newLayer(r.place.Dir)
			n := 0
			err := r.cuts(l, random, crash.Amount(t, "GUIDEWAY_CRASH_CUTS", 20, 20), func(acknowledged map[[2]int]bool) error {
				n++
				m := mercy(random.IntN(int(mercies)))
				if m != keepSome && random.IntN(2) == 0 {
					m = keepSome
				}
				dir := filepath.Join(t.TempDir(), fmt.Sprint(n))
				if err := l.lose(dir, m, random); err != nil {
					return err
				}
				if err := r.check(t, dir, acknowledged); err != nil {
					return fmt.Errorf("cut %d, mercy %d: %w", n, m, err)
				}
				return os.RemoveAll(dir)
			})
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d cuts of a recording of %d and %d calls", n, len(r.lives[0]), len(r.lives[1]))
		})
	}
}

// TestPowerLossFindsMissingSyncs holds the layer itself to its task: a journal
// that does not sync loses what it has acknowledged.
func TestPowerLossFindsMissingSyncs(t *testing.T) {
	t.Parallel()
	r := record(t, 1, 20)
	l := newLayer(r.place.Dir)
	l.careless = "-wal"
	lost := 0
	err := r.cuts(l, rand.New(rand.NewPCG(1, 1)), 20, func(acknowledged map[[2]int]bool) error {
		if len(acknowledged) < 5 {
			return nil
		}
		dir := filepath.Join(t.TempDir(), "left")
		if err := l.lose(dir, keepNothing, rand.New(rand.NewPCG(1, 1))); err != nil {
			return err
		}
		if r.check(t, dir, acknowledged) != nil {
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
