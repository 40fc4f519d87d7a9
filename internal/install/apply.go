package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

const (
	// maxSize bounds a configuration file.
	maxSize = 64 << 20
	// backupMark stands between the name of a file and the number of a backup.
	backupMark = ".guideway-backup-"
	// maxLinks bounds a chain of symbolic links.
	maxLinks = 40
)

// Read reads the configuration at path and the backups beside it. A missing
// file is an empty one.
func Read(ctx context.Context, path string) (File, error) {
	f := File{Path: path}
	content, exists, err := readFile(ctx, path)
	if err != nil {
		return f, err
	}
	f.Content, f.Exists = content, exists
	f.Backups, err = readBackups(ctx, path)
	return f, err
}

func readFile(ctx context.Context, path string) ([]byte, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "cannot read %s (%w)", path, safeopen.Cause(err))
	case !info.Mode().IsRegular():
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "cannot read %s (it is not a regular file)", path)
	case info.Size() > maxSize:
		return nil, false, guideway.Errorf(guideway.CodeTooLarge, "cannot read %s (it is larger than %d MiB)", path, maxSize>>20)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "cannot read %s (%w)", path, safeopen.Cause(err))
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSize))
	if err != nil {
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "cannot read %s (%w)", path, safeopen.Cause(err))
	}
	return content, true, nil
}

// numberedBackups gives the numbers of the backups of a file, in order.
func numberedBackups(path string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "cannot read %s (%w)", filepath.Dir(path), safeopen.Cause(err))
	}
	var numbers []int
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), filepath.Base(path)+backupMark)
		if n, err := strconv.Atoi(digits); ok && err == nil && n > 0 && e.Type().IsRegular() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func backupPath(path string, n int) string { return path + backupMark + strconv.Itoa(n) }

func readBackups(ctx context.Context, path string) ([]Backup, error) {
	numbers, err := numberedBackups(path)
	if err != nil {
		return nil, err
	}
	var backups []Backup
	for _, n := range numbers {
		b := Backup{Path: backupPath(path, n)}
		var exists bool
		if b.Content, exists, err = readFile(ctx, b.Path); err != nil {
			return nil, err
		}
		if exists {
			backups = append(backups, b)
		}
	}
	return backups, nil
}

// Apply carries out a change and gives the path of the backup that it made, if
// any. It fails with CodeConflict if the file is not what was planned on.
func Apply(ctx context.Context, c Change) (string, error) {
	if !c.Changes() {
		return "", nil
	}
	if err := unchanged(ctx, c); err != nil {
		return "", err
	}
	target, err := realPath(c.Path)
	if err != nil {
		return "", err
	}
	mode, err := writable(target, c)
	if err != nil {
		return "", err
	}
	backup := ""
	if c.Backup {
		if backup, err = writeBackup(c.Path, c.Before, mode); err != nil {
			return "", err
		}
	}
	if c.Delete {
		err = os.Remove(target)
	} else {
		err = replace(ctx, target, c, mode)
	}
	if err != nil {
		if backup != "" {
			_ = os.Remove(backup) // it holds what the file still holds
		}
		var coded *guideway.Error
		if errors.As(err, &coded) {
			return "", err
		}
		return "", guideway.Errorf(guideway.CodeUnavailable, "cannot write %s (%w)", c.Path, safeopen.Cause(err)).
			WithFix("check that you may write in %s", filepath.Dir(target))
	}
	for _, b := range c.Consumed {
		discard(ctx, b)
	}
	return backup, nil
}

// discard removes a backup that is still what it was when it was read.
func discard(ctx context.Context, b Backup) {
	if now, exists, err := readFile(ctx, b.Path); err == nil && exists && bytes.Equal(now, b.Content) {
		_ = os.Remove(b.Path)
	}
}

func unchanged(ctx context.Context, c Change) error {
	now, exists, err := readFile(ctx, c.Path)
	if err != nil {
		return err
	}
	if exists != c.Existed || !bytes.Equal(now, c.Before) {
		return guideway.Errorf(guideway.CodeConflict, "%s changed while it was being edited", c.Path).
			WithFix("close %s, then run the same command again", c.Client.Title)
	}
	return nil
}

// realPath follows symbolic links, also to a file that is not there yet.
func realPath(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", guideway.Errorf(guideway.CodeInvalid, "cannot follow %s (%w)", path, safeopen.Cause(err))
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	return "", guideway.Errorf(guideway.CodeInvalid, "cannot follow %s (too many symbolic links)", path)
}

// writable gives the mode to write with, or refuses a file that its owner has
// made read-only.
func writable(target string, c Change) (fs.FileMode, error) {
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.Private:
		return 0o600, nil
	case errors.Is(err, fs.ErrNotExist):
		return 0o644, nil
	case err != nil:
		return 0, guideway.Errorf(guideway.CodeInvalid, "cannot read %s (%w)", c.Path, safeopen.Cause(err))
	case info.Mode().Perm()&0o200 == 0:
		return 0, guideway.Errorf(guideway.CodeForbidden, "cannot write %s (it is read-only)", c.Path).
			WithFix("make it writable, then run the same command again")
	}
	return info.Mode().Perm(), nil
}

func writeBackup(path string, content []byte, mode fs.FileMode) (string, error) {
	numbers, err := numberedBackups(path)
	if err != nil {
		return "", err
	}
	n := 1
	if len(numbers) > 0 {
		n = numbers[len(numbers)-1] + 1
	}
	for ; ; n++ {
		name := backupPath(path, n)
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			if err = flush(file, content, mode); err != nil {
				_ = os.Remove(name)
			}
		}
		if err != nil {
			return "", guideway.Errorf(guideway.CodeUnavailable, "cannot write the backup %s (%w)", name, safeopen.Cause(err)).
				WithFix("check the free space and that you may write in %s", filepath.Dir(path))
		}
		return name, nil
	}
}

// flush writes, syncs and closes a new file.
func flush(file *os.File, content []byte, mode fs.FileMode) error {
	_, err := file.Write(content)
	return errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
}

// replace puts the new content in place in one step: readers see the old file
// or the new one.
func replace(ctx context.Context, target string, c Change, mode fs.FileMode) error {
	dir := filepath.Dir(target)
	dirMode := fs.FileMode(0o755)
	if c.Private {
		dirMode = 0o700
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(target)+".guideway-*")
	if err != nil {
		return err
	}
	err = flush(temp, c.After, mode)
	if err == nil {
		err = unchanged(ctx, c)
	}
	if err == nil {
		err = os.Rename(temp.Name(), target)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return err
	}
	_ = atomicfile.SyncDir(dir) // the new name is durable where the platform can do that
	return nil
}

// Status is what Guideway finds of itself in one client.
type Status struct {
	Client Client
	State  State
	Path   string
	// Command is what the entry starts, if there is one.
	Command string
	// Reason says why a configuration is unreadable.
	Reason string
}

// State is how far Guideway is installed in a client.
type State string

// The states.
const (
	StateInstalled    State = "installed"
	StateOtherPath    State = "installed with another path"
	StateNotInstalled State = "not installed"
	StateNoClient     State = "client not found"
	StateUnreadable   State = "config unreadable"
)

// Inspect looks for Guideway in one client. It never fails: what is wrong is in
// the status.
func Inspect(ctx context.Context, env Env, c Client, scope Scope, req Request) Status {
	s := Status{Client: c, State: StateUnreadable}
	loc, err := Locate(env, c, scope)
	if err != nil {
		s.Reason = err.Error()
		return s
	}
	s.Path = loc.Path
	content, exists, err := readFile(ctx, loc.Path)
	if err != nil {
		s.Reason = err.Error()
		return s
	}
	entry, found, err := c.format().lookup(content, nameOf(req))
	switch {
	case err != nil:
		s.Reason = err.Error()
		var where *syntaxError
		if errors.As(err, &where) && where.line > 0 {
			s.Reason = fmt.Sprintf("line %d, column %d: %s", where.line, where.column, err)
		}
	case found:
		s.State, s.Command = StateOtherPath, entry.Command
		if env.samePath(entry.Command, req.Command) {
			s.State = StateInstalled
		}
	case exists || scope == ScopeProject || slices.ContainsFunc(loc.Markers, env.exists):
		s.State = StateNotInstalled
	default:
		s.State = StateNoClient
	}
	return s
}
