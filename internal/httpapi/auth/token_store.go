package auth

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

const (
	// maxRecord is the maximum size of a record.
	maxRecord = 1 << 20
	// recordSuffix is the end of a record's file name.
	recordSuffix = ".json"
)

// errDamaged is returned for a record that cannot be decoded.
var errDamaged = errors.New("the record is damaged")

// tokenStore stores records under the hashes of secrets: one file for each, named by the
// hash. A reader of the directory learns no secret; only the user may write to it. There is
// no index that could be stale and no lock: creating a file adds a record, and if several
// processes remove one, only one succeeds. It does not access the disk before the first
// call.
//
// The instances of a deployment share records in its state instead: the name of an entry is
// the name of the directory and the hash.
type tokenStore struct {
	dir string
	// shared, if not nil, has the records.
	shared deployment.State
	now    func() time.Time
}

func newTokenStore(dir string, shared deployment.State, now func() time.Time) tokenStore {
	if now == nil {
		now = time.Now
	}
	return tokenStore{dir: dir, shared: shared, now: now}
}

// prefix returns the beginning of the names of the records in the shared state.
func (v tokenStore) prefix() string { return filepath.Base(v.dir) + "/" }

// newSecret returns a prefix and n random bytes in base64.
func newSecret(prefix string, n int) string {
	secret := make([]byte, n)
	_, _ = rand.Read(secret) // never returns an error: the process ends instead
	return prefix + base64.RawURLEncoding.EncodeToString(secret)
}

// recordPath returns the path of the record of a secret, or the name of its entry.
func (v tokenStore) recordPath(secret string) string {
	if v.shared != nil {
		return v.prefix() + digest.Hex(secret)
	}
	return filepath.Join(v.dir, digest.Hex(secret)+recordSuffix)
}

// createRecord stores a record.
func (v tokenStore) createRecord(secret string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "encode a credential: %w", err)
	}
	if v.shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		return v.shared.Create(ctx, deployment.Entry{Name: v.recordPath(secret), Text: string(text), Touched: v.now()})
	}
	if err := atomicfile.MakeDir(v.dir); err != nil {
		return v.newError("create", err)
	}
	if err := v.checkDir(); err != nil {
		return err
	}
	path := v.recordPath(secret)
	if err := atomicfile.Create(path, string(text)+"\n"); err != nil {
		return v.newError("write", err)
	}
	return v.touchRecord(secret)
}

// touchRecord marks a record as used now.
func (v tokenStore) touchRecord(secret string) error { return v.touchRecordAt(secret, v.now()) }

func (v tokenStore) touchRecordAt(secret string, at time.Time) error {
	if v.shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		return v.shared.Touch(ctx, v.recordPath(secret), at)
	}
	if err := os.Chtimes(v.recordPath(secret), at, at); err != nil {
		return v.newError("update the time of", err)
	}
	return nil
}

// getRecord reads a record and returns its modification time. The error is fs.ErrNotExist
// if the record is missing.
func (v tokenStore) getRecord(secret string, record any) (touched time.Time, err error) {
	return v.readRecord(v.recordPath(secret), record)
}

func (v tokenStore) readRecord(path string, record any) (touched time.Time, err error) {
	if v.shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		e, err := deployment.Get(ctx, v.shared, path)
		if err == nil && json.Unmarshal([]byte(e.Text), record) != nil {
			err = guideway.Errorf(guideway.CodeUnavailable, "read a credential: %w", errDamaged)
		}
		return e.Touched, err
	}
	if err := v.checkDir(); err != nil {
		return time.Time{}, err
	}
	info, err := os.Lstat(path) //nolint:gosec // G703: the name is a hash
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, fs.ErrNotExist
	}
	if err == nil && !info.Mode().IsRegular() {
		return time.Time{}, v.recordError(path, errors.New("not a regular file"))
	}
	if err != nil {
		return time.Time{}, v.newError("read", err)
	}
	file, err := os.Open(path)          //nolint:gosec // G703: the name is a hash
	if errors.Is(err, fs.ErrNotExist) { // removed by another process
		return time.Time{}, fs.ErrNotExist
	}
	if err != nil {
		return time.Time{}, v.newError("read", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err == nil && json.Unmarshal(text, record) != nil {
		return time.Time{}, v.recordError(path, errDamaged)
	}
	if err != nil {
		return time.Time{}, v.newError("read", err)
	}
	return info.ModTime(), nil
}

// removeRecord deletes the record of a secret. If several processes remove the same record,
// only one of them gets true.
func (v tokenStore) removeRecord(secret string) (bool, error) {
	return v.removeFile(v.recordPath(secret))
}

func (v tokenStore) removeFile(path string) (bool, error) {
	if v.shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		return v.shared.Remove(ctx, path)
	}
	err := os.Remove(path) //nolint:gosec // G703: the name is a hash
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, v.newError("remove", err)
	}
	return true, nil
}

// recordPaths returns the files of all records. If the directory is missing, there are
// none.
func (v tokenStore) recordPaths() ([]string, error) {
	if v.shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		entries, err := v.shared.Entries(ctx, v.prefix())
		names := make([]string, len(entries))
		for i, e := range entries {
			names[i] = e.Name
		}
		return names, err
	}
	entries, err := os.ReadDir(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, v.newError("list", err)
	}
	var paths []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), recordSuffix) {
			paths = append(paths, filepath.Join(v.dir, entry.Name()))
		}
	}
	return paths, nil
}

// removeOld removes the records that were last touched before a time. It ignores errors,
// because the expiry is checked at every use.
func (v tokenStore) removeOld(before time.Time) {
	if v.shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		_ = v.shared.Prune(ctx, v.prefix(), before)
		return
	}
	paths, _ := v.recordPaths()
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.ModTime().Before(before) {
			_, _ = v.removeFile(path)
		}
	}
}

// checkDir refuses a directory that other users can write to, because they could add a
// record.
func (v tokenStore) checkDir() error {
	info, err := os.Stat(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return v.newError("read", err)
	}
	// Windows has no permission bits: the user's profile protects the directory.
	if perm := info.Mode().Perm(); perm&0o022 != 0 && runtime.GOOS != "windows" {
		return guideway.Errorf(guideway.CodeForbidden, "other users can write to the directory of credentials %s (its mode is %#o)", v.dir, perm).
			WithFix("check the contents of the directory, then run chmod 700 %s", v.dir)
	}
	return nil
}

// recordError returns the error for a file that does not contain a record.
func (v tokenStore) recordError(path string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "read a credential in %s: %w", v.dir, err).
		WithFix("delete the file %s, and create the credential again", filepath.Base(path))
}

func (v tokenStore) newError(what string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s a credential in %s: %w", what, v.dir, err).
		WithFix("make %s a directory that only this user can read and write", v.dir)
}
