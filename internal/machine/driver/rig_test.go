package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
	"github.com/guideway-dev/guideway/internal/run"
)

// this is the value that JavaScript handlers have as "this".
type this struct {
	machineengine.This
	data  map[string]any
	added []machineengine.ContextChange
}

func (t *this) stringVar(name string) string { s, _ := t.data[name].(string); return s }

// addMessage adds a message to a conversation.
func (t *this) addMessage(context string, role llm.Role, content string) {
	t.added = append(t.added, machineengine.ContextChange{
		Name: context, Keep: len(t.Contexts[context]), Add: []llm.Message{{Role: role, Content: content}},
	})
	t.Contexts[context] = append(t.Contexts[context], llm.Message{Role: role, Content: content})
}

// lastMessage returns the last answer.
func (t *this) lastMessage() llm.Message {
	r, err := llm.ReadCompletion(t.Last)
	if err != nil {
		return llm.Message{}
	}
	return r.Message
}

// callArguments returns the arguments of the first call of the last answer.
func (t *this) callArguments() map[string]any {
	var out map[string]any
	if calls := t.lastMessage().ToolCalls; len(calls) > 0 {
		_ = json.Unmarshal([]byte(calls[0].Function.Arguments), &out)
	}
	return out
}

// handlers maps the names of handlers to Go functions that replace a script.
type handlers map[string]func(*this) (any, error)

func (h handlers) Call(_ context.Context, c driver.HandlerCall) (*driver.HandlerResult, error) {
	f := h[c.Function]
	if f == nil {
		return nil, fmt.Errorf("there is no handler %q", c.Function)
	}
	text, err := json.Marshal(c.This)
	if err != nil {
		return nil, err
	}
	t := &this{}
	if err := json.Unmarshal(text, &t.This); err != nil {
		return nil, err
	}
	t.data = map[string]any{}
	for name, value := range t.Data {
		var v any
		if err := json.Unmarshal(value, &v); err != nil {
			return nil, err
		}
		t.data[name] = v
	}
	value, err := f(t)
	if err != nil {
		return nil, &driver.HandlerError{Message: err.Error(), File: c.File, Line: 3, Column: 7}
	}
	out := &driver.HandlerResult{Contexts: t.added, Data: map[string]json.RawMessage{}}
	for name, v := range t.data {
		if out.Data[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	if out.Value, err = json.Marshal(value); err != nil {
		return nil, err
	}
	return out, nil
}

// shelf implements Machines with a map.
type shelf map[string]*machinedef.Definition

func (s shelf) Machine(_ context.Context, name string) (*machinedef.Definition, error) {
	if d := s[name]; d != nil {
		return d, nil
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no machine %q", name)
}

// model is a model for every level that records its requests.
type model struct {
	answers  llm.Model
	mu       sync.Mutex
	requests []llm.Request
	// before and after are called before and after each request.
	before, after func(r llm.Request)
	price         int64
	timeout       time.Duration
}

func (m *model) Model(_ driver.RunScope, _ machinedef.Level, name string) (driver.SelectedModel, error) {
	if name == "" {
		name = "test-model"
	}
	return driver.SelectedModel{Model: countingModel{m}, Name: name, InputPrice: m.price, CachedPrice: m.price, OutputPrice: m.price, Timeout: m.timeout}, nil
}

type countingModel struct{ *model }

func (c countingModel) Complete(ctx context.Context, r llm.Request, sink func(llm.Delta)) (*llm.Response, error) {
	if c.before != nil {
		c.before(r)
	}
	c.mu.Lock()
	c.requests = append(c.requests, r)
	c.mu.Unlock()
	out, err := c.answers.Complete(ctx, r, sink)
	if c.after != nil {
		c.after(r)
	}
	return out, err
}

// tools implements Tools with a Go function.
type tools struct {
	mu    sync.Mutex
	infos []machineengine.ToolInfo
	calls []machineengine.ToolCall
	// call returns the result of a tool call. If call is nil, the result is "done" with the
	// arguments of the tool call.
	call          func(machineengine.ToolCall) (machineengine.ToolResult, error)
	before, after func()
}

func (t *tools) Tools(context.Context, driver.RunScope) ([]machineengine.ToolInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.infos, nil
}

// offer replaces the available tools.
func (t *tools) offer(list ...machineengine.ToolInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.infos = list
}

func (t *tools) Call(_ context.Context, _ driver.RunScope, c machineengine.ToolCall) (machineengine.ToolResult, error) {
	if t.before != nil {
		t.before()
	}
	t.mu.Lock()
	t.calls = append(t.calls, c)
	t.mu.Unlock()
	if t.after != nil {
		defer t.after()
	}
	if t.call != nil {
		return t.call(c)
	}
	return machineengine.ToolResult{Content: "done " + c.Arguments}, nil
}

func newTool(name string, repeatable bool) machineengine.ToolInfo {
	return machineengine.ToolInfo{Definition: llm.Definition{Name: name, Parameters: json.RawMessage(`{"type":"object"}`)}, Repeatable: repeatable}
}

// rig is a service with its dependencies.
type rig struct {
	t        *testing.T
	journal  run.Journal
	shelf    shelf
	handlers handlers
	model    *model
	tools    *tools
	opts     driver.Options
	*driver.Service
}

// anna is the caller.
var anna = run.Caller{Principal: guideway.Principal{User: "anna", Client: "test"}} //nolint:gochecknoglobals // never written

func journalKey() run.Key { return run.Key(strings.Repeat("k", run.KeySize)) }

// newRig returns a service on a journal; script is the script of the model.
func newRig(t *testing.T, journal run.Journal, definitions []*machinedef.Definition, h handlers, script string, change ...func(*driver.Options)) *rig {
	t.Helper()
	r := &rig{t: t, journal: journal, shelf: shelf{}, handlers: h, model: &model{answers: answersOf(t, script)}, tools: &tools{}}
	for _, d := range definitions {
		r.shelf[d.Name] = d
	}
	r.opts = driver.Options{Journal: journal, Key: journalKey(), Machines: r.shelf, Handlers: h, Models: r.model, Tools: r.tools}
	for _, c := range change {
		c(&r.opts)
	}
	r.reopen()
	return r
}

// shares makes a rig use the instances of its journal.
func shares(o *driver.Options) { o.Store = o.Journal.(*memory) }

// schedules makes a rig store jobs for its workers.
func schedules(o *driver.Options) { o.Schedule, o.Store = true, o.Journal.(*memory) }

// answersOf returns a model that answers from a script.
func answersOf(t *testing.T, script string) llm.Model {
	t.Helper()
	s, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return scripted.New(s)
}

// reopen replaces the service with a new one, as in a new process.
func (r *rig) reopen() {
	r.t.Helper()
	var err error
	if r.Service, err = driver.New(r.opts); err != nil {
		r.t.Fatal(err)
	}
}

// parseMachine parses a machine whose handlers are implemented in Go.
func parseMachine(t *testing.T, config, roles string) *machinedef.Definition {
	t.Helper()
	files := machinedef.Files{Config: machinedef.File{Path: "test.json", Data: []byte(config)}}
	if roles != "" {
		files.Roles = []machinedef.File{{Path: "roles.json", Data: []byte(roles)}}
	}
	// The script declares every handler, because the parser requires it.
	files.Script = &machinedef.File{Path: "test/script.js", Data: []byte(handlerNames(config))}
	d, found := machinedef.Parse(files)
	if d == nil {
		t.Fatal(found)
	}
	return d
}

// handlerNames returns a script that declares each word of a configuration as a function.
func handlerNames(config string) string {
	var b strings.Builder
	b.WriteString("export default {\n")
	for _, w := range strings.FieldsFunc(config, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_') }) {
		b.WriteString(w + "() {},\n")
	}
	return b.String() + "}\n"
}

func (r *rig) startRun(name string, inputs map[string]any) string {
	r.t.Helper()
	given := map[string]json.RawMessage{}
	for k, v := range inputs {
		text, err := json.Marshal(v)
		if err != nil {
			r.t.Fatal(err)
		}
		given[k] = text
	}
	s, err := r.Start(r.t.Context(), anna, driver.StartRequest{Machine: name, Inputs: given})
	if err != nil {
		r.t.Fatal(err)
	}
	return s.RunID
}

// Drive drives a run, and waits for the times of its attempts.
func (r *rig) Drive(ctx context.Context, user, id string, observe func(driver.Update)) error {
	return r.DriveAttended(ctx, user, id, observe)
}

// driveRun drives a run and returns its status.
func (r *rig) driveRun(id string) *driver.Status {
	r.t.Helper()
	if err := r.Drive(r.t.Context(), anna.User, id, nil); err != nil {
		r.t.Fatal(err)
	}
	return r.runStatus(id)
}

func (r *rig) runStatus(id string) *driver.Status {
	r.t.Helper()
	s, err := r.Status(r.t.Context(), anna, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// answerInput answers the question that a run asks now.
func (r *rig) answerInput(c run.Caller, id string, value json.RawMessage) (*driver.Status, error) {
	r.t.Helper()
	return r.Input(r.t.Context(), c, id, driver.InputAnswer{Question: askedQuestion(r.runStatus(id)), Value: value})
}

// askedQuestion returns the id of the question of a run, or of the run nested in it.
func askedQuestion(s *driver.Status) string {
	for s.Question == "" && s.Child != nil {
		s = s.Child
	}
	return s.Question
}
