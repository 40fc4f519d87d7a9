package blob

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
)

// durableDisk keeps what survives a power failure: the content that a file had when it was
// synced, and the names that a directory had when it was synced. Directories always survive,
// since atomicfile.MakeDir syncs their parents.
type durableDisk struct {
	mu    sync.Mutex
	files []durableFile
	names map[string]map[string]os.FileInfo
}

// durableFile is the synced content of a file.
type durableFile struct {
	info    os.FileInfo
	content []byte
}

// sync records the content of a file, or the names in a directory, as durable.
func (d *durableDisk) sync(f *os.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		content, err := os.ReadFile(f.Name())
		d.files = append(d.files, durableFile{info, content})
		return err
	}
	entries, err := os.ReadDir(f.Name())
	if err != nil {
		return err
	}
	if d.names == nil {
		d.names = map[string]map[string]os.FileInfo{}
	}
	names := map[string]os.FileInfo{}
	for _, entry := range entries {
		if names[entry.Name()], err = entry.Info(); err != nil {
			return err
		}
	}
	d.names[f.Name()] = names
	return nil
}

// contentOf returns the last synced content of a file; it is empty if the file was never
// synced.
func (d *durableDisk) contentOf(info os.FileInfo) (content []byte) {
	for _, f := range d.files {
		if os.SameFile(f.info, info) {
			content = f.content
		}
	}
	return content
}

// writeSurvivors writes the files that survive a power failure to another directory.
func (d *durableDisk) writeSurvivors(t *testing.T, from, to string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for dir, names := range d.names {
		inside, err := filepath.Rel(from, dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(to, inside), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, info := range names {
			if info.IsDir() {
				continue
			}
			if err := os.WriteFile(filepath.Join(to, inside, name), d.contentOf(info), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPowerLoss simulates a power failure after each acknowledged write: all blobs and
// slots that were written before have their content, and an erased slot stays erased. The
// data of a slot is overwritten before its name is removed.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	disk := &durableDisk{}
	f := openFiles(t, FilesOptions{sync: disk.sync})
	blobs, slots, erased := map[Name][]byte{}, map[string][]byte{}, ""
	check := func(after string) {
		t.Helper()
		dir := t.TempDir()
		disk.writeSurvivors(t, f.Dir(), dir)
		survivor := openFiles(t, FilesOptions{Dir: dir})
		for name, want := range blobs {
			if got, err := survivor.Get(t.Context(), name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("after %s a blob is %q, %v", after, got, err)
			}
		}
		for key, want := range slots {
			if got, err := survivor.Slot(t.Context(), key); err != nil || !bytes.Equal(got, want) {
				t.Errorf("after %s the slot %s is %q, %v", after, key, got, err)
			}
		}
		if erased == "" {
			return
		}
		if _, err := survivor.Slot(t.Context(), erased); guideway.ErrorCode(err) != guideway.CodeNotFound {
			t.Errorf("after %s the erased slot %s is stored: %v", after, erased, err)
		}
	}
	for i := range 8 {
		data := fmt.Appendf(nil, "content %d", i)
		name, err := f.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		blobs[name] = data
		check(fmt.Sprint("blob ", i))
		key := fmt.Sprint("key-", i)
		if err := f.CreateSlot(t.Context(), key, data); err != nil {
			t.Fatal(err)
		}
		slots[key] = data
		check("the slot " + key)
	}
	erased = "key-3"
	before := mustInfo(t, f.slotPath(erased))
	if err := f.EraseSlot(context.Background(), erased); err != nil {
		t.Fatal(err)
	}
	if content := disk.contentOf(before); !bytes.Equal(content, make([]byte, len(slots[erased]))) {
		t.Errorf("the disk contains %q of an erased slot", content)
	}
	delete(slots, erased)
	check("the erased slot")
}

// TestPutAgainSyncs checks that a second Put of a blob syncs the name of the blob, since the
// first writer may not have synced it.
func TestPutAgainSyncs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := openFiles(t, FilesOptions{Dir: dir})
	data := []byte("content")
	name, err := other.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	disk := &durableDisk{}
	f := openFiles(t, FilesOptions{Dir: dir, sync: disk.sync})
	if _, err := f.Put(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	if _, there := disk.names[filepath.Dir(f.blobPath(name))][string(name)]; !there {
		t.Error("the name of the blob may be lost")
	}
}

func mustInfo(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
