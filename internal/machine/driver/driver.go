// Package driver executes the runs of agent machines: it gets the next effect from the
// engine and executes it. Before each call of a model, a tool or a sub-machine it appends
// an intent to the journal, and after it the result. An interrupted run continues where it
// was, and repeats no call whose result was recorded.
//
// The instance that drives a run holds its lease, which is an event of the run. An instance
// that takes the lease over appends its event with the next sequence number, so that later
// appends of the previous holder conflict (docs/adr/0013). Package cluster decides which
// instance drives a run, and when.
package driver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cluster"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Machines loads the definition of a run when it starts. Afterwards the run uses the copy
// in the journal.
type Machines interface {
	// Machine returns a machine by name: CodeNotFound if it does not exist,
	// CodeInvalidDefinition if it does not load.
	Machine(ctx context.Context, name string) (*machinedef.Definition, error)
}

// Handlers calls functions of scripts.
type Handlers interface {
	// Call runs one function. An error of the script is a *HandlerError. After any other
	// error the function did not run and the call may be retried.
	Call(ctx context.Context, c HandlerCall) (*HandlerResult, error)
}

// HandlerCall is a call of a function of a script.
type HandlerCall struct {
	// Source is the script, File its name in errors.
	Source, File string
	Function     string
	This         machineengine.This
	// WantsResult is set if the return value is used.
	WantsResult bool
	// Now is the time that the script sees, Seed the seed of its random numbers.
	Now  time.Time
	Seed uint64
}

// HandlerResult is the result of a function of a script.
type HandlerResult struct {
	// Value is the return value; nil if the function returned nothing.
	Value json.RawMessage
	// Data is common_data after the call.
	Data map[string]json.RawMessage
	// Contexts are the changed conversations.
	Contexts []machineengine.ContextChange
	// Console is the console output.
	Console []string
}

// HandlerError is an error of a script.
type HandlerError struct {
	Message      string
	File         string
	Line, Column int
	Console      []string
}

// Error implements error.
func (e *HandlerError) Error() string { return e.Message }

// RunScope identifies the run that a model or a tool is used for.
type RunScope struct {
	// User owns the run; Run and Machine name it.
	User, Run, Machine string
	// State is the current state, and Policy restricts the tools of its agent; nil restricts
	// none.
	State  string
	Policy *toolpolicy.Policy
	// Demo is the machine whose bundled recording answers instead of models, or "".
	Demo string
	// Allow is StartRequest.Allow; nil allows all.
	Allow json.RawMessage
	// Guided are the guided runs whose current steps restrict the tools too.
	Guided []string
}

// Models selects models.
type Models interface {
	// Model returns the model with that name, or the model of the level if the name is
	// empty.
	Model(f RunScope, level machinedef.Level, name string) (SelectedModel, error)
}

// SelectedModel is a model with its settings.
type SelectedModel struct {
	llm.Model
	// Name is sent with each request.
	Name string
	// Provider is the provider's name in traces; "" if unknown.
	Provider string
	// MaxTokens limits the answers of roles without a limit; 0 means the adapter's limit.
	MaxTokens int
	// InputPrice, CachedPrice and OutputPrice are per million tokens, in millionths of a
	// currency.
	InputPrice, CachedPrice, OutputPrice int64
	// Timeout limits one request; 0 means 5 minutes.
	Timeout time.Duration
}

// requestCost returns the cost of a request in millionths of the currency.
func (c *SelectedModel) requestCost(u llm.Usage) int64 {
	const million = 1_000_000
	return (int64(u.Input-u.Cached)*c.InputPrice + int64(u.Cached)*c.CachedPrice + int64(u.Output)*c.OutputPrice) / million
}

// Tools calls tools.
type Tools interface {
	// Tools lists the tools that are available to a run.
	Tools(ctx context.Context, f RunScope) ([]machineengine.ToolInfo, error)
	// Call calls a tool. If the error wraps ErrNotCalled, the tool was not called; after
	// any other error the outcome is unknown.
	Call(ctx context.Context, f RunScope, c machineengine.ToolCall) (machineengine.ToolResult, error)
}

// ErrNotCalled means that a tool was not called.
var ErrNotCalled = errors.New("the tool was not called")

// Options configures a Service. Journal, Key, Machines, Handlers and Models are required.
type Options struct {
	Journal  run.Journal
	Key      run.Key
	Machines Machines
	Handlers Handlers
	Models   Models
	// Tools may be nil if there are no tools.
	Tools Tools
	// Permit returns the reason why a run with restrictions (StartRequest.Allow) may not
	// continue, or "". It is called before every model request, tool call and sub-machine,
	// because each acts in the name of the user who started the run. If Permit is nil, all
	// runs may continue.
	Permit func(ctx context.Context, f RunScope) (why string, err error)
	// Shares are the projects whose members use each other's runs.
	Shares run.Shares
	// Heads may be nil; then a rolled-back journal is not detected.
	Heads run.Heads
	// Counter counts tokens; nil uses an estimate.
	Counter machineengine.Counter
	// Tracer may be nil; then there are no traces.
	Tracer Tracer
	// Store keeps the jobs and instances; nil if no other process drives runs.
	Store cluster.Store
	// Owner is the id of this instance; "" means a new one.
	Owner string
	// Schedule stores a job with each command that lets a run continue, for an instance that
	// works. Without it, the caller drives the run.
	Schedule bool
	// Attended is set if a person waits for the runs that this process drives. No other
	// instance continues them automatically if this one ends.
	Attended bool
	// Requests limits the concurrent requests to the models of one provider; 0 means no limit.
	Requests int
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger receives errors that do not fail a command; nil discards them.
	Logger *slog.Logger
}

const (
	modelTimeout = 5 * time.Minute
	toolTimeout  = 5 * time.Minute
)

// Service runs agent machines. It is safe for concurrent use by goroutines, and by several
// processes on one journal.
type Service struct {
	o        Options
	instance *cluster.Instance
	requests requestLimit

	// mu guards programs, the cached definitions by hash, and lacking, the runs that this
	// process left to others.
	mu       sync.Mutex
	programs map[string]*machineengine.Program
	lacking  map[string]leftRun
}

// New returns a Service.
func New(o Options) (*Service, error) {
	if len(o.Key) != run.KeySize {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the journal's key has %d bytes, not %d", len(o.Key), run.KeySize)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Counter == nil {
		o.Counter = estimate{}
	}
	instance := cluster.New(o.Owner, o.Store, o.Logger)
	return &Service{o: o, instance: instance, requests: requestLimit{most: o.Requests, providers: map[string]chan struct{}{}}, programs: map[string]*machineengine.Program{}, lacking: map[string]leftRun{}}, nil
}

// Close records that this process drives no more runs.
func (s *Service) Close(ctx context.Context) error { return s.instance.Close(ctx) }

// clock returns the current time with the precision of journals.
func (s *Service) clock() time.Time { return s.o.Now().UTC().Truncate(time.Microsecond) }
