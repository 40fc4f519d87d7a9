package definition_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// parseGraph parses a graph that must load.
func parseGraph(t *testing.T, text string) *hookdef.Graph {
	t.Helper()
	root, found := doc.Parse("graph.json", []byte(text), doc.Limits{})
	if root == nil || len(found) > 0 {
		t.Fatal(found)
	}
	g, found := hookdef.Parse("graph.json", root)
	if g == nil {
		t.Fatal(found)
	}
	return g
}

// linkGraph links a graph that must link.
func linkGraph(t *testing.T, g *hookdef.Graph, modules ...hookdef.Module) *hookdef.Linked {
	t.Helper()
	l, found := hookdef.Link(g, hookdef.NewLibrary(modules))
	if l == nil {
		t.Fatal(found)
	}
	return l
}

const small = `{"id": "small", "name": "Small", "workflowType": "tools/call", "nodes": [
  {"id": "s", "type": "start"}, {"id": "h", "type": "hook", "data": {"hook": {"hookModuleId": "redact"}}},
  {"id": "c", "type": "mcp-call"}, {"id": "e", "type": "end"}],
  "edges": [{"source": "s", "target": "h"}, {"source": "h", "target": "c"}, {"source": "c", "target": "e"}]}`

func redact(script string) hookdef.Module {
	return hookdef.Module{ID: "redact", Name: "Redact", Script: script}
}

// A pin changes with the id, type, bindings, variables, timeouts and scripts of a graph. It
// does not change with names, labels, positions or the order of edges, which do not affect
// execution.
func TestPin(t *testing.T) {
	t.Parallel()
	pin := linkGraph(t, parseGraph(t, small), redact("1")).Pin
	if !strings.HasPrefix(pin, "sha256:") || len(pin) != len("sha256:")+64 {
		t.Fatalf("pin = %q, want \"sha256:\" and 64 hexadecimal digits", pin)
	}
	edit := func(old, replaced string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(small, old, replaced, 1)
	}
	for name, text := range map[string]string{
		"name": edit(`"name": "Small"`, `"name": "Other"`), "enabled": edit(`"name"`, `"enabled": true, "name"`),
		"place": edit(`"type": "start"`, `"type": "start", "position": {"x": 1, "y": 2}`),
		"label": edit(`"type": "mcp-call"`, `"type": "mcp-call", "data": {"label": "Call"}`),
		"order": edit(`{"source": "s", "target": "h"}, {"source": "h", "target": "c"}`, `{"source": "h", "target": "c"}, {"source": "s", "target": "h"}`),
	} {
		if got := linkGraph(t, parseGraph(t, text), redact("1")).Pin; got != pin {
			t.Errorf("%s: the pin changed", name)
		}
	}
	for name, text := range map[string]string{
		"type": edit("tools/call", "tools/list"), "binding": edit(`"name"`, `"bindings": [{"tool": "x"}], "name"`),
		"timeout":  edit(`"hookModuleId"`, `"timeoutMs": 9, "hookModuleId"`),
		"variable": edit(`"name"`, `"variables": {"a": 1}, "name"`),
		"inline":   edit(`"hookModuleId": "redact"`, `"script": "2"`),
		"id":       edit(`"id": "small"`, `"id": "smaller"`),
	} {
		if got := linkGraph(t, parseGraph(t, text), redact("1")).Pin; got == pin {
			t.Errorf("%s: the pin did not change", name)
		}
	}
	if linkGraph(t, parseGraph(t, small), redact("2")).Pin == pin {
		t.Error("a graph with a different script has the same pin")
	}
}

// Modules of the graph have precedence over those of the library, and IDs over names. The
// error for an unknown module names its node and suggests a similar module.
func TestModules(t *testing.T) {
	t.Parallel()
	own := strings.Replace(small, `"name"`, `"modules": [{"id": "redact", "name": "R", "script": "own"}], "name"`, 1)
	if got := linkGraph(t, parseGraph(t, own), redact("library")).Scripts["h"]; got.Text != "own" || got.Name != "redact.js" {
		t.Errorf("the script is %+v, want that of the graph", got)
	}
	byName := []hookdef.Module{{ID: "x", Name: "redact", Script: "by name"}, {ID: "redact", Name: "y", Script: "by id"}}
	if got := linkGraph(t, parseGraph(t, small), byName...).Scripts["h"].Text; got != "by id" {
		t.Errorf("the script is %q, want the one found by ID", got)
	}
	if got := linkGraph(t, parseGraph(t, small), byName[0]).Scripts["h"].Text; got != "by name" {
		t.Errorf("the script is %q, want the one found by name", got)
	}
	l, found := hookdef.Link(parseGraph(t, small), hookdef.NewLibrary([]hookdef.Module{{ID: "redacts", Name: "redacts"}}))
	if l != nil || len(found) != 1 {
		t.Fatal(l, found)
	}
	want := "graph.json:2:33: error: Module 'redact' does not exist, but is used by hook 'h'. [module-unknown] (/nodes/1/data/hook/hookModuleId)\n  fix: did you mean 'redacts'?"
	if diff := cmp.Diff(want, found[0].String()); diff != "" || found[0].Node != "h" {
		t.Error(diff)
	}
}

// An exported graph parses as the same complete graph, and its export is identical.
func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	full, err := os.ReadFile("../../workflow/testdata/hooks-full.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{small, string(full)} {
		l := linkGraph(t, parseGraph(t, text), redact("if (a < 1 && b) {}"))
		exported, err := l.Export(false)
		if err != nil {
			t.Fatal(err)
		}
		again := linkGraph(t, parseGraph(t, string(exported)))
		if again.Pin != l.Pin {
			t.Errorf("the pin of the export differs:\n%s", exported)
		}
		twice, err := again.Export(false)
		if diff := cmp.Diff(string(exported), string(twice)); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	exported, err := linkGraph(t, parseGraph(t, small), redact("a < 1")).Export(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"position"`, `"label": "c"`, `"blocking": true`, `"script": "a < 1"`, `"createdAt": 0`, `"enabled": true`, `"id": "s-h"`} {
		if !strings.Contains(string(exported), want) {
			t.Errorf("the export has no %s:\n%s", want, exported)
		}
	}
}

// PlaceOf derives the kind of a document from its path.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]hookdef.Place{
		"hooks/a.json":           {Kind: hookdef.KindGraph, Name: "a"},
		"hooks/a.YAML":           {Kind: hookdef.KindGraph, Name: "a"},
		"hooks/modules/b.js":     {Kind: hookdef.KindModule, Plain: true, Name: "b"},
		"hooks/modules/b.mjs":    {Kind: hookdef.KindModule, Plain: true, Name: "b"},
		"hooks/modules/b.yml":    {Kind: hookdef.KindModule, Name: "b"},
		"hooks/b.js":             {},
		"hooks/sub/a.json":       {},
		"hooks/modules/x/b.js":   {},
		"a.json":                 {},
		"other/hooks/a.json":     {},
		"hooks/modules/README":   {},
		"hooks/modules/notes.md": {},
	} {
		if diff := cmp.Diff(want, hookdef.PlaceOf(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
