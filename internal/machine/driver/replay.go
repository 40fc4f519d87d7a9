package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/machine/llm/scripted"
	"github.com/guideway-dev/guideway/internal/run"
)

// Replayed is how a machine went when it was run again.
type Replayed struct {
	Status *Status `json:"status"`
	// Differences say where it went another way than the recording; empty is
	// nowhere.
	Differences []string `json:"differences"`
}

// Replay runs a machine again on a recording: no model is asked, no tool called and
// no person waited for. The journal of the options must be one that nobody needs;
// their models and tools are not used.
func Replay(ctx context.Context, o Options, d *machinedef.Definition, r *Recording) (*Replayed, error) {
	tools := &recordedTools{all: r.Tools, left: r.Tools}
	o.Tools = tools
	o.Models = recordedModel{scripted.New(scripted.Script{Responses: r.Responses})}
	if len(r.Responses) == 0 {
		o.Models = recordedModel{scripted.New(scripted.Script{Rules: []scripted.Rule{{Answer: scripted.Answer{Fault: scripted.FaultAuth}}}})}
	}
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	person := run.Caller{Principal: guideway.Principal{User: "replay", Client: "replay"}, Via: run.ViaTerminal}
	status, err := s.Start(ctx, person, StartRequest{Machine: d.Name, Definition: d, Inputs: r.Inputs, Limits: r.Limits})
	if err != nil {
		return nil, err
	}
	given := r.Given
	for id := status.RunID; ; given = given[1:] {
		if err := s.Drive(ctx, person.User, id, nil); err != nil {
			return nil, err
		}
		if status, err = s.Status(ctx, person, id); err != nil {
			return nil, err
		}
		if len(given) == 0 || status.Status != machineengine.StatusWaiting {
			break
		}
		if _, err := s.Input(ctx, person, id, given[0]); err != nil {
			return nil, err
		}
	}
	out := &Replayed{Status: status, Differences: r.differences(status, len(given))}
	out.Differences = append(out.Differences, tools.differences()...)
	return out, nil
}

// differences compares how it went with how it went then.
func (r *Recording) differences(s *Status, given int) []string {
	out := []string{}
	differs := func(what string, then, now any) {
		out = append(out, fmt.Sprintf("%s: %v then, %v now", what, then, now))
	}
	// What is around a run that waits within is running; to the caller it waits.
	if then := r.Status; then != s.Status && (then != machineengine.StatusRunning || s.Status != machineengine.StatusWaiting) {
		differs("the status", then, s.Status)
	}
	if !slices.Equal(r.States, s.States) {
		differs("the states", strings.Join(r.States, ", "), strings.Join(s.States, ", "))
	}
	if !bytes.Equal(plain(r.Output), plain(s.Output)) {
		differs("the output", string(plain(r.Output)), string(plain(s.Output)))
	}
	if calls := s.Usage.Calls; calls != len(r.Responses) && s.Child == nil {
		differs("the requests to models", len(r.Responses), calls)
	}
	if given > 0 {
		out = append(out, fmt.Sprintf("%d of the inputs that people gave were not asked for", given))
	}
	if s.Pause != nil && len(out) > 0 {
		out = append(out, "it is paused: "+s.Pause.Message)
	}
	return out
}

// plain is JSON without what does not count: spaces, and the order of members.
func plain(raw json.RawMessage) []byte {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	text, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return text
}

// recordedModel answers from a recording, whatever is asked for.
type recordedModel struct{ answers llm.Model }

// Model implements Models.
func (m recordedModel) Model(_ For, _ machinedef.Level, name string) (Chosen, error) {
	if name == "" {
		name = "recorded"
	}
	return Chosen{Model: m.answers, Name: name}, nil
}

// recordedTools answer what tools have answered, in order.
type recordedTools struct {
	all []RecordedTool

	mu    sync.Mutex
	left  []RecordedTool
	found []string
}

// Tools implements Tools: those that were called.
func (t *recordedTools) Tools(context.Context, For) ([]machineengine.ToolInfo, error) {
	var out []machineengine.ToolInfo
	for _, r := range t.all {
		if !slices.ContainsFunc(out, func(i machineengine.ToolInfo) bool { return i.Name == r.Name }) {
			out = append(out, machineengine.ToolInfo{
				Definition: llm.Definition{Name: r.Name, Parameters: json.RawMessage(`{"type":"object"}`)}, Repeatable: true,
			})
		}
	}
	return out, nil
}

// Call implements Tools.
func (t *recordedTools) Call(_ context.Context, _ For, c machineengine.ToolCall) (machineengine.ToolResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) == 0 {
		t.found = append(t.found, fmt.Sprintf("a call of %s that was not made then", c.Name))
		return machineengine.ToolResult{}, fmt.Errorf("the recording has no more calls: %w", ErrNotCalled)
	}
	next := t.left[0]
	t.left = t.left[1:]
	if next.Name != c.Name || next.Arguments != c.Arguments {
		t.found = append(t.found, fmt.Sprintf("a call of a tool: %s %s then, %s %s now", next.Name, next.Arguments, c.Name, c.Arguments))
	}
	return next.Result, nil
}

// differences are those of the calls.
func (t *recordedTools) differences() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) > 0 {
		return append(t.found, fmt.Sprintf("%d calls of tools that were made then were not made now", len(t.left)))
	}
	return t.found
}
