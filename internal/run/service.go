package run

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// Definitions is where a run's definition comes from when it starts. From then
// on the journal's copy counts.
type Definitions interface {
	// Startable gives the definition that is served for an id. CodeNotFound
	// where there is none, CodeInvalidDefinition where it has errors, those
	// included that only the linter finds.
	Startable(ctx context.Context, id string) (*workflow.Definition, error)
}

// Heads remembers the last event of every run where a rollback of the journal
// does not reach. It may be behind the journal, never ahead of it.
type Heads interface {
	// Record notes that a run has had an event.
	Record(run string, seq int64, mac []byte) error
	// Heads gives the highest event of each run that was recorded.
	Heads() (map[string]Head, error)
	// Replace forgets everything and records what is given.
	Replace(heads map[string]Head) error
}

// Head is the last event of a run.
type Head struct {
	Seq int64
	MAC []byte
	// Witnesses are earlier heads that were followed by a lower number: two
	// commands that were noted in the other order, or a journal that was rolled
	// back and went on. They tell which, when the run has long outgrown them.
	Witnesses []Head
}

// Options say what a Service works with. Definitions are needed, and Journal and
// Key or Open.
type Options struct {
	Journal     Journal
	Definitions Definitions
	Key         Key
	// Heads may be nil: then a rolled-back journal is not detected.
	Heads Heads
	// Open returns the journal, the key and the heads where they are not there yet.
	// Each call asks for them, and all answers without an error must be the same.
	Open func(context.Context) (Journal, Key, Heads, error)
	// PersonGates has only people open the gates of runs that start.
	PersonGates bool
	// Observer is told of what runs do; nil is nobody.
	Observer Observer
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger gets what goes wrong beside a command; nil is silence.
	Logger *slog.Logger
}

// Service runs guided workflows. It may be used by many goroutines, and by many
// processes on one journal.
type Service struct {
	// journal, key and heads are there after open.
	journal     Journal
	definitions Definitions
	key         Key
	heads       Heads
	openStore   func(context.Context) (Journal, Key, Heads, error)
	opened      sync.Once
	personGates bool
	observer    Observer
	now         func() time.Time
	log         *slog.Logger
	cache       *cache
}

// New makes a service.
func New(o Options) (*Service, error) {
	if o.Open == nil && len(o.Key) != KeySize {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the journal's key has %d bytes, not %d", len(o.Key), KeySize)
	}
	s := &Service{
		journal: o.Journal, definitions: o.Definitions, key: o.Key, heads: o.Heads, openStore: o.Open,
		personGates: o.PersonGates, observer: o.Observer, now: o.Now, log: o.Logger, cache: newCache(),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// open makes the journal, the key and the heads ready. Each call that may be a
// service's first one begins with it.
func (s *Service) open(ctx context.Context) error {
	if s.openStore == nil {
		return nil
	}
	journal, key, heads, err := s.openStore(ctx)
	if err == nil {
		s.opened.Do(func() { s.journal, s.key, s.heads = journal, key, heads })
	}
	return err
}

// clock is the time as journals keep it.
func (s *Service) clock() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// by says whose doing a command of the caller's is.
func by(c Caller) By {
	via := c.Via
	if via == "" {
		via = ViaAgent
	}
	return By{User: c.User, Client: cut(c.Client, maxKey), Via: via}
}

// attempts is how often a command is decided anew after another one was faster.
// Each time somebody got on, so that all get through.
const attempts = 100

// again carries out a command until no other one came in between.
func again[T any](ctx context.Context, command func() (T, error)) (T, error) {
	for range attempts - 1 {
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

// record tells the heads of a commit. That it fails loses nothing: heads may be
// behind.
func (s *Service) record(ctx context.Context, r Record) {
	if s.heads == nil {
		return
	}
	if err := s.heads.Record(r.ID, r.Seq, r.Head); err != nil {
		s.log.WarnContext(ctx, "the head of a run could not be noted; a rollback to before it would not be detected", "run", r.ID, "error", err)
	}
}

// describe puts where a run stands into its record.
func describe(r *Record, l *loaded, pos engine.Position) {
	r.Status = l.program.Status(l.state)
	r.Kind, r.Step, r.Title, r.Person = pos.Kind, pos.ID, cut(pos.Title, maxTitle), pos.Person
	r.Done = l.state.Steps
}
