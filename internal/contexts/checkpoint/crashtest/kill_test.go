package crashtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// perLine is the limit of the sessions in these tests: the oldest go.
const perLine = 40

// TestKilled kills workers at random moments, while they open the checkpoints and
// while they save, fold, delete and sweep, and has others go on. Two of them work
// on one directory at a time.
func TestKilled(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	kills := crash.Amount(t, "GUIDEWAY_CRASH_KILLS", 24, 8)
	for _, seed := range crash.Seeds(t) {
		for i, k := range kinds() {
			t.Run(fmt.Sprintf("seed %d/%s", seed, k.name), func(t *testing.T) {
				t.Parallel()
				p := k.place(t)
				p.PerLine = perLine
				var seats sync.WaitGroup
				var both []*seat
				for s := range 2 {
					random := rand.New(rand.NewPCG(seed, uint64(i)<<8|uint64(s)))
					both = append(both, newSeat(t, p, random, fmt.Sprint("seat ", s)))
				}
				for _, one := range both {
					seats.Go(func() {
						for range max(kills/4/2, 2) {
							if err := one.life(); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				seats.Wait()
				if !t.Failed() {
					arrive(t, p, both)
				}
			})
		}
	}
}

// seat is where one worker after the other sits, with the sessions that it serves.
// Sessions outlive workers.
type seat struct {
	t      *testing.T
	place  place
	random *rand.Rand
	lanes  []*lane
	// opened counts workers that were killed after they had opened, midst the orders
	// that were under way then, and saves those of them that were saves.
	opened, midst, saves int
}

func newSeat(t *testing.T, p place, random *rand.Rand, name string) *seat {
	t.Helper()
	s := &seat{t: t, place: p, random: random}
	for i, size := range []int{2_000, 20_000, 400, 5_000} {
		s.lanes = append(s.lanes, &lane{
			session: fmt.Sprintf("%s-%d", name[len(name)-1:], i), random: rand.New(rand.NewPCG(random.Uint64(), 0)),
			size: size, refs: map[string]text{}, old: map[string]text{},
		})
	}
	return s
}

// life is one worker from its start to its end.
func (s *seat) life() error {
	life := crash.Life[order, reply]{Random: s.random, Check: s.check, Replies: 16, Rest: 6 * time.Millisecond}
	for _, l := range s.lanes {
		life.Clients = append(life.Clients, func(w *worker) error { return l.drive(w, 1e6) })
	}
	opened, err := life.Live(hire(s.t, s.place))
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

// check compares some of each session with what is known of it.
func (s *seat) check(w *worker) error {
	for _, l := range s.lanes {
		if err := l.check(w, 2); err != nil {
			return err
		}
	}
	return nil
}

// lane is one session and what is known of it.
type lane struct {
	session string
	random  *rand.Rand
	size    int
	n       int
	// acked are the checkpoints that were acknowledged and not deleted, the
	// oldest first. Of those that were found after a crash nobody knows whether
	// they were.
	acked []kept
	// old are those that the limit may have taken; what is there of them must be
	// what it was.
	old map[string]text
	// pending is the save that no answer came for; it may have happened.
	pending *text
	// midst says that the worker died while it carried out an order for it.
	midst bool
	refs  map[string]text
	saves int
}

// kept is a checkpoint that must be there.
type kept struct {
	id   string
	text text
	// doubtful may be gone: no answer came to its deletion.
	doubtful bool
}

// drive sends so many orders, or as many as the worker lives for.
func (l *lane) drive(w *worker, orders int) error {
	for range orders {
		died, err := l.step(w)
		if l.midst = died; died || err != nil {
			return err
		}
	}
	return nil
}

// step sends one order, and says whether the worker died of something else.
func (l *lane) step(w *worker) (died bool, err error) {
	switch choice := l.random.IntN(100); {
	case choice < 75 || len(l.acked) < 3:
		return l.save(w)
	case choice < 85:
		i := l.random.IntN(len(l.acked))
		return l.load(w, i)
	case choice < 90:
		return l.remove(w, l.random.IntN(len(l.acked)))
	case choice < 96:
		x := text{Session: l.session, N: 1_000_000 + l.random.IntN(20), Size: 500}
		r, err := w.Do(order{Do: opKeep, Session: l.session, Text: x})
		if err == nil && r.OK() {
			l.refs[r.Checkpoint] = x
		}
		return err != nil, unwanted("keep", r, err)
	default:
		r, err := w.Do(order{Do: opMaintain})
		return err != nil, unwanted("maintain", r, err)
	}
}

// unwanted is the error of an answer that should have been good; that the worker
// was killed is no news.
func unwanted(what string, r reply, err error) error {
	if err != nil || r.OK() {
		return nil
	}
	return fmt.Errorf("%s: %s %s", what, r.Code, r.Message)
}

func (l *lane) save(w *worker) (bool, error) {
	l.n++
	x := text{Session: l.session, N: l.n, Size: l.size}
	r, err := w.Do(order{Do: opSave, Text: x})
	if err != nil {
		l.pending = &x
		return true, nil
	}
	if r.OK() {
		l.saves++
		l.acknowledge(kept{id: r.Checkpoint, text: x})
	}
	return false, unwanted("save", r, err)
}

// acknowledge adds a checkpoint. What the session has no room for then may be gone,
// and stays gone when others are deleted later.
func (l *lane) acknowledge(k kept) {
	l.acked = append(l.acked, k)
	for ; len(l.acked) > perLine; l.acked = l.acked[1:] {
		l.old[l.acked[0].id] = l.acked[0].text
	}
}

func (l *lane) load(w *worker, i int) (bool, error) {
	want := l.acked[i]
	r, err := w.Do(order{Do: opLoad, Checkpoint: want.id})
	if err != nil {
		return true, nil
	}
	if r.Code == guideway.CodeNotFound && want.doubtful {
		return false, nil
	}
	if !r.OK() || r.Degraded || r.Sum != want.text.sum() {
		return false, fmt.Errorf("%s, save %d of %s, is loaded as %+v", want.id, want.text.N, l.session, r)
	}
	return false, nil
}

func (l *lane) remove(w *worker, i int) (bool, error) {
	r, err := w.Do(order{Do: opDelete, Checkpoint: l.acked[i].id})
	if err != nil {
		l.acked[i].doubtful = true
		return true, nil
	}
	if r.Code == guideway.CodeNotFound && l.acked[i].doubtful {
		r.Code = ""
	}
	l.acked = slices.Delete(l.acked, i, i+1)
	return false, unwanted("delete", r, err)
}

// check compares a session with what is known of it: nothing that was
// acknowledged is missing, and nothing is there that nobody has saved. It loads
// the newest and so many others; less than 0 is all.
func (l *lane) check(w *worker, loads int) error {
	r, err := w.Do(order{Do: opList, Session: l.session})
	if err != nil || !r.OK() {
		return fmt.Errorf("list %s: %w %+v", l.session, err, r)
	}
	if err := l.compare(r.List); err != nil {
		return err
	}
	if len(r.List) > 0 {
		newest, err := w.Do(order{Do: opLoad, Session: l.session})
		last := l.acked[len(l.acked)-1]
		for i := len(l.acked) - 1; i > 0 && last.doubtful && last.id != newest.Checkpoint; i-- {
			last = l.acked[i-1]
		}
		if err != nil || !newest.OK() || newest.Checkpoint != last.id || newest.Sum != last.text.sum() || newest.Degraded {
			return fmt.Errorf("the last of %s is %+v, %w; want %s, save %d", l.session, newest, err, last.id, last.text.N)
		}
	}
	if loads < 0 {
		for i := range l.acked {
			if _, err := l.load(w, i); err != nil {
				return err
			}
		}
	}
	for range min(loads, len(l.acked)) {
		if _, err := l.load(w, l.random.IntN(len(l.acked))); err != nil {
			return err
		}
	}
	recalls := 0
	for ref, x := range l.refs {
		if recalls++; loads >= 0 && recalls > loads {
			break // which ones is left to chance
		}
		r, err := w.Do(order{Do: opRecall, Checkpoint: ref})
		if err != nil || !r.OK() || r.Sum != x.sum() {
			return fmt.Errorf("the piece %s of %s is %+v, %w", ref, l.session, r, err)
		}
	}
	return nil
}

// compare compares a list, the newest first, with what is known.
func (l *lane) compare(list []one) error {
	found := map[string]one{}
	for _, c := range list {
		found[c.Checkpoint] = c
	}
	if c, happened := found[newest(list)]; happened && l.pending != nil && c.Sum == l.pending.sum() && !l.knows(c.Checkpoint) {
		l.acknowledge(kept{id: c.Checkpoint, text: *l.pending})
	}
	l.pending = nil
	for _, want := range l.acked {
		c, there := found[want.id]
		if !there && want.doubtful {
			continue
		}
		if !there || c.Sum != want.text.sum() {
			return fmt.Errorf("save %d of %s, %s, was acknowledged and is not there (%+v); there are %d", want.text.N, l.session, want.id, c, len(list))
		}
	}
	for _, c := range list {
		if old, was := l.old[c.Checkpoint]; !l.knows(c.Checkpoint) && (!was || old.sum() != c.Sum) {
			return fmt.Errorf("%s of %s is there and nobody has saved it", c.Checkpoint, l.session)
		}
	}
	return nil
}

func (l *lane) knows(id string) bool {
	return slices.ContainsFunc(l.acked, func(k kept) bool { return k.id == id })
}

// newest is the id of the newest of a list; "" where it is empty.
func newest(list []one) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Checkpoint
}

// arrive compares everything that there ever was.
func arrive(t *testing.T, p place, seats []*seat) {
	t.Helper()
	w := hire(t, p).MustOpen()
	w.MustDo(order{Do: opMaintain})
	opened, midst, cut, saves := 0, 0, 0, 0
	for _, s := range seats {
		opened, midst, cut = opened+s.opened, midst+s.midst, cut+s.saves
		for _, l := range s.lanes {
			if err := l.check(w, -1); err != nil {
				t.Fatal(err)
			}
			saves += l.saves
		}
	}
	if r := w.MustDo(order{Do: opVerify}); len(r.Damaged) > 0 {
		t.Errorf("behind it all damaged are %v", r.Damaged)
	}
	w.Dismiss()
	if opened == 0 || saves < 4 {
		t.Errorf("%d workers opened the checkpoints and %d saves were acknowledged: nothing was tested", opened, saves)
	}
	t.Logf("%d workers were killed at work, in the midst of %d orders, %d of them saves; %d saves", opened, midst, cut, saves)
}

// TestComparisonFindsLoss holds the comparison itself to its task.
func TestComparisonFindsLoss(t *testing.T) {
	t.Parallel()
	texts := []text{{"s", 1, 100}, {"s", 2, 100}, {"s", 3, 100}, {"s", 4, 100}}
	known := func(pending bool) *lane {
		l := &lane{session: "s", old: map[string]text{}}
		for i, x := range texts[:3] {
			l.acked = append(l.acked, kept{id: fmt.Sprint("c", i), text: x})
		}
		if pending {
			l.pending = &texts[3]
		}
		return l
	}
	all := []one{{Checkpoint: "c2", Sum: texts[2].sum()}, {Checkpoint: "c1", Sum: texts[1].sum()}, {Checkpoint: "c0", Sum: texts[0].sum()}}
	more := append([]one{{Checkpoint: "c3", Sum: texts[3].sum()}}, all...)
	wrong := slices.Clone(all)
	wrong[1].Sum = texts[0].sum()
	for _, test := range []struct {
		name    string
		pending bool
		list    []one
		fails   bool
	}{
		{"all that was acknowledged", false, all, false},
		{"the pending one too", true, more, false},
		{"one that nobody saved", false, more, true},
		{"another one than the pending one", true, append([]one{{Checkpoint: "c3", Sum: texts[0].sum()}}, all...), true},
		{"one is lost", false, all[:2], true},
		{"the last one is lost", false, all[1:], true},
		{"one is another", false, wrong, true},
	} {
		if err := known(test.pending).compare(test.list); (err != nil) != test.fails {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
