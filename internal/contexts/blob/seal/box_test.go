package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway"
)

// TestBox checks that a box, also after it was stored as JSON, opens with its source, purpose
// and context only, and not after an edit.
func TestBox(t *testing.T) {
	t.Parallel()
	chain := &fakeKeychain{entries: map[string]string{}}
	for name, source := range map[string]Source{"file": File{Path: filepath.Join(t.TempDir(), "key")}, "passphrase": fastPassphrase("one"), "keychain": chain.newSource()} {
		box, err := NewBox(t.Context(), source, "login", []byte("token"), []byte("ann"))
		if err != nil {
			t.Fatal(err)
		}
		stored, err := json.Marshal(box)
		if err != nil || bytes.Contains(stored, []byte("token")) || box.Kind != source.Kind() {
			t.Fatalf("%s: the box of the kind %q is stored as %s, %v", name, box.Kind, stored, err)
		}
		for change, c := range map[string]struct {
			edit             func(*Box)
			purpose, context string
		}{
			"":                {func(*Box) {}, "login", "ann"},
			"another purpose": {func(*Box) {}, "logout", "ann"},
			"another context": {func(*Box) {}, "login", "bob"},
			"a changed text":  {func(b *Box) { b.Sealed[len(b.Sealed)-1] ^= 1 }, "login", "ann"},
			"no text":         {func(b *Box) { b.Sealed = nil }, "login", "ann"},
		} {
			var again Box
			if err := json.Unmarshal(stored, &again); err != nil {
				t.Fatal(err)
			}
			c.edit(&again)
			text, err := again.Open(t.Context(), source, c.purpose, []byte(c.context))
			if change == "" && (err != nil || string(text) != "token") {
				t.Errorf("%s: the box contains %q, %v", name, text, err)
			}
			if change != "" && (!errors.Is(err, ErrTampered) || text != nil) {
				t.Errorf("%s: a box with %s contains %q, %v", name, change, text, err)
			}
		}
	}
}

// TestBoxWithoutSecret checks that a box whose secret is not available is not opened, and
// that no other secret is created for it.
func TestBoxWithoutSecret(t *testing.T) {
	t.Parallel()
	box, err := NewBox(t.Context(), File{Path: filepath.Join(t.TempDir(), "key")}, "login", []byte("token"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		lost := File{Path: filepath.Join(t.TempDir(), "key")}
		if text, err := box.Open(t.Context(), lost, "login", nil); guideway.ErrorCode(err) != guideway.CodeUnavailable || text != nil {
			t.Errorf("without its key file, the box contains %q, %v", text, err)
		}
	}
	chain := &fakeKeychain{entries: map[string]string{}, broken: errors.New("locked")}
	if box, err := NewBox(t.Context(), chain.newSource(), "login", []byte("token"), nil); err == nil || box != nil {
		t.Errorf("with a locked keychain, NewBox returned %v, %v", box, err)
	}
}
