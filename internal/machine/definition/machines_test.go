package definition

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
)

const fullScript = `
// unknown() { is in a comment }
export default {
  before() { return "unknown"; },
  after() {},
  where() { if (this.common_data.go === "yes") { return "stop"; } return "judge"; },
  broken: function () { return 'plain' },
}`

func fullConfig(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func machineFiles(config, script string) Files {
	f := Files{Config: File{Path: "full.json", Data: []byte(config)}}
	if script != "" {
		f.Script = &File{Path: "full/script.js", Data: []byte(script)}
	}
	return f
}

// parseConfig parses a configuration without a script and roles, which the schema does not
// cover.
func parseConfig(root *doc.Node) []guideway.Diagnostic {
	p, at := newParser(""), shape.Root(root, "machine")
	if !p.Document(at, "A machine", "write one") {
		return p.Found
	}
	p.Canonical = doc.Mark(root)
	p.checkStructure(at, p.readMachine(at))
	return p.Findings(guideway.SeverityError)
}

// TestAgreement checks that the parser and the published schema agree on a complete machine
// and on many changed copies of it.
func TestAgreement(t *testing.T) {
	t.Parallel()
	a := &shapetest.Agreement{
		Schema: shapetest.Compile(t, Schema(KindMachine)),
		Parse:  parseConfig,
		Beyond: func(code string) bool {
			return slices.Contains([]string{
				CodeDuplicate, CodeNoStart, CodeStateUnknown, CodeAgentUnknown, CodeContextUnknown, CodeStateMixed, CodePath, CodeDefault,
				CodeDuration, CodeRoleTools,
			}, code)
		},
		Values: append(shapetest.Numbers(0, -1, 1, 1.5, 2, 2.5, 1<<30, 1<<31), shapetest.Texts(
			"/a~2", "/a~1b", "", "x", "human", "any", "safe", "string", "user", "tool", "common_data.x", "10m", "a b", strings.Repeat("é", 64), strings.Repeat("é", 65), strings.Repeat("a", 129))...),
		Keys:  []string{"tools", "tool", "allow", "extra", "input", "inputs", "name", "agent", "required"},
		Value: &doc.Node{Kind: doc.String, Text: "x"},
	}
	a.Check(t, shapetest.Load(t, "testdata/full.json"), 1500)
	shapetest.Explained(t, Schema(KindMachine))
}

// TestParse checks the warnings for the complete machine, that its pinned text loads with
// the same hash, and that a different script changes the hash.
func TestParse(t *testing.T) {
	t.Parallel()
	d, found := Check(machineFiles(string(fullConfig(t)), fullScript))
	if d == nil {
		t.Fatal(found)
	}
	var codes []string
	for _, f := range found {
		codes = append(codes, f.Code)
		if f.Line == 0 || f.Fix == "" || f.Severity != guideway.SeverityWarning {
			t.Errorf("incomplete: %+v", f)
		}
	}
	if diff := cmp.Diff([]string{CodeContextUnused}, codes); diff != "" {
		t.Errorf("%v %s", found, diff)
	}
	again, err := Pinned(d.Canonical)
	if err != nil {
		t.Fatal(err)
	}
	if again.Hash != d.Hash || again.ScriptFile != "full/script.js" || again.Script != d.Script {
		t.Errorf("the pinned machine differs: %s", again.Hash)
	}
	if diff := cmp.Diff(d.Machine, again.Machine); diff != "" {
		t.Error(diff)
	}
	other, _ := Parse(machineFiles(string(fullConfig(t)), fullScript+"\n// changed"))
	if other.Hash == d.Hash {
		t.Error("a machine with a different script has the same hash")
	}
}

// TestDiagnostics checks code and position for common errors.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	text := string(fullConfig(t))
	with := func(old, other string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q", old)
		}
		return strings.Replace(text, old, other, 1)
	}
	tests := []struct{ name, config, script, code, pointer string }{
		{"old dialect", with(`"agent": "worker", "pre`, `"action": {}, "agent": "worker", "pre`), fullScript, CodeOldDialect, "/states/0/action"},
		{"no start", with(`"name": "start"`, `"name": "begin"`), fullScript, CodeNoStart, "/states"},
		{"unknown agent", with(`"agent": "worker", "pre`, `"agent": "workr", "pre`), fullScript, CodeAgentUnknown, "/states/0/agent"},
		{"unknown context", with(`"context": "talk", "role": "user"`, `"context": "tlk", "role": "user"`), fullScript, CodeContextUnknown, "/agents/1/context"},
		{"unknown role", with(`"judge": {
      "systemMessage"`, `"jugde": {
      "systemMessage"`), fullScript, CodeRoleUnknown, "/agents/1/agent_role"},
		{"unknown state", with(`"next_state": "deep"`, `"next_state": "depe"`), fullScript, CodeStateUnknown, "/states/2/next_state"},
		{"unknown handler", with(`"post_handler": "after"`, `"post_handler": "unknown"`), "export default { before() {}, where() {}, broken() {}, x() { this.unknown() } }", CodeHandlerMissing, "/states/0/post_handler"},
		{"no script", text, "", CodeScriptMissing, "/states"},
		{"two inputs", with(`"inputs": [`, `"input": {"name": "a", "type": "string", "description": "b"}, "inputs": [`), fullScript, CodeInputs, "/inputs"},
		{"default of a wrong type", with(`"default": 3`, `"default": "3"`), fullScript, CodeDefault, "/inputs/1/default"},
		{"a state with two actions", with(`"sub_machine": "other",`, `"sub_machine": "other", "agent": "judge",`), fullScript, CodeStateMixed, "/states/4"},
		{"result elsewhere", with(`"name": "judge", "agent"`, `"name": "judge", "input": "common_data.x", "agent"`), fullScript, CodeStateMixed, "/states/1/input"},
		{"both tool lists", with(`"excludedTools"`, `"includedTools": [], "excludedTools"`), fullScript, CodeRoleTools, "/roles/judge/excludedTools"},
		{"duplicate", with(`"name": "deep", "sub`, `"name": "wait", "sub`), fullScript, CodeDuplicate, "/states/3/name"},
		{"no time", with(`"10m"`, `"ten"`), fullScript, CodeDuration, "/budgets/time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, found := Check(machineFiles(tt.config, tt.script))
			if d != nil {
				t.Fatal("it loads")
			}
			for _, f := range found {
				if f.Code == tt.code && f.Pointer == tt.pointer && f.Fix != "" && f.Line > 0 {
					return
				}
			}
			t.Errorf("got %v", found)
		})
	}
}

// TestFixNamesAScriptThatLoads checks that the fix for a missing script names a file that
// the loader reads.
func TestFixNamesAScriptThatLoads(t *testing.T) {
	t.Parallel()
	config := &fstest.MapFile{Data: fullConfig(t)}
	for name, script := range map[string]string{
		"one.json": "one/script.js", "dir/machine.json": "dir/script.js", "dir/config.json": "dir/script.js", "dir/config.yaml": "dir/script.js",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{name: config}
			l := LoadFile(fsys, "", name)
			i := slices.IndexFunc(l.Found, func(f guideway.Diagnostic) bool { return f.Code == CodeScriptMissing })
			if i < 0 || !strings.HasPrefix(l.Found[i].Fix, "write "+script+" with") {
				t.Fatalf("without a script: %v", l.Found)
			}
			fsys[script] = &fstest.MapFile{Data: []byte(fullScript)}
			read := func(name string) ([]byte, error) { return fsys.ReadFile(name) }
			for _, l := range append(LoadFiles(slices.Collect(maps.Keys(fsys)), read, ""), LoadFile(fsys, "", name)) {
				if l.Definition == nil || l.Files().Script == nil {
					t.Errorf("with %s: %v", script, l.Found)
				}
			}
		})
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	text := string(fullConfig(t))
	tests := []struct{ name, config, script, code string }{
		{"unreachable state", strings.Replace(text, `"next_state": "deep"`, `"next_state": "judge"`, 1), strings.Replace(fullScript, "'plain'", "'judge'", 1), CodeUnreachable},
		{"no end", strings.Replace(text, `"next_state": "wait"`, `"next_state": "judge"`, 1), `export default { before() {}, after() {}, where() { return "judge"; }, broken() { return "judge"; } }`, CodeNoStop},
		{"wrong answer", text, strings.Replace(fullScript, "'plain'", "'plian'", 1), CodeTransitionState},
		{"shadowed", strings.Replace(text, `"count": 0`, `"task": 0`, 1), fullScript, CodeVariableShadows},
		{"unused policy", strings.NewReplacer(`"excludedTools": ["mail__*"]`, `"includedTools": []`, `"mail__send": {"retry": "ask"}`, `"x__*": {}`).Replace(text), fullScript, CodeToolUnused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, found := Check(machineFiles(tt.config, tt.script))
			if d == nil {
				t.Fatal(found)
			}
			if !slices.ContainsFunc(found, func(f guideway.Diagnostic) bool { return f.Code == tt.code }) {
				t.Errorf("got %v", found)
			}
		})
	}
}

// TestLayout checks both layouts of machines, with separate or common roles.
func TestLayout(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	config := func(name string) string {
		return `{"workflow_name": "` + name + `", "description": "d", "inputs": [], "output": {"name": "o", "type": "string", "description": "d"},
			"contexts": [{"name": "c"}], "agents": [{"agent_role": "r", "context": "c", "role": "user"}],
			"states": [{"name": "start", "agent": "r", "post_handler": "f"}]}`
	}
	const roles, code = `{"r": {"systemMessage": "s"}}`, "export default { f() {} }"
	fsys := fstest.MapFS{
		"roles.json":       file(roles),
		"one.json":         file(config("one")),
		"one/script.js":    file(code),
		"two/machine.json": file(config("two")),
		"two/script.js":    file(code),
		"two/roles.json":   file(`{"r": {"systemMessage": "mine"}}`),
		"broken.json":      file("{"),
		"notes.md":         file("#"),
		".hidden/x.json":   file("{"),
	}
	list := LoadFiles(slices.Sorted(maps.Keys(fsys)), func(name string) ([]byte, error) { return readFile(fsys, name) }, "dir")
	got := map[string]string{}
	for _, l := range list {
		got[l.Claims] = "broken"
		if l.Definition != nil {
			got[l.Claims] = l.Path + " " + l.Definition.Roles["r"].SystemMessage + " " + l.Definition.ScriptFile
		}
	}
	want := map[string]string{"one": "dir/one.json s dir/one/script.js", "two": "dir/two/machine.json mine dir/two/script.js", "broken": "broken"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"one.json", "two", "two/machine.json"} {
		if l := LoadFile(fsys, "dir", name); l.Definition == nil {
			t.Errorf("%s: %v", name, l.Found)
		}
	}
	if l := LoadFile(fsys, "dir", "none.json"); l.Definition != nil || len(l.Found) != 1 {
		t.Errorf("none: %v", l.Found)
	}
}

// TestCorpus checks SynthDev's machines, if available: the example loads except for its
// missing script, and the others are reported as machines of the older dialect.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "..", "shared", "corpus", "agents")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the corpus is not available")
	}
	want := map[string]string{"grocery_store_test.json": CodeScriptMissing, "coder_reviewer.json": CodeOldDialect, "arbitrary_filename.json": CodeOldDialect}
	for name, code := range want {
		l := LoadFile(os.DirFS(dir), "", name)
		if len(l.Found) == 0 || !slices.ContainsFunc(l.Found, func(f guideway.Diagnostic) bool { return f.Code == code }) {
			t.Errorf("%s: %v", name, l.Found)
		}
		if name == "grocery_store_test.json" && len(l.Found) != 1 {
			t.Errorf("%s: %v", name, l.Found)
		}
	}
}

// TestOldDialectIsReportedFirst checks that a machine of the older dialect has one
// diagnostic, which reports the dialect.
func TestOldDialectIsReportedFirst(t *testing.T) {
	t.Parallel()
	f := Files{
		Config: File{Path: "old.json", Data: []byte(`{
  "workflow_name": "old", "description": "d", "input": {"name": "i", "type": "string", "description": "d"},
  "output": {"name": "o", "type": "string", "description": "d"}, "contexts": [{"name": "c"}],
  "agents": [{"agent_role": "coder", "context": "c", "role": "assistant"}],
  "states": [{"name": "start", "action": {"script": "1"}, "transition": [{"target": "stop", "condition": "true"}]}]
}`)},
		Roles: []File{{Path: "roles.json", Data: []byte(`{"other": {"systemMessage": "s"}}`)}},
	}
	if d, found := Parse(f); d != nil || len(found) != 1 || found[0].Code != CodeOldDialect {
		t.Errorf("the diagnostics are %v", found)
	}
}

// FuzzParse checks that no input makes the parser or the tokenizer panic, and that a valid
// machine loads from its pinned text.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{}`), "")
	data, err := os.ReadFile("testdata/full.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, fullScript)
	f.Fuzz(func(t *testing.T, config []byte, code string) {
		d, found := Check(Files{Config: File{Path: "x.json", Data: config}, Script: &File{Path: "x/script.js", Data: []byte(code)}})
		if d == nil {
			if len(found) == 0 {
				t.Fatal("the machine does not load, but has no diagnostics")
			}
			return
		}
		_ = d.Mermaid()
		if again, err := Pinned(d.Canonical); strings.ToValidUTF8(code, "") == code && (err != nil || again.Hash != d.Hash) {
			t.Fatalf("the pinned text does not load as the same machine: %v", err)
		}
	})
}
