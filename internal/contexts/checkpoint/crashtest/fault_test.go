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
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/fileindex"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// fault is how a write fails.
type fault struct {
	name string
	err  error
	// after has the write happen all the same: it is the answer that is lost.
	after bool
	// lasting has every write after it fail, too, until something was removed.
	lasting bool
}

func faults() []fault {
	full := guideway.Errorf(guideway.CodeUnavailable, "played: %w", blob.Full(syscall.ENOSPC)).WithFix("free space")
	broken := guideway.Errorf(guideway.CodeUnavailable, "played: %w", syscall.EIO).WithFix("try again")
	return []fault{
		{name: "full", err: full},
		{name: "full from then on", err: full, lasting: true},
		{name: "broken", err: broken},
		{name: "answer lost", err: broken, after: true},
	}
}

// trap has one write of all fail.
type trap struct {
	fault

	mu     sync.Mutex
	writes int
	at     int
	sprung bool
}

// write makes a write, or fails it. frees says that it makes room.
func (p *trap) write(frees bool, do func() error) error {
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

// mend has nothing fail any more, and says whether anything did.
func (p *trap) mend() (sprung bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sprung = p.sprung
	p.at, p.lasting, p.sprung = 0, false, false
	return sprung
}

// faultyBlobs fail where the trap says so.
type faultyBlobs struct {
	blob.Store
	trap *trap
}

func (f faultyBlobs) Put(ctx context.Context, data []byte) (name blob.Name, err error) {
	err = f.trap.write(false, func() error {
		name, err = f.Store.Put(ctx, data)
		return err
	})
	if err != nil {
		name = ""
	}
	return name, err
}

func (f faultyBlobs) Delete(ctx context.Context, names ...blob.Name) error {
	return f.trap.write(true, func() error { return f.Store.Delete(ctx, names...) })
}

func (f faultyBlobs) CreateSlot(ctx context.Context, key string, value []byte) error {
	return f.trap.write(false, func() error { return f.Store.CreateSlot(ctx, key, value) })
}

func (f faultyBlobs) EraseSlot(ctx context.Context, key string) error {
	return f.trap.write(true, func() error { return f.Store.EraseSlot(ctx, key) })
}

// faultyIndex fails where the trap says so.
type faultyIndex struct {
	checkpoint.Index
	trap *trap
}

func (f faultyIndex) Apply(ctx context.Context, c checkpoint.Change) error {
	return f.trap.write(len(c.Remove) > 0 && c.Add == nil, func() error { return f.Index.Apply(ctx, c) })
}

func (f faultyIndex) Note(ctx context.Context, list []checkpoint.Entry) error {
	return f.trap.write(false, func() error { return f.Index.Note(ctx, list) })
}

// bench is a service with traps in a directory.
type bench struct {
	t       *testing.T
	dir     string
	files   bool
	sealed  bool
	service *checkpoint.Service
	known   map[string]string
	refs    map[string]string
}

// open opens the service, and gives the way to close it with all below it.
func (b *bench) open(p *trap) (shut func()) {
	b.t.Helper()
	ctx := b.t.Context()
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(b.dir, "contexts")})
	b.must(err)
	o := checkpoint.Options{Blobs: faultyBlobs{blobs, p}, Store: checkpoint.Store{Mode: checkpoint.ModeSQLite}, Limits: checkpoint.Limits{PerLine: 8}, Settle: -1}
	var closer interface{ Close() error }
	if b.files {
		x, err := fileindex.Open(fileindex.Options{Dir: filepath.Join(b.dir, "contexts", "index")})
		b.must(err)
		o.Index, closer = faultyIndex{x, p}, x
	} else {
		x, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(b.dir, "guideway.db")})
		b.must(err)
		o.Index, closer = faultyIndex{x, p}, x
	}
	if b.sealed {
		o.Keys, err = seal.Open(ctx, blobs, seal.File{Path: filepath.Join(b.dir, "key")})
		b.must(err)
	}
	b.service, err = checkpoint.New(o)
	b.must(err)
	return func() {
		b.must(b.service.Close())
		b.must(closer.Close())
	}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// save saves a text; that it failed is told, and nothing else may come of it.
func (b *bench) save(session string, n int) bool {
	b.t.Helper()
	x := text{Session: session, N: n, Size: 1500}
	s, err := b.service.Save(b.t.Context(), ada(), checkpoint.SaveRequest{Session: session, Context: json.RawMessage(x.json()), Workflow: "faults"})
	if err != nil {
		b.clear("save", err)
		return false
	}
	b.known[s.ID] = x.json()
	return true
}

// clear wants an error that says what to do.
func (b *bench) clear(what string, err error) {
	b.t.Helper()
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		b.t.Errorf("%s is answered with %v (%s, fix %q)", what, err, guideway.ErrorCode(err), guideway.ErrorFix(err))
	}
}

// days has a little of everything that writes.
func (b *bench) days() {
	b.t.Helper()
	ctx := b.t.Context()
	for n := range 10 { // two more than the session has room for
		b.save("work", n)
	}
	for n := range 4 {
		b.save("play", n)
	}
	if p, err := b.service.Keep(ctx, ada(), "work", json.RawMessage(`["a piece"]`)); err == nil {
		b.refs[p.Ref] = `["a piece"]`
	} else {
		b.clear("keep", err)
	}
	list, err := b.service.List(ctx, ada(), checkpoint.ListRequest{Session: "work"})
	b.must(err)
	if len(list.Checkpoints) > 4 {
		id := list.Checkpoints[3].ID
		delete(b.known, id) // whatever comes of it
		if _, err := b.service.Delete(ctx, ada(), checkpoint.DeleteRequest{IDs: []string{id}}); err != nil {
			b.clear("delete", err)
		}
	}
	bundle, err := b.service.Export(ctx, ada(), checkpoint.ExportRequest{Session: "play"})
	if err == nil {
		if _, err = b.service.Import(ctx, ada(), checkpoint.ImportRequest{Data: bundle, Session: "copy"}); err != nil {
			b.clear("import", err)
		}
	}
	if _, err := b.service.Cleanup(ctx, checkpoint.CleanupRequest{KeepLast: 7}); err != nil {
		b.clear("cleanup", err)
	}
	if _, err := b.service.Maintain(ctx); err != nil {
		b.clear("maintain", err)
	}
	if _, err := b.service.Delete(ctx, ada(), checkpoint.DeleteRequest{Session: "copy"}); err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
		b.clear("delete a session", err)
	}
	for n := 10; n < 13; n++ {
		b.save("work", n)
	}
}

// compare wants everything that is still listed, and everything that must be
// listed, as it was saved.
func (b *bench) compare() {
	b.t.Helper()
	ctx := b.t.Context()
	for _, session := range []string{"work", "play"} {
		page, err := b.service.List(ctx, ada(), checkpoint.ListRequest{Session: session, Limit: 100})
		b.must(err)
		for i, rec := range page.Checkpoints {
			loaded, err := b.service.Load(ctx, ada(), checkpoint.LoadRequest{ID: rec.ID})
			if err != nil || loaded.Degraded != nil {
				b.t.Fatalf("%s of %s, number %d: %+v, %v", rec.ID, session, rec.Number, loaded, err)
			}
			if want, acknowledged := b.known[rec.ID]; acknowledged && string(loaded.Context) != want {
				b.t.Fatalf("%s of %s is another context", rec.ID, session)
			}
			if i == 0 {
				last, err := b.service.Load(ctx, ada(), checkpoint.LoadRequest{Session: session})
				if err != nil || last.ID != rec.ID {
					b.t.Fatalf("the last of %s is %+v, %v, want %s", session, last, err, rec.ID)
				}
			}
		}
	}
	for ref, want := range b.refs {
		part, err := b.service.Recall(ctx, ada(), ref)
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			continue // a full disk takes whole sessions
		}
		if err != nil || string(part) != want {
			b.t.Errorf("the piece %s is %s, %v", ref, part, err)
		}
	}
	report, err := b.service.Verify(ctx)
	b.must(err)
	if len(report.Damaged) > 0 {
		b.t.Errorf("damaged are %+v", report.Damaged)
	}
}

// newest wants the last save of a session that was acknowledged to be the last one
// there is, or one behind it whose answer was lost.
func (b *bench) newest(session string, n int) {
	b.t.Helper()
	last, err := b.service.Load(b.t.Context(), ada(), checkpoint.LoadRequest{Session: session})
	if err != nil || string(last.Context) != (text{Session: session, N: n, Size: 1500}).json() {
		b.t.Errorf("the last of %s is %.200s, %v; want save %d", session, contextOf(last), err, n)
	}
}

func contextOf(l *checkpoint.Loaded) string {
	if l == nil {
		return ""
	}
	return string(l.Context)
}

// TestEveryWriteFails has each write of a few days fail, one in each trial, in
// every way that writes fail: whatever was acknowledged is there, what was not is
// an error that says what to do, and what follows goes well.
func TestEveryWriteFails(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	for _, store := range []struct {
		name          string
		files, sealed bool
	}{{"sqlite", false, false}, {"files, encrypted", true, true}} {
		for _, how := range faults() {
			t.Run(store.name+"/"+how.name, func(t *testing.T) {
				t.Parallel()
				every := crash.Amount(t, "GUIDEWAY_CRASH_WRITES", 11, 25)
				trials := 0
				for at := 1; ; at += every {
					b := &bench{t: t, dir: crash.Dir(t), files: store.files, sealed: store.sealed, known: map[string]string{}, refs: map[string]string{}}
					p := &trap{fault: how, at: at}
					shut := b.open(p)
					b.days()
					b.compare()
					sprung := p.mend()
					for n := 100; n < 104; n++ {
						if !b.save("work", n) {
							t.Fatalf("at write %d: a save fails on a disk that is well", at)
						}
					}
					b.compare()
					b.newest("work", 103)
					shut()
					shut = b.open(&trap{})
					_, err := b.service.Maintain(t.Context())
					b.must(err)
					b.compare()
					b.newest("work", 103)
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

// TestTrap holds the traps themselves to their task.
func TestTrap(t *testing.T) {
	t.Parallel()
	p := &trap{fault: fault{err: syscall.EIO, lasting: true}, at: 2}
	well := func() error { return nil }
	var got []bool
	for _, frees := range []bool{false, false, false, true, false} {
		got = append(got, errors.Is(p.write(frees, well), syscall.EIO))
	}
	if want := []bool{false, true, true, false, false}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("failed are %v, want %v", got, want)
	}
}
