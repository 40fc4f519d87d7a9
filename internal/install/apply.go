package install

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/rogpeppe/go-internal/diff"
)

const (
	// maxSize is the maximum size of a configuration file.
	maxSize = 64 << 20
	// backupMark separates the name of a file from the number of its backup.
	backupMark = ".guideway-backup-"
	// maxLinks is the maximum length of a chain of symbolic links.
	maxLinks = 40
)

// Read reads the configuration at path and its backups. A missing file is returned as an
// empty File.
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
		return nil, false, readFailure(path, err)
	case !info.Mode().IsRegular():
		return nil, false, guideway.Errorf(guideway.CodeInvalid, "cannot read %s (not a regular file)", path).
			WithFix("replace %s with a file, or remove it", path)
	case info.Size() > maxSize:
		return nil, false, guideway.Errorf(guideway.CodeTooLarge, "cannot read %s (larger than %d MiB)", path, maxSize>>20).
			WithFix("remove entries that are not needed from %s", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, false, readFailure(path, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSize))
	if err != nil {
		return nil, false, readFailure(path, err)
	}
	return content, true, nil
}

func readFailure(path string, err error) error {
	return guideway.Errorf(guideway.CodeInvalid, "cannot read %s (%w)", path, safeopen.Cause(err)).
		WithFix("check that you have read permission for %s", path)
}

// numberedBackups returns the numbers of the backups of a file, in order.
func numberedBackups(path string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, readFailure(filepath.Dir(path), err)
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

// Apply writes a change and returns the path of the backup that it made, if any. It returns
// CodeConflict if the file has changed since the change was planned.
func Apply(ctx context.Context, c Change) (string, error) {
	if !c.Changes() {
		return "", nil
	}
	if err := checkUnchanged(ctx, c); err != nil {
		return "", err
	}
	target, err := realPath(c.Path)
	if err != nil {
		return "", err
	}
	mode, err := writeMode(target, c)
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
		err = replaceFile(ctx, target, c, mode)
	}
	if err != nil {
		if backup != "" {
			_ = os.Remove(backup) // the backup equals the unchanged file
		}
		var coded *guideway.Error
		if errors.As(err, &coded) {
			return "", err
		}
		return "", guideway.Errorf(guideway.CodeUnavailable, "cannot write %s (%w)", c.Path, safeopen.Cause(err)).
			WithFix("check the free space and your write permission in %s", filepath.Dir(target))
	}
	for _, b := range c.Consumed {
		removeBackup(ctx, b)
	}
	return backup, nil
}

// removeBackup removes a backup if it has not changed since it was read.
func removeBackup(ctx context.Context, b Backup) {
	if now, exists, err := readFile(ctx, b.Path); err == nil && exists && bytes.Equal(now, b.Content) {
		_ = os.Remove(b.Path)
	}
}

func checkUnchanged(ctx context.Context, c Change) error {
	now, exists, err := readFile(ctx, c.Path)
	if err != nil {
		return err
	}
	if exists != c.Existed || !bytes.Equal(now, c.Before) {
		err := guideway.Errorf(guideway.CodeConflict, "%s changed while it was being edited", c.Path)
		if c.Client.Title == "" { // the configuration of Guideway
			return err.WithFix("repeat the change")
		}
		return err.WithFix("close %s, then run the same command again", c.Client.Title)
	}
	return nil
}

// realPath resolves symbolic links. The target may not exist yet.
func realPath(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", guideway.Errorf(guideway.CodeInvalid, "cannot follow %s (%w)", path, safeopen.Cause(err)).
				WithFix("replace the link %s with a file", path)
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	return "", guideway.Errorf(guideway.CodeInvalid, "cannot follow %s (more than %d symbolic links)", path, maxLinks).
		WithFix("replace the link %s with a file", path)
}

// writeMode returns the mode for the write, or an error if the owner has made the file
// read-only.
func writeMode(target string, c Change) (fs.FileMode, error) {
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (c.Private || c.Secret):
		return 0o600, nil
	case errors.Is(err, fs.ErrNotExist):
		return 0o644, nil
	case err != nil:
		return 0, readFailure(c.Path, err)
	case info.Mode().Perm()&0o200 == 0:
		return 0, guideway.Errorf(guideway.CodeForbidden, "cannot write %s (it is read-only)", c.Path).
			WithFix("make %s writable, then run the same command again", c.Path)
	}
	if c.Secret {
		return 0o600, nil
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
			if err = writeAndSync(file, content, mode); err != nil {
				_ = os.Remove(name)
			}
		}
		if err != nil {
			return "", guideway.Errorf(guideway.CodeUnavailable, "cannot write the backup %s (%w)", name, safeopen.Cause(err)).
				WithFix("check the free space and your write permission in %s", filepath.Dir(path))
		}
		return name, nil
	}
}

// writeAndSync writes, syncs and closes a new file.
func writeAndSync(file *os.File, content []byte, mode fs.FileMode) error {
	atomicfile.KeepOwner(file)
	_, err := file.Write(content)
	return errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
}

// replaceFile atomically replaces the content.
func replaceFile(ctx context.Context, target string, c Change, mode fs.FileMode) error {
	dir := filepath.Dir(target)
	dirMode := fs.FileMode(0o755)
	if c.Private {
		dirMode = 0o700
	}
	if err := atomicfile.MakeDirMode(dir, dirMode); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(target)+".guideway-*")
	if err != nil {
		return err
	}
	err = writeAndSync(temp, c.After, mode)
	if err == nil {
		err = checkUnchanged(ctx, c)
	}
	if err == nil {
		err = os.Rename(temp.Name(), target)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return err
	}
	_ = atomicfile.SyncDir(dir) // SyncDir makes the name durable if the platform supports that.
	return nil
}

// Status is the state of Guideway in the configuration of a client.
type Status struct {
	Client Client
	State  State
	Path   string
	// Command is the command of the entry, if there is one, and URL its address.
	Command, URL string
	// Reason is the reason why a configuration is unreadable.
	Reason string
}

// State is the state of the installation in a client.
type State string

// The states.
const (
	StateInstalled    State = "installed"
	StateOtherPath    State = "installed with another path"
	StateNotInstalled State = "not installed"
	StateNoClient     State = "client not found"
	StateUnreadable   State = "config unreadable"
)

// Inspect returns the state of Guideway in the configuration of a client. Errors are
// reported in the status.
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
	entry, found, err := c.Form.lookupEntry(content, nameOf(req))
	switch {
	case err != nil:
		s.Reason = withPosition(err).Error()
	case found:
		s.State, s.Command, s.URL = StateOtherPath, entry.Command, entry.URL
		if entry.URL != "" || env.samePath(entry.Command, req.Command) {
			s.State = StateInstalled
		}
	case exists || scope == ScopeProject || slices.ContainsFunc(loc.Markers, env.pathExists):
		s.State = StateNotInstalled
	default:
		s.State = StateNoClient
	}
	return s
}

// Diff returns the unified diff of a change, or "" if nothing changes.
func Diff(c Change) string {
	if !c.Changes() {
		return ""
	}
	from, to := c.Path, c.Path
	if !c.Existed {
		from = "/dev/null"
	}
	if c.Delete {
		to = "/dev/null"
	}
	_, text, _ := bytes.Cut(diff.Diff(from, c.Before, to, c.After), []byte("\n")) // without the line "diff FROM TO"
	return string(text)
}
