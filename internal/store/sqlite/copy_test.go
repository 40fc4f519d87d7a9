package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestCopyWhileWriting copies a store while runs are written: the copy is a sound store with each
// commit that was acknowledged before, and each run in it is complete.
func TestCopyWhileWriting(t *testing.T) {
	t.Parallel()
	s := openStoreWith(t, Options{})
	var acknowledged [4]atomic.Int64
	started, stop := make(chan struct{}), make(chan struct{})
	var writers sync.WaitGroup
	for i := range acknowledged {
		writers.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := putCommit(context.WithoutCancel(t.Context()), s, newTestCommit(fmt.Sprint("r_", i), n, "words")); err != nil {
					t.Error(err)
					return
				}
				acknowledged[i].Store(n)
				if i == 0 && n == 1 {
					close(started)
				}
			}
		})
	}
	<-started
	for range 5 {
		var before [len(acknowledged)]int64
		for i := range before {
			before[i] = acknowledged[i].Load()
		}
		to := filepath.Join(t.TempDir(), testFile)
		copied, err := CopyFile(t.Context(), s.o.Path, to)
		if err != nil {
			t.Fatal(err)
		}
		checkCopy(t, to, copied.Rows["events"], before[:])
		if copied.Schema != SchemaVersion() {
			t.Errorf("the schema of the copy is %d", copied.Schema)
		}
	}
	close(stop)
	writers.Wait()
}

func checkCopy(t *testing.T, path string, events int64, least []int64) {
	t.Helper()
	c, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h, err := c.Check(t.Context())
	if err != nil || len(h.Problems) > 0 {
		t.Errorf("the copy: %v %v", h.Problems, err)
	}
	runs, err := c.Runs(t.Context(), run.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, r := range runs {
		found[r.ID] = r.Seq
		list, err := c.Events(t.Context(), r.ID, 0, 1<<20)
		if err != nil || int64(len(list)) != r.Seq {
			t.Errorf("%s has %d events, and its record has %d: %v", r.ID, len(list), r.Seq, err)
		}
		events -= int64(len(list))
	}
	if events != 0 {
		t.Errorf("the count of events differs by %d", events)
	}
	for i, seq := range least {
		if id := fmt.Sprint("r_", i); found[id] < seq {
			t.Errorf("%s has %d events in the copy, and %d were acknowledged before", id, found[id], seq)
		}
	}
}

// TestCheckUnused checks that a store that is open is in use, and that a closed, damaged or
// unfinished one is not.
func TestCheckUnused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), testFile)
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckUnused(t.Context(), path); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("an open store: %v", err)
	}
	if err := putCommit(t.Context(), s, newTestCommit("r_1", 1, "words")); err != nil {
		t.Errorf("the check broke the open store: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := CheckUnused(t.Context(), path); err != nil {
		t.Errorf("a closed store: %v", err)
	}
	for _, text := range []string{"", "not a database", string(make([]byte, 8192))} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := CheckUnused(t.Context(), path); err != nil {
			t.Errorf("a file of %d bytes: %v", len(text), err)
		}
	}
}
