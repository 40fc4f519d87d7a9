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

// Fetcher brings what a source has elsewhere.
type Fetcher interface {
	// Fetch looks for what is newer than what is there, which is nil where nothing
	// is, and adds it to a version that stage makes at the first call. Where nothing
	// is newer it does not call stage. Nothing in an error is a secret.
	Fetch(ctx context.Context, have *Have, stage func() (*Stage, error)) (Fetched, error)
}

// Fetched says what was found.
type Fetched struct {
	// Revision is what the other side has, Reference what led there, such as a branch.
	Revision, Reference string
	// Tag is kept for the next time.
	Tag string
}

// Have is what is there.
type Have struct {
	Revision, Tag string
	dir           string
	sums          map[string]string // names by sums
}

// Options adjust a Source; Dir and Fetcher are needed.
type Options struct {
	// Dir is the directory of the copy, which need not be there.
	Dir string
	// Origin says what is copied; a copy of another origin in Dir counts for nothing.
	Origin string
	// Fetcher brings it.
	Fetcher Fetcher
	// Interval is how often it is looked for: a minute. After a failure the pause
	// is longer, up to an hour.
	Interval time.Duration
	// Timeout bounds one synchronisation: 2 minutes.
	Timeout time.Duration
	// Poll is how often the copy is looked at, which another process may have
	// brought up to date: 500 ms.
	Poll time.Duration
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// The pauses after failures.
const (
	firstPause = 15 * time.Second
	maxPause   = time.Hour
)

// Source is a catalog.Source of what is elsewhere.
type Source struct {
	info  catalog.SourceInfo
	opts  Options
	store *store

	mu     sync.Mutex
	listed string // the version and failure that Documents saw last
}

var (
	_ catalog.Syncer = (*Source)(nil)
	_ catalog.Watcher  = (*Source)(nil)
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

// Documents implements catalog.Source. It reads the copy alone.
func (s *Source) Documents(ctx context.Context) ([]catalog.Document, []guideway.Diagnostic, error) {
	st, err := s.store.load()
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	s.listed = st.mark()
	s.mu.Unlock()
	if st.Version == "" {
		return nil, nil, s.nothing(st)
	}
	m, err := s.store.manifest(st.Version)
	if err != nil {
		return nil, nil, err
	}
	var found []guideway.Diagnostic
	for _, d := range m.Findings {
		d.File = s.place(d.File)
		found = append(found, d)
	}
	if st.Failure != "" {
		found = append(found, guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: "source-offline", File: s.info.Location,
			Message: fmt.Sprintf("the source %q could not be brought up to date: %s; what was fetched at %s goes on serving",
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
			Name: f.Name, Path: s.place(f.Name), Revision: st.Revision, Size: f.Size, Stamp: f.Sum, Sum: f.hash(),
			Open: func(context.Context) (io.ReadCloser, error) { return s.open(st.Version, f) },
		})
	}
	return documents, found, ctx.Err()
}

// nothing says why there is no copy yet.
func (s *Source) nothing(st state) error {
	if st.Failure != "" {
		return errors.New(st.Failure)
	}
	return errors.New("it was not yet fetched")
}

// place is where a person finds a file: the double slash stands between the
// address of the source and the file in it.
func (s *Source) place(name string) string {
	if name == "" {
		return s.info.Location
	}
	return strings.TrimSuffix(s.info.Location, "/") + "//" + name
}

// open opens a file of a version. Where the version has gone, because another has
// long taken its place, the same file of that one is as good.
func (s *Source) open(version string, f File) (io.ReadCloser, error) {
	file, err := s.openIn(version, f.Name)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	st, loadErr := s.store.load()
	if loadErr != nil || st.Version == "" || st.Version == version {
		return nil, err
	}
	m, manifestErr := s.store.manifest(st.Version)
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

// Dir is the directory of the current version's files; "" where there is none.
func (s *Source) Dir() string {
	st, err := s.store.load()
	if err != nil || st.Version == "" {
		return ""
	}
	return filepath.Join(s.store.dir, st.Version, filesDir)
}

// SyncState implements catalog.Syncer.
func (s *Source) SyncState() catalog.SyncState {
	st, err := s.store.load()
	if err != nil {
		return catalog.SyncState{Failure: err.Error(), Failures: 1}
	}
	return catalog.SyncState{
		Revision: st.Revision, Reference: st.Reference, Changed: st.Changed, Checked: st.Checked,
		Failure: st.Failure, Failures: st.Failures, Next: s.next(st),
	}
}

// mark changes with everything that Documents tells.
func (st state) mark() string { return st.Version + "\x00" + st.Revision + "\x00" + st.Failure }

// next is when it is time for another attempt.
func (s *Source) next(st state) time.Time {
	if st.Tried.IsZero() {
		return time.Time{}
	}
	pause := s.opts.Interval
	if st.Failures > 0 {
		pause = min(firstPause<<min(st.Failures-1, 10), max(maxPause, s.opts.Interval))
	}
	return st.Tried.Add(pause)
}

// Due says whether it is time for another attempt.
func (s *Source) Due() bool {
	st, err := s.store.load()
	return err != nil || !s.opts.Now().Before(s.next(st))
}

// Sync implements catalog.Syncer.
func (s *Source) Sync(ctx context.Context) (catalog.Synced, error) {
	return s.sync(ctx, s.opts.Now(), thorough)
}

// Whether all files of a copy are read before what is newer is looked for, or only
// their sizes are looked at.
const (
	thorough = true
	quick    = false
)

// sync brings the copy up to date, unless another process has done it since. What
// another process tried counts, too: where a server is down it is not asked by all.
func (s *Source) sync(ctx context.Context, since time.Time, care bool) (done catalog.Synced, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var failed error
	err = s.store.locked(ctx, func() error {
		st, err := s.store.load()
		if err != nil {
			return s.store.unwritable(err)
		}
		done.Before, done.After = st.Revision, st.Revision
		if st.Tried.After(since) {
			if st.Failure != "" {
				failed = guideway.Errorf(guideway.CodeUnavailable, "%s", st.Failure)
			}
			return nil
		}
		before := st.mark()
		failed = s.fetch(ctx, &st, care)
		if failed != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ctx.Err() // it was given up, which says nothing about the other side
		}
		if failed != nil {
			st.Failures++
			st.Failure, st.Fix = oneLine(failed.Error()), guideway.ErrorFix(failed)
		}
		st.Tried = s.opts.Now()
		if err := s.store.save(st); err != nil {
			return s.store.unwritable(err)
		}
		done.After, done.Changed = st.Revision, before != st.mark()
		s.store.sweep(st.Version, s.opts.Now())
		return nil
	})
	return done, errors.Join(err, failed)
}

// fetch brings what is newer, and changes the state accordingly.
func (s *Source) fetch(ctx context.Context, st *state, care bool) error {
	have := s.have(*st, care)
	var stage *Stage
	got, err := s.opts.Fetcher.Fetch(ctx, have, func() (*Stage, error) {
		if stage != nil {
			return stage, nil
		}
		fresh, err := s.store.stage()
		if err == nil {
			stage = fresh
		}
		return fresh, err
	})
	if stage != nil {
		defer stage.remove()
	}
	if err != nil {
		return err
	}
	switch {
	case stage != nil:
		if err := s.adopt(stage, got, st, have != nil); err != nil {
			return err
		}
	case have == nil:
		return guideway.Errorf(guideway.CodeInternal, "nothing was fetched")
	}
	st.Revision, st.Reference, st.Tag, st.Checked = got.Revision, got.Reference, got.Tag, s.opts.Now()
	st.Failure, st.Fix, st.Failures = "", "", 0
	return nil
}

// adopt makes a stage the current version, unless that is as it should be and the same.
func (s *Source) adopt(stage *Stage, got Fetched, st *state, have bool) error {
	stage.finish(got.Revision)
	if st.Version != "" {
		if m, err := s.store.manifest(st.Version); err == nil && have && stage.same(m) {
			return nil
		}
	}
	version, err := s.store.commit(stage)
	if err != nil {
		return err
	}
	now := s.opts.Now()
	if st.Version != "" {
		// The version that it takes the place of is young for as long as it may be read.
		_ = os.Chtimes(filepath.Join(s.store.dir, st.Version), now, now)
	}
	st.Version, st.Changed = version, now
	return nil
}

// have is what is there; nil where nothing is that can be gone on from.
func (s *Source) have(st state, care bool) *Have {
	if st.Version == "" {
		return nil
	}
	m, err := s.store.manifest(st.Version)
	if err != nil {
		return nil
	}
	h := &Have{Revision: st.Revision, Tag: st.Tag, dir: filepath.Join(s.store.dir, st.Version, filesDir), sums: map[string]string{}}
	for _, f := range m.Files {
		if !IsSafe(f.Name) || !s.isWhole(st.Version, f, care) {
			return nil // somebody has been there: all is fetched again
		}
		h.sums[f.Sum] = f.Name
	}
	return h
}

// isWhole says whether a file of a version is what was fetched; without care its size
// decides.
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

// oneLine makes a message of another machine fit for one line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return clip(text)
}

// Changes implements catalog.Watcher: it brings the copy up to date whenever it is
// time to, and tells of every new version, whoever brought it.
func (s *Source) Changes(ctx context.Context) (<-chan struct{}, error) {
	out := make(chan struct{}, 1)
	var parts sync.WaitGroup
	parts.Go(func() { s.follow(ctx) })
	parts.Go(func() { s.watch(ctx, out) })
	go func() {
		parts.Wait()
		close(out)
	}()
	return out, nil
}

// follow brings the copy up to date whenever it is time to.
func (s *Source) follow(ctx context.Context) {
	for {
		st, err := s.store.load()
		wait := s.next(st).Sub(s.opts.Now())
		if err != nil {
			wait = s.opts.Interval
		}
		if wait > 0 {
			// Processes that started together do not ask together.
			wait += rand.N(wait/10 + 1) //nolint:gosec // it is no secret
		}
		if ctxsleep.For(ctx, max(wait, 0)) != nil {
			return
		}
		since := st.Tried
		if _, err := s.sync(ctx, since, quick); err != nil && s.stuck(st) {
			// The failure could not be noted, so that the pause is not known either.
			_ = ctxsleep.For(ctx, firstPause) // the next turn sees that it has ended
		}
	}
}

// stuck says whether an attempt left no trace.
func (s *Source) stuck(before state) bool {
	st, err := s.store.load()
	return err != nil || st.Tried.Equal(before.Tried)
}

// watch tells whenever the copy is another than Documents saw.
func (s *Source) watch(ctx context.Context, out chan<- struct{}) {
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
		st, err := s.store.load()
		if err != nil {
			continue
		}
		seen = info
		s.mu.Lock()
		other := st.mark() != s.listed
		s.mu.Unlock()
		if other {
			select {
			case out <- struct{}{}:
			default: // one that waits says the same
			}
		}
	}
}
