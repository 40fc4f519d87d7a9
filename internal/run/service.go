package run

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// Definitions provides the definition when a run starts. After that the journal's copy is
// used.
type Definitions interface {
	// Startable returns the definition with an id. It returns CodeNotFound if it does not
	// exist, and CodeInvalidDefinition if it has errors, including those of the linter.
	Startable(ctx context.Context, id string) (*workflow.Definition, error)
}

// Heads stores the last event of every run outside of the journal, where a rollback of the
// journal does not affect it. It may lag behind the journal, but is never ahead of it.
type Heads interface {
	// Record stores a new event of a run.
	Record(run string, seq int64, mac []byte) error
	// Heads returns the highest recorded event of each run.
	Heads() (map[string]Head, error)
	// Replace replaces all heads.
	Replace(heads map[string]Head) error
}

// Head is the last event of a run.
type Head struct {
	Seq int64
	MAC []byte
	// Witnesses are earlier heads that were followed by a lower number: either two commands
	// were recorded in reverse order, or the journal was rolled back and continued. They
	// distinguish the two cases, even after the run has more events again.
	Witnesses []Head
}

// Options configure a Service. Definitions is required, and either Open or both Journal and
// Key.
type Options struct {
	Journal     Journal
	Definitions Definitions
	Key         Key
	// Heads may be nil. Then a rollback of the journal is not detected.
	Heads Heads
	// Open returns the journal, the key and the heads if they are not set. It is called
	// often, and must return the same values whenever it succeeds.
	Open func(context.Context) (Journal, Key, Heads, error)
	// PersonGates makes all gates of new runs require human approval.
	PersonGates bool
	// Observer receives the commands of runs. It may be nil.
	Observer Observer
	// Checker executes the checks of steps. If it is nil, checks are skipped, and their steps
	// are labeled claims.
	Checker Checker
	// Shares are the projects whose members use each other's runs.
	Shares Shares
	// Now is the clock. The default is time.Now.
	Now func() time.Time
	// Logger gets errors that no caller receives. If it is nil, they are discarded.
	Logger *slog.Logger
}

// Service runs guided workflows. It is safe for concurrent use, and several processes can
// use the same journal.
type Service struct {
	// journal, key and heads are set by openJournal.
	journal     Journal
	definitions Definitions
	key         Key
	heads       Heads
	openStore   func(context.Context) (Journal, Key, Heads, error)
	opened      sync.Once
	personGates bool
	observer    Observer
	checker     Checker
	checking    runLocks
	shares      Shares
	now         func() time.Time
	log         *slog.Logger
	cache       *runCache
}

// New returns a service.
func New(o Options) (*Service, error) {
	if o.Open == nil && len(o.Key) != KeySize {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the journal's key has %d bytes, not %d", len(o.Key), KeySize)
	}
	s := &Service{
		journal: o.Journal, definitions: o.Definitions, key: o.Key, heads: o.Heads, openStore: o.Open,
		personGates: o.PersonGates, observer: o.Observer, checker: o.Checker, shares: o.Shares, now: o.Now, log: o.Logger, cache: newRunCache(),
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.log = cmp.Or(s.log, slog.New(slog.DiscardHandler))
	return s, nil
}

// openJournal opens the journal, the key and the heads. Each exported method that may be
// the first call begins with it.
func (s *Service) openJournal(ctx context.Context) error {
	if s.openStore == nil {
		return nil
	}
	journal, key, heads, err := s.openStore(ctx)
	if err == nil {
		s.opened.Do(func() { s.journal, s.key, s.heads = journal, key, heads })
	}
	return err
}

// currentTime returns the time in the precision of journals.
func (s *Service) currentTime() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// ByCaller returns the caller as the author of an event.
func ByCaller(c Caller) By {
	via := cmp.Or(c.Via, ViaAgent)
	return By{User: c.User, Client: Truncate(c.Client, maxKey), Via: via}
}

// maxAttempts bounds the attempts of a command that conflicts with others. Each conflict
// means that another command succeeded, so some caller always makes progress.
const maxAttempts = 100

// retryOnConflict runs a command, and repeats it after a conflict, up to maxAttempts times.
func retryOnConflict[T any](ctx context.Context, command func() (T, error)) (T, error) {
	for range maxAttempts - 1 {
		out, err := command()
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			return out, err
		}
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
	}
	return command()
}

// recordHead records a commit in the heads. An error can be ignored, because heads may lag
// behind.
func (s *Service) recordHead(ctx context.Context, r Record) {
	if s.heads == nil {
		return
	}
	if err := s.heads.Record(r.ID, r.Seq, r.Head); err != nil {
		s.log.WarnContext(ctx, "cannot record the last event of a run: if an older copy of the store is restored, Guideway may not detect the restore", "run", r.ID, "error", err)
	}
}

// updateRecord stores the position of a run in its record.
func updateRecord(r *Record, l *loadedRun, pos engine.Position) {
	r.Status = l.program.Status(l.state)
	r.Kind, r.Step, r.Title, r.Person = pos.Kind, pos.ID, Truncate(pos.Title, maxTitle), pos.Person
	r.Done = l.state.Steps
}

// Observer receives the commands of runs after they are in the journal. It cannot refuse
// them.
type Observer interface {
	// Committed is called before the answer is returned, so it must not block. It must not
	// change its argument.
	Committed(ctx context.Context, c Committed)
	// Seen is called when this process lists a run or loads its state from the journal. It
	// is called often and must not block.
	Seen(ctx context.Context, r Record)
}

// Committed is the effect of a command on a run.
type Committed struct {
	// Record is the run after the command.
	Record Record
	// By is the author of the command.
	By By
	// Facts are the engine's new events. A fork, an imported bundle, a refused attempt and
	// a mark have none.
	Facts []engine.Event
	// State is the state after the facts, Flow the compiled definition.
	State engine.State
	Flow  engine.Flow
	// Marks are the variables marked as critical.
	Marks []Mark
}

// StateAt returns a run of the caller as it was after one of its events. The result is what
// an observer received at that time, except that it has the current handle and no facts.
func (s *Service) StateAt(ctx context.Context, c Caller, ref Ref, seq int64) (Committed, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return Committed{}, err
	}
	if seq < 1 || seq > rec.Seq {
		return Committed{}, guideway.Errorf(guideway.CodeInvalid, "run %s has no event %d: its last event is %d", rec.ID, seq, rec.Seq).
			WithFix("guideway runs show %s --events, to list the events", rec.ID)
	}
	last, err := s.Events(ctx, c, Ref{RunID: rec.ID}, seq-1, 1)
	if err != nil {
		return Committed{}, err
	}
	if len(last) == 0 {
		return Committed{}, untrustedEventError(rec.ID, seq, "the event is missing")
	}
	rec.Seq, rec.Head, rec.Updated = seq, last[0].MAC, last[0].At
	from := s.loadSnapshot(ctx, rec)
	l, err := s.foldEvents(ctx, rec, from)
	if err != nil && from != nil {
		l, err = s.foldEvents(ctx, rec, nil)
	}
	if err != nil {
		return Committed{}, err
	}
	updateRecord(&rec, l, l.program.PositionOf(l.state))
	return Committed{Record: rec, By: last[0].By, State: l.state, Flow: l.program.Flow, Marks: l.marks}, nil
}

// notifySeen calls Seen of the observer.
func (s *Service) notifySeen(ctx context.Context, r Record) {
	if s.observer != nil {
		s.observer.Seen(ctx, r)
	}
}

const (
	runPrefix    = "r_"
	handlePrefix = "h_"
	// maxHandle is longer than any id or handle of this package.
	maxHandle = 64
)

func newRunID(now time.Time) string { return shortid.Timed(runPrefix, now) }

// newHandle returns a token of 23 characters.
func newHandle() string { return shortid.Token(handlePrefix) }

// isRunID and isHandle report whether a token has the format of a run id or a handle. They
// detect a run id that was sent in place of a handle, and a handle in place of a run id.
func isRunID(s string) bool  { return strings.HasPrefix(s, runPrefix) && len(s) <= maxHandle }
func isHandle(s string) bool { return strings.HasPrefix(s, handlePrefix) && len(s) <= maxHandle }
