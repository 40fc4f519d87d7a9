// Package mirror keeps a copy of what a source has elsewhere, and serves it.
//
// The copy is a sequence of versions, each a directory that never changes after it
// is complete, and one small file that names the current one. A version is
// written beside the others, made durable, and then named: whoever reads the copy
// sees all of one version or all of another, whenever the program that writes is
// killed. Several processes may share a copy; a lock has one of them write.
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
	// form is the version of the form of a copy; one of another form is made anew.
	form = 1
	// currentFile names the current version and says how the last attempts went.
	currentFile = "current.json"
	// manifestFile lists what a version holds.
	manifestFile = "manifest.json"
	// filesDir holds the files of a version.
	filesDir = "files"
	// versionPrefix and stagePrefix begin the names of versions, and of those that
	// are not complete.
	versionPrefix, stagePrefix = "v-", "stage-"
	// scratchSuffix ends the name of a directory beside a stage.
	scratchSuffix = "-scratch"
	// grace is how long a version stays after another has taken its place, for
	// those who are reading it.
	grace = 10 * time.Minute
	// lockRetry is how often a lock that another process holds is asked for again.
	lockRetry = 20 * time.Millisecond
	// maxState bounds the files of a copy that are read whole.
	maxState = 16 << 20
)

// state is what currentFile holds.
type state struct {
	Form int `json:"form"`
	// Origin is what the copy is of. A copy of something else counts for nothing.
	Origin string `json:"origin"`
	// Version is the name of the directory of the current version; "" is none.
	Version   string `json:"version,omitempty"`
	Revision  string `json:"revision,omitempty"`
	Reference string `json:"reference,omitempty"`
	// Tag is what the other side calls the revision; only who fetches understands it.
	Tag     string    `json:"tag,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
	Checked time.Time `json:"checked,omitzero"`
	// Tried is when the last attempt ended.
	Tried    time.Time `json:"tried,omitzero"`
	Failure  string    `json:"failure,omitempty"`
	Fix      string    `json:"fix,omitempty"`
	Failures int       `json:"failures,omitempty"`
}

// Manifest says what a version holds.
type Manifest struct {
	// Revision is what of the source it is a copy of; a later revision may have the
	// same content.
	Revision string `json:"revision"`
	Files    []File `json:"files"`
	// Findings are about what is not in the copy, by their names in the source.
	Findings []guideway.Diagnostic `json:"findings,omitempty"`
}

// File is a file of a version.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// Sum is the SHA-256 of the content in hexadecimal digits.
	Sum string `json:"sum"`
}

// hash is Sum as bytes. What is none is like no content, so that the file is refused.
func (f File) hash() *[sha256.Size]byte {
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

// load reads what is current. No copy is the zero state.
func (s *store) load() (state, error) {
	data, err := readFile(filepath.Join(s.dir, currentFile))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	var st state
	if json.Unmarshal(data, &st) != nil || st.Form != form || st.Origin != s.origin || !isVersion(st.Version) {
		// Nothing is lost: it is fetched again.
		return state{}, nil
	}
	return st, nil
}

// isVersion says whether a name is that of a version or none, and leads nowhere.
func isVersion(name string) bool {
	return name == "" || strings.HasPrefix(name, versionPrefix) && filepath.IsLocal(name) && !strings.ContainsAny(name, `/\`)
}

// save makes a state the current one.
func (s *store) save(st state) error {
	st.Form, st.Origin = form, s.origin
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(s.dir, currentFile), string(data)+"\n")
}

// manifest reads what a version holds.
func (s *store) manifest(version string) (*Manifest, error) {
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
	if !info.Mode().IsRegular() || info.Size() > maxState {
		return nil, fmt.Errorf("%s is no file of this program", filepath.Base(path))
	}
	return os.ReadFile(path)
}

// locked does something while no other process, nor another part of this one, does.
func (s *store) locked(ctx context.Context, do func() error) (err error) {
	if err := atomicfile.MakeDir(s.dir); err != nil {
		return s.unwritable(err)
	}
	lock := flock.New(filepath.Join(s.dir, "lock"))
	if ok, err := lock.TryLockContext(ctx, lockRetry); err != nil || !ok {
		return s.unwritable(err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return do()
}

func (s *store) unwritable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "write the copy in %s: %w", s.dir, err).
		WithFix("make the directory writable for this user, or name another with workflows.cacheDir")
}

// stage makes the directory of a version to come.
func (s *store) stage() (*Stage, error) {
	dir, err := os.MkdirTemp(s.dir, stagePrefix)
	if err != nil {
		return nil, s.unwritable(err)
	}
	if err := os.Mkdir(filepath.Join(dir, filesDir), 0o700); err != nil {
		return nil, s.unwritable(err)
	}
	return &Stage{dir: dir}, nil
}

// commit makes a stage a version and gives its name.
func (s *store) commit(stage *Stage) (version string, err error) {
	data, err := json.Marshal(stage.manifest)
	if err != nil {
		return "", err
	}
	if err := atomicfile.Create(filepath.Join(stage.dir, manifestFile), string(data)+"\n"); err != nil {
		return "", s.unwritable(err)
	}
	if err := stage.sync(); err != nil {
		return "", s.unwritable(err)
	}
	version = shortid.Timed(versionPrefix, time.Now())
	if err := os.Rename(stage.dir, filepath.Join(s.dir, version)); err != nil {
		return "", s.unwritable(err)
	}
	return version, nil
}

// sweep removes what is neither current nor possibly being read. Nobody else
// writes meanwhile, so that what is not complete belongs to a process that died.
func (s *store) sweep(keep string, now time.Time) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // there is another time
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
			old = err == nil && now.Sub(info.ModTime()) > grace
		}
		if old {
			_ = os.RemoveAll(filepath.Join(s.dir, name)) // what stays is tried again
		}
	}
}
