package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

func newLog(t *testing.T) *audit.Log {
	t.Helper()
	dir := t.TempDir()
	return &audit.Log{
		Path: filepath.Join(dir, "data", "audit.jsonl"), HeadPath: filepath.Join(dir, "heads", "audit.head"), Now: time.Now,
		Key: func(context.Context) ([]byte, error) { return []byte("key"), nil },
	}
}

func fill(t *testing.T, l *audit.Log, n int) {
	t.Helper()
	for range n {
		if err := l.Append(t.Context(), audit.Entry{Kind: audit.Login, User: "ada", Detail: strings.Repeat("é", 400)}); err != nil {
			t.Fatal(err)
		}
	}
}

func rewrite(t *testing.T, path string, edit func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, edit(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Entries of concurrent writers are numbered and chained, and the rest of an interrupted
// write is replaced.
func TestAppend(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { fill(t, l, 10) })
	}
	wg.Wait()
	rewrite(t, l.Path, func(text []byte) []byte { return append(text, `{"seq":41,"kind":"lo`...) })
	fill(t, l, 1)
	if n, err := l.Verify(t.Context()); n != 41 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
	seen := 0
	if err := l.Visit(40, func([]byte, audit.Entry) error { seen++; return nil }); err != nil || seen != 1 {
		t.Errorf("after entry 40 there are %d, %v", seen, err)
	}
	if info, err := os.Stat(l.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// memoryState is a shared state in memory.
type memoryState struct {
	deployment.State
	mu      sync.Mutex
	changes sync.Mutex
	entries map[string]string
}

func (s *memoryState) Entries(_ context.Context, prefix string) (list []deployment.Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		if strings.HasPrefix(name, prefix) {
			list = append(list, deployment.Entry{Name: name, Text: s.entries[name]})
		}
	}
	return list, nil
}

func (s *memoryState) Create(_ context.Context, e deployment.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[e.Name] != "" {
		return fs.ErrExist
	}
	s.entries[e.Name] = e.Text
	return nil
}

func (s *memoryState) Change(_ context.Context, name string, edit func(string) (string, error)) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	s.mu.Lock()
	before := s.entries[name]
	s.mu.Unlock()
	after, err := edit(before)
	if err == nil {
		s.mu.Lock()
		s.entries[name] = after
		s.mu.Unlock()
	}
	return err
}

// The instances of a deployment append to one chain, also after one of them ended between an
// entry and the head; changed and removed entries are detected.
func TestSharedLog(t *testing.T) {
	t.Parallel()
	state := &memoryState{entries: map[string]string{}}
	one, two := newLog(t), newLog(t)
	one.Shared, two.Shared = state, state
	var wg sync.WaitGroup
	for _, l := range []*audit.Log{one, two} {
		wg.Go(func() { fill(t, l, 10) })
	}
	wg.Wait()
	verify := func(want int64, ok bool) {
		t.Helper()
		if n, err := two.Verify(t.Context()); ok && n != want || (err == nil) != ok {
			t.Errorf("%d entries, %v", n, err)
		}
	}
	verify(20, true)
	const last = "audit/0000000000000020"
	state.entries["audit-head"] = state.entries["audit/0000000000000019"]
	fill(t, one, 1)
	verify(21, true)
	text := state.entries[last]
	state.entries[last] = strings.Replace(text, `"ada"`, `"eve"`, 1)
	verify(0, false)
	state.entries[last] = text
	delete(state.entries, "audit/0000000000000021")
	verify(0, false)
	if _, err := os.Stat(one.Path); err == nil {
		t.Error("there is a file, too")
	}
}

// An entry that was changed, removed or added without the key is detected, wherever it is.
func TestVerifyDetectsEdits(t *testing.T) {
	t.Parallel()
	lines := func(edit func([][]byte) [][]byte) func([]byte) []byte {
		return func(text []byte) []byte { return bytes.Join(edit(bytes.SplitAfter(text, []byte("\n"))), nil) }
	}
	for name, edit := range map[string]func([]byte) []byte{
		"changed user":   func(text []byte) []byte { return bytes.Replace(text, []byte(`"ada"`), []byte(`"eve"`), 1) },
		"added member":   func(text []byte) []byte { return bytes.Replace(text, []byte(`"ada"`), []byte(`"ada","note":"x"`), 1) },
		"removed first":  lines(func(l [][]byte) [][]byte { return l[1:] }),
		"removed middle": lines(func(l [][]byte) [][]byte { return append(l[:1:1], l[2:]...) }),
		"removed last":   lines(func(l [][]byte) [][]byte { return l[:2] }),
		"removed all":    func([]byte) []byte { return nil },
		"swapped":        lines(func(l [][]byte) [][]byte { l[0], l[1] = l[1], l[0]; return l }),
		"repeated":       lines(func(l [][]byte) [][]byte { return append(l[:1:1], l...) }),
		"forged with hash": func(text []byte) []byte {
			var e audit.Entry
			_ = json.Unmarshal(bytes.SplitAfter(text, []byte("\n"))[2], &e)
			e.Seq, e.MAC = 4, strings.Repeat("0", 64)
			forged, _ := json.Marshal(e)
			return append(text, append(forged, '\n')...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLog(t)
			fill(t, l, 3)
			if n, err := l.Verify(t.Context()); n != 3 || err != nil {
				t.Fatalf("%d entries, %v", n, err)
			}
			rewrite(t, l.Path, edit)
			for range 2 { // also after the next entry, which replaces the head
				if _, err := l.Verify(t.Context()); guideway.ErrorCode(err) != guideway.CodeConflict {
					t.Errorf("the edit is not detected: %v", err)
				}
				fill(t, l, 1)
			}
		})
	}
	l := newLog(t)
	fill(t, l, 1)
	l.Key = func(context.Context) ([]byte, error) { return []byte("other"), nil }
	if _, err := l.Verify(t.Context()); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("another key: %v", err)
	}
}

// A log with entries has a head, and a line that cannot be read stops no later entry.
func TestMissingHead(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	fill(t, l, 2)
	if err := os.Remove(l.HeadPath); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Verify(t.Context()); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("without the head: %v", err)
	}
	rewrite(t, l.Path, func(text []byte) []byte { return append(text, "no entry\n"...) })
	fill(t, l, 1)
	if text, err := os.ReadFile(l.HeadPath); err != nil || !strings.Contains(string(text), `"user":"ada"`) {
		t.Errorf("the entry after an unreadable line is %s, %v", text, err)
	}
	if _, err := l.Verify(t.Context()); err == nil {
		t.Error("the unreadable line is not reported")
	}
}

// Any bytes in the members of an entry keep the chain.
func TestAnyText(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, name)) }
		e := audit.Entry{Kind: audit.Refused, User: text("user"), Client: text("client"), Via: text("via"), Subject: "GET /\xff" + text("subject"), Detail: text("detail")}
		if err := l.Append(context.Background(), e); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := l.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// A process that holds the lock, and does not end, delays an entry for a bounded time.
func TestHeldLock(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	fill(t, l, 1)
	lock := flock.New(l.Path + ".lock")
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if err := l.Append(context.WithoutCancel(t.Context()), audit.Entry{Kind: audit.Login}); guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("with a held lock: %v", err)
		}
	})
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1)
	if n, err := l.Verify(t.Context()); n != 2 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}
