// Package contexts lets contexts outlive conversations: it joins the runs with the
// checkpoints that are kept of them, and with what package window knows of making
// a context small.
//
// Nothing here decides anything of a run. A checkpoint of a run names the run and
// one of its events; to go on from it is to fork the run there, and what the
// checkpoint says besides is for people and agents to read. So no checkpoint,
// however it came to be, opens a gate or sets a variable.
package contexts

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	workflowpkg "github.com/guideway-dev/guideway/internal/workflow"
)

// Checkpoints keeps contexts; checkpoint.Service says the contract.
type Checkpoints interface {
	Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error)
	Load(ctx context.Context, who guideway.Principal, r checkpoint.LoadRequest) (*checkpoint.Loaded, error)
	List(ctx context.Context, who guideway.Principal, r checkpoint.ListRequest) (*checkpoint.Page, error)
	Get(ctx context.Context, who guideway.Principal, id string) (checkpoint.Record, error)
	Diff(ctx context.Context, who guideway.Principal, from, to string) (*checkpoint.Difference, error)
	StoreFragment(ctx context.Context, who guideway.Principal, session string, part json.RawMessage) (checkpoint.Fragment, error)
	LoadFragment(ctx context.Context, who guideway.Principal, ref string) (json.RawMessage, error)
	Store() checkpoint.Store
}

// Runs are the durable runs; run.Service says the contract.
type Runs interface {
	Look(ctx context.Context, c run.Caller, r run.Ref) (*run.Details, error)
	Status(ctx context.Context, c run.Caller, r run.Ref) (*run.Answer, error)
	Events(ctx context.Context, c run.Caller, r run.Ref, after int64, limit int) ([]run.Event, error)
	Behind(ctx context.Context, c run.Caller, r run.Ref, seq int64) (run.Committed, error)
	Flow(ctx context.Context, c run.Caller, r run.Ref) (engine.Flow, error)
	Fork(ctx context.Context, c run.Caller, r run.ForkRequest) (*run.Answer, error)
	Admit(ctx context.Context, c run.Caller, r run.Ref, vars map[string]any) error
	Mark(ctx context.Context, c run.Caller, r run.MarkRequest) ([]run.Mark, error)
}

// Definitions is where the rules of a workflow come from, for a context that is
// no run's. See run.Definitions.
type Definitions interface {
	Startable(ctx context.Context, id string) (*workflowpkg.Definition, error)
}

var (
	_ Checkpoints = (*checkpoint.Service)(nil)
	_ Runs        = (*run.Service)(nil)
)

// Level says by what contexts are reduced.
type Level string

// The levels.
const (
	// LevelBasic takes extracts.
	LevelBasic Level = "basic"
	// LevelAdvanced has Options.Summarizer write the summaries of runs. Without one
	// it is as LevelBasic and says so once, in the log.
	LevelAdvanced Level = "advanced"
)

// Options say what a Service works with. Checkpoints is needed.
type Options struct {
	Checkpoints Checkpoints
	// Runs may be nil: then there are contexts of sessions alone.
	Runs Runs
	// Keeper saves by itself; nil is nobody. It must have the same Checkpoints.
	Keeper *Keeper
	// Definitions may be nil: then a context that is no run's is judged without
	// the rules of its workflow.
	Definitions Definitions
	// Level is LevelBasic if empty.
	Level Level
	// Summarizer writes summaries where the level is LevelAdvanced; it needs a
	// Keeper. nil is nobody.
	Summarizer Summarizer
	// LimitTokens is how large the context of a run should become; 0 is 32000, a
	// negative one is no limit. From Threshold percent of it on, 80 if 0, it is
	// reduced in the background, and the agent is told.
	LimitTokens, Threshold int
	// AnswerTokens is what of a run's context an answer may hold; 0 is 4000. A
	// larger one is reduced to it.
	AnswerTokens int
	// ReadOnly says that nothing can be stored: then nothing is left out.
	ReadOnly bool
	// Counter counts tokens; nil is compress.Tokenizer, which loads at the first
	// count, behind a cache.
	Counter compress.Counter
	// Embedder ranks what a search has found; nil leaves it as it is.
	Embedder Embedder
	// Logger gets what goes wrong beside a call; nil is silence.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Checkpoints == nil {
		return o, guideway.Errorf(guideway.CodeInternal, "memory needs what keeps checkpoints")
	}
	if o.LimitTokens == 0 {
		o.LimitTokens = 32_000
	}
	if o.Threshold <= 0 {
		o.Threshold = 80
	}
	if o.AnswerTokens <= 0 {
		o.AnswerTokens = 4000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Counter == nil {
		o.Counter = compress.NewCache(compress.NewTokenizer(), 0)
	}
	return o, nil
}

// Service is the memory of runs and sessions. It may be used by many goroutines.
type Service struct {
	o          Options
	classifier *compress.Classifier
	stems      *compress.StemCache
	stories    stories
	writing    writing
	vectors    vectors

	mu sync.Mutex
	// hints are those of pinned definitions, by hash.
	hints map[string]compress.Hints
	// briefs are what was last told of runs, by id.
	briefs map[string]*brief
}

// maxCached bounds the runs and definitions that something is remembered of.
const maxCached = 64

// New makes a service.
func New(o Options) (*Service, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Service{
		o: o, classifier: compress.NewClassifier(compress.Hints{}), stems: compress.NewStemCache(),
		hints: map[string]compress.Hints{}, briefs: map[string]*brief{},
	}
	s.writing.of, s.writing.asked = map[string]map[string]string{}, map[string]bool{}
	switch {
	case o.Level != LevelAdvanced:
		s.o.Summarizer = nil
	case o.Summarizer == nil || o.Keeper == nil:
		o.Logger.Warn("runs are summarised by extracts: no model is there that would write summaries")
	default:
		o.Keeper.carry(s.writing.forCheckpoint)
	}
	if o.Keeper != nil && o.Runs != nil {
		o.Keeper.whenLarge(s.threshold(), s.prepareBrief)
		o.Keeper.follow(o.Runs)
	}
	return s, nil
}

// threshold is from how many tokens on a run's context is reduced in the
// background; 0 is never.
func (s *Service) threshold() int {
	if s.o.LimitTokens < 0 {
		return 0
	}
	return s.o.LimitTokens * s.o.Threshold / 100
}

// Store says where checkpoints are kept.
func (s *Service) Store() checkpoint.Store { return s.o.Checkpoints.Store() }

// Health tells of the checkpoints that are saved without anybody's asking.
func (s *Service) Health() Health {
	if s.o.Keeper == nil {
		return Health{Off: true}
	}
	return s.o.Keeper.Health()
}

// put keeps a value and makes room by dropping any other one.
func put[T any](m map[string]T, key string, value T) {
	m[key] = value
	for other := range m {
		if len(m) <= maxCached {
			return
		}
		if other != key {
			delete(m, other)
		}
	}
}

// invalid is an error of the caller's.
func invalid(format string, args ...any) *guideway.Error {
	return guideway.Errorf(guideway.CodeInvalid, format, args...)
}

// Walked has the context of a stateless walk saved beside the answer, if it names
// a session. See Keeper.Walked.
func (s *Service) Walked(who guideway.Principal, workflow string, completed []string, vars map[string]any) {
	if s.o.Keeper != nil {
		s.o.Keeper.Walked(who, workflow, completed, vars)
	}
}
