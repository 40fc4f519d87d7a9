package seal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// TestSources checks for each source that data can be decrypted after another Open, that
// Open with a different key fails and creates no key, and that an erased key is not found.
func TestSources(t *testing.T) {
	t.Parallel()
	keychain, other := &fakeKeychain{entries: map[string]string{}}, &fakeKeychain{entries: map[string]string{}}
	for _, c := range []struct {
		name         string
		right, wrong Source
	}{
		{"file", File{Path: filepath.Join(t.TempDir(), "key")}, File{Path: filepath.Join(t.TempDir(), "key")}},
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
				t.Error("the text is not encrypted")
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
				t.Errorf("Open with a wrong key returned %v", err)
			}
			if f, ok := c.wrong.(File); ok {
				if _, err := os.Stat(f.Path); !os.IsNotExist(err) {
					t.Error("a key was created instead of a missing one")
				}
			}
			if len(other.entries) > 0 {
				t.Error("an entry was created instead of a missing one")
			}
			if err := Erase(t.Context(), slots, key.Name); err != nil {
				t.Fatal(err)
			}
			if _, err := again.Key(t.Context(), key.Name); guideway.ErrorCode(err) != guideway.CodeNotFound || !strings.Contains(err.Error(), "does not exist") {
				t.Errorf("Key of an erased key returned %v", err)
			}
		})
	}
}

// TestOtherKind checks that a store cannot be opened with a source of a different kind.
func TestOtherKind(t *testing.T) {
	t.Parallel()
	slots := blob.NewMemory(0)
	if _, err := Open(t.Context(), slots, Passphrase{"correct horse"}); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), slots, File{Path: filepath.Join(t.TempDir(), "key")})
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), KindPassphrase) {
		t.Errorf("the error is %v", err)
	}
}

// TestLostMasterSlot checks that Open fails if wrapped keys exist but the master slot is
// missing or incomplete.
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
			t.Errorf("Open with the master slot %q returned %v", text, err)
		}
	}
}

// TestBrokenKeychain checks that no entry is created if the keychain returns an error other
// than a missing entry.
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

// TestSlowKeychain checks that the wait for a keychain that prompts a person is bounded.
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

// TestConcurrentOpen checks that concurrent first calls of Open agree on one master key.
func TestConcurrentOpen(t *testing.T) {
	t.Parallel()
	keychain := &fakeKeychain{entries: map[string]string{}}
	path := filepath.Join(t.TempDir(), "key")
	for _, source := range []Source{File{Path: path}, keychain.newSource()} {
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

// TestTampered checks that any changed bit of a ciphertext or its header is detected.
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

// TestNonces checks that no two ciphertexts begin with the same nonce: with a repeated
// nonce, AES-GCM would reveal the difference of two texts and allow forged tags.
func TestNonces(t *testing.T) {
	t.Parallel()
	const nonceBytes = 12
	key, err := newTestKeys(t, blob.NewMemory(0)).New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for range 1000 {
		sealed := key.Seal([]byte("plan"), []byte("header"))
		if nonce := string(sealed[:nonceBytes]); seen[nonce] {
			t.Fatalf("the nonce %x was used twice", nonce)
		} else {
			seen[nonce] = true
		}
	}
}

// TestKeyDerivation compares derived keys with known answers, and checks that every input
// affects the derived key. The check value is stored in the clear, so it must not be a key.
func TestKeyDerivation(t *testing.T) {
	t.Parallel()
	secret, salt := make([]byte, keyBytes), make([]byte, saltBytes)
	for i := range secret {
		secret[i], salt[i%saltBytes] = byte(i), byte(i%saltBytes)
	}
	for purpose, want := range map[string]string{ // HMAC-SHA256(secret, "guideway checkpoints " + purpose + salt)
		"check": "d7e4f4427868e4fdd337982691f8bb28578714e3c4b00f49e7d2c84752940a45",
		"wrap":  "8aaea826dde11d7460e79d1d8fcab30d3830b85b2c632072222178e39aa13ba7",
	} {
		if got := hex.EncodeToString(deriveKey(secret, salt, purpose)); got != want {
			t.Errorf("the key for %s is %s, want %s", purpose, got, want)
		}
	}
	otherSecret, otherSalt := bytes.Clone(secret), bytes.Clone(salt)
	otherSecret[0]++
	otherSalt[0]++
	seen := map[string]string{}
	for name, derived := range map[string][]byte{
		"check": deriveKey(secret, salt, "check"), "wrap": deriveKey(secret, salt, "wrap"),
		"another secret": deriveKey(otherSecret, salt, "check"), "another salt": deriveKey(secret, otherSalt, "check"),
	} {
		if same := seen[string(derived)]; same != "" {
			t.Errorf("%s and %s derive the same key", name, same)
		}
		seen[string(derived)] = name
	}
}

// TestMasterSlotRevealsNoKey checks that a data key cannot be unwrapped with the bytes in
// the master slot.
func TestMasterSlotRevealsNoKey(t *testing.T) {
	t.Parallel()
	slots := blob.NewMemory(0)
	key, err := newTestKeys(t, slots).New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	note, err := readMaster(t.Context(), slots, masterSlot)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := slots.Slot(t.Context(), key.Name)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := newAEAD(note.Check)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aead.Open(nil, nil, wrapped, []byte(key.Name)); err == nil {
		t.Error("the check value in the master slot unwraps a data key")
	}
}

// TestDamagedMasterSlot checks that a master slot with a wrong version or length is refused
// and is not replaced, and that the original slot is accepted.
func TestDamagedMasterSlot(t *testing.T) {
	t.Parallel()
	source := Passphrase{"correct horse"}
	original := blob.NewMemory(0)
	if _, err := Open(t.Context(), original, source); err != nil {
		t.Fatal(err)
	}
	note, err := readMaster(t.Context(), original, masterSlot)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(m *masterNote){
		"version 0":     func(m *masterNote) { m.Version = 0 },
		"version 2":     func(m *masterNote) { m.Version = 2 },
		"a short salt":  func(m *masterNote) { m.Salt = m.Salt[1:] },
		"a long salt":   func(m *masterNote) { m.Salt = append(bytes.Clone(m.Salt), 0) },
		"a short check": func(m *masterNote) { m.Check = m.Check[1:] },
		"a long check":  func(m *masterNote) { m.Check = append(bytes.Clone(m.Check), 0) },
		"":              func(*masterNote) {},
	} {
		damaged := *note
		damage(&damaged)
		text, err := json.Marshal(damaged)
		if err != nil {
			t.Fatal(err)
		}
		slots := blob.NewMemory(0)
		if err := slots.CreateSlot(t.Context(), masterSlot, text); err != nil {
			t.Fatal(err)
		}
		_, err = Open(t.Context(), slots, source)
		if name == "" {
			if err != nil {
				t.Errorf("Open with the original slot returned %v", err)
			}
			continue
		}
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), "the stored master key") {
			t.Errorf("with %s: %v", name, err)
		}
		if after, err := slots.Slot(t.Context(), masterSlot); err != nil || !bytes.Equal(after, text) {
			t.Errorf("with %s the slot was changed: %q, %v", name, after, err)
		}
	}
}

// TestFlippedMasterSlot checks that a master slot with any single flipped bit is refused,
// also where JSON or base64 would read the same value.
func TestFlippedMasterSlot(t *testing.T) {
	t.Parallel()
	source := File{Path: filepath.Join(t.TempDir(), "key")}
	original := blob.NewMemory(0)
	if _, err := Open(t.Context(), original, source); err != nil {
		t.Fatal(err)
	}
	text, err := original.Slot(t.Context(), masterSlot)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(text) * 8 {
		damaged := bytes.Clone(text)
		damaged[bit/8] ^= 1 << (bit % 8)
		slots := blob.NewMemory(0)
		if err := slots.CreateSlot(t.Context(), masterSlot, damaged); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), slots, source); guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("with bit %d flipped, Open of %q returned %v", bit, damaged, err)
		}
	}
}

// failingSlots is a slot store that cannot create slots while fail is set.
type failingSlots struct {
	blob.Store

	fail error
}

func (s *failingSlots) CreateSlot(ctx context.Context, key string, value []byte) error {
	if s.fail != nil {
		return s.fail
	}
	return s.Store.CreateSlot(ctx, key, value)
}

// TestUnstoredKey checks that no data key is returned if its slot was not stored: data that
// it encrypts could never be read.
func TestUnstoredKey(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	slots := &failingSlots{Store: blob.NewMemory(0), fail: full}
	if _, err := Open(t.Context(), slots, Passphrase{"correct horse"}); !errors.Is(err, full) {
		t.Errorf("Open with a slot that cannot be stored returned %v", err)
	}
	slots.fail = nil
	keys := newTestKeys(t, slots)
	slots.fail = full
	if key, err := keys.New(t.Context()); !errors.Is(err, full) || key != nil {
		t.Errorf("New with a slot that cannot be stored returned %v, %v", key, err)
	}
}

// TestDataKeyNames checks that only slots whose names begin with NamePrefix are read and
// erased as data keys, and that a wrapped key cannot be read in a different slot.
func TestDataKeyNames(t *testing.T) {
	t.Parallel()
	slots := blob.NewMemory(0)
	keys := newTestKeys(t, slots)
	if _, err := keys.Key(t.Context(), masterSlot); guideway.ErrorCode(err) != guideway.CodeNotFound || !strings.Contains(err.Error(), "not a valid data key name") {
		t.Errorf("Key of the master slot returned %v", err)
	}
	if err := Erase(t.Context(), slots, masterSlot); err != nil {
		t.Fatal(err)
	}
	if there, err := Initialized(t.Context(), slots); err != nil || !there {
		t.Errorf("the master slot was erased as a data key (%v)", err)
	}
	first, err := keys.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := slots.Slot(t.Context(), first.Name)
	if err != nil {
		t.Fatal(err)
	}
	const moved = NamePrefix + "00000000000000000000000000000000"
	if err := slots.CreateSlot(t.Context(), moved, wrapped); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Key(t.Context(), moved); !errors.Is(err, ErrTampered) {
		t.Errorf("Key of a wrapped key in a different slot returned %v", err)
	}
}

// TestHasher checks that the hash of a text depends on the text and the data key only, and
// that it is not the plain hash, which reveals a guessed text.
func TestHasher(t *testing.T) {
	t.Parallel()
	keys := newTestKeys(t, blob.NewMemory(0))
	seen := map[string]string{}
	for id := range 2 {
		key, err := keys.New(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first, second := key.Hasher(), key.Hasher()
		for _, text := range []string{"", "a", "b"} {
			hash, plain := string(first([]byte(text))), sha256.Sum256([]byte(text))
			if again := string(second([]byte(text))); again != hash || hash == string(plain[:]) {
				t.Errorf("%q has the hashes %x and %x, and the plain hash %x", text, hash, again, plain)
			}
			if other, there := seen[hash]; there {
				t.Errorf("%q with the key %d has the hash of %s", text, id, other)
			}
			seen[hash] = fmt.Sprintf("%q with the key %d", text, id)
		}
	}
}

// newTestKeys returns the keys of a store with a key file.
func newTestKeys(t *testing.T, slots blob.Slots) *Keys {
	t.Helper()
	keys, err := Open(t.Context(), slots, File{Path: filepath.Join(t.TempDir(), "key")})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
