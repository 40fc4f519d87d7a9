package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

var errKilled = errors.New("killed")

// killedSlots fails all writes after a number of them, as if the process was killed. A write
// may still be made when its answer is lost.
type killedSlots struct {
	*blob.Memory
	left   int
	silent bool
}

func (k *killedSlots) write(do func() error) error {
	if k.left--; k.left >= 0 {
		return do()
	}
	if k.silent && k.left == -1 {
		_ = do()
	}
	return errKilled
}

func (k *killedSlots) CreateSlot(ctx context.Context, key string, value []byte) error {
	return k.write(func() error { return k.Memory.CreateSlot(ctx, key, value) })
}

func (k *killedSlots) ReplaceSlot(ctx context.Context, key string, old, value []byte) error {
	return k.write(func() error { return k.Memory.ReplaceSlot(ctx, key, old, value) })
}

func (k *killedSlots) EraseSlot(ctx context.Context, key string) error {
	return k.write(func() error { return k.Memory.EraseSlot(ctx, key) })
}

// fastPassphrase is a passphrase with a fast derivation.
type fastPassphrase string

func (fastPassphrase) Kind() string { return KindPassphrase }
func (fastPassphrase) Fix() string  { return "" }

func (p fastPassphrase) Load(_ context.Context, salt []byte, _ bool) ([]byte, error) {
	return deriveKey([]byte(p), salt, "test"), nil
}

// sealTexts creates data keys and a ciphertext of each.
func sealTexts(t *testing.T, keys *Keys, count int) map[string][]byte {
	t.Helper()
	texts := map[string][]byte{}
	for range count {
		key, err := keys.New(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		texts[key.Name] = key.Seal([]byte(key.Name), nil)
	}
	return texts
}

func checkTexts(t *testing.T, what string, keys *Keys, texts map[string][]byte) {
	t.Helper()
	for name, sealed := range texts {
		key, err := keys.Key(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if text, err := key.Open(sealed, nil); err != nil || string(text) != name {
			t.Errorf("%s: %q, %v", what, text, err)
		}
	}
}

// TestRotateKilled ends a rotation before and after each write, for each change of the kind
// of key. Until the rotation is repeated, a running program and a new one read and create
// data keys; afterwards the old master key opens nothing.
func TestRotateKilled(t *testing.T) {
	t.Parallel()
	chain := &fakeKeychain{entries: map[string]string{}}
	dir := t.TempDir()
	for name, sources := range map[string]func(id string) (from, to Source){
		"key file":               func(id string) (Source, Source) { f := File{Path: filepath.Join(dir, "a"+id)}; return f, f },
		"keychain":               func(string) (Source, Source) { return chain.newSource(), chain.newSource() },
		"key file to keychain":   func(id string) (Source, Source) { return File{Path: filepath.Join(dir, "b"+id)}, chain.newSource() },
		"keychain to a key file": func(id string) (Source, Source) { return chain.newSource(), File{Path: filepath.Join(dir, "c"+id)} },
		"passphrase":             func(string) (Source, Source) { return fastPassphrase("one"), fastPassphrase("two") },
		"key file to passphrase": func(id string) (Source, Source) { return File{Path: filepath.Join(dir, "d"+id)}, fastPassphrase("one") },
		"passphrase to key file": func(id string) (Source, Source) { return fastPassphrase("one"), File{Path: filepath.Join(dir, "e"+id)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for writes := range 8 {
				for _, silent := range []bool{false, true} {
					what := fmt.Sprintf("killed after %d writes (%v)", writes, silent)
					slots := blob.NewMemory(1 << 20)
					from, to := sources(fmt.Sprint(writes, silent))
					running, err := Open(t.Context(), slots, WithOthers{Source: from, Others: []Source{to}})
					if err != nil {
						t.Fatal(err)
					}
					texts := sealTexts(t, running, 4)
					old, _ := running.slots.Slot(t.Context(), masterSlot)
					_, err = Rotate(t.Context(), &killedSlots{Memory: slots, left: writes, silent: silent}, from, to)
					if err != nil && !errors.Is(err, errKilled) {
						t.Fatal(what, err)
					}
					checkTexts(t, what+", the running program", running, texts)
					for name, sealed := range sealTexts(t, running, 1) {
						texts[name] = sealed
					}
					if err != nil {
						if _, err := Rotate(t.Context(), slots, from, to); err != nil {
							t.Fatal(what, err)
						}
					}
					checkTexts(t, what+", the running program after the rotation", running, texts)
					for name, sealed := range sealTexts(t, running, 1) {
						texts[name] = sealed
					}
					fresh, err := Open(t.Context(), slots, to)
					if err != nil {
						t.Fatal(what, err)
					}
					checkTexts(t, what+", a new program", fresh, texts)
					checkOldMaster(t, slots, old, from, texts)
				}
			}
		})
	}
}

// checkOldMaster checks that the master key with a note opens no data key.
func checkOldMaster(t *testing.T, slots blob.Slots, text []byte, source Source, texts map[string][]byte) {
	t.Helper()
	copied := blob.NewMemory(1 << 20)
	if err := copied.CreateSlot(t.Context(), masterSlot, text); err != nil {
		t.Fatal(err)
	}
	for name := range texts {
		wrapped, err := slots.Slot(t.Context(), name)
		if err == nil {
			err = copied.CreateSlot(t.Context(), name, wrapped)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	old, err := Open(t.Context(), copied, source)
	if err != nil {
		t.Fatal(err)
	}
	for name := range texts {
		if _, err := old.Key(t.Context(), name); !errors.Is(err, ErrTampered) {
			t.Errorf("the old master key opens a data key: %v", err)
		}
	}
}

// TestRotateWhileUsed rotates again and again while programs create, read and erase data
// keys. Erased keys stay erased.
func TestRotateWhileUsed(t *testing.T) {
	t.Parallel()
	slots, source := openRotated(t, t.TempDir())
	var group sync.WaitGroup
	for range 4 {
		keys, err := Open(t.Context(), slots, source)
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for range 25 {
				key, err := keys.New(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				sealed := key.Seal([]byte("text"), nil)
				again, err := keys.Key(t.Context(), key.Name)
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := again.Open(sealed, nil); err != nil || string(text) != "text" {
					t.Error(string(text), err)
				}
				if err := keys.Erase(t.Context(), key.Name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 10 {
		if _, err := Rotate(t.Context(), slots, source, source); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	if left, err := Names(t.Context(), slots); err != nil || len(left) != 0 {
		t.Errorf("%d erased keys are there, %v", len(left), err)
	}
}

// changedSlots calls a function before a slot is replaced, or after slots were listed or one
// was read, as if another process did so. A nil function is not called.
type changedSlots struct {
	*blob.Memory
	onList, onRead, onReplace func()
}

func (c *changedSlots) Slots(ctx context.Context, prefix string) ([]blob.SlotInfo, error) {
	list, err := c.Memory.Slots(ctx, prefix)
	if c.onList != nil && prefix == NamePrefix {
		c.onList()
	}
	return list, err
}

func (c *changedSlots) Slot(ctx context.Context, key string) ([]byte, error) {
	value, err := c.Memory.Slot(ctx, key)
	if do := c.onRead; do != nil && strings.HasPrefix(key, NamePrefix) {
		c.onRead = nil
		do()
	}
	return value, err
}

func (c *changedSlots) ReplaceSlot(ctx context.Context, key string, old, value []byte) error {
	if c.onReplace != nil {
		c.onReplace()
	}
	return c.Memory.ReplaceSlot(ctx, key, old, value)
}

// TestRotateSkipsErasedKeys checks that a data key that another process erases during a
// rotation stays erased, and that the rotation wraps the other data keys.
func TestRotateSkipsErasedKeys(t *testing.T) {
	t.Parallel()
	for when, set := range map[string]func(*changedSlots, func()){
		"before the key is read":     func(c *changedSlots, do func()) { c.onList = do },
		"before the key is replaced": func(c *changedSlots, do func()) { c.onReplace = do },
	} {
		slots, source := blob.NewMemory(1<<20), fastPassphrase("one")
		keys, err := Open(t.Context(), slots, source)
		if err != nil {
			t.Fatal(err)
		}
		erased, err := keys.New(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		texts := sealTexts(t, keys, 3)
		changed := &changedSlots{Memory: slots}
		set(changed, func() {
			if err := slots.EraseSlot(t.Context(), erased.Name); err != nil {
				t.Error(err)
			}
		})
		rotated, err := Rotate(t.Context(), changed, source, source)
		if err != nil || rotated.Keys != len(texts) || rotated.Unreadable != 0 {
			t.Errorf("a key is erased %s: %+v, %v", when, rotated, err)
		}
		checkTexts(t, "a key is erased "+when, keys, texts)
		if _, err := keys.Key(t.Context(), erased.Name); guideway.ErrorCode(err) != guideway.CodeNotFound {
			t.Errorf("a key that was erased %s is there: %v", when, err)
		}
	}
}

// TestKeyDuringRotations checks that a program reads a data key that is wrapped by two newer
// master keys in turn, while the program still has the first one.
func TestKeyDuringRotations(t *testing.T) {
	t.Parallel()
	changed, source := &changedSlots{Memory: blob.NewMemory(1 << 20)}, fastPassphrase("one")
	keys, err := Open(t.Context(), changed, source)
	if err != nil {
		t.Fatal(err)
	}
	texts := sealTexts(t, keys, 1)
	rotate := func() {
		if _, err := Rotate(t.Context(), changed.Memory, source, source); err != nil {
			t.Error(err)
		}
	}
	rotate()
	changed.onRead = rotate
	checkTexts(t, "a second rotation during the read", keys, texts)
}

// TestRotatePassphrase checks that the passphrase can be changed, but not without the
// current one.
func TestRotatePassphrase(t *testing.T) {
	t.Parallel()
	slots := blob.NewMemory(1 << 20)
	from, to := Passphrase{Words: "the first words"}, Passphrase{Words: "the second words"}
	if _, err := Rotate(t.Context(), slots, from, to); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a rotation of an empty store returned %v", err)
	}
	keys, err := Open(t.Context(), slots, from)
	if err != nil {
		t.Fatal(err)
	}
	texts := sealTexts(t, keys, 2)
	if _, err := Rotate(t.Context(), slots, to, to); err == nil || !strings.Contains(err.Error(), "not the key that encrypted") {
		t.Errorf("a rotation with another passphrase returned %v", err)
	}
	if _, err := Rotate(t.Context(), slots, from, to); err != nil {
		t.Fatal(err)
	}
	if keys, err = Open(t.Context(), slots, to); err != nil {
		t.Fatal(err)
	}
	checkTexts(t, "the new passphrase", keys, texts)
	if _, err := Open(t.Context(), slots, from); err == nil {
		t.Error("the old passphrase opens the store")
	}
}

// TestRotateProcessKilled kills processes that rotate at any moment, while this process
// creates and reads data keys in the same directory.
func TestRotateProcessKilled(t *testing.T) {
	t.Parallel()
	const dirVariable = "GUIDEWAY_TEST_ROTATE"
	if dir := os.Getenv(dirVariable); dir != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the parent
			os.Exit(1)
		}()
		slots, source := openRotated(t, dir)
		for {
			if _, err := Rotate(t.Context(), slots, source, source); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	slots, source := openRotated(t, dir)
	running, err := Open(t.Context(), slots, source)
	if err != nil {
		t.Fatal(err)
	}
	texts := sealTexts(t, running, 10)
	for round := range 20 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRotateProcessKilled$")
		cmd.Env = append(os.Environ(), dirVariable+"="+dir)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		before, err := readMasters(t.Context(), slots)
		for now := before; err == nil && now[0].slot == before[0].slot; {
			now, err = readMasters(t.Context(), slots) // until it rotates
		}
		if err != nil {
			t.Fatal(err)
		}
		for range round { // the more keys are created, the later it is killed
			maps.Copy(texts, sealTexts(t, running, 1))
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // Wait reports that the process was killed
		checkTexts(t, "the running program", running, texts)
		fresh, err := Open(t.Context(), slots, source)
		if err != nil {
			t.Fatal(err)
		}
		checkTexts(t, "a new program", fresh, texts)
	}
	if _, err := Rotate(t.Context(), slots, source, source); err != nil {
		t.Fatal(err)
	}
	checkTexts(t, "the running program after the last rotation", running, texts)
}

func openRotated(t *testing.T, dir string) (blob.Slots, Source) {
	t.Helper()
	slots, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(dir, "contexts")})
	if err != nil {
		t.Fatal(err)
	}
	return slots, File{Path: filepath.Join(dir, "key")}
}
