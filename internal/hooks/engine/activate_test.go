package engine_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
)

// newCandidate returns a project's graph that applies to the tools rm*.
func newCandidate(t *testing.T, more string) hookengine.Candidate {
	t.Helper()
	return hookengine.Candidate{ID: "graph", Source: "project:/p", Graph: linkGraph(t,
		newDocument("start > a > call > end", `"workflowType": "tools/call", "bindings": [{"tool": "rm*"}]`+more))}
}

// A graph is active while it equals its approval. An approved graph that has changed blocks
// its calls, except in this user's own sources.
func TestActivate(t *testing.T) {
	t.Parallel()
	first := newCandidate(t, "")
	record, err := first.Approval("me", nil)
	if err != nil || record.Hash != first.Graph.Pin {
		t.Fatal(record, err)
	}
	changed, broken, template := newCandidate(t, `, "variables": {"x": 1}`), first, newCandidate(t, `, "template": true`)
	broken.Graph, broken.Problem = nil, "line 3"
	own := changed
	own.Own = true
	other := first
	other.Source = "project:/other"
	for name, tt := range map[string]struct {
		candidates []hookengine.Candidate
		records    approval.Records
		state      hookengine.State
		err        string
	}{
		"approved":     {[]hookengine.Candidate{first}, approval.Records{record}, hookengine.StateActive, ""},
		"not approved": {[]hookengine.Candidate{first}, nil, hookengine.StateOff, ""},
		"changed":      {[]hookengine.Candidate{changed}, approval.Records{record}, hookengine.StateChanged, "changed since its approval"},
		"changed, own": {[]hookengine.Candidate{own}, approval.Records{record}, hookengine.StateActive, ""},
		"broken":       {[]hookengine.Candidate{broken}, approval.Records{record}, hookengine.StateBroken, "cannot be loaded: line 3"},
		"broken, off":  {[]hookengine.Candidate{broken}, nil, hookengine.StateBroken, ""},
		"template":     {[]hookengine.Candidate{template}, nil, hookengine.StateTemplate, ""},
		"became one":   {[]hookengine.Candidate{template}, approval.Records{record}, hookengine.StateTemplate, "changed into a template"},
		"elsewhere":    {[]hookengine.Candidate{other}, approval.Records{record}, hookengine.StateOff, "missing from the source project:/p"},
		"gone":         {nil, approval.Records{record}, "", "missing from the source project:/p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := hookengine.Activate(tt.candidates, tt.records, func(string) bool { return true })
			if len(tt.candidates) > 0 && a.States[tt.candidates[0].Key()] != tt.state {
				t.Errorf("the states are %v", a.States)
			}
			p, err := onlyProgram(a.Set.Chain(hookdef.ToolsCall, "shell", "rm_all"))
			if (p != nil) != (tt.state == hookengine.StateActive) || (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("For() returned a program: %v, %v", p != nil, err)
			}
			if p, err := a.Set.Chain(hookdef.ToolsCall, "shell", "ls"); p != nil || err != nil {
				t.Error("a call that no graph applies to is blocked", err)
			}
		})
	}
	away := hookengine.Activate(nil, approval.Records{record}, func(string) bool { return false })
	if _, err := away.Set.Chain(hookdef.ToolsCall, "shell", "rm_all"); err != nil {
		t.Errorf("a graph of an absent project blocks a call: %v", err)
	}
	if _, err := template.Approval("me", nil); guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Errorf("Approval of a template returned %v, want CodeInvalid", err)
	}
	if _, err := broken.Approval("me", nil); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition {
		t.Errorf("Approval of a broken graph returned %v, want CodeInvalidDefinition", err)
	}
}
