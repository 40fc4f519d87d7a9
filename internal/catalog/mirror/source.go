package mirror

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// Fetcher fetches the remote documents of a source.
type Fetcher interface {
	// Fetch looks for a version newer than have, which is nil if there is no copy. It adds
	// the files of the new version to the stage, which the function stage creates at its
	// first call. If there is no newer version, Fetch does not call stage. Its errors
	// contain no secrets.
	Fetch(ctx context.Context, have *Previous, stage func() (*Stage, error)) (Fetched, error)
}

// Fetched is the result of a fetch.
type Fetched struct {
	// Revision is the remote revision. Reference is the name that is followed, such as a
	// branch.
	Revision, Reference string
	// Tag is stored for the next fetch.
	Tag string
}

// Limits bound the content of a remote source. A zero field means the default.
type Limits struct {
	// Bytes bounds one transfer: 64 MiB.
	Bytes int64
	// Files bounds the number of documents: 1,000. FileBytes bounds one document: 1 MiB.
	Files     int
	FileBytes int64
}

// WithDefaults returns the limits with the defaults filled in.
func (l Limits) WithDefaults() Limits {
	return Limits{Bytes: cmp.Or(l.Bytes, 64<<20), Files: cmp.Or(l.Files, 1_000), FileBytes: cmp.Or(l.FileBytes, 1<<20)}
}

// Previous is the current version of the copy.
type Previous struct {
	Revision, Tag string
	dir           string
	sums          map[string]string // maps sums to names
}

// Options configure a Source; Dir and Fetcher are required.
type Options struct {
	// Dir is the directory of the copy; it need not exist.
	Dir string
	// Origin identifies the remote source. If Dir contains a copy with a different origin,
	// the copy is ignored.
	Origin string
	// Fetcher fetches the documents.
	Fetcher Fetcher
	// Interval is the time between synchronizations: a minute. After a failure the pause is
	// 15 seconds, and it doubles with each further failure, up to an hour or Interval.
	Interval time.Duration
	// Timeout bounds one synchronization: 2 minutes.
	Timeout time.Duration
	// Poll is the interval of checks for an update by another process: 500 ms.
	Poll time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// The pauses after failures.
const (
	firstPause = 15 * time.Second
	maxPause   = time.Hour
)

// Source is a catalog.Source of remote documents.
type Source struct {
	info  catalog.SourceInfo
	opts  Options
	store *store

	mu     sync.Mutex
	listed string // the version and failure that Documents returned last
}

var (
	_ catalog.Syncer  = (*Source)(nil)
	_ catalog.Watcher = (*Source)(nil)
)

// New makes a source. It touches neither the disk nor the network.
func New(info catalog.SourceInfo, opts Options) *Source {
	opts.Interval = cmp.Or(opts.Interval, time.Minute)
	opts.Timeout = cmp.Or(opts.Timeout, 2*time.Minute)
	opts.Poll = cmp.Or(opts.Poll, 500*time.Millisecond)
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Source{info: info, opts: opts, store: &store{dir: opts.Dir, origin: opts.Origin}}
}

// Info implements catalog.Source.
func (s *Source) Info() catalog.SourceInfo { return s.info }

// Documents implements catalog.Source. It only reads the copy.
func (s *Source) Documents(ctx context.Context) ([]catalog.Document, []guideway.Diagnostic, error) {
	st, err := s.store.readState()
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	s.listed = st.fingerprint()
	s.mu.Unlock()
	if st.Version == "" {
		return nil, nil, s.missingError(st)
	}
	m, err := s.store.readManifest(st.Version)
	if err != nil {
		return nil, nil, guideway.Errorf(guideway.CodeUnavailable, "read the local copy: %w", err).WithFix("guideway sources sync %s", s.info.Name)
	}
	var found []guideway.Diagnostic
	for _, d := range m.Findings {
		d.File = s.displayPath(d.File)
		found = append(found, d)
	}
	if st.Failure != "" {
		found = append(found, guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: "source-offline", File: s.info.Location,
			Message: fmt.Sprintf("the source %q could not be updated: %s; the copy that was current at %s is still served",
				s.info.Name, st.Failure, st.Checked.Local().Format("2006-01-02 15:04")),
			Fix: cmp.Or(st.Fix, "guideway sources sync "+s.info.Name),
		})
	}
	documents := make([]catalog.Document, 0, len(m.Files))
	for _, f := range m.Files {
		if !IsSafe(f.Name) {
			continue
		}
		documents = append(documents, catalog.Document{
			Name: f.Name, Path: s.displayPath(f.Name), Revision: st.Revision, Size: f.Size, Stamp: f.Sum, Sum: f.sumBytes(),
			Open: func(context.Context) (io.ReadCloser, error) { return s.openFile(st.Version, f) },
		})
	}
	return documents, found, ctx.Err()
}

// missingError returns the reason why there is no copy yet.
func (s *Source) missingError(st state) error {
	err := guideway.Errorf(guideway.CodeUnavailable, "%s", cmp.Or(st.Failure, "it has not been fetched yet"))
	return err.WithFix("%s", cmp.Or(st.Fix, "guideway sources sync "+s.info.Name))
}

// displayPath returns the location of a file for a person: the URL of the source, a double
// slash, and the file.
func (s *Source) displayPath(name string) string {
	if name == "" {
		return s.info.Location
	}
	return strings.TrimSuffix(s.info.Location, "/") + "//" + name
}

// openFile opens a file of a version. If the version was removed because a newer one
// replaced it, openFile opens the file in the newer version if it is unchanged there.
func (s *Source) openFile(version string, f File) (io.ReadCloser, error) {
	file, err := s.openIn(version, f.Name)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	st, loadErr := s.store.readState()
	if loadErr != nil || st.Version == "" || st.Version == version {
		return nil, err
	}
	m, manifestErr := s.store.readManifest(st.Version)
	if manifestErr != nil || !slices.Contains(m.Files, f) {
		return nil, err
	}
	return s.openIn(st.Version, f.Name)
}

// openIn opens a file of a version.
func (s *Source) openIn(version, name string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(filepath.Join(s.store.dir, version, filesDir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return safeopen.OpenIn(root, name)
}

// Dir returns the directory of the current version's files, or "".
func (s *Source) Dir() string {
	st, err := s.store.readState()
	if err != nil || st.Version == "" {
		return ""
	}
	return filepath.Join(s.store.dir, st.Version, filesDir)
}

// SyncState implements catalog.Syncer.
func (s *Source) SyncState() catalog.SyncState {
	st, err := s.store.readState()
	if err != nil {
		return catalog.SyncState{Failure: err.Error(), Failures: 1}
	}
	return catalog.SyncState{
		Revision: st.Revision, Reference: st.Reference, Changed: st.Changed, Checked: st.Checked,
		Failure: st.Failure, Failures: st.Failures, Next: s.nextAttempt(st),
	}
}

// fingerprint returns a text that changes whenever the documents, their revision or the
// failure changes.
func (st state) fingerprint() string { return st.Version + "\x00" + st.Revision + "\x00" + st.Failure }

// nextAttempt returns when the next attempt is due.
func (s *Source) nextAttempt(st state) time.Time {
	if st.Tried.IsZero() {
		return time.Time{}
	}
	pause := s.opts.Interval
	if st.Failures > 0 {
		pause = min(firstPause<<min(st.Failures-1, 10), max(maxPause, s.opts.Interval))
	}
	return st.Tried.Add(pause)
}

// Due reports whether an attempt is due.
func (s *Source) Due() bool {
	st, err := s.store.readState()
	return err != nil || !s.opts.Now().Before(s.nextAttempt(st))
}

// Sync implements catalog.Syncer.
func (s *Source) Sync(ctx context.Context) (catalog.Synced, error) {
	return s.update(ctx, s.opts.Now(), thorough)
}

// The values of the parameter care: the check of a copy before a fetch reads all files
// (thorough), or compares only their sizes (quick).
const (
	thorough = true
	quick    = false
)

// update updates the copy, unless another process has tried to update it after since.
// Failed attempts of other processes count too, so that not every process calls a server
// that is down.
func (s *Source) update(ctx context.Context, since time.Time, care bool) (done catalog.Synced, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var failed error
	err = s.store.withLock(ctx, func() error {
		st, err := s.store.readState()
		if err != nil {
			return s.store.writeError(err)
		}
		done.Before, done.After = st.Revision, st.Revision
		if st.Tried.After(since) {
			if st.Failure != "" {
				failed = guideway.Errorf(guideway.CodeUnavailable, "%s", st.Failure).WithFix("%s", st.Fix)
			}
			return nil
		}
		before := st.fingerprint()
		failed = s.fetchNewer(ctx, &st, care)
		if failed != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err() // the context was cancelled, which is not an error of the remote side
		}
		if failed != nil {
			st.Failures++
			st.Failure, st.Fix = oneLine(failed.Error()), guideway.ErrorFix(failed)
		}
		st.Tried = s.opts.Now()
		if err := s.store.writeState(st); err != nil {
			return s.store.writeError(err)
		}
		done.After, done.Changed = st.Revision, before != st.fingerprint()
		s.store.removeOldVersions(st.Version, s.opts.Now())
		return nil
	})
	return done, errors.Join(err, failed)
}

// fetchNewer fetches a newer version, and updates the state.
func (s *Source) fetchNewer(ctx context.Context, st *state, care bool) error {
	have := s.previousVersion(*st, care)
	var stage *Stage
	got, err := s.opts.Fetcher.Fetch(ctx, have, func() (_ *Stage, err error) {
		if stage == nil {
			stage, err = s.store.newStage()
		}
		return stage, err
	})
	if stage != nil {
		defer stage.discard()
	}
	if err != nil {
		return err
	}
	switch {
	case stage != nil:
		if err := s.adoptStage(stage, got, st, have != nil); err != nil {
			return err
		}
	case have == nil:
		return guideway.Errorf(guideway.CodeInternal, "nothing was fetched")
	}
	st.Revision, st.Reference, st.Tag, st.Checked = got.Revision, got.Reference, got.Tag, s.opts.Now()
	st.Failure, st.Fix, st.Failures = "", "", 0
	return nil
}

// adoptStage makes a stage the current version, unless the current version is intact and
// has the same content.
func (s *Source) adoptStage(stage *Stage, got Fetched, st *state, have bool) error {
	stage.sealManifest()
	if st.Version != "" {
		if m, err := s.store.readManifest(st.Version); err == nil && have && stage.equals(m) {
			return nil
		}
	}
	version, err := s.store.commitStage(stage)
	if err != nil {
		return err
	}
	now := s.opts.Now()
	if st.Version != "" {
		// The replaced version may still be read: its removal waits for the grace period.
		_ = os.Chtimes(filepath.Join(s.store.dir, st.Version), now, now)
	}
	st.Version, st.Changed = version, now
	return nil
}

// previousVersion returns the current version, or nil if there is no usable copy.
func (s *Source) previousVersion(st state, care bool) *Previous {
	if st.Version == "" {
		return nil
	}
	m, err := s.store.readManifest(st.Version)
	if err != nil {
		return nil
	}
	h := &Previous{Revision: st.Revision, Tag: st.Tag, dir: filepath.Join(s.store.dir, st.Version, filesDir), sums: map[string]string{}}
	for _, f := range m.Files {
		if !IsSafe(f.Name) || !s.isWhole(st.Version, f, care) {
			return nil // the copy was changed: everything is fetched again
		}
		h.sums[f.Sum] = f.Name
	}
	return h
}

// isWhole reports whether a file of a version is unchanged; if care is false, it only
// checks the size.
func (s *Source) isWhole(version string, f File, care bool) bool {
	if !care {
		info, err := os.Lstat(filepath.Join(s.store.dir, version, filesDir, filepath.FromSlash(f.Name)))
		return err == nil && info.Size() == f.Size
	}
	file, err := s.openIn(version, f.Name)
	if err != nil {
		return false
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(file, f.Size+1))
	return err == nil && size == f.Size && hex.EncodeToString(sum.Sum(nil)) == f.Sum
}

// oneLine cleans a message of a remote machine and makes it one line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return clipName(text)
}

// Changes implements catalog.Watcher: it synchronizes whenever a synchronization is due,
// and reports changes of the copy, including those by other processes.
func (s *Source) Changes(ctx context.Context) (<-chan struct{}, error) {
	out := make(chan struct{}, 1)
	var parts sync.WaitGroup
	parts.Go(func() { s.syncPeriodically(ctx) })
	parts.Go(func() { s.watchCopy(ctx, out) })
	go func() {
		parts.Wait()
		close(out)
	}()
	return out, nil
}

// syncPeriodically synchronizes whenever a synchronization is due.
func (s *Source) syncPeriodically(ctx context.Context) {
	for {
		st, err := s.store.readState()
		wait := s.nextAttempt(st).Sub(s.opts.Now())
		if err != nil {
			wait = s.opts.Interval
		}
		if wait > 0 {
			// The random part spreads processes that started together.
			wait += rand.N(wait/10 + 1) //nolint:gosec // it is no secret
		}
		if ctxsleep.For(ctx, max(wait, 0)) != nil {
			return
		}
		since := st.Tried
		if _, err := s.update(ctx, since, quick); err != nil && s.hasNoTrace(st) {
			// The failure could not be stored, so the pause is unknown.
			_ = ctxsleep.For(ctx, firstPause) // the next round checks ctx
		}
	}
}

// hasNoTrace reports whether an attempt did not change the stored state.
func (s *Source) hasNoTrace(before state) bool {
	st, err := s.store.readState()
	return err != nil || st.Tried.Equal(before.Tried)
}

// watchCopy sends a value whenever the copy differs from the last result of Documents.
func (s *Source) watchCopy(ctx context.Context, out chan<- struct{}) {
	poll := time.NewTicker(s.opts.Poll)
	defer poll.Stop()
	var seen os.FileInfo
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
		info, err := os.Stat(filepath.Join(s.store.dir, currentFile))
		if err != nil || seen != nil && os.SameFile(info, seen) && info.ModTime().Equal(seen.ModTime()) {
			continue
		}
		st, err := s.store.readState()
		if err != nil {
			continue
		}
		seen = info
		s.mu.Lock()
		other := st.fingerprint() != s.listed
		s.mu.Unlock()
		if other {
			select {
			case out <- struct{}{}:
			default: // a pending signal is enough
			}
		}
	}
}
