package driver_test

import (
	"strings"
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
)

// scriptedMachine returns a machine without an agent whose first state has one handler.
func scriptedMachine(t *testing.T, name, kind, source string) *machinedef.Definition {
	t.Helper()
	d, found := machinedef.Parse(machinedef.Files{
		Config: machinedef.File{Path: name + ".json", Data: []byte(`{
  "workflow_name": "` + name + `", "description": "d",
  "input": {"name": "given", "type": "object", "description": "d", "default": {"list": [1]}}, "output": {"name": "done", "type": "string", "description": "d"},
  "contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "go"}]}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}],
  "states": [
    {"name": "start", "` + kind + `": "f", "next_state": "never"},
    {"name": "never", "agent": "worker"},
    {"name": "stop"}
  ]}`)},
		Script: &machinedef.File{Path: name + "/script.js", Data: []byte(source)},
		Roles:  []machinedef.File{{Path: name + "/roles.json", Data: []byte(smallRoles)}},
	})
	if d == nil {
		t.Fatal(found)
	}
	return d
}

// TestHandlersOnWorkers checks that a handler that fails on a real worker pauses the run in
// the first state, with a message, the file, a line and a column. An async handler that
// succeeds does not pause the run.
func TestHandlersOnWorkers(t *testing.T) {
	t.Parallel()
	scripts := newScripts(t)
	tests := []struct {
		name, kind, source, message string
		line, column                int // column 0 matches any column
	}{
		{"throws", "pre_handler", "export default {\n  f() {\n    throw new Error('no way');\n  },\n};", "no way", 3, 0},
		{"throws within", "pre_handler", "const g = () => {\n  null.x;\n};\nexport default { f() { g(); } };", "null", 2, 0},
		{"rejects", "post_handler", "export default {\n  async f() {\n    await null;\n    throw new TypeError('later');\n  },\n};", "later", 4, 0},
		{"endless loop", "pre_handler", "export default {\n  f() { for (;;) {} },\n};", "", 2, 0},
		{"endless loop in a promise", "transition_handler", "export default {\n  async f() { await null; for (;;) {} },\n};", "", 2, 0},
		{"never answers", "transition_handler", "export default {\n  f() { return new Promise(() => {}); },\n};", "", 2, 3},
		{"endless allocation", "pre_handler", "export default {\n  f() { const a = []; for (;;) a.push('x'.repeat(1000000) + a.length); },\n};", "memory", 2, 0},
		{"endless recursion", "pre_handler", "export default {\n  f() { const g = () => g() + 1; g(); },\n};", "", 2, 0},
		{"an unknown state", "transition_handler", "export default {\n  f() { return 'nowhere'; },\n};", `"nowhere"`, 2, 3},
		{"a promise for an unknown state", "transition_handler", "export default {\n  async f() { return 'nowhere'; },\n};", `"nowhere"`, 2, 9},
		{"no name", "transition_handler", "export default {\n  f: () => ({ then: 1 }),\n};", "", 2, 3},
		{"a function", "transition_handler", "export default {\n  f() { return () => 'stop'; },\n};", "a function", 2, 3},
		{"changes the frozen input", "pre_handler", "'use strict';\nexport default {\n  f() {\n    this.input.list = 1;\n  },\n};", "read-only", 4, 0},
		{"changes frozen globals", "pre_handler", "export default {\n  f() {\n    Array.prototype.map = null;\n  },\n};", "", 3, 0},
		{"replaces this", "pre_handler", "export default {\n  f() {\n    this.common_data = null;\n  },\n};", "", 2, 0},
		{"a circle", "pre_handler", "export default {\n  f() { this.common_data.self = this.common_data; },\n};", "common_data", 2, 3},
		{"does not compile", "pre_handler", "export default {\n  f() { let = ; },\n};", "", 2, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := scriptedMachine(t, "wrong", tt.kind, tt.source)
			r := newRig(t, newMemory(), []*machinedef.Definition{d}, nil, `{"rules": [{"content": "fine"}]}`, func(o *driver.Options) { o.Handlers = scripts })
			s := r.driveRun(r.startRun("wrong", nil))
			if s.Status != machineengine.StatusPaused || s.Pause.Error == nil || len(r.model.requests) > 0 || len(s.States) != 1 {
				t.Fatalf("the run is %s after %v: %+v", s.Status, s.States, s.Pause)
			}
			f := s.Pause.Error
			t.Logf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
			if !strings.Contains(f.Message, tt.message) || f.File != "wrong/script.js" || f.Line != tt.line || f.Column == 0 || tt.column > 0 && f.Column != tt.column {
				t.Errorf("got %s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
			}
			if again := r.driveRun(s.RunID); again.Seq != s.Seq {
				t.Error("the run continued without a command")
			}
		})
	}
	t.Run("async", func(t *testing.T) {
		t.Parallel()
		d := scriptedMachine(t, "right", "transition_handler", "export default {\n  async f() { await sleep(1); this.common_data.done = 'yes'; return 'stop'; },\n};")
		r := newRig(t, newMemory(), []*machinedef.Definition{d}, nil, `{"rules": [{"content": "fine"}]}`, func(o *driver.Options) { o.Handlers = scripts })
		if s := r.driveRun(r.startRun("right", nil)); s.Status != machineengine.StatusCompleted || string(s.Output) != `"yes"` {
			t.Errorf("%+v", s)
		}
	})
}
