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

// keyless hides the stored fingerprint of the key, like a store of an earlier version.
type keyless struct {
	app.JournalStore
	kept []byte
}

// PinKey stores the fingerprint from now on.
func (k *keyless) PinKey(_ context.Context, fingerprint []byte) ([]byte, error) {
	if k.kept == nil {
		k.kept = fingerprint
	}
	return k.kept, nil
}

// machine opens the key of one of several machines with the same store.
func machine(t *testing.T, journal app.JournalStore, name string) (run.Key, error) {
	t.Helper()
	cfg := &config.Config{Store: config.StoreSQLite, DataDir: filepath.Dir(name)}
	cfg.Journal.KeyFile = name
	return app.OpenKey(t.Context(), cfg, journal)
}

func aStore(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "guideway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// If machines use a new store at the same time, each with no key or with a different one,
// one of them sets the store's key; the others get an error and cannot chain.
func TestStoreHasOneKey(t *testing.T) {
	t.Parallel()
	journal, dir := aStore(t), t.TempDir()
	const machines = 6
	keys, errs := make([]run.Key, machines), make([]error, machines)
	path := func(i int) string { return filepath.Join(dir, string(rune('a'+i)), "journal.key") }
	var group sync.WaitGroup
	for i := range machines {
		group.Go(func() { keys[i], errs[i] = machine(t, journal, path(i)) })
	}
	group.Wait()
	first := -1
	for i, err := range errs {
		switch {
		case err == nil && first < 0:
			first = i
		case err == nil:
			t.Fatalf("the machines %d and %d have a key each", first, i)
		case guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "the machine that created the store"):
			t.Errorf("machine %d is told %v (%s), try %s", i, err, guideway.ErrorCode(err), guideway.ErrorFix(err))
		}
	}
	if first < 0 {
		t.Fatalf("no machine has begun: %v", errs)
	}
	for i := range machines {
		key, err := machine(t, journal, path(i))
		if (i == first) != (err == nil) || err == nil && string(key) != string(keys[first]) {
			t.Errorf("machine %d, the first was %d: %v", i, first, err)
		}
	}
}

// A store of an earlier version has runs but no fingerprint: the key that chains its runs
// is accepted, and no other key.
func TestStoreWithoutFingerprintKeepsKey(t *testing.T) {
	t.Parallel()
	host, _ := desk(t, nil)
	write(t, filepath.Join(host.Dir, ".guideway", "workflows", "flow.json"),
		`{"id": "flow", "name": "Flow", "description": "A step.", "version": "1.0.0", "steps": [{"id": "one", "title": "One", "prompt": "Do it."}]}`)
	agent(t, host, `start {"WorkflowID":"flow"}`)
	data := filepath.Join(host.Dir, ".local", "share", "guideway")
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(data, "guideway.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	older := &keyless{JournalStore: s}
	other := filepath.Join(t.TempDir(), "journal.key")
	if _, err := machine(t, older, other); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Fatalf("a machine without the key began another: %v", err)
	}
	if _, err := machine(t, aStore(t), other); err != nil { // now other is the key of another store
		t.Fatal(err)
	}
	if _, err := machine(t, older, other); err == nil || !strings.Contains(err.Error(), "a different key") {
		t.Fatalf("the key of another store was taken: %v", err)
	}
	if _, err := machine(t, older, filepath.Join(data, "journal.key")); err != nil {
		t.Fatalf("the store's own key was refused: %v", err)
	}
	if older.kept == nil {
		t.Error("no fingerprint was kept from then on")
	}
}

// lateKey is a journal of which another process creates and pins the key at the first
// call of PinKey.
type lateKey struct {
	app.JournalStore
	create func()
}

func (l *lateKey) PinKey(ctx context.Context, fingerprint []byte) ([]byte, error) {
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
	journal, path := aStore(t), filepath.Join(t.TempDir(), "journal.key")
	var other run.Key
	late := &lateKey{JournalStore: journal, create: func() {
		var err error
		if other, err = machine(t, journal, path); err != nil {
			t.Error(err)
		}
	}}
	key, err := machine(t, late, path)
	if err != nil || !bytes.Equal(key, other) {
		t.Fatalf("OpenKey = %x, %v; want the key %x of the other process", key, err, other)
	}
}
