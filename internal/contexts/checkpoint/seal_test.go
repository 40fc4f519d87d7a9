package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/testutil/searchcases"
)

// TestEncrypted checks that encrypted checkpoints can be loaded, and that no file contains
// their words or contents.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	for _, mode := range []checkpoint.Mode{checkpoint.ModeSQLite, checkpoint.ModeFiles} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			keys := t.TempDir()
			r := openRig(t, mode, withEncryption(t, keys))
			const word = "zanzibarine"
			first := r.mustSave(t, "work", `{"plan":"`+word+`"}`)
			second := r.mustSave(t, "work", `{"plan":"`+word+` again"}`)
			if first.Key == "" || first.Key != second.Key {
				t.Errorf("the keys are %q and %q", first.Key, second.Key)
			}
			if other := r.mustSave(t, "play", `{}`); other.Key == first.Key {
				t.Error("two sessions share a key")
			}
			fragment, err := r.StoreFragment(t.Context(), testPrincipal(), "work", json.RawMessage(`"`+word+`"`))
			mustSucceed(t, err)
			for name, text := range searchcases.Texts() {
				r.mustSave(t, name, `{"notes":"`+text+`"}`)
			}
			for _, c := range append(searchcases.Cases(), searchcases.Case{Query: word[:6], Found: []string{"work", "work"}}) {
				page, err := r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Query: c.Query})
				mustSucceed(t, err)
				var found []string
				for _, one := range page.Checkpoints {
					found = append(found, one.Session)
				}
				slices.Sort(found)
				if !page.Partial && !slices.Equal(found, c.Found) {
					t.Errorf("%q finds %q, not %q", c.Query, found, c.Found)
				}
			}
			again := reopenRig(t, r, withEncryption(t, keys))
			again.wantContext(t, first.ID, `{"plan":"`+word+`"}`)
			again.wantContext(t, second.ID, `{"plan":"`+word+` again"}`)
			back, err := again.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: fragment.Ref})
			mustSucceed(t, err)
			if string(back.Context) != `"`+word+`"` {
				t.Errorf("the fragment is %s", back.Context)
			}
			mustSucceed(t, walkFiles(r.dir, func(path string, info os.FileInfo) {
				if info.IsDir() {
					return
				}
				text, err := os.ReadFile(path)
				mustSucceed(t, err)
				for _, content := range []string{`{"plan":"` + word + `"}`, `{"plan":"` + word + ` again"}`, `"` + word + `"`} {
					sum := sha256.Sum256([]byte(content))
					for _, form := range [][]byte{sum[:], []byte(hex.EncodeToString(sum[:])), []byte(base64.StdEncoding.EncodeToString(sum[:]))} {
						if bytes.Contains(text, form) {
							t.Errorf("%s has the hash of %s", path, content)
						}
					}
				}
				if strings.Contains(string(text), "authent") || strings.Contains(string(text), word) || strings.Contains(string(text), word[:7]) {
					t.Errorf("%s has the content", path)
				}
			}))
		})
	}
}

// TestErase checks that deleting an encrypted session destroys its key, so that copies of
// its blobs cannot be decrypted.
func TestErase(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	r := openRig(t, checkpoint.ModeSQLite, withEncryption(t, keys))
	saved := r.mustSave(t, "work", `{"plan":"secret"}`)
	other := r.mustSave(t, "play", `{"fun":true}`)
	slot := filepath.Join(r.dir, "contexts", "slots", saved.Key)
	if _, err := os.Stat(slot); err != nil {
		t.Fatal(err)
	}
	copied := map[string][]byte{}
	for _, path := range r.blobFiles(t) {
		text, err := os.ReadFile(path)
		mustSucceed(t, err)
		copied[path] = text
	}
	deleted, err := r.Delete(t.Context(), testPrincipal(), checkpoint.DeleteRequest{Session: "work"})
	mustSucceed(t, err)
	if !deleted.Erased {
		t.Error("the answer does not report that the key was erased")
	}
	if _, err := os.Stat(slot); !os.IsNotExist(err) {
		t.Errorf("the key still exists: %v", err)
	}
	r.wantContext(t, other.ID, `{"fun":true}`)
	// An attacker has a copy of all blobs; the database is lost.
	for path, text := range copied {
		mustSucceed(t, os.WriteFile(path, text, 0o600))
	}
	lost := &rig{dir: r.dir, mode: checkpoint.ModeFiles, clock: r.clock}
	again := reopenRig(t, lost, withEncryption(t, keys))
	_, err = again.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: saved.ID})
	wantCode(t, err, guideway.CodeInternal, "a copy of an erased checkpoint")
	again.wantContext(t, other.ID, `{"fun":true}`)
}

// TestWrongKey checks that without the right key nothing is read, no plain checkpoint
// follows an encrypted one, nothing is marked as damaged, and no key is created.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	r := openRig(t, checkpoint.ModeSQLite, withEncryption(t, keys))
	saved := r.mustSave(t, "work", `{"plan":"secret"}`)
	right, err := os.ReadFile(filepath.Join(keys, "key"))
	mustSucceed(t, err)
	open := func() error {
		_, err := seal.Open(t.Context(), r.blobs, seal.File{Path: filepath.Join(keys, "key")})
		return err
	}
	mustSucceed(t, os.Remove(filepath.Join(keys, "key")))
	wantCode(t, open(), guideway.CodeUnavailable, "a missing key")
	if _, err := os.Stat(filepath.Join(keys, "key")); !os.IsNotExist(err) {
		t.Fatal("a key was created")
	}
	mustSucceed(t, os.WriteFile(filepath.Join(keys, "key"), []byte("gdwmaster1_"+strings.Repeat("ab", 32)), 0o600))
	wantCode(t, open(), guideway.CodeUnavailable, "a wrong key")
	mustSucceed(t, os.WriteFile(filepath.Join(keys, "key"), []byte("gibberish"), 0o600))
	wantCode(t, open(), guideway.CodeUnavailable, "a garbled key")
	// Encryption is off.
	plain := reopenRig(t, r)
	_, err = plain.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: saved.ID})
	wantCode(t, err, guideway.CodeUnavailable, "load without a key")
	_, err = plain.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(`{}`)})
	wantCode(t, err, guideway.CodeUnavailable, "save without a key")
	_, err = plain.Verify(t.Context())
	wantCode(t, err, guideway.CodeUnavailable, "verify without a key")
	plain.mustSave(t, "another", `{}`)
	mustSucceed(t, os.WriteFile(filepath.Join(keys, "key"), right, 0o600))
	again := reopenRig(t, r, withEncryption(t, keys))
	again.wantContext(t, saved.ID, `{"plan":"secret"}`)
	report, err := again.Verify(t.Context())
	mustSucceed(t, err)
	if len(report.Damaged) > 0 {
		t.Errorf("the damaged checkpoints are %v", report.Damaged)
	}
}

// TestEncryptionTurnedOn checks that a plain session continues with encrypted checkpoints.
func TestEncryptionTurnedOn(t *testing.T) {
	t.Parallel()
	keys := t.TempDir()
	r := openRig(t, checkpoint.ModeSQLite)
	first := r.mustSave(t, "work", bulkyContext(1))
	r = reopenRig(t, r, withEncryption(t, keys))
	second := r.mustSave(t, "work", bulkyContext(2))
	r.FinishFolds()
	if first.Key != "" || second.Key == "" {
		t.Errorf("the keys are %q and %q", first.Key, second.Key)
	}
	r.wantContext(t, first.ID, bulkyContext(1))
	r.wantContext(t, second.ID, bulkyContext(2))
	got, err := r.Get(t.Context(), testPrincipal(), first.ID)
	mustSucceed(t, err)
	if got.Base != second.ID || got.Key != second.Key {
		t.Errorf("the older checkpoint is stored as %+v: a delta against an encrypted checkpoint must be encrypted", got.Form)
	}
}
