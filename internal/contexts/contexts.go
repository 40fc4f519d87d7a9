// Package contexts keeps contexts beyond a conversation: it connects runs with their
// checkpoints and with the compression of package compress.
//
// It does not affect the position of a run. A checkpoint of a run refers to one of its
// events. If the run has later events, continuing from the checkpoint forks the run at that
// event. The stored context is for people and agents to read. Therefore no checkpoint, even
// a forged one, answers a gate or sets a variable.
package contexts

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/secret"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// Checkpoints stores contexts; see checkpoint.Service.
type Checkpoints interface {
	Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error)
	Load(ctx context.Context, who guideway.Principal, r checkpoint.LoadRequest) (*checkpoint.Loaded, error)
	List(ctx context.Context, who guideway.Principal, r checkpoint.ListRequest) (*checkpoint.Page, error)
	Get(ctx context.Context, who guideway.Principal, id string) (checkpoint.Record, error)
	SessionOf(ctx context.Context, id string) string
	Diff(ctx context.Context, who guideway.Principal, from, to string) (*checkpoint.Difference, error)
	StoreFragment(ctx context.Context, who guideway.Principal, session string, part json.RawMessage) (checkpoint.Fragment, error)
	Store() checkpoint.Store
}

// Runs reads and forks durable runs; see run.Service.
type Runs interface {
	Get(ctx context.Context, c run.Caller, r run.Ref) (*run.Details, error)
	Status(ctx context.Context, c run.Caller, r run.Ref) (*run.Answer, error)
	Events(ctx context.Context, c run.Caller, r run.Ref, after int64, limit int) ([]run.Event, error)
	StateAt(ctx context.Context, c run.Caller, r run.Ref, seq int64) (run.Committed, error)
	Flow(ctx context.Context, c run.Caller, r run.Ref) (engine.Flow, error)
	Fork(ctx context.Context, c run.Caller, r run.ForkRequest) (*run.Answer, error)
	Admit(ctx context.Context, c run.Caller, r run.Ref, vars map[string]any) error
	Mark(ctx context.Context, c run.Caller, r run.MarkRequest) ([]run.Mark, error)
}

// Definitions returns workflows, for the hints of a context that does not belong to a run.
// See run.Definitions.
type Definitions interface {
	Startable(ctx context.Context, id string) (*workflow.Definition, error)
}

var (
	_ Checkpoints = (*checkpoint.Service)(nil)
	_ Runs        = (*run.Service)(nil)
)

// Level selects how contexts are summarized.
type Level string

// The levels.
const (
	// LevelBasic summarizes by extracts.
	LevelBasic Level = "basic"
	// LevelAdvanced uses Options.Summarizer for the summaries of runs. Without a Summarizer
	// and an AutoSaver, it is the same as LevelBasic, and New logs a warning.
	LevelAdvanced Level = "advanced"
)

// Options configure a Service. Checkpoints must not be nil.
type Options struct {
	Checkpoints Checkpoints
	// Runs may be nil: then there are only contexts of sessions.
	Runs Runs
	// AutoSaver saves automatically; it may be nil. It must use the same Checkpoints.
	AutoSaver *AutoSaver
	// Definitions may be nil: then the contextRules of a workflow do not apply to contexts
	// of sessions.
	Definitions Definitions
	// Level defaults to LevelBasic.
	Level Level
	// Summarizer writes summaries if the level is LevelAdvanced; it needs an AutoSaver. It
	// may be nil.
	Summarizer Summarizer
	// LimitTokens is the recommended maximum size of a run's context; the default is 32000,
	// a negative value means no limit. If the context reaches Threshold percent of the
	// limit (default 80), it is reduced in the background and the agent is notified.
	LimitTokens, Threshold int
	// AnswerTokens is the maximum size of a run's context in an answer; the default is
	// 4000. A larger context is reduced to it.
	AnswerTokens int
	// SummaryTokens is the maximum size of the summary of a run; the default is 2000. The
	// summary also has the tokens of AnswerTokens that the context does not use.
	SummaryTokens int
	// ReadOnly reports that nothing can be stored. Then values are omitted only from the
	// Brief of a run.
	ReadOnly bool
	// Counter counts tokens; the default is a cached compress.Tokenizer, which loads its
	// vocabulary at the first count.
	Counter compress.Counter
	// Secrets finds the likely secrets that a call stores in a run. It is nil if runs are
	// encrypted.
	Secrets *secret.Scanner
	// Embedder ranks search results; it may be nil.
	Embedder Embedder
	// Logger logs errors of background work; it may be nil.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Checkpoints == nil {
		return o, guideway.Errorf(guideway.CodeInternal, "contexts need a checkpoint service")
	}
	o.LimitTokens = cmp.Or(o.LimitTokens, 32_000)
	if o.Threshold <= 0 {
		o.Threshold = 80
	}
	if o.AnswerTokens <= 0 {
		o.AnswerTokens = 4000
	}
	o.SummaryTokens = cmp.Or(o.SummaryTokens, 2000)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Counter == nil {
		o.Counter = compress.NewTokenizer()
	}
	return o, nil
}

// Service connects runs, sessions and checkpoints. It is safe for concurrent use.
type Service struct {
	o          Options
	classifier *compress.Classifier
	stems      *compress.StemCache
	stories    historyCache
	writing    summaryCache
	vectors    vectorCache

	mu sync.Mutex
	// hints caches the hints of pinned definitions by hash.
	hints map[string]compress.Hints
	// briefs caches briefs by user and run.
	briefs map[string]*cachedBrief
}

// maxCached bounds each of the caches of runs, definitions and walks.
const maxCached = 64

// New returns a service.
func New(o Options) (*Service, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Service{
		o: o, classifier: compress.NewClassifier(compress.Hints{}), stems: compress.NewStemCache(),
		hints: map[string]compress.Hints{}, briefs: map[string]*cachedBrief{},
	}
	s.writing.byRun, s.writing.requested = map[string]map[string]string{}, map[string]bool{}
	switch {
	case o.Level != LevelAdvanced:
		s.o.Summarizer = nil
	case o.Summarizer == nil:
		o.Logger.Warn("runs are summarized by extracts: no model is configured for summaries")
	case o.AutoSaver == nil:
		o.Logger.Warn("runs are summarized by extracts: contexts are not saved automatically")
	default:
		o.AutoSaver.setWritten(s.writing.forCheckpoint)
	}
	if o.AutoSaver != nil && o.Runs != nil {
		o.AutoSaver.setPrepare(s.tokenThreshold(), s.prepareBrief)
		o.AutoSaver.setRuns(o.Runs)
	}
	return s, nil
}

// tokenThreshold returns the size in tokens from which a run's context is reduced in the
// background; 0 means that it is never reduced.
func (s *Service) tokenThreshold() int {
	if s.o.LimitTokens < 0 {
		return 0
	}
	return s.o.LimitTokens * s.o.Threshold / 100
}

// Store describes where checkpoints are stored.
func (s *Service) Store() checkpoint.Store { return s.o.Checkpoints.Store() }

// Health returns the state of automatic saves.
func (s *Service) Health() Health {
	if s.o.AutoSaver == nil {
		return Health{Off: true}
	}
	return s.o.AutoSaver.Health()
}

// putCached adds a value; if the cache is full it drops an arbitrary entry.
func putCached[T any](m map[string]T, key string, value T) {
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

// newInvalid returns an error that the caller can fix.
func newInvalid(format string, args ...any) *guideway.Error {
	return guideway.Errorf(guideway.CodeInvalid, format, args...)
}

// Walked saves the context of a stateless walk in the background if it names a session. See
// AutoSaver.Walked.
func (s *Service) Walked(who guideway.Principal, workflow string, completed []string, vars map[string]any) {
	if s.o.AutoSaver != nil {
		s.o.AutoSaver.Walked(who, workflow, completed, vars)
	}
}
