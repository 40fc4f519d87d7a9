package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// TestDeclaredToolsHaveHandlers checks that every declared tool has a handler, and that every
// handler has a declared tool.
func TestDeclaredToolsHaveHandlers(t *testing.T) {
	t.Parallel()
	declared, err := parseDeclarations(toolsJSON)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{runs: &run.Service{}, sessions: &session.Service{}, answers: &responder{}}
	offered := s.toolsByToolset(Options{
		Toolsets: Toolsets(), Memory: &contexts.Service{}, Machines: struct{ Machines }{}, Now: time.Now,
		Dashboard: func(context.Context, string) (string, error) { return "", nil },
	})
	if diff := cmp.Diff(sortedKeysOf(declared), sortedKeysOf(offered)); diff != "" {
		t.Errorf("toolsets (-declared +with handlers): %s", diff)
	}
	for toolset, tools := range offered {
		if diff := cmp.Diff(sortedKeysOf(declared[toolset]), sortedKeysOf(tools)); diff != "" {
			t.Errorf("%s (-declared +with handlers): %s", toolset, diff)
		}
	}
}

// TestDeclarations checks what a wrong word in tools.json would break: the members of each
// declaration are complete, and of known kinds.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	kinds := []valueKind{kindString, kindStrings, kindObject, kindBool, kindInteger, kindNumber}
	outputs := append([]valueKind{kindObjects, kindList, kindObjectOrNull}, kinds...)
	effects := []effect{effectNone, effectAdds, effectAddsOnce, effectReplaces}
	for _, tools := range declaredTools() {
		for _, d := range tools {
			if d.Name == "" || d.Title == "" || d.Description == "" || len(d.Output) == 0 || !slices.Contains(effects, d.Effect) {
				t.Errorf("the declaration of %s is incomplete: %+v", d.Name, d)
			}
			for _, p := range d.Params {
				for _, each := range append([]param{p}, p.Members...) {
					if each.Name == "" || !slices.Contains(kinds, each.Kind) {
						t.Errorf("%s: the parameter %q has the kind %q", d.Name, each.Name, each.Kind)
					}
				}
				if message := p.checkValue(p.Example); p.Example != nil && p.Kind != kindInteger && p.Kind != kindNumber && message != "" {
					t.Errorf("%s: the example is wrong: %s", d.Name, message)
				}
			}
			for name, kind := range d.Output {
				if kind, ok := kind.(string); ok && !slices.Contains(outputs, valueKind(kind)) {
					t.Errorf("%s: the output %s has the kind %q", d.Name, name, kind)
				}
			}
		}
	}
}

// TestSharedParameters checks that a parameter with "use" names a shared parameter, and states
// nothing that overlay would ignore.
func TestSharedParameters(t *testing.T) {
	t.Parallel()
	var file struct {
		Params   map[string]any
		Toolsets map[string]struct {
			Tools []struct{ Params []map[string]any }
		}
	}
	if err := json.Unmarshal(toolsJSON, &file); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, set := range file.Toolsets {
		for _, tool := range set.Tools {
			for _, p := range tool.Params {
				use, _ := p["use"].(string)
				if used[use] = true; use == "" {
					continue
				}
				for name := range p {
					if !slices.Contains([]string{"use", "name", "description", "example"}, name) {
						t.Errorf("%v: a use of a shared parameter cannot change %s", p, name)
					}
				}
			}
		}
	}
	delete(used, "")
	if diff := cmp.Diff(sortedKeysOf(file.Params), sortedKeysOf(used)); diff != "" {
		t.Errorf("shared parameters (-declared +used): %s", diff)
	}
}

func sortedKeysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
