package seal

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// TestFirstOf checks that without a keychain the key is in a file, and stays there if a
// keychain appears, and that a file never replaces a failing keychain.
func TestFirstOf(t *testing.T) {
	t.Parallel()
	keychain := &fakeKeychain{entries: map[string]string{}, broken: errors.New("no bus")}
	path := filepath.Join(t.TempDir(), "key")
	both := FirstOf{keychain.newSource(), File{Path: path}}
	slots := blob.NewMemory(0)
	keys, err := Open(t.Context(), slots, both)
	if err != nil || keys.Kind() != KindFile {
		t.Fatalf("without a keychain: %v, %v", keys, err)
	}
	key, err := keys.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keychain.broken = nil
	again, err := Open(t.Context(), slots, both)
	if err != nil || again.Kind() != KindFile || len(keychain.entries) > 0 {
		t.Fatalf("after a keychain appeared: %v, %v, %v", again, err, keychain.entries)
	}
	if _, err := again.Key(t.Context(), key.Name); err != nil {
		t.Error(err)
	}

	inChain := blob.NewMemory(0)
	path = filepath.Join(t.TempDir(), "key")
	both[1] = File{Path: path}
	if keys, err = Open(t.Context(), inChain, both); err != nil || keys.Kind() != KindKeychain {
		t.Fatalf("with a keychain: %v, %v", keys, err)
	}
	keychain.broken = errors.New("locked")
	_, err = Open(t.Context(), inChain, both)
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "unlock") {
		t.Errorf("with a failing keychain, Open returned %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("a key file was created instead of the keychain entry")
	}

	// If both sources fail, no key is stored, and the error names both.
	none := blob.NewMemory(0)
	_, err = Open(t.Context(), none, FirstOf{keychain.newSource(), Passphrase{}})
	if begun, _ := Initialized(t.Context(), none); err == nil || begun || !strings.Contains(err.Error(), "locked") || !strings.Contains(err.Error(), "at least 8") {
		t.Errorf("without a keychain or a file, Open returned %v", err)
	}
	// If the source is of a different kind than the store, the fix names the setting.
	_, err = Open(t.Context(), slots, Passphrase{"four words in a row"})
	if want := `set encryption.mode to "key-file"`; guideway.ErrorFix(err) != want {
		t.Errorf("the fix is %q, want %q", guideway.ErrorFix(err), want)
	}
}
