package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	sandboxpkg "github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// The test binary is also the script worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newScripts returns handlers in the real sandbox.
func newScripts(t *testing.T) *driver.Scripts {
	t.Helper()
	pool, err := sandboxpkg.NewPool(sandboxpkg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := pool.Close(ctx); err != nil {
			t.Errorf("close the pool: %v", err)
		}
	})
	return &driver.Scripts{Sandbox: pool, Owner: "anna"}
}

func handlerState() machineengine.This {
	return machineengine.This{
		Data: map[string]json.RawMessage{"count": json.RawMessage("1"), "order": json.RawMessage(`{"b":1,"a":2}`), "old": json.RawMessage("true")},
		Contexts: map[string][]llm.Message{
			"talk":  {{Role: llm.User, Content: "one"}, {Role: llm.Assistant, Content: "two"}},
			"other": {{Role: llm.User, Content: "x"}},
		},
		Last:   (&llm.Response{Message: llm.Message{Role: llm.Assistant, Content: "the answer"}, Finish: "stop"}).Completion(),
		Input:  "hello",
		Agents: map[string]machinedef.Side{"a": machinedef.SideUser},
	}
}

// TestScripts checks the values that handlers see and the changes that they make, as
// SynthDev's documentation describes them.
func TestScripts(t *testing.T) {
	t.Parallel()
	s := newScripts(t)
	const source = `
function helper(text) { return text + "!"; }
export default {
  twice(n) { return n * 2; },
  sees() {
    const talk = this.workflow_contexts.get("talk");
    this.common_data.seen = [
      this.input, this.last_response.choices[0].message.content, this.last_response.object,
      talk.getMessages().length, talk.getLastMessage().content, talk.getMessagesByRole("user")[0].content,
      this.workflow_contexts.size, this.workflow_contexts.has("none"), this.twice(21), helper("hi"),
      talk.getMessagesForAgent("a")[0].role,
    ];
  },
  changes() {
    this.common_data.count += 1;
    delete this.common_data.old;
    const talk = this.workflow_contexts.get("talk");
    talk.addMessage({ role: "user", content: "three" });
    talk.addMessage({ role: "assistant", content: null, tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: "{}" } }] });
    this.workflow_contexts.get("other").clearMessages();
    return () => 1;
  },
  cuts() { this.workflow_contexts.get("talk").messages.shift(); },
  async later() { await sleep(5); await Promise.resolve(); return "next"; },
  prints() { console.log("a", { b: 1 }); console.error("bad"); return ""; },
  time() { return new Date().toISOString() + " " + (Math.random() === Math.random()); },
}`
	call := func(name string, wants bool) *driver.HandlerResult {
		t.Helper()
		r, err := s.Call(t.Context(), driver.HandlerCall{
			Source: source, File: "test/script.js", Function: name, This: handlerState(), WantsResult: wants, Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seed: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if got, want := string(call("sees", false).Data["seen"]), `["hello","the answer","chat.completion",2,"two","one",2,false,42,"hi!","assistant"]`; got != want {
		t.Errorf("the values in the handler are %s", got)
	}
	changed := call("changes", false)
	want := []machineengine.ContextChange{
		{Name: "talk", Keep: 2, Add: []llm.Message{
			{Role: llm.User, Content: "three"},
			{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Type: "function", Function: llm.Function{Name: "f", Arguments: "{}"}}}},
		}},
		{Name: "other"},
	}
	byName := func(a []machineengine.ContextChange) map[string]machineengine.ContextChange {
		out := map[string]machineengine.ContextChange{}
		for _, c := range a {
			if len(c.Add) == 0 {
				c.Add = nil
			}
			out[c.Name] = c
		}
		return out
	}
	if diff := cmp.Diff(byName(want), byName(changed.Contexts)); diff != "" {
		t.Error(diff)
	}
	if string(changed.Data["count"]) != "2" || changed.Data["old"] != nil || string(changed.Data["order"]) != `{"b":1,"a":2}` {
		t.Errorf("common_data is %s", changed.Data)
	}
	if cuts := call("cuts", false).Contexts; len(cuts) != 1 || cuts[0].Keep != 0 || len(cuts[0].Add) != 1 || cuts[0].Add[0].Content != "two" {
		t.Errorf("the first message is missing: %+v", cuts)
	}
	if got := string(call("later", true).Value); got != `"next"` {
		t.Errorf("an async handler returned %s", got)
	}
	if diff := cmp.Diff([]string{"a { b: 1 }", "error: bad"}, call("prints", true).Console); diff != "" {
		t.Error(diff)
	}
	if got := string(call("time", true).Value); got != `"2026-01-02T03:04:05.000Z false"` {
		t.Errorf("the time and random number in the handler are %s", got)
	}
}

// TestScriptErrors checks that each failing script returns an error with its message and
// the user's file, and, for some of them, with the line.
func TestScriptErrors(t *testing.T) {
	t.Parallel()
	s := newScripts(t)
	tests := []struct {
		name, source, message string
		line                  int
	}{
		{"throws", "export default {\n f() {\n  throw new Error('no ' + 'way');\n } }", "no way", 3},
		{"rejects", "export default {\n async f() {\n  await null;\n  null.x;\n } }", "null", 4},
		{"never resolves", "export default { f() { return new Promise(() => {}) } }", "", 0},
		{"loops", "export default {\n f() { for (;;) {} } }", "", 0},
		{"allocates", "export default { f() { const a = []; for (;;) a.push(new Array(100000).fill(1)); } }", "", 0},
		{"frozen input", "export default {\n f() {\n  this.last_response.choices[0].message.content = 'mine';\n } }", "read-only", 3},
		{"empty message", "export default {\n f() {\n  this.workflow_contexts.get('talk').addMessage({role: 'user', content: ''});\n } }", "empty", 3},
		{"unknown role", "export default {\n f() {\n  this.workflow_contexts.get('talk').addMessage({role: 'boss', content: 'x'});\n } }", "role", 3},
		{"not there", "export default { g() {} }", "no function f", 0},
		{"a function", "export default { f() { return () => 1 } }", "a function", 0},
		{"circle", "export default { f() { this.common_data.self = this.common_data } }", "common_data", 0},
		{"data replaced", "export default { f() { this.common_data = 5 } }", "object", 0},
		{"syntax", "export default {\n f() { let = ; } }", "", 2},
		{"imports", "import fs from 'fs';\nexport default { f() {} }", "fs", 0},
		{"no network", "export default { f() { fetch('http://127.0.0.1') } }", "fetch", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Call(t.Context(), driver.HandlerCall{Source: tt.source, File: "test/script.js", Function: "f", This: handlerState(), WantsResult: true, Now: time.Unix(0, 0)})
			var wrong *driver.HandlerError
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(wrong.Message, tt.message) || wrong.File != "test/script.js" || tt.line > 0 && wrong.Line != tt.line || tt.line > 0 && wrong.Column == 0 {
				t.Errorf("got %s:%d:%d: %s", wrong.File, wrong.Line, wrong.Column, wrong.Message)
			}
		})
	}
}
