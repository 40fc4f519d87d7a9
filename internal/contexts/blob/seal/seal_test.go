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

// chain is a keychain for tests.
type chain struct {
	mu      sync.Mutex
	entries map[string]string
	broken  error
}

func (c *chain) source() Keychain {
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

// TestSources: with each source what was sealed is opened again by another
// process, and by no other key.
func TestSources(t *testing.T) {
	t.Parallel()
	keychain, other := &chain{entries: map[string]string{}}, &chain{entries: map[string]string{}}
	for _, c := range []struct {
		name         string
		right, wrong Source
	}{
		{"file", File{filepath.Join(t.TempDir(), "key")}, File{filepath.Join(t.TempDir(), "key")}},
		{"passphrase", Passphrase{"correct horse"}, Passphrase{"battery staple"}},
		{"keychain", keychain.source(), other.source()},
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
				t.Errorf("opened it is %q, %v", text, err)
			}
			_, err = Open(t.Context(), slots, c.wrong)
			if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
				t.Errorf("with a wrong key: %v", err)
			}
			if f, ok := c.wrong.(File); ok {
				if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
					t.Error("a key was made where one was missing")
				}
			}
			if len(other.entries) > 0 {
				t.Error("an entry was made where one was missing")
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

// TestOtherKind: a store whose key is of one kind is not opened with another.
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

// TestLostNote: where there are wrapped keys and nothing says by what, no new
// master key is made.
func TestLostNote(t *testing.T) {
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

// TestBrokenKeychain: only that the keychain itself says that there is no entry
// makes one.
func TestBrokenKeychain(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{errors.New("dbus-launch: not found"), errors.New("locked"), fmt.Errorf("no: %w", os.ErrNotExist)} {
		c := &chain{entries: map[string]string{}, broken: broken}
		_, err := Open(t.Context(), blob.NewMemory(0), c.source())
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || len(c.entries) > 0 {
			t.Errorf("%v: %v, %d entries", broken, err, len(c.entries))
		}
	}
}

// TestSlowKeychain: a keychain that waits for a person is not waited for without
// an end.
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

// TestTogether: processes that turn encryption on at once agree on one key.
func TestTogether(t *testing.T) {
	t.Parallel()
	keychain := &chain{entries: map[string]string{}}
	path := filepath.Join(t.TempDir(), "key")
	for _, source := range []Source{File{path}, keychain.source()} {
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

// TestTampered: no byte of what was sealed, and none of its context, can change.
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
			t.Fatalf("opened it is %q, %v", got, err)
		}
		target := sealed
		if rapid.Bool().Draw(t, "header is changed") {
			target = header
		}
		target[rapid.IntRange(0, len(target)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := key.Open(sealed, header); !errors.Is(err, ErrTampered) {
			t.Fatalf("changed it is opened: %v", err)
		}
	})
}
