package seal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	keyring "github.com/zalando/go-keyring"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeKeychain is a fake keychain.
type fakeKeychain struct {
	mu      sync.Mutex
	entries map[string]string
	broken  error
}

func (c *fakeKeychain) newSource() Keychain {
	return Keychain{
		Service: "guideway", Account: "checkpoints",
		get: func(service, account string) (string, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.broken != nil {
				return "", c.broken
			}
			text, there := c.entries[service+account]
			if !there {
				return "", keyring.ErrNotFound
			}
			return text, nil
		},
		set: func(service, account, secret string) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.entries[service+account] = secret
			return c.broken
		},
	}
}

// TestSources checks for each source that another process can decrypt, and that no other
// key can.
func TestSources(t *testing.T) {
	t.Parallel()
	keychain, other := &fakeKeychain{entries: map[string]string{}}, &fakeKeychain{entries: map[string]string{}}
	for _, c := range []struct {
		name         string
		right, wrong Source
	}{
		{"file", File{filepath.Join(t.TempDir(), "key")}, File{filepath.Join(t.TempDir(), "key")}},
		{"passphrase", Passphrase{"correct horse"}, Passphrase{"battery staple"}},
		{"keychain", keychain.newSource(), other.newSource()},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			slots := blob.NewMemory(0)
			keys, err := Open(t.Context(), slots, c.right)
			if err != nil {
				t.Fatal(err)
			}
			key, err := keys.New(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			sealed := key.Seal([]byte("plan"), []byte("header"))
			if bytes.Contains(sealed, []byte("plan")) {
				t.Error("it is not encrypted")
			}
			again, err := Open(t.Context(), slots, c.right)
			if err != nil {
				t.Fatal(err)
			}
			same, err := again.Key(t.Context(), key.Name)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := same.Open(sealed, []byte("header")); err != nil || string(text) != "plan" {
				t.Errorf("Open returned %q, %v", text, err)
			}
			_, err = Open(t.Context(), slots, c.wrong)
			if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
				t.Errorf("with a wrong key: %v", err)
			}
			if f, ok := c.wrong.(File); ok {
				if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
					t.Error("a key was created in place of a missing one")
				}
			}
			if len(other.entries) > 0 {
				t.Error("an entry was created in place of a missing one")
			}
			if err := Erase(t.Context(), slots, key.Name); err != nil {
				t.Fatal(err)
			}
			if _, err := again.Key(t.Context(), key.Name); guideway.ErrorCode(err) != guideway.CodeNotFound {
				t.Errorf("an erased key: %v", err)
			}
		})
	}
}

// TestOtherKind checks that a store cannot be opened with a source of another kind.
func TestOtherKind(t *testing.T) {
	t.Parallel()
	slots := blob.NewMemory(0)
	if _, err := Open(t.Context(), slots, Passphrase{"correct horse"}); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), slots, File{filepath.Join(t.TempDir(), "key")})
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), KindPassphrase) {
		t.Errorf("the error is %v", err)
	}
}

// TestLostMasterSlot checks that no new master key is created if wrapped keys exist without a
// master slot.
func TestLostMasterSlot(t *testing.T) {
	t.Parallel()
	slots := blob.NewMemory(0)
	keys, err := Open(t.Context(), slots, Passphrase{"correct horse"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.New(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{nil, []byte("{}"), []byte(`{"version":1,"kind":"passphrase"}`)} {
		if err := slots.EraseSlot(t.Context(), masterSlot); err != nil {
			t.Fatal(err)
		}
		if text != nil {
			if err := slots.CreateSlot(t.Context(), masterSlot, text); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(t.Context(), slots, Passphrase{"correct horse"}); guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("with the note %q: %v", text, err)
		}
	}
}

// TestBrokenKeychain checks that an entry is created only if the keychain reports a missing
// entry.
func TestBrokenKeychain(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{errors.New("dbus-launch: not found"), errors.New("locked"), fmt.Errorf("no: %w", os.ErrNotExist)} {
		c := &fakeKeychain{entries: map[string]string{}, broken: broken}
		_, err := Open(t.Context(), blob.NewMemory(0), c.newSource())
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || len(c.entries) > 0 {
			t.Errorf("%v: %v, %d entries", broken, err, len(c.entries))
		}
	}
}

// TestSlowKeychain checks that the wait for a keychain that asks a person is bounded.
func TestSlowKeychain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		k := Keychain{get: func(string, string) (string, error) {
			<-release
			return "", keyring.ErrNotFound
		}}
		_, err := k.Load(t.Context(), make([]byte, saltBytes), true)
		if guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("the error is %v", err)
		}
		close(release)
	})
}

// TestConcurrentOpen checks that processes that turn encryption on concurrently agree on one key.
func TestConcurrentOpen(t *testing.T) {
	t.Parallel()
	keychain := &fakeKeychain{entries: map[string]string{}}
	path := filepath.Join(t.TempDir(), "key")
	for _, source := range []Source{File{path}, keychain.newSource()} {
		slots := blob.NewMemory(0)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				keys, err := Open(t.Context(), slots, source)
				if err != nil {
					t.Errorf("%s: %v", source.Kind(), err)
					return
				}
				if _, err := keys.New(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		keys, err := Open(t.Context(), slots, source)
		if err != nil {
			t.Fatal(err)
		}
		names, err := Names(t.Context(), slots)
		if err != nil || len(names) != 8 {
			t.Fatalf("the keys are %v, %v", names, err)
		}
		for _, n := range names {
			if _, err := keys.Key(t.Context(), n.Key); err != nil {
				t.Errorf("%s: %v", source.Kind(), err)
			}
		}
	}
}

// TestTampered checks that any changed byte of a ciphertext or its context is detected.
func TestTampered(t *testing.T) {
	t.Parallel()
	keys, err := Open(t.Context(), blob.NewMemory(0), Passphrase{"correct horse"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text, header := rapid.SliceOf(rapid.Byte()).Draw(t, "text"), rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "header")
		sealed := key.Seal(text, header)
		if got, err := key.Open(sealed, header); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("Open returned %q, %v", got, err)
		}
		target := sealed
		if rapid.Bool().Draw(t, "header is changed") {
			target = header
		}
		target[rapid.IntRange(0, len(target)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := key.Open(sealed, header); !errors.Is(err, ErrTampered) {
			t.Fatalf("a changed ciphertext was opened: %v", err)
		}
	})
}
