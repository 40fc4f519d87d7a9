package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// unkeyedStore hides the stored fingerprint of the key, like a store of an earlier version.
type unkeyedStore struct {
	app.JournalStore
	kept []byte
}

// PinKey stores the fingerprint, which is visible from then on.
func (k *unkeyedStore) PinKey(_ context.Context, fingerprint []byte) ([]byte, error) {
	if k.kept == nil {
		k.kept = fingerprint
	}
	return k.kept, nil
}

// openMachineKey opens the key of one of several machines with the same store.
func openMachineKey(t *testing.T, journal app.JournalStore, name string) (run.Key, error) {
	t.Helper()
	cfg := &config.Config{Store: config.StoreSQLite, DataDir: filepath.Dir(name)}
	cfg.Journal.KeyFile = name
	return app.OpenKey(t.Context(), cfg, journal)
}

func newStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "guideway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// namesKeyOfOther reports whether a fix asks for the key file of another computer: of
// the one that was first, or, if the key was set before this one looked, of any other.
func namesKeyOfOther(fix string) bool {
	return strings.Contains(fix, "the computer that created the store") ||
		strings.Contains(fix, "the key file of another computer that uses the store")
}

// If machines use a new store at the same time, each with no key or with a different one,
// one of them sets the store's key; the others get an error and cannot chain runs.
func TestStoreHasOneKey(t *testing.T) {
	t.Parallel()
	journal, dir := newStore(t), t.TempDir()
	const machines = 6
	keys, errs := make([]run.Key, machines), make([]error, machines)
	path := func(i int) string { return filepath.Join(dir, string(rune('a'+i)), "journal.key") }
	var group sync.WaitGroup
	for i := range machines {
		group.Go(func() { keys[i], errs[i] = openMachineKey(t, journal, path(i)) })
	}
	group.Wait()
	first := -1
	for i, err := range errs {
		switch {
		case err == nil && first < 0:
			first = i
		case err == nil:
			t.Fatalf("the machines %d and %d use different keys", first, i)
		case guideway.ErrorCode(err) != guideway.CodeUnavailable || !namesKeyOfOther(guideway.ErrorFix(err)):
			t.Errorf("machine %d: got %v (%s) with the fix %s", i, err, guideway.ErrorCode(err), guideway.ErrorFix(err))
		}
	}
	if first < 0 {
		t.Fatalf("no machine opened the store: %v", errs)
	}
	for i := range machines {
		key, err := openMachineKey(t, journal, path(i))
		if (i == first) != (err == nil) || err == nil && string(key) != string(keys[first]) {
			t.Errorf("machine %d, where %d was the first: %v", i, first, err)
		}
	}
}

// A store of an earlier version has runs but no fingerprint: the key that chains its runs
// is accepted, and no other key.
func TestStoreWithoutFingerprintKeepsKey(t *testing.T) {
	t.Parallel()
	host, _ := newTerminal(t, nil)
	writeFile(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.json"),
		`{"id": "flow", "name": "Flow", "description": "A step.", "version": "1.0.0", "steps": [{"id": "one", "title": "One", "prompt": "Do it."}]}`)
	agent(t, host, `start {"WorkflowID":"flow"}`)
	data := filepath.Join(host.Dir, ".local", "share", "guideway")
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(data, "guideway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	older := &unkeyedStore{JournalStore: s}
	other := filepath.Join(t.TempDir(), "journal.key")
	if _, err := openMachineKey(t, older, other); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Fatalf("a machine without the key created a new one: %v", err)
	}
	if _, err := openMachineKey(t, newStore(t), other); err != nil { // now the file other contains the key of a different store
		t.Fatal(err)
	}
	if _, err := openMachineKey(t, older, other); err == nil || !strings.Contains(err.Error(), "a different key") {
		t.Fatalf("the key of a different store was accepted: %v", err)
	}
	if _, err := openMachineKey(t, older, filepath.Join(data, "journal.key")); err != nil {
		t.Fatalf("the store's own key was refused: %v", err)
	}
	if older.kept == nil {
		t.Error("the fingerprint was not stored")
	}
}

// lateKeyStore is a journal for which another process creates and pins the key at the first
// call of PinKey.
type lateKeyStore struct {
	app.JournalStore
	create func()
}

func (l *lateKeyStore) PinKey(ctx context.Context, fingerprint []byte) ([]byte, error) {
	if create := l.create; create != nil {
		l.create = nil
		create()
	}
	return l.JournalStore.PinKey(ctx, fingerprint)
}

// A process that finds no key file uses the key that another process on the machine creates
// in the meantime.
func TestKeyCreatedByAnotherProcess(t *testing.T) {
	t.Parallel()
	journal, path := newStore(t), filepath.Join(t.TempDir(), "journal.key")
	var other run.Key
	late := &lateKeyStore{JournalStore: journal, create: func() {
		var err error
		if other, err = openMachineKey(t, journal, path); err != nil {
			t.Error(err)
		}
	}}
	key, err := openMachineKey(t, late, path)
	if err != nil || !bytes.Equal(key, other) {
		t.Fatalf("OpenKey = %x, %v; want the key %x of the other process", key, err, other)
	}
}
