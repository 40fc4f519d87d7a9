package fileindex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

const (
	auditName = "audit.log"
	// maxAudit is the size from which the log file is renamed. It then replaces the file
	// that was renamed before.
	maxAudit = 8 << 20
	// maxNotes bounds the number of log entries in memory.
	maxNotes = 10_000
)

// Note implements checkpoint.Auditor.
func (x *Index) Note(ctx context.Context, list []checkpoint.Entry) error {
	release, err := x.lockForWriting(ctx)
	if err != nil {
		return err
	}
	defer release()
	return x.appendEntries(list)
}

// appendEntries appends entries to the log. The caller holds the lock and mu.
func (x *Index) appendEntries(list []checkpoint.Entry) error {
	if len(list) == 0 {
		return nil
	}
	if x.o.Dir == "" {
		x.notes = append(x.notes, list...)
		x.notes = x.notes[max(len(x.notes)-maxNotes, 0):]
		return nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, e := range list {
		if err := encoder.Encode(e); err != nil {
			return x.systemError("write the audit log", err)
		}
	}
	path := filepath.Join(x.o.Dir, auditName)
	if info, err := os.Stat(path); err == nil && info.Size() > maxAudit {
		_ = os.Rename(path, path+".1") // if the rename fails, the log keeps growing
	}
	file, err := atomicfile.OpenAppend(path)
	if err == nil {
		_, err = file.Write(text.Bytes())
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		// The change has been made; a failed log entry must not undo it.
		x.o.Logger.Error("the audit log could not be written", "file", path, "error", err)
	}
	return nil
}

// Notes implements checkpoint.Auditor.
func (x *Index) Notes(_ context.Context, user string, limit int) ([]checkpoint.Entry, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := slices.Clone(x.notes)
	if x.o.Dir != "" {
		for _, name := range []string{auditName + ".1", auditName} {
			data, err := os.ReadFile(filepath.Join(x.o.Dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, x.systemError("read the audit log", err)
			}
			for line := range bytes.Lines(data) {
				var e checkpoint.Entry
				if json.Unmarshal(line, &e) == nil { // skip a line that a crash has truncated
					all = append(all, e)
				}
			}
		}
	}
	var list []checkpoint.Entry
	for _, e := range slices.Backward(all) {
		if len(list) < limit && (user == "" || e.User == user) {
			list = append(list, e)
		}
	}
	return list, nil
}
