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
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
)

// ReplayResult is the outcome of a replay.
type ReplayResult struct {
	Status *Status `json:"status"`
	// Differences lists the differences from the recording.
	Differences []string `json:"differences"`
}

// Replay runs a machine on a recording: it calls no model or tool and does not wait for
// people. Options.Journal should be temporary; Options.Models and Options.Tools are not
// used.
func Replay(ctx context.Context, o Options, d *machinedef.Definition, r *Recording) (*ReplayResult, error) {
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
		if err := s.DriveAttended(ctx, person.User, id, nil); err != nil {
			return nil, err
		}
		if status, err = s.Status(ctx, person, id); err != nil {
			return nil, err
		}
		if len(given) == 0 || status.Status != machineengine.StatusWaiting {
			break
		}
		if _, err := s.Input(ctx, person, id, InputAnswer{Question: askingRun(status).Question, Value: given[0]}); err != nil {
			return nil, err
		}
	}
	out := &ReplayResult{Status: status, Differences: r.statusDifferences(status, len(given))}
	out.Differences = append(out.Differences, tools.callDifferences()...)
	return out, nil
}

// askingRun returns the run that asks a question: s itself, or the run nested in it.
func askingRun(s *Status) *Status {
	for s.Question == "" && s.Child != nil {
		s = s.Child
	}
	return s
}

// statusDifferences compares the outcome with the recorded one.
func (r *Recording) statusDifferences(s *Status, given int) []string {
	out := []string{}
	differs := func(what string, then, now any) {
		out = append(out, fmt.Sprintf("%s: recorded %v, now %v", what, then, now))
	}
	// If a sub-machine waits, the recorded status of the run is running, but its owner sees
	// the status waiting.
	if then := r.Status; then != s.Status && (then != machineengine.StatusRunning || s.Status != machineengine.StatusWaiting) {
		differs("the status", then, s.Status)
	}
	if !slices.Equal(r.States, s.States) {
		differs("the states", strings.Join(r.States, ", "), strings.Join(s.States, ", "))
	}
	if !bytes.Equal(jsontext.Normalize(r.Output), jsontext.Normalize(s.Output)) {
		differs("the output", string(jsontext.Normalize(r.Output)), string(jsontext.Normalize(s.Output)))
	}
	if calls := s.Usage.Calls; calls != len(r.Responses) && s.Child == nil {
		differs("the number of model requests", len(r.Responses), calls)
	}
	if given > 0 {
		out = append(out, fmt.Sprintf("recorded inputs that were not requested: %d", given))
	}
	if s.Pause != nil && len(out) > 0 {
		out = append(out, "the run is paused: "+s.Pause.Message)
	}
	return out
}

// recordedModel answers every request from a recording.
type recordedModel struct{ answers llm.Model }

// Model implements Models.
func (m recordedModel) Model(_ RunScope, _ machinedef.Level, name string) (SelectedModel, error) {
	if name == "" {
		name = "recorded"
	}
	return SelectedModel{Model: m.answers, Name: name}, nil
}

// recordedTools returns the recorded results in order.
type recordedTools struct {
	all []RecordedTool

	mu    sync.Mutex
	left  []RecordedTool
	found []string
}

// Tools implements Tools with the recorded tools.
func (t *recordedTools) Tools(context.Context, RunScope) ([]machineengine.ToolInfo, error) {
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
func (t *recordedTools) Call(_ context.Context, _ RunScope, c machineengine.ToolCall) (machineengine.ToolResult, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) == 0 {
		t.found = append(t.found, fmt.Sprintf("a call of %s is not in the recording", c.Name))
		return machineengine.ToolResult{}, fmt.Errorf("the recording has no more calls: %w", ErrNotCalled)
	}
	next := t.left[0]
	t.left = t.left[1:]
	if next.Name != c.Name || next.Arguments != c.Arguments {
		t.found = append(t.found, fmt.Sprintf("tool call: recorded %s %s, now %s %s", next.Name, next.Arguments, c.Name, c.Arguments))
	}
	return next.Result, nil
}

// callDifferences returns the differences in the tool calls.
func (t *recordedTools) callDifferences() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) > 0 {
		return append(t.found, fmt.Sprintf("recorded tool calls that were not made: %d", len(t.left)))
	}
	return t.found
}
