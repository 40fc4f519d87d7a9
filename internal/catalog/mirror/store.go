// Package mirror keeps a copy of the remote documents of a source, and serves it.
//
// The copy is a sequence of versions, each a directory that never changes after it is
// complete, and one small file that names the current one. A version is written to its own
// directory, made durable, and then named: a reader sees all of one version or all of
// another, even if the writing program is killed at any time. Several processes may share a
// copy; a lock allows one of them to write.
package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

const (
	// formatVersion is the version of the format of a copy; copies in other formats are
	// fetched again.
	formatVersion = 1
	// currentFile names the current version and has the results of the last attempts.
	currentFile = "current.json"
	// manifestFile lists the content of a version.
	manifestFile = "manifest.json"
	// filesDir holds the files of a version.
	filesDir = "files"
	// versionPrefix and stagePrefix begin the names of complete and incomplete versions.
	versionPrefix, stagePrefix = "v-", "stage-"
	// scratchSuffix ends the name of a stage's temporary directory.
	scratchSuffix = "-scratch"
	// gracePeriod is how long a replaced version remains for its readers.
	gracePeriod = 10 * time.Minute
	// lockRetry is the interval of attempts to get a lock that another process holds.
	lockRetry = 20 * time.Millisecond
	// maxState bounds the bytes of each metadata file of a copy.
	maxState = 16 << 20
)

// state is the content of currentFile.
type state struct {
	Form int `json:"form"`
	// Origin identifies the remote source. A copy of a different source is ignored.
	Origin string `json:"origin"`
	// Version is the name of the directory of the current version, or "".
	Version   string `json:"version,omitempty"`
	Revision  string `json:"revision,omitempty"`
	Reference string `json:"reference,omitempty"`
	// Tag is the remote name of the revision; only the fetcher interprets it.
	Tag     string    `json:"tag,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
	Checked time.Time `json:"checked,omitzero"`
	// Tried is the end of the last attempt.
	Tried    time.Time `json:"tried,omitzero"`
	Failure  string    `json:"failure,omitempty"`
	Fix      string    `json:"fix,omitempty"`
	Failures int       `json:"failures,omitempty"`
}

// Manifest lists the content of a version.
type Manifest struct {
	Files []File `json:"files"`
	// Findings are the diagnostics of files that are not in the copy.
	Findings []guideway.Diagnostic `json:"findings,omitempty"`
}

// File is a file of a version.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// Sum is the SHA-256 of the content in hexadecimal digits.
	Sum string `json:"sum"`
}

// sumBytes returns Sum as bytes. An invalid Sum matches no content, so that the file is
// refused.
func (f File) sumBytes() *[sha256.Size]byte {
	var sum [sha256.Size]byte
	if hash, err := hex.DecodeString(f.Sum); err == nil && len(hash) == len(sum) {
		copy(sum[:], hash)
	}
	return &sum
}

// store is a copy on the disk.
type store struct {
	dir, origin string
}

// readState reads the current state. If there is no usable copy, it returns the zero state.
func (s *store) readState() (state, error) {
	data, err := readFile(filepath.Join(s.dir, currentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	var st state
	if json.Unmarshal(data, &st) != nil || st.Form != formatVersion || st.Origin != s.origin || !isVersion(st.Version) {
		// Nothing is lost: the copy is fetched again.
		return state{}, nil
	}
	return st, nil
}

// isVersion reports whether a name is empty or a valid directory name of a version.
func isVersion(name string) bool {
	return name == "" || strings.HasPrefix(name, versionPrefix) && filepath.IsLocal(name) && !strings.ContainsAny(name, `/\`)
}

// writeState makes a state the current one.
func (s *store) writeState(st state) error {
	st.Form, st.Origin = formatVersion, s.origin
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(s.dir, currentFile), string(data)+"\n")
}

// readManifest reads the manifest of a version.
func (s *store) readManifest(version string) (*Manifest, error) {
	data, err := readFile(filepath.Join(s.dir, version, manifestFile))
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("read the list of files: %w", err)
	}
	return m, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	if info.Size() > maxState {
		return nil, fmt.Errorf("%s is larger than %d bytes", filepath.Base(path), maxState)
	}
	return os.ReadFile(path)
}

// withLock runs do while it holds the lock that excludes other processes and goroutines.
func (s *store) withLock(ctx context.Context, do func() error) (err error) {
	if err := atomicfile.MakeDir(s.dir); err != nil {
		return s.writeError(err)
	}
	if err := atomicfile.EnsureFile(filepath.Join(s.dir, "lock")); err != nil {
		return s.writeError(err)
	}
	lock := flock.New(filepath.Join(s.dir, "lock"))
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return s.writeError(err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return do()
}

func (s *store) writeError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "write the local copy of the source in %s: %w", s.dir, err).
		WithFix("make sure that the directory is writable for this user and has free space, or set workflows.cacheDir to another directory")
}

// newStage creates the directory of a new version.
func (s *store) newStage() (*Stage, error) {
	dir := filepath.Join(s.dir, shortid.Timed(stagePrefix, time.Now()))
	if err := atomicfile.MakeDir(filepath.Join(dir, filesDir)); err != nil {
		return nil, s.writeError(err)
	}
	return &Stage{dir: dir}, nil
}

// commitStage turns a stage into a version and returns its name.
func (s *store) commitStage(stage *Stage) (version string, err error) {
	data, err := json.Marshal(stage.manifest)
	if err != nil {
		return "", err
	}
	if err := atomicfile.Create(filepath.Join(stage.dir, manifestFile), string(data)+"\n"); err != nil {
		return "", s.writeError(err)
	}
	if err := stage.syncDirs(); err != nil {
		return "", s.writeError(err)
	}
	version = shortid.Timed(versionPrefix, time.Now())
	if err := os.Rename(stage.dir, filepath.Join(s.dir, version)); err != nil {
		return "", s.writeError(err)
	}
	return version, nil
}

// removeOldVersions removes versions that are neither current nor possibly in use. The
// caller holds the lock, so that incomplete versions belong to processes that died.
func (s *store) removeOldVersions(keep string, now time.Time) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // the next synchronization tries again
	}
	for _, entry := range entries {
		name := entry.Name()
		old := false
		switch {
		case name == keep:
		case strings.HasPrefix(name, stagePrefix), strings.HasPrefix(name, "."):
			old = true
		case strings.HasPrefix(name, versionPrefix):
			info, err := entry.Info()
			old = err == nil && now.Sub(info.ModTime()) > gracePeriod
		}
		if old {
			_ = os.RemoveAll(filepath.Join(s.dir, name)) // the next call removes a remaining version
		}
	}
}
