package crashtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// perLine is the maximum number of checkpoints of a session in these tests; a save beyond
// it removes the oldest checkpoint.
const perLine = 40

// TestKilled checks that nothing is lost if workers are killed at random moments, while
// they open the store, save, store checkpoints as deltas, delete and sweep, and other
// workers continue. Two workers use one directory at the same time.
func TestKilled(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	kills := crash.Amount(t, "GUIDEWAY_CRASH_KILLS", 24, 8)
	for _, seed := range crash.Seeds(t) {
		for i, k := range storeKinds() {
			t.Run(fmt.Sprintf("seed %d/%s", seed, k.name), func(t *testing.T) {
				t.Parallel()
				p := k.place(t)
				p.PerSeries = perLine
				var seats sync.WaitGroup
				var both []*workerSlot
				for s := range 2 {
					random := rand.New(rand.NewPCG(seed, uint64(i)<<8|uint64(s)))
					both = append(both, newSeat(t, p, random, fmt.Sprint("seat ", s)))
				}
				for _, one := range both {
					seats.Go(func() {
						for range max(kills/4/2, 2) {
							if err := one.runWorker(); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				seats.Wait()
				if !t.Failed() {
					compareAllSessions(t, p, both)
				}
			})
		}
	}
}

// workerSlot runs one worker after another, each with the same sessions.
type workerSlot struct {
	t      *testing.T
	place  place
	random *rand.Rand
	// store is the URL of a PostgreSQL server, and client the name of the workers there.
	store, client string
	lanes         []*sessionState
	// opened is the number of workers that were killed after they had opened the store.
	// midst is the number of orders in progress at these kills. saves is the number of saves
	// among these orders.
	opened, midst, saves int
}

func newSeat(t *testing.T, p place, random *rand.Rand, name string) *workerSlot {
	t.Helper()
	s := &workerSlot{t: t, place: p, random: random}
	if strings.HasPrefix(p.Store, "postgres://") {
		s.store, s.client = p.Store, fmt.Sprintf("crashtest-%016x", random.Uint64())
		s.place.Store = crash.NameClient(t, p.Store, s.client)
	}
	for i, size := range []int{2_000, 20_000, 400, 5_000} {
		s.lanes = append(s.lanes, &sessionState{
			session: fmt.Sprintf("%s-%d", name[len(name)-1:], i), random: rand.New(rand.NewPCG(random.Uint64(), 0)),
			size: size, refs: map[string]text{}, old: map[string]text{},
		})
	}
	return s
}

// runWorker runs one worker from its start to its end.
func (s *workerSlot) runWorker() error {
	life := crash.WorkerLife[order, reply]{Random: s.random, Check: s.checkLanes, Replies: 16, Rest: 6 * time.Millisecond}
	for _, l := range s.lanes {
		life.Clients = append(life.Clients, func(w *worker) error { return l.sendOrders(w, 1e6) })
	}
	opened, err := life.Run(startWorker(s.t, s.place))
	if s.client != "" {
		crash.WaitForEnd(s.t, s.store, s.client)
	}
	if !opened {
		return err
	}
	s.opened++
	for _, l := range s.lanes {
		if l.pending != nil {
			s.saves++
		}
		if l.midst {
			s.midst++
		}
	}
	return err
}

// checkLanes compares a sample of each session with its expected state.
func (s *workerSlot) checkLanes(w *worker) error {
	for _, l := range s.lanes {
		if err := l.checkSession(w, 2); err != nil {
			return err
		}
	}
	return nil
}

// sessionState is one session and its expected state.
type sessionState struct {
	session string
	random  *rand.Rand
	size    int
	n       int
	// acked are the acknowledged checkpoints that were not deleted, the oldest first, and
	// the checkpoints found after a crash, whose acknowledgement may have been lost.
	acked []ackedCheckpoint
	// old are the checkpoints that the limit may have removed. If one still exists, it must
	// be unchanged.
	old map[string]text
	// pending is the context of a save without a reply; it may have been stored.
	pending *text
	// midst reports that the worker died during an order of this session.
	midst bool
	refs  map[string]text
	saves int
}

// ackedCheckpoint is a checkpoint that must exist.
type ackedCheckpoint struct {
	id   string
	text text
	// doubtful reports that the checkpoint may be missing, because its deletion got no
	// reply.
	doubtful bool
}

// sendOrders sends the given number of orders, or fewer if the worker dies.
func (l *sessionState) sendOrders(w *worker, orders int) error {
	for range orders {
		died, err := l.sendOrder(w)
		if l.midst = died; died || err != nil {
			return err
		}
	}
	return nil
}

// sendOrder sends one order, and reports whether the worker died.
func (l *sessionState) sendOrder(w *worker) (died bool, err error) {
	switch choice := l.random.IntN(100); {
	case choice < 75 || len(l.acked) < 3:
		return l.saveNext(w)
	case choice < 85:
		i := l.random.IntN(len(l.acked))
		return l.loadOne(w, i)
	case choice < 90:
		return l.removeOne(w, l.random.IntN(len(l.acked)))
	case choice < 96:
		x := text{Session: l.session, N: 1_000_000 + l.random.IntN(20), Size: 500}
		r, err := w.Do(order{Do: opKeep, Session: l.session, Text: x})
		if err == nil && r.OK() {
			l.refs[r.Checkpoint] = x
		}
		return err != nil, unexpectedError("keep", r, err)
	default:
		r, err := w.Do(order{Do: opMaintain})
		return err != nil, unexpectedError("maintain", r, err)
	}
}

// unexpectedError returns the error of a reply, or nil if the order succeeded or the worker
// was killed.
func unexpectedError(what string, r reply, err error) error {
	if err != nil || r.OK() {
		return nil
	}
	return fmt.Errorf("%s: %s %s", what, r.Code, r.Message)
}

func (l *sessionState) saveNext(w *worker) (bool, error) {
	l.n++
	x := text{Session: l.session, N: l.n, Size: l.size}
	r, err := w.Do(order{Do: opSave, Text: x})
	if err != nil {
		l.pending = &x
		return true, nil
	}
	if r.OK() {
		l.saves++
		l.addAcked(ackedCheckpoint{id: r.Checkpoint, text: x})
	}
	return false, unexpectedError("save", r, err)
}

// addAcked adds a checkpoint. From then on the oldest checkpoints above the limit may be
// missing, even if others are deleted later.
func (l *sessionState) addAcked(k ackedCheckpoint) {
	l.acked = append(l.acked, k)
	for ; len(l.acked) > perLine; l.acked = l.acked[1:] {
		l.old[l.acked[0].id] = l.acked[0].text
	}
}

func (l *sessionState) loadOne(w *worker, i int) (bool, error) {
	want := l.acked[i]
	r, err := w.Do(order{Do: opLoad, Checkpoint: want.id})
	if err != nil {
		return true, nil
	}
	if r.Code == guideway.CodeNotFound && want.doubtful {
		return false, nil
	}
	if !r.OK() || r.Degraded || r.Sum != want.text.contextSum() {
		return false, fmt.Errorf("%s, save %d of %s, is loaded as %+v", want.id, want.text.N, l.session, r)
	}
	return false, nil
}

func (l *sessionState) removeOne(w *worker, i int) (bool, error) {
	r, err := w.Do(order{Do: opDelete, Checkpoint: l.acked[i].id})
	if err != nil {
		l.acked[i].doubtful = true
		return true, nil
	}
	if r.Code == guideway.CodeNotFound && l.acked[i].doubtful {
		r.Code = ""
	}
	l.acked = slices.Delete(l.acked, i, i+1)
	return false, unexpectedError("delete", r, err)
}

// checkSession compares a session with its expected state: no acknowledged checkpoint may
// be missing, and no unknown one may exist. It loads the newest checkpoint and the given
// number of other ones; a negative number means all.
func (l *sessionState) checkSession(w *worker, loads int) error {
	r, err := w.Do(order{Do: opList, Session: l.session})
	if err != nil || !r.OK() {
		return fmt.Errorf("list %s: %w %+v", l.session, err, r)
	}
	if err := l.compareList(r.List); err != nil {
		return err
	}
	if len(r.List) > 0 {
		newest, err := w.Do(order{Do: opLoad, Session: l.session})
		last := l.acked[len(l.acked)-1]
		for i := len(l.acked) - 1; i > 0 && last.doubtful && last.id != newest.Checkpoint; i-- {
			last = l.acked[i-1]
		}
		if err != nil || !newest.OK() || newest.Checkpoint != last.id || newest.Sum != last.text.contextSum() || newest.Degraded {
			return fmt.Errorf("the last of %s is %+v, %w; want %s, save %d", l.session, newest, err, last.id, last.text.N)
		}
	}
	if loads < 0 {
		for i := range l.acked {
			if _, err := l.loadOne(w, i); err != nil {
				return err
			}
		}
	}
	for range min(loads, len(l.acked)) {
		if _, err := l.loadOne(w, l.random.IntN(len(l.acked))); err != nil {
			return err
		}
	}
	recalls := 0
	for ref, x := range l.refs {
		if recalls++; loads >= 0 && recalls > loads {
			break // enough fragments were loaded; the order of a map is random
		}
		r, err := w.Do(order{Do: opRecall, Checkpoint: ref})
		if err != nil || !r.OK() || r.Sum != x.contextSum() {
			return fmt.Errorf("the fragment %s of %s is %+v, %w", ref, l.session, r, err)
		}
	}
	return nil
}

// compareList compares a list, the newest first, with the expected state.
func (l *sessionState) compareList(list []listedCheckpoint) error {
	found := map[string]listedCheckpoint{}
	for _, c := range list {
		found[c.Checkpoint] = c
	}
	if c, happened := found[newestID(list)]; happened && l.pending != nil && c.Sum == l.pending.contextSum() && !l.isKnown(c.Checkpoint) {
		l.addAcked(ackedCheckpoint{id: c.Checkpoint, text: *l.pending})
	}
	l.pending = nil
	for _, want := range l.acked {
		c, there := found[want.id]
		if !there && want.doubtful {
			continue
		}
		if !there || c.Sum != want.text.contextSum() {
			return fmt.Errorf("save %d of %s, %s, was acknowledged but is missing (%+v); %d exist", want.text.N, l.session, want.id, c, len(list))
		}
	}
	for _, c := range list {
		if old, was := l.old[c.Checkpoint]; !l.isKnown(c.Checkpoint) && (!was || old.contextSum() != c.Sum) {
			return fmt.Errorf("%s of %s exists but was never saved", c.Checkpoint, l.session)
		}
	}
	return nil
}

func (l *sessionState) isKnown(id string) bool {
	return slices.ContainsFunc(l.acked, func(k ackedCheckpoint) bool { return k.id == id })
}

// newestID returns the id of the newest checkpoint of a list, or "".
func newestID(list []listedCheckpoint) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Checkpoint
}

// compareAllSessions compares all checkpoints of all sessions.
func compareAllSessions(t *testing.T, p place, seats []*workerSlot) {
	t.Helper()
	w := startWorker(t, p).MustOpen()
	w.MustDo(order{Do: opMaintain})
	opened, midst, cut, saves := 0, 0, 0, 0
	for _, s := range seats {
		opened, midst, cut = opened+s.opened, midst+s.midst, cut+s.saves
		for _, l := range s.lanes {
			if err := l.checkSession(w, -1); err != nil {
				t.Fatal(err)
			}
			saves += l.saves
		}
	}
	if r := w.MustDo(order{Do: opVerify}); len(r.Damaged) > 0 {
		t.Errorf("at the end the damaged checkpoints are %v", r.Damaged)
	}
	w.Shutdown()
	if opened == 0 || saves < 4 {
		t.Errorf("%d workers opened the checkpoints and %d saves were acknowledged: nothing was tested", opened, saves)
	}
	t.Logf("%d workers were killed, with %d orders in progress, %d of them saves; %d saves", opened, midst, cut, saves)
}

// TestComparisonFindsLoss checks that the comparison with the expected state detects lost
// and unknown checkpoints.
func TestComparisonFindsLoss(t *testing.T) {
	t.Parallel()
	texts := []text{{"s", 1, 100}, {"s", 2, 100}, {"s", 3, 100}, {"s", 4, 100}}
	known := func(pending bool) *sessionState {
		l := &sessionState{session: "s", old: map[string]text{}}
		for i, x := range texts[:3] {
			l.acked = append(l.acked, ackedCheckpoint{id: fmt.Sprint("c", i), text: x})
		}
		if pending {
			l.pending = &texts[3]
		}
		return l
	}
	all := []listedCheckpoint{{Checkpoint: "c2", Sum: texts[2].contextSum()}, {Checkpoint: "c1", Sum: texts[1].contextSum()}, {Checkpoint: "c0", Sum: texts[0].contextSum()}}
	more := append([]listedCheckpoint{{Checkpoint: "c3", Sum: texts[3].contextSum()}}, all...)
	wrong := slices.Clone(all)
	wrong[1].Sum = texts[0].contextSum()
	for _, test := range []struct {
		name    string
		pending bool
		list    []listedCheckpoint
		fails   bool
	}{
		{"all acknowledged checkpoints", false, all, false},
		{"also the pending checkpoint", true, more, false},
		{"a checkpoint that was never saved", false, more, true},
		{"a checkpoint other than the pending one", true, append([]listedCheckpoint{{Checkpoint: "c3", Sum: texts[0].contextSum()}}, all...), true},
		{"one checkpoint is lost", false, all[:2], true},
		{"the last checkpoint is lost", false, all[1:], true},
		{"one checkpoint differs", false, wrong, true},
	} {
		if err := known(test.pending).compareList(test.list); (err != nil) != test.fails {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
