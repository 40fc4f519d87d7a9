package fileindex

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

var _ checkpoint.FallbackIndex = (*Index)(nil)

// InUse reports whether a directory contains a non-empty index.
func InUse(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), suffix) && !strings.HasPrefix(entry.Name(), ".") {
			return true
		}
	}
	return false
}

// Discard removes the audit log and the files that have not changed since they were last
// read. A process that still uses the index rebuilds it from the blobs.
func (x *Index) Discard(ctx context.Context) error {
	if x.o.Dir == "" {
		return nil
	}
	release, err := x.lockForWriting(ctx)
	if err != nil {
		return err
	}
	defer release()
	for name, old := range x.files {
		path := filepath.Join(x.o.Dir, name)
		info, err := os.Stat(path)
		if err != nil || !os.SameFile(info, old.info) || !info.ModTime().Equal(old.info.ModTime()) || info.Size() != old.info.Size() {
			continue
		}
		if err := os.Remove(path); err != nil {
			return x.systemError("discard the index", err)
		}
		x.setSeries(old.key, nil)
		delete(x.files, name)
	}
	for _, name := range []string{auditName, auditName + ".1"} {
		if err := os.Remove(filepath.Join(x.o.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return x.systemError("discard the audit log of the index", err)
		}
	}
	return nil
}
