package checkpoint_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// TestEncrypted: what is encrypted comes back, and neither its words nor its
// content lie in any file.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	for _, mode := range []checkpoint.Mode{checkpoint.ModeSQLite, checkpoint.ModeFiles} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			keys := t.TempDir()
			r := setup(t, mode, encrypted(t, keys))
			const word = "zanzibarine"
			first := r.save(t, "work", `{"plan":"`+word+`"}`)
			second := r.save(t, "work", `{"plan":"`+word+` again"}`)
			if first.Key == "" || first.Key != second.Key {
				t.Errorf("the keys are %q and %q", first.Key, second.Key)
			}
			if other := r.save(t, "play", `{}`); other.Key == first.Key {
				t.Error("two sessions share a key")
			}
			piece, err := r.Keep(t.Context(), ada(), "work", json.RawMessage(`"`+word+`"`))
			must(t, err)
			page, err := r.List(t.Context(), ada(), checkpoint.ListRequest{Query: word})
			must(t, err)
			if len(page.Checkpoints) > 0 {
				t.Error("what is encrypted is found by its words")
			}
			again := reopen(t, r, encrypted(t, keys))
			again.wantContext(t, first.ID, `{"plan":"`+word+`"}`)
			again.wantContext(t, second.ID, `{"plan":"`+word+` again"}`)
			back, err := again.Recall(t.Context(), ada(), piece.Ref)
			must(t, err)
			if string(back) != `"`+word+`"` {
				t.Errorf("the piece is %s", back)
			}
			must(t, walk(r.dir, func(path string, info os.FileInfo) {
				if info.IsDir() {
					return
				}
				text, err := os.ReadFile(path)
				must(t, err)
				if strings.Contains(string(text), word) || strings.Contains(string(text), word[:7]) {
					t.Errorf("%s has the content", path)
				}
			}))
		})
	}
}

// TestErase: deleting an encrypted session destroys its key; a copy of its blobs
// is worth nothing then.
func TestErase(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	r := setup(t, checkpoint.ModeSQLite, encrypted(t, keys))
	saved := r.save(t, "work", `{"plan":"secret"}`)
	other := r.save(t, "play", `{"fun":true}`)
	slot := filepath.Join(r.dir, "contexts", "slots", saved.Key)
	if _, err := os.Stat(slot); err != nil {
		t.Fatal(err)
	}
	copied := map[string][]byte{}
	for _, path := range r.blobFiles(t) {
		text, err := os.ReadFile(path)
		must(t, err)
		copied[path] = text
	}
	deleted, err := r.Delete(t.Context(), ada(), checkpoint.DeleteRequest{Session: "work"})
	must(t, err)
	if !deleted.Erased {
		t.Error("the answer does not say that the key is gone")
	}
	if _, err := os.Stat(slot); !os.IsNotExist(err) {
		t.Errorf("the key is there: %v", err)
	}
	r.wantContext(t, other.ID, `{"fun":true}`)
	// Somebody had a copy of all blobs, and the database is lost.
	for path, text := range copied {
		must(t, os.WriteFile(path, text, 0o600))
	}
	lost := &rig{dir: r.dir, mode: checkpoint.ModeFiles, clock: r.clock}
	again := reopen(t, lost, encrypted(t, keys))
	_, err = again.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: saved.ID})
	wantCode(t, err, guideway.CodeInternal, "a copy of an erased checkpoint")
	again.wantContext(t, other.ID, `{"fun":true}`)
}

// TestWrongKey: without the right key nothing is read, nothing is saved in plain
// behind what is encrypted, nothing is marked as damaged, and no key is made.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	r := setup(t, checkpoint.ModeSQLite, encrypted(t, keys))
	saved := r.save(t, "work", `{"plan":"secret"}`)
	right, err := os.ReadFile(filepath.Join(keys, "key"))
	must(t, err)
	open := func() error {
		_, err := seal.Open(t.Context(), r.blobs, seal.File{Path: filepath.Join(keys, "key")})
		return err
	}
	must(t, os.Remove(filepath.Join(keys, "key")))
	wantCode(t, open(), guideway.CodeUnavailable, "a missing key")
	if _, err := os.Stat(filepath.Join(keys, "key")); !os.IsNotExist(err) {
		t.Fatal("a key was made")
	}
	must(t, os.WriteFile(filepath.Join(keys, "key"), []byte("gdwmaster1_"+strings.Repeat("ab", 32)), 0o600))
	wantCode(t, open(), guideway.CodeUnavailable, "a wrong key")
	must(t, os.WriteFile(filepath.Join(keys, "key"), []byte("gibberish"), 0o600))
	wantCode(t, open(), guideway.CodeUnavailable, "a garbled key")
	// With encryption off.
	plain := reopen(t, r)
	_, err = plain.Load(t.Context(), ada(), checkpoint.LoadRequest{ID: saved.ID})
	wantCode(t, err, guideway.CodeUnavailable, "load without a key")
	_, err = plain.Save(t.Context(), ada(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`)})
	wantCode(t, err, guideway.CodeUnavailable, "save without a key")
	_, err = plain.Verify(t.Context())
	wantCode(t, err, guideway.CodeUnavailable, "verify without a key")
	plain.save(t, "another", `{}`)
	must(t, os.WriteFile(filepath.Join(keys, "key"), right, 0o600))
	again := reopen(t, r, encrypted(t, keys))
	again.wantContext(t, saved.ID, `{"plan":"secret"}`)
	report, err := again.Verify(t.Context())
	must(t, err)
	if len(report.Damaged) > 0 {
		t.Errorf("damaged is %v", report.Damaged)
	}
}

// TestTurnedOn: a session that was begun in plain goes on encrypted.
func TestTurnedOn(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	r := setup(t, checkpoint.ModeSQLite)
	first := r.save(t, "work", bulky(1))
	r = reopen(t, r, encrypted(t, keys))
	second := r.save(t, "work", bulky(2))
	if first.Key != "" || second.Key == "" {
		t.Errorf("the keys are %q and %q", first.Key, second.Key)
	}
	r.wantContext(t, first.ID, bulky(1))
	r.wantContext(t, second.ID, bulky(2))
	got, err := r.Get(t.Context(), ada(), first.ID)
	must(t, err)
	if got.Base != second.ID || got.Key != second.Key {
		t.Errorf("the older one is stored as %+v: a difference to what is encrypted must be encrypted", got.Form)
	}
}
