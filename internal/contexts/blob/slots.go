package blob

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
)

func (f *Files) slotPath(key string) string { return filepath.Join(f.o.Dir, slotsDir, key) }

// Slot implements Slots.
func (f *Files) Slot(_ context.Context, key string) ([]byte, error) {
	if err := CheckSlot(key, nil); err != nil {
		return nil, err
	}
	value, err := f.readFile(f.slotPath(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, NoSlot(key)
	}
	if errors.Is(err, ErrCorrupt) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the key %s of encrypted data is not a regular file of at most %d bytes", f.slotPath(key), f.o.MaxBytes).
			WithFix("restore the file from a backup")
	}
	return value, f.systemError("read the slot "+key, err)
}

// CreateSlot implements Slots.
func (f *Files) CreateSlot(_ context.Context, key string, value []byte) error {
	if err := CheckSlot(key, value); err != nil {
		return err
	}
	path := f.slotPath(key)
	err := f.writeFile(path, value, func(from, to string) error {
		// Link fails if the name exists; Rename would replace it.
		err := os.Link(from, to)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return placeWithoutLinks(from, to)
		}
		if err == nil {
			_ = os.Remove(from) // if it fails, a sweep removes the file
		}
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return SlotTaken(key)
	}
	return f.systemError("write the slot "+key, err)
}

// placeWithoutLinks renames a finished file on file systems without hard links. If two
// processes race, the later one wins; callers read a slot again after creating it.
func placeWithoutLinks(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// ReplaceSlot implements Slots. It writes into the existing file, which a concurrent
// EraseSlot removes. The values are shorter than a sector, so that a crash leaves the old or
// the new one.
func (f *Files) ReplaceSlot(ctx context.Context, key string, old, value []byte) error {
	if now, err := f.Slot(ctx, key); err != nil {
		return err
	} else if !bytes.Equal(now, old) || len(old) != len(value) {
		return NoSlot(key)
	}
	file, err := os.OpenFile(f.slotPath(key), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return NoSlot(key)
	}
	if err == nil {
		if _, err = file.WriteAt(value, 0); err == nil {
			err = f.o.sync(file)
		}
		err = errors.Join(err, file.Close())
	}
	return f.systemError("replace the slot "+key, err)
}

// EraseSlot implements Slots.
func (f *Files) EraseSlot(_ context.Context, key string) error {
	if err := CheckSlot(key, nil); err != nil {
		return err
	}
	path := f.slotPath(key)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		// A copy-on-write file system or a solid-state disk may keep the old blocks for a
		// while; that cannot be prevented here.
		info, statErr := file.Stat()
		err = statErr
		if err == nil {
			_, err = file.Write(make([]byte, info.Size()))
		}
		err = errors.Join(err, f.o.sync(file), file.Close())
	}
	if err == nil {
		err = ignoreMissing(os.Remove(path))
	}
	if err == nil {
		err = f.syncDir(filepath.Dir(path))
	}
	return f.systemError("erase the slot "+key, err)
}

// Slots implements Slots.
func (f *Files) Slots(_ context.Context, prefix string) ([]SlotInfo, error) {
	entries, err := os.ReadDir(filepath.Join(f.o.Dir, slotsDir))
	if err := ignoreMissing(err); err != nil {
		return nil, f.systemError("list the slots", err)
	}
	var list []SlotInfo
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) || !slotPattern().MatchString(entry.Name()) {
			continue
		}
		if info, err := entry.Info(); err == nil {
			list = append(list, SlotInfo{Key: entry.Name(), Modified: info.ModTime()})
		}
	}
	return list, nil
}

// NoSlot returns the error for a slot that does not exist. It is for implementations.
func NoSlot(key string) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no slot %s", key)
}

// SlotTaken returns the error for a slot that exists already. It is for implementations.
func SlotTaken(key string) error {
	return guideway.Errorf(guideway.CodeConflict, "the slot %s already exists", key)
}
