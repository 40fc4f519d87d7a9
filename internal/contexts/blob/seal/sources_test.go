package seal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// noKeys are texts of a key file or a keychain entry that contain no key.
var noKeys = map[string]string{
	"empty":          "",
	"white space":    " \n",
	"no prefix":      strings.Repeat("ab", keyBytes),
	"no digits":      secretPrefix,
	"too short":      secretPrefix + strings.Repeat("ab", keyBytes-1),
	"too long":       secretPrefix + strings.Repeat("ab", keyBytes+1),
	"odd length":     secretPrefix + strings.Repeat("ab", keyBytes) + "c",
	"not hex":        secretPrefix + strings.Repeat("zz", keyBytes),
	"another prefix": "gdwmaster2_" + strings.Repeat("ab", keyBytes),
}

// TestSourcesWithoutAKey checks that a key file or a keychain entry without a key is refused
// with a fix and is not replaced, whether or not a key may be created. A keychain entry with
// a key is accepted.
func TestSourcesWithoutAKey(t *testing.T) {
	t.Parallel()
	salt := make([]byte, saltBytes)
	for name, text := range noKeys {
		for _, create := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := File{Path: path}.Load(t.Context(), salt, create)
			checkNoKey(t, "a key file: "+name, err)
			if after, err := os.ReadFile(path); err != nil || string(after) != text {
				t.Errorf("the key file %s was replaced with %q, %v", name, after, err)
			}

			keychain := &fakeKeychain{entries: map[string]string{"guidewaycheckpoints-00000000": text}}
			_, err = keychain.newSource().Load(t.Context(), salt, create)
			checkNoKey(t, "a keychain: "+name, err)
			if after := keychain.entries["guidewaycheckpoints-00000000"]; after != text || len(keychain.entries) != 1 {
				t.Errorf("the keychain entry %s was replaced: %q", name, keychain.entries)
			}
		}
	}
	text := newSecret()
	keychain := &fakeKeychain{entries: map[string]string{"guidewaycheckpoints-00000000": text + "\n"}}
	secret, err := keychain.newSource().Load(t.Context(), salt, false)
	if want, _ := parseSecret(text); err != nil || string(secret) != string(want) || len(secret) != keyBytes {
		t.Errorf("the entry with a key is loaded as %x, %v", secret, err)
	}
}

// checkNoKey checks that an error has the code unavailable or invalid, and a fix.
func checkNoKey(t *testing.T, what string, err error) {
	t.Helper()
	if guideway.ErrorCode(err) != guideway.CodeUnavailable && guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("%s: %v", what, err)
	}
	if guideway.ErrorFix(err) == "" {
		t.Errorf("%s: the error has no fix: %v", what, err)
	}
}

// TestShortPassphrase checks the minimum length of a new passphrase. A passphrase that is in
// use is only required not to be empty.
func TestShortPassphrase(t *testing.T) {
	t.Parallel()
	salt := make([]byte, saltBytes)
	for _, c := range []struct {
		words  string
		create bool
		ok     bool
	}{
		{"", true, false}, {"", false, false}, {"ééééééé", true, false}, {"éééééééé", true, true}, {"short", false, true},
	} {
		_, err := Passphrase{c.words}.Load(t.Context(), salt, c.create)
		if c.ok != (err == nil) || !c.ok && guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%q, create %v: %v", c.words, c.create, err)
		}
	}
	slots := blob.NewMemory(0)
	if _, err := Open(t.Context(), slots, Passphrase{"short"}); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("Open of a new store with a short passphrase returned %v", err)
	}
	if there, err := Initialized(t.Context(), slots); err != nil || there {
		t.Errorf("a refused passphrase initialized the store (%v)", err)
	}
}
