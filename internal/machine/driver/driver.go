// Package driver carries out the runs of agent machines: it asks the engine what
// comes next, calls scripts, models and tools, and keeps every intent before and
// every result after it in the journal. A run that was broken off anywhere goes on
// where it was, and pays for nothing twice.
//
// Who drives a run holds its lease, which is an event of the run's own: whoever
// takes it over has the next number, so that what the one before appends does not
// fit any more (docs/adr/0013).
package driver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
	"github.com/guideway-dev/guideway/internal/run"
)

// Machines is where a run's definition comes from when it starts. From then on the
// journal's copy counts.
type Machines interface {
	// Machine gives a machine by its name: CodeNotFound where there is none,
	// CodeInvalidDefinition where it does not load.
	Machine(ctx context.Context, name string) (*machinedef.Definition, error)
}

// Handlers calls functions of scripts.
type Handlers interface {
	// Call runs one function. What the script does wrong is a *HandlerError; any
	// other error says that it could not be run, and may be tried again.
	Call(ctx context.Context, c HandlerCall) (*HandlerResult, error)
}

// HandlerCall is a call of a function of a script.
type HandlerCall struct {
	// Source is the script, File its name in errors.
	Source, File string
	Function     string
	This         machineengine.This
	// Wants says that what the function returns matters.
	Wants bool
	// Now is the time that the script sees, Seed what its chance is made of.
	Now  time.Time
	Seed uint64
}

// HandlerResult is what a function did.
type HandlerResult struct {
	// Value is what it returned; nil is nothing.
	Value json.RawMessage
	// Data is common_data afterwards.
	Data map[string]json.RawMessage
	// Contexts are the conversations that it changed.
	Contexts []machineengine.ContextChange
	// Console is what it printed.
	Console []string
}

// HandlerError is what a script did wrong.
type HandlerError struct {
	Message      string
	File         string
	Line, Column int
	Console      []string
}

// Error implements error.
func (e *HandlerError) Error() string { return e.Message }

// For says what a model or a tool is wanted for.
type For struct {
	// User owns the run; Run and Machine name it.
	User, Run, Machine string
	// Demo is the machine whose shipped recording answers in the place of
	// models; "" is none.
	Demo string
	// Allow is what who began the run may use, as StartRequest gave it; nil is
	// everything.
	Allow json.RawMessage
}

// Models gives models.
type Models interface {
	// Model gives the model of a name, or of a level where the name is empty.
	Model(f For, level machinedef.Level, name string) (Chosen, error)
}

// Chosen is a model with what is known of it.
type Chosen struct {
	llm.Model
	// Name is sent with each request.
	Name string
	// Provider names who has the model, as traces do; "" is not known.
	Provider string
	// MaxTokens bounds answers of roles that do not; 0 is the adapter's bound.
	MaxTokens int
	// InputPrice, CachedPrice and OutputPrice are for a million tokens, in
	// millionths of a currency.
	InputPrice, CachedPrice, OutputPrice int64
	// Timeout bounds one request; 0 is 10 minutes.
	Timeout time.Duration
}

// cost is what a request has cost, in millionths.
func (c *Chosen) cost(u llm.Usage) int64 {
	const million = 1_000_000
	return (int64(u.Input-u.Cached)*c.InputPrice + int64(u.Cached)*c.CachedPrice + int64(u.Output)*c.OutputPrice) / million
}

// Tools calls tools.
type Tools interface {
	// Tools lists those that there are for a run.
	Tools(ctx context.Context, f For) ([]machineengine.ToolInfo, error)
	// Call calls one. An error that wraps ErrNotCalled says that nothing was
	// done; after any other the outcome is not known.
	Call(ctx context.Context, f For, c machineengine.ToolCall) (machineengine.ToolResult, error)
}

// ErrNotCalled says that a tool was not called at all.
var ErrNotCalled = errors.New("the tool was not called")

// Options say what a Service works with. Journal, Key, Machines, Handlers and
// Models are needed.
type Options struct {
	Journal  run.Journal
	Key      run.Key
	Machines Machines
	Handlers Handlers
	Models   Models
	// Tools may be nil: then there are none.
	Tools Tools
	// Permit says why a run that was begun with bounds (StartRequest.Allow) may not
	// go on; "" is that it may. It is asked before every request to a model, call
	// of a tool and machine within: what costs something, or does something, in
	// the name of who began it. nil lets all go on.
	Permit func(ctx context.Context, f For) (why string, err error)
	// Heads may be nil: then a rolled-back journal is not detected.
	Heads run.Heads
	// Counter counts tokens; nil estimates.
	Counter machineengine.Counter
	// Tracer may be nil: then there are no traces.
	Tracer Tracer
	// Owner names this process in leases, uniquely.
	Owner string
	// Alive says whether the owner of a lease is at work, as far as this machine
	// knows; nil, and true, is that it may be. A lease of a process that is known
	// to be dead is taken over at once.
	Alive func(owner string) bool
	// Lease is how long a lease holds without a sign of life; 0 is 30 s.
	Lease time.Duration
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger gets what goes wrong beside a command; nil is silence.
	Logger *slog.Logger
}

const (
	defaultLease   = 30 * time.Second
	defaultTimeout = 10 * time.Minute
	toolTimeout    = 5 * time.Minute
)

// Service runs agent machines. It may be used by many goroutines, and by many
// processes on one journal.
type Service struct {
	o Options

	// mu guards active: the runs that this process drives, and programs: the
	// definitions that were last used, by hash.
	mu       sync.Mutex
	active   map[string]bool
	programs map[string]*machineengine.Program
}

// New makes a service.
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
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Owner == "" {
		o.Owner = shortid.Token("o_")
	}
	if o.Counter == nil {
		o.Counter = estimate{}
	}
	return &Service{o: o, active: map[string]bool{}, programs: map[string]*machineengine.Program{}}, nil
}

// clock is the time as journals keep it.
func (s *Service) clock() time.Time { return s.o.Now().UTC().Truncate(time.Microsecond) }
