package checkpoint

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/secret"
)

// Options say what a Service works with. Index and Blobs are needed.
type Options struct {
	Index Index
	Blobs blob.Store
	// Store says what the index is.
	Store Store
	// Keys encrypts what is saved; nil does not. What is encrypted already needs
	// them.
	Keys   *seal.Keys
	Limits Limits
	// ReadOnly refuses whatever would change something.
	ReadOnly bool
	// Locked says why no content can be read or written: the master key is missing,
	// or another one. Then lists and figures are all there is; what would need a
	// content is refused with it.
	Locked error
	// Active says whether a run is still under way: its last checkpoint is never
	// cleaned away. nil knows of none.
	Active func(ctx context.Context, run string) (bool, error)
	// Settle is how long a save of another process may take between its blob and
	// its record: what is younger is looked at again after so long before it is
	// taken for lost. 2 seconds if 0; a negative one does not wait.
	Settle time.Duration
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger gets what goes wrong beside a call; nil is silence.
	Logger *slog.Logger
}

// Limits bound what is kept. A field that is 0 has its default, a negative one
// does not bound.
type Limits struct {
	// PerLine is how many checkpoints a session has; the oldest go first. The
	// default is 100.
	PerLine int
	// LineBytes is how much a session's blobs take; 1 GiB.
	LineBytes int64
	// CheckpointBytes is how much one blob takes; 10 MiB.
	CheckpointBytes int64
	// RawBytes is how large a context may be before it is compressed; 64 MiB.
	RawBytes int64
	// TotalBytes is how much all blobs take; 10 GiB.
	TotalBytes int64
	// Warn and Clean are the parts of a limit from which on is warned, and of
	// TotalBytes from which on the longest untouched sessions go; 0.8 and 0.9.
	Warn, Clean float64
	// Retention is how long a session stays without activity; 30 days.
	Retention time.Duration
}

func (l Limits) withDefaults() Limits {
	l.PerLine = orDefault(l.PerLine, 100)
	l.LineBytes = orDefault(l.LineBytes, 1<<30)
	l.CheckpointBytes = orDefault(l.CheckpointBytes, 10<<20)
	l.RawBytes = orDefault(l.RawBytes, 64<<20)
	l.TotalBytes = orDefault(l.TotalBytes, 10<<30)
	l.Warn = orDefault(l.Warn, 0.8)
	l.Clean = orDefault(l.Clean, 0.9)
	l.Retention = orDefault(l.Retention, 30*24*time.Hour)
	return l
}

func orDefault[T int | int64 | float64 | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

// Service keeps checkpoints. It may be used by many goroutines, and by many
// processes on one index and store of blobs.
type Service struct {
	o        Options
	secrets  *secret.Scanner
	squeezer squeezer
	lines    lineLocks
	recent   recent
	ledger   *ledger
	headroom headroom
	// recovered is closed once the index has been looked at.
	recovering sync.Mutex
	recovered  bool
	lost       bool
	// healed has when what was looked for in the blobs.
	healing sync.Mutex
	healed  map[string]time.Time
	// reserveOut says that the reserve was given up and not set aside again.
	reserveOut atomic.Bool
}

// New makes a service. It must be closed.
func New(o Options) (*Service, error) {
	if o.Index == nil || o.Blobs == nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "checkpoints need an index and a store of blobs")
	}
	o.Limits = o.Limits.withDefaults()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.ReadOnly = o.ReadOnly || o.Locked != nil
	s := &Service{o: o, secrets: secret.NewScanner()}
	s.ledger = newLedger(o.Index, o.Logger, o.ReadOnly)
	return s, nil
}

// Close writes what is still to be noted. It closes neither the index nor the
// blobs: who opened them does.
func (s *Service) Close() error {
	s.ledger.close()
	return nil
}

// clock is the time as indices keep it.
func (s *Service) clock() time.Time { return s.o.Now().UTC().Truncate(time.Microsecond) }

// Store says where checkpoints are kept.
func (s *Service) Store() Store { return s.o.Store }

// Encryption says where the master key of what is saved is; "" where that is not
// encrypted.
func (s *Service) Encryption() string {
	if s.o.Keys == nil {
		return ""
	}
	return s.o.Keys.Kind()
}

// Locked says why no content can be read or written; nil where it can.
func (s *Service) Locked() error { return s.o.Locked }

// memoryWarning says in every answer that nothing lasts.
func (s *Service) memoryWarning() []Warning {
	if s.o.Store.Mode != ModeMemory || s.o.ReadOnly {
		return nil
	}
	return []Warning{{Code: WarnMemory, Message: "checkpoints are kept in memory only and end with this process: " + s.o.Store.Note}}
}

// writable refuses in read-only mode.
func (s *Service) writable(doing string) error {
	if err := s.unlocked(doing); err != nil || !s.o.ReadOnly {
		return err
	}
	return guideway.Errorf(guideway.CodeForbidden, "%s: checkpoints are read-only here", doing).
		WithFix("take the read-only setting out of the configuration")
}

// unlocked refuses where the master key is missing.
func (s *Service) unlocked(doing string) error {
	if s.o.Locked == nil {
		return nil
	}
	return guideway.Errorf(guideway.ErrorCode(s.o.Locked), "%s: %w", doing, s.o.Locked).WithFix("%s", guideway.ErrorFix(s.o.Locked))
}

// ready makes the index anew where it is empty and the blobs are not, or where it
// says itself that it has lost something: it was deleted, or a damaged one was
// moved away. The first call looks, and whichever comes after a loss.
func (s *Service) ready(ctx context.Context) error {
	s.recovering.Lock()
	defer s.recovering.Unlock()
	if lossy, ok := s.o.Index.(interface{ Lost() bool }); ok && lossy.Lost() {
		s.lost = true
	}
	if s.recovered && !s.lost {
		return nil
	}
	totals, err := s.o.Index.Totals(ctx)
	if err != nil {
		return err
	}
	if (totals.Lines == 0 || s.lost) && (!s.o.ReadOnly || s.volatile()) {
		if err := s.recover(ctx); err != nil {
			return err
		}
	}
	s.recovered, s.lost = true, false
	return nil
}

// volatile says that the index is this process's alone and ends with it: to make
// it anew changes nothing, also where nothing may be changed.
func (s *Service) volatile() bool {
	x, ok := s.o.Index.(interface{ Volatile() bool })
	return ok && x.Volatile()
}

var errFound = errors.New("there is one")

func (s *Service) recover(ctx context.Context) error {
	err := s.o.Blobs.Each(ctx, func(blob.Info) error { return errFound })
	if !errors.Is(err, errFound) {
		return err
	}
	made, err := s.rebuild(ctx)
	if err != nil {
		return err
	}
	if made.Adopted > 0 {
		s.o.Logger.WarnContext(ctx, "the index of checkpoints was lost and was made anew from the blobs", "checkpoints", made.Adopted)
	}
	return nil
}

// lineLocks let one writer of this process at a line at a time. Those of other
// processes are found by the line's number.
type lineLocks struct {
	mu    sync.Mutex
	locks map[LineKey]*lineLock
}

type lineLock struct {
	mu    sync.Mutex
	users int
}

// lock waits for the line and gives the way to leave it.
func (l *lineLocks) lock(key LineKey) (unlock func()) {
	l.mu.Lock()
	if l.locks == nil {
		l.locks = map[LineKey]*lineLock{}
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

// recent remembers the contents of the last checkpoints that were saved: the next
// save needs them. They never change, so that what is remembered is always right.
type recent struct {
	mu    sync.Mutex
	order []string
	raw   map[string][]byte
	size  int
}

// maxRecent bounds what is remembered, in bytes.
const maxRecent = 4 << 20

func (r *recent) get(id string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raw[id]
}

// put remembers a content in the place of another one.
func (r *recent) put(id string, raw []byte, instead string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(instead)
	if len(raw) > maxRecent/4 || r.raw[id] != nil {
		return
	}
	if r.raw == nil {
		r.raw = map[string][]byte{}
	}
	r.raw[id] = raw
	r.order = append(r.order, id)
	for r.size += len(raw); r.size > maxRecent; {
		r.drop(r.order[0])
	}
}

// drop forgets a content. The caller holds the lock.
func (r *recent) drop(id string) {
	raw, there := r.raw[id]
	if !there {
		return
	}
	delete(r.raw, id)
	r.size -= len(raw)
	for i, one := range r.order {
		if one == id {
			r.order = append(r.order[:i], r.order[i+1:]...)
			return
		}
	}
}
