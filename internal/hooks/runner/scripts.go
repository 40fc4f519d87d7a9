// Package runner runs the scripts of hooks in worker processes.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Runner runs scripts; it is implemented by *sandbox.Pool.
type Runner interface {
	Run(ctx context.Context, call sandbox.Call) (*sandbox.Result, error)
}

// Checker checks scripts without running them; it is implemented by *sandbox.Pool.
type Checker interface {
	Check(ctx context.Context, module sandbox.Module, library map[string]string) ([]guideway.Diagnostic, error)
}

// Scripts implements hookengine.Scripts with a Runner.
type Scripts struct {
	Runner Runner
	// Owner returns the user for whom a request runs, so that one user cannot occupy all
	// workers; if nil, all requests have the same owner.
	Owner func(ctx context.Context) string
	// State stores the state of the hooks; if nil, they have none.
	State hookstate.Store
	// Now is the clock of the state. It is required with State.
	Now func() time.Time
}

var _ hookengine.Scripts = (*Scripts)(nil)

// The limits of a script in bytes. The memory limit is memory plus perByte for each byte of
// the context, but at most mostMemory. The output limit is twice the size of the context,
// but at least output and at most mostOutput.
const (
	memory, mostMemory = 32 << 20, 128 << 20
	output, mostOutput = 4 << 20, 32 << 20
	// perByte is the memory for each byte of JSON, sufficient for one or two copies.
	perByte = 16
)

// RunHook implements hookengine.Scripts.
func (s *Scripts) RunHook(ctx context.Context, call hookengine.ScriptCall) (*hookengine.ScriptResult, error) {
	size := int64(len(call.Context))
	request := sandbox.Call{
		Module: newModule(call.Script),
		Args:   []json.RawMessage{call.Context},
		Limits: sandbox.Limits{
			Wall:   call.Timeout,
			Memory: min(memory+perByte*size, mostMemory),
			Output: min(max(output, 2*size), mostOutput),
		},
	}
	if s.Owner != nil {
		request.Owner = s.Owner(ctx)
	}
	if s.State != nil {
		m := call.Metadata
		caller := hookstate.Caller{Graph: call.Graph, Owner: m.Owner, Client: m.ClientID, Upstream: m.ServerID}
		request.Host = func(ctx context.Context, question []byte) (json.RawMessage, error) {
			return hookstate.Serve(ctx, s.State, caller, s.Now(), question)
		}
	}
	result, err := s.Runner.Run(ctx, request)
	var failed *sandbox.Error
	switch {
	case errors.As(err, &failed):
		return nil, scriptError(failed)
	case err != nil:
		return nil, err
	}
	out := &hookengine.ScriptResult{Context: result.Args[0], Value: result.Value, Audit: result.Audit, Console: consoleLines(result.Console, result.Truncated)}
	return out, nil
}

// newModule returns the module of a hook's script. Its hash is the approved hash, so that
// no other text can run.
func newModule(s hookdef.Script) sandbox.Module {
	return sandbox.Module{Name: s.Name, Source: s.Text, Hash: strings.TrimPrefix(s.Hash, "sha256:"), Params: []string{"context"}}
}

// scriptError converts an error of the sandbox.
func scriptError(e *sandbox.Error) *hookengine.ScriptError {
	code := hookengine.CodeScript
	if e.Kind == sandbox.Timeout {
		code = hookengine.CodeTimeout
	}
	return &hookengine.ScriptError{
		Code: code, Message: e.Message, File: e.File, Line: e.Line, Column: e.Column, Console: consoleLines(e.Console, e.Truncated),
	}
}

// consoleLines converts console output.
func consoleLines(console []sandbox.Line, truncated bool) []hookengine.Line {
	out := lists.Map(console, func(line sandbox.Line) hookengine.Line { return hookengine.Line{Level: line.Level, Text: line.Text} })
	if truncated {
		out = append(out, hookengine.Line{Level: "warn", Text: "(the rest of the console output was omitted)"})
	}
	return out
}

// Check checks the scripts of a graph without running them. It returns each error in a
// script as a diagnostic with the node of the graph, and the file, line and column in the
// script.
func Check(ctx context.Context, checker Checker, graph *hookdef.Linked) ([]guideway.Diagnostic, error) {
	var all []guideway.Diagnostic
	for i := range graph.Nodes {
		s, ok := graph.Scripts[graph.Nodes[i].ID]
		if !ok {
			continue
		}
		if d := shape.HiddenCharacter(s.Name, s.Text); d != nil {
			d.Node = graph.Nodes[i].ID
			all = append(all, *d)
			continue
		}
		found, err := checker.Check(ctx, newModule(s), nil)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "check the script %s: %w", s.Name, err)
		}
		for _, d := range found {
			d.Node = graph.Nodes[i].ID
			all = append(all, d)
		}
	}
	return all, nil
}
