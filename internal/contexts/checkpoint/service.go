package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/secret"
)

// Options configure a Service. Index and Blobs must not be nil.
type Options struct {
	Index Index
	Blobs blob.Store
	// Store describes the index.
	Store Store
	// Keys encrypts new checkpoints if it is not nil. It is needed to read encrypted
	// checkpoints.
	Keys *seal.Keys
	// PersonalData warns of personal data, too; see secret.Detector.
	PersonalData bool
	Limits       Limits
	// ReadOnly refuses all changes.
	ReadOnly bool
	// Locked is the reason why no content can be read or written: the master key is missing
	// or wrong. Then only metadata is available; all other calls return this error.
	Locked error
	// Active reports whether a run is active; the last checkpoint of an active run is never
	// cleaned up. If Active is nil, no run is active.
	Active func(ctx context.Context, run string) (bool, error)
	// Settle is the time that another process may take between writing a blob and its
	// record. A blob without a record that is younger is checked again after this time. The
	// default is 2 seconds; a negative value disables the second check.
	Settle time.Duration
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// Logger logs errors and repairs; it may be nil.
	Logger *slog.Logger
}

// Limits bound the store. A field of 0 has its default; a negative value means no limit.
type Limits struct {
	// PerSeries is the maximum number of checkpoints of a session; the oldest are removed
	// first. The default is 100.
	PerSeries int
	// SeriesBytes is the maximum size of a session's blobs; the default is 1 GiB.
	SeriesBytes int64
	// CheckpointBytes is the maximum size of one blob; the default is 10 MiB.
	CheckpointBytes int64
	// RawBytes is the maximum size of an uncompressed context; the default is 64 MiB.
	RawBytes int64
	// TotalBytes is the maximum size of all blobs; the default is 10 GiB.
	TotalBytes int64
	// Warn is the fraction of a limit from which Save warns, Clean the fraction of
	// TotalBytes from which the least recently touched sessions are removed; the defaults
	// are 0.8 and 0.9.
	Warn, Clean float64
	// Retention is the time after which an inactive session is removed; the default is 30
	// days.
	Retention time.Duration
}

func (l Limits) withDefaults() Limits {
	l.PerSeries = cmp.Or(l.PerSeries, 100)
	l.SeriesBytes = cmp.Or(l.SeriesBytes, 1<<30)
	l.CheckpointBytes = cmp.Or(l.CheckpointBytes, 10<<20)
	l.RawBytes = cmp.Or(l.RawBytes, 64<<20)
	l.TotalBytes = cmp.Or(l.TotalBytes, 10<<30)
	l.Warn = cmp.Or(l.Warn, 0.8)
	l.Clean = cmp.Or(l.Clean, 0.9)
	l.Retention = cmp.Or(l.Retention, 30*24*time.Hour)
	return l
}

// Service stores checkpoints. It is safe for concurrent use by many goroutines, and by many
// processes on one index and blob store.
type Service struct {
	o           Options
	secrets     *secret.Scanner
	squeezer    deltaCodec
	locks       seriesLocks
	recent      contentCache
	activityLog *activityLog
	headroom    quotaCache
	folds       foldQueue
	// recovered is set after the index was checked; lost is set after the index reported a
	// loss.
	recovering sync.Mutex
	recovered  bool
	lost       bool
	// repairs maps a mismatch to the time of the last attempt to repair it.
	repairing sync.Mutex
	repairs   map[string]time.Time
	// reserveOut reports that the disk reserve was released and could not be reserved
	// again.
	reserveOut atomic.Bool
}

// New returns a service. It must be closed.
func New(o Options) (*Service, error) {
	if o.Index == nil || o.Blobs == nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "checkpoints need an index and a blob store")
	}
	o.Limits = o.Limits.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.ReadOnly = o.ReadOnly || o.Locked != nil
	s := &Service{o: o, secrets: secret.NewScanner(secret.Detector{Personal: o.PersonalData})}
	s.activityLog = newActivityLog(o.Index, o.Logger, o.ReadOnly)
	return s, nil
}

// Close finishes the work of earlier saves and writes pending entries of the audit log. It
// does not close the index or the blobs; their owner does.
func (s *Service) Close() error {
	s.FinishFolds()
	s.activityLog.closeLog()
	return nil
}

// currentTime returns the time in the resolution of the indexes.
func (s *Service) currentTime() time.Time { return s.o.Now().UTC().Truncate(time.Microsecond) }

// Store describes where checkpoints are stored.
func (s *Service) Store() Store { return s.o.Store }

// Encryption returns the kind of source of the master key; "" if new checkpoints are not
// encrypted.
func (s *Service) Encryption() string {
	if s.o.Keys == nil {
		return ""
	}
	return s.o.Keys.Kind()
}

// Locked returns the reason why no content can be read or written, or nil.
func (s *Service) Locked() error { return s.o.Locked }

// memoryWarning returns the warning that checkpoints are lost with the process.
func (s *Service) memoryWarning() []Warning {
	if s.o.Store.Mode != ModeMemory || s.o.ReadOnly {
		return nil
	}
	return []Warning{{Code: WarnMemory, Message: "checkpoints are stored in memory only and are lost when this process ends: " + s.o.Store.Note}}
}

// requireWritable returns an error in read-only mode.
func (s *Service) requireWritable(doing string) error {
	if err := s.requireUnlocked(doing); err != nil || !s.o.ReadOnly {
		return err
	}
	return guideway.Errorf(guideway.CodeForbidden, "%s: checkpoints are read-only", doing).
		WithFix("set checkpoints.readOnly to false")
}

// requireUnlocked returns an error if the master key is missing or wrong.
func (s *Service) requireUnlocked(doing string) error {
	if s.o.Locked == nil {
		return nil
	}
	return guideway.Errorf(guideway.ErrorCode(s.o.Locked), "%s: %w", doing, s.o.Locked).WithFix("%s", guideway.ErrorFix(s.o.Locked))
}

// prepareRead returns an error if no content can be read, and repairs a lost index.
func (s *Service) prepareRead(ctx context.Context, doing string) error {
	if err := s.requireUnlocked(doing); err != nil {
		return err
	}
	return s.ensureIndex(ctx)
}

// prepareChange returns an error if nothing can be changed, and repairs a lost index.
func (s *Service) prepareChange(ctx context.Context, doing string) error {
	if err := s.requireWritable(doing); err != nil {
		return err
	}
	return s.ensureIndex(ctx)
}

// ensureIndex rebuilds the index if it is empty and the blobs are not, or if it reports a
// loss because its file was replaced or another process has imported it. In read-only mode it rebuilds
// only an index in memory. The first call and each call after a loss check the index.
func (s *Service) ensureIndex(ctx context.Context) error {
	s.recovering.Lock()
	defer s.recovering.Unlock()
	if lossy, ok := s.o.Index.(interface{ Lost(context.Context) bool }); ok && lossy.Lost(ctx) {
		s.lost = true
	}
	if s.recovered && !s.lost {
		return nil
	}
	totals, err := s.o.Index.Totals(ctx)
	if err != nil {
		return err
	}
	if (totals.Series == 0 || s.lost) && (!s.o.ReadOnly || s.isVolatile()) {
		if err := s.recoverIndex(ctx); err != nil {
			return err
		}
	}
	s.recovered, s.lost = true, false
	return nil
}

// isVolatile reports whether the index is in the memory of this process. Rebuilding such an
// index is not a change and is allowed in read-only mode.
func (s *Service) isVolatile() bool {
	x, ok := s.o.Index.(interface{ Volatile() bool })
	return ok && x.Volatile()
}

var errFound = errors.New("a blob was found")

func (s *Service) recoverIndex(ctx context.Context) error {
	err := s.o.Blobs.Each(ctx, func(blob.Info) error { return errFound })
	if !errors.Is(err, errFound) {
		return err
	}
	made, err := s.rebuildIndex(ctx)
	if err != nil {
		return err
	}
	if made.Adopted > 0 {
		s.o.Logger.WarnContext(ctx, "the checkpoint index was lost and was rebuilt from the blobs", "checkpoints", made.Adopted)
	}
	return nil
}

// seriesLocks serialize the writers of a series in this process. The number of the last
// checkpoint detects writers of other processes.
type seriesLocks struct {
	mu    sync.Mutex
	locks map[SeriesKey]*lineLock
}

type lineLock struct {
	mu    sync.Mutex
	users int
}

// lockSeries locks the series and returns the function to unlock it.
func (l *seriesLocks) lockSeries(key SeriesKey) (unlock func()) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[SeriesKey]*lineLock{}
	}
	one := l.locks[key]
	if one == nil {
		one = &lineLock{}
		l.locks[key] = one
	}
	one.users++
	l.mu.Unlock()
	one.mu.Lock()
	return func() {
		one.mu.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.locks, key)
		}
	}
}

// contentCache caches the content of the last saved checkpoints, which the next save needs.
// Contents are immutable, so the cache is always valid.
type contentCache struct {
	mu    sync.Mutex
	order []string
	raw   map[string][]byte
	size  int
}

// maxRecent bounds the cache in bytes.
const maxRecent = 4 << 20

func (r *contentCache) getContent(id string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raw[id]
}

// putContent adds the content of a checkpoint.
func (r *contentCache) putContent(id string, raw []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(raw) > maxRecent/4 || r.raw[id] != nil {
		return
	}
	if r.raw == nil {
		r.raw = map[string][]byte{}
	}
	r.raw[id] = raw
	r.order = append(r.order, id)
	for r.size += len(raw); r.size > maxRecent; {
		r.dropLocked(r.order[0])
	}
}

// dropContent removes the content of a checkpoint.
func (r *contentCache) dropContent(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropLocked(id)
}

// dropLocked removes the content of a checkpoint. The caller holds the lock.
func (r *contentCache) dropLocked(id string) {
	if i := slices.Index(r.order, id); i >= 0 {
		r.order = slices.Delete(r.order, i, i+1)
		r.size -= len(r.raw[id])
		delete(r.raw, id)
	}
}
