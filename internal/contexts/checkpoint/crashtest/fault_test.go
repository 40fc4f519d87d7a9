package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// fault is a way in which a write fails.
type fault struct {
	name string
	err  error
	// after executes the write and then returns the error, as if only the response was
	// lost.
	after bool
	// lasting makes all later writes fail too, until a removal succeeds.
	lasting bool
}

func writeFaults() []fault {
	full := guideway.Errorf(guideway.CodeUnavailable, "played: %w", blob.Full(syscall.ENOSPC)).WithFix("free space")
	broken := guideway.Errorf(guideway.CodeUnavailable, "played: %w", syscall.EIO).WithFix("try again")
	return []fault{
		{name: "full", err: full},
		{name: "full from then on", err: full, lasting: true},
		{name: "broken", err: broken},
		{name: "answer lost", err: broken, after: true},
	}
}

// trap makes one write fail; the field at is the number of that write.
type trap struct {
	fault

	mu     sync.Mutex
	writes int
	at     int
	sprung bool
}

// tryWrite executes a write or makes it fail. frees means that the write frees space.
func (p *trap) tryWrite(frees bool, do func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	hit := p.writes == p.at
	if p.lasting && p.sprung && !frees {
		hit = true
	}
	if !hit {
		err := do()
		if frees && err == nil && p.sprung {
			p.lasting = false
		}
		return err
	}
	p.sprung = true
	if p.after {
		if err := do(); err != nil {
			return err
		}
	}
	return p.err
}

// disarm disables the trap and reports whether it failed a write.
func (p *trap) disarm() (sprung bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sprung = p.sprung
	p.at, p.lasting, p.sprung = 0, false, false
	return sprung
}

// faultyBlobs is a blob store whose writes a trap can make fail.
type faultyBlobs struct {
	blob.Store
	trap *trap
}

func (f faultyBlobs) Put(ctx context.Context, data []byte) (name blob.Name, err error) {
	err = f.trap.tryWrite(false, func() error {
		name, err = f.Store.Put(ctx, data)
		return err
	})
	if err != nil {
		name = ""
	}
	return name, err
}

func (f faultyBlobs) Delete(ctx context.Context, names ...blob.Name) error {
	return f.trap.tryWrite(true, func() error { return f.Store.Delete(ctx, names...) })
}

func (f faultyBlobs) CreateSlot(ctx context.Context, key string, value []byte) error {
	return f.trap.tryWrite(false, func() error { return f.Store.CreateSlot(ctx, key, value) })
}

func (f faultyBlobs) EraseSlot(ctx context.Context, key string) error {
	return f.trap.tryWrite(true, func() error { return f.Store.EraseSlot(ctx, key) })
}

// faultyIndex is an index whose writes a trap can make fail.
type faultyIndex struct {
	checkpoint.Index
	trap *trap
}

func (f faultyIndex) Apply(ctx context.Context, c checkpoint.Change) error {
	return f.trap.tryWrite(len(c.Remove) > 0 && c.Add == nil, func() error { return f.Index.Apply(ctx, c) })
}

func (f faultyIndex) Note(ctx context.Context, list []checkpoint.Entry) error {
	return f.trap.tryWrite(false, func() error { return f.Index.Note(ctx, list) })
}

// faultBench is a service with traps in a directory.
type faultBench struct {
	t       *testing.T
	dir     string
	sealed  bool
	service *checkpoint.Service
	known   map[string]string
	refs    map[string]string
}

// openService opens the service, and returns the function to close it.
func (b *faultBench) openService(p *trap) (shut func()) {
	b.t.Helper()
	ctx := b.t.Context()
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(b.dir, "contexts")})
	b.mustSucceed(err)
	o := checkpoint.Options{Blobs: faultyBlobs{blobs, p}, Store: checkpoint.Store{Mode: checkpoint.ModeSQLite}, Limits: checkpoint.Limits{PerSeries: 8}, Settle: -1}
	index, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(b.dir, "guideway.db")})
	b.mustSucceed(err)
	o.Index = faultyIndex{index, p}
	if b.sealed {
		o.Keys, err = seal.Open(ctx, blobs, seal.File{Path: filepath.Join(b.dir, "key")})
		b.mustSucceed(err)
	}
	b.service, err = checkpoint.New(o)
	b.mustSucceed(err)
	return func() {
		b.mustSucceed(b.service.Close())
		b.mustSucceed(index.Close())
	}
}

func (b *faultBench) mustSucceed(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// saveText saves a text. A failed save must return a clear error.
func (b *faultBench) saveText(session string, n int) bool {
	b.t.Helper()
	x := text{Session: session, N: n, Size: 1500}
	s, err := b.service.Save(b.t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: session, Context: json.RawMessage(x.contextJSON()), Workflow: "faults"})
	if err != nil {
		b.wantClearError("save", err)
		return false
	}
	b.known[s.ID] = x.contextJSON()
	return true
}

// wantClearError checks that an error has the code unavailable and a fix.
func (b *faultBench) wantClearError(what string, err error) {
	b.t.Helper()
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		b.t.Errorf("%s returned %v (%s, fix %q)", what, err, guideway.ErrorCode(err), guideway.ErrorFix(err))
	}
}

// runAllWrites runs every kind of write.
func (b *faultBench) runAllWrites() {
	b.t.Helper()
	ctx := b.t.Context()
	for n := range 10 { // save two checkpoints more than the limit of the session
		b.saveText("work", n)
	}
	for n := range 4 {
		b.saveText("play", n)
	}
	if p, err := b.service.StoreFragment(ctx, testPrincipal(), "work", json.RawMessage(`["a piece"]`)); err == nil {
		b.refs[p.Ref] = `["a piece"]`
	} else {
		b.wantClearError("keep", err)
	}
	list, err := b.service.List(ctx, testPrincipal(), checkpoint.ListRequest{Session: "work"})
	b.mustSucceed(err)
	if len(list.Checkpoints) > 4 {
		id := list.Checkpoints[3].ID
		delete(b.known, id) // the checkpoint may be deleted even if the call fails
		if _, err := b.service.Delete(ctx, testPrincipal(), checkpoint.DeleteRequest{IDs: []string{id}}); err != nil {
			b.wantClearError("delete", err)
		}
	}
	bundle, err := b.service.Export(ctx, testPrincipal(), checkpoint.ExportRequest{Session: "play"})
	if err == nil {
		if _, err = b.service.Import(ctx, testPrincipal(), checkpoint.ImportRequest{Data: bundle, Session: "copy"}); err != nil {
			b.wantClearError("import", err)
		}
	}
	if _, err := b.service.Cleanup(ctx, checkpoint.CleanupRequest{KeepLast: 7}); err != nil {
		b.wantClearError("cleanup", err)
	}
	if _, err := b.service.Maintain(ctx); err != nil {
		b.wantClearError("maintain", err)
	}
	if _, err := b.service.Delete(ctx, testPrincipal(), checkpoint.DeleteRequest{Session: "copy"}); err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
		b.wantClearError("delete a session", err)
	}
	for n := 10; n < 13; n++ {
		b.saveText("work", n)
	}
}

// compareAll checks that all listed checkpoints can be loaded, that acknowledged ones have
// their contexts, and that Verify finds no damage.
func (b *faultBench) compareAll() {
	b.t.Helper()
	ctx := b.t.Context()
	for _, session := range []string{"work", "play"} {
		page, err := b.service.List(ctx, testPrincipal(), checkpoint.ListRequest{Session: session, Limit: 100})
		b.mustSucceed(err)
		for i, rec := range page.Checkpoints {
			loaded, err := b.service.Load(ctx, testPrincipal(), checkpoint.LoadRequest{ID: rec.ID})
			if err != nil || loaded.Degraded != nil {
				b.t.Fatalf("%s of %s, number %d: %+v, %v", rec.ID, session, rec.Number, loaded, err)
			}
			if want, acknowledged := b.known[rec.ID]; acknowledged && string(loaded.Context) != want {
				b.t.Fatalf("%s of %s has a different context", rec.ID, session)
			}
			if i == 0 {
				last, err := b.service.Load(ctx, testPrincipal(), checkpoint.LoadRequest{Session: session})
				if err != nil || last.ID != rec.ID {
					b.t.Fatalf("the last checkpoint of %s is %+v, %v, want %s", session, last, err, rec.ID)
				}
			}
		}
	}
	for ref, want := range b.refs {
		part, err := b.service.Load(ctx, testPrincipal(), checkpoint.LoadRequest{ID: ref})
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			continue // a full disk removes whole sessions
		}
		if err != nil || string(part.Context) != want {
			b.t.Errorf("the fragment %s is %+v, %v", ref, part, err)
		}
	}
	report, err := b.service.Verify(ctx)
	b.mustSucceed(err)
	if len(report.Damaged) > 0 {
		b.t.Errorf("damaged checkpoints: %+v", report.Damaged)
	}
}

// checkNewest checks that the newest checkpoint of a session has the context of save n.
func (b *faultBench) checkNewest(session string, n int) {
	b.t.Helper()
	last, err := b.service.Load(b.t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: session})
	if err != nil || string(last.Context) != (text{Session: session, N: n, Size: 1500}).contextJSON() {
		b.t.Errorf("the last of %s is %.200s, %v; want save %d", session, contextOf(last), err, n)
	}
}

func contextOf(l *checkpoint.Loaded) string {
	if l == nil {
		return ""
	}
	return string(l.Context)
}

// TestEveryWriteFails causes every kind of failure in a sample of the writes of
// runAllWrites, one per trial. A failed save must return a clear error, no listed checkpoint
// may be damaged, and later saves must succeed.
func TestEveryWriteFails(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	for _, store := range []struct {
		name   string
		sealed bool
	}{{"sqlite", false}, {"encrypted", true}} {
		for _, how := range writeFaults() {
			t.Run(store.name+"/"+how.name, func(t *testing.T) {
				t.Parallel()
				every := crash.Amount(t, "GUIDEWAY_CRASH_WRITES", 11, 25)
				trials := 0
				for at := 1; ; at += every {
					b := &faultBench{t: t, dir: crash.Dir(t), sealed: store.sealed, known: map[string]string{}, refs: map[string]string{}}
					p := &trap{fault: how, at: at}
					shut := b.openService(p)
					b.runAllWrites()
					b.compareAll()
					sprung := p.disarm()
					for n := 100; n < 104; n++ {
						if !b.saveText("work", n) {
							t.Fatalf("at write %d: a save failed on an intact disk", at)
						}
					}
					b.compareAll()
					b.checkNewest("work", 103)
					shut()
					shut = b.openService(&trap{})
					_, err := b.service.Maintain(t.Context())
					b.mustSucceed(err)
					b.compareAll()
					b.checkNewest("work", 103)
					shut()
					if !sprung {
						break
					}
					trials++
					if t.Failed() {
						t.Fatalf("at write %d", at)
					}
				}
				if trials < 3 {
					t.Errorf("only %d writes failed", trials)
				}
				t.Logf("%d writes failed, one in each trial", trials)
			})
		}
	}
}

// TestTrap checks that a lasting trap makes writes fail from the selected write on, until a
// removal succeeds.
func TestTrap(t *testing.T) {
	t.Parallel()
	p := &trap{fault: fault{err: syscall.EIO, lasting: true}, at: 2}
	well := func() error { return nil }
	var got []bool
	for _, frees := range []bool{false, false, false, true, false} {
		got = append(got, errors.Is(p.tryWrite(frees, well), syscall.EIO))
	}
	if want := []bool{false, true, true, false, false}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the failed writes are %v, want %v", got, want)
	}
}
