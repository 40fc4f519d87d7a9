package authn

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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
	"github.com/guideway-dev/guideway/internal/privatefile"
)

const (
	// maxRecord bounds what is read of a record.
	maxRecord = 16 << 10
	// recordSuffix ends the name of a record's file.
	recordSuffix = ".json"
)

// errDamaged marks a record that cannot be understood.
var errDamaged = errors.New("it is damaged")

// vault keeps records under the hashes of secrets: one file for each, named by
// the hash. Who reads the directory learns no secret; who may write there is the
// user. There is no index that could go stale and no lock: to make a file is to
// add a record, and of several processes that remove one only one succeeds.
// Nothing touches the disk before the first call.
type vault struct {
	dir string
	now func() time.Time
}

func newVault(dir string, now func() time.Time) vault {
	if now == nil {
		now = time.Now
	}
	return vault{dir: dir, now: now}
}

// newSecret makes a secret of n random bytes.
func newSecret(prefix string, n int) string {
	secret := make([]byte, n)
	_, _ = rand.Read(secret) // never fails: the process ends instead
	return prefix + base64.RawURLEncoding.EncodeToString(secret)
}

// hashOf is how a secret is kept. A secret is random and long, so that its hash
// needs no salt and no slowness.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// path is where the record of a secret is.
func (v vault) path(secret string) string {
	return filepath.Join(v.dir, hashOf(secret)+recordSuffix)
}

// put stores a record.
func (v vault) put(secret string, record any) error {
	if err := privatefile.MakeDir(v.dir); err != nil {
		return v.failed("create", err)
	}
	if err := v.ownDir(); err != nil {
		return err
	}
	text, err := json.Marshal(record)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "encode a credential: %w", err)
	}
	path := v.path(secret)
	if err := privatefile.Create(path, string(text)+"\n"); err != nil {
		return v.failed("write", err)
	}
	return v.touch(secret)
}

// touch says that a record is used now.
func (v vault) touch(secret string) error { return v.touchAt(secret, v.now()) }

func (v vault) touchAt(secret string, at time.Time) error {
	if err := os.Chtimes(v.path(secret), at, at); err != nil {
		return v.failed("mark as used", err)
	}
	return nil
}

// get reads a record and tells when it was last touched. The error is
// fs.ErrNotExist where there is none.
func (v vault) get(secret string, record any) (touched time.Time, err error) {
	return v.read(v.path(secret), record)
}

func (v vault) read(path string, record any) (touched time.Time, err error) {
	if err := v.ownDir(); err != nil {
		return time.Time{}, err
	}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, fs.ErrNotExist
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a plain file")
	}
	if err != nil {
		return time.Time{}, v.failed("read", err)
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) { // removed in between
		return time.Time{}, fs.ErrNotExist
	}
	if err != nil {
		return time.Time{}, v.failed("read", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxRecord))
	if err == nil && json.Unmarshal(text, record) != nil {
		err = errDamaged
	}
	if err != nil {
		return time.Time{}, v.failed("read", err)
	}
	return info.ModTime(), nil
}

// remove deletes the record of a secret. Of several that try, in whatever
// process, one gets true.
func (v vault) remove(secret string) (bool, error) {
	return v.removeFile(v.path(secret))
}

func (v vault) removeFile(path string) (bool, error) {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, v.failed("remove", err)
	}
	return true, nil
}

// paths lists the files of all records. A directory that is not there yet holds
// none.
func (v vault) paths() ([]string, error) {
	entries, err := os.ReadDir(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, v.failed("list", err)
	}
	var paths []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), recordSuffix) {
			paths = append(paths, filepath.Join(v.dir, entry.Name()))
		}
	}
	return paths, nil
}

// sweep removes the records that were last touched before a time. It is tidying
// up: expiry is checked at every use, whether or not this succeeds.
func (v vault) sweep(before time.Time) {
	paths, _ := v.paths()
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && info.ModTime().Before(before) {
			_, _ = v.removeFile(path)
		}
	}
}

// ownDir refuses a directory that others may write: they could plant a record.
func (v vault) ownDir() error {
	info, err := os.Stat(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return v.failed("look into", err)
	}
	// Windows has no such bits; there the user's profile guards the directory.
	if perm := info.Mode().Perm(); perm&0o022 != 0 && runtime.GOOS != "windows" {
		return guideway.Errorf(guideway.CodeForbidden, "others may write the directory of credentials %s (its mode is %#o)", v.dir, perm).
			WithFix("look at what is in it, then chmod 700 %s", v.dir)
	}
	return nil
}

func (v vault) failed(what string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s a credential in %s: %w", what, v.dir, err).
		WithFix("make %s a directory that this user alone can read and write", v.dir)
}
