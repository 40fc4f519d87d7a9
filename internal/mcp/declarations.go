package mcp

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
)

// toolsJSON declares the tools of all toolsets: names, texts, parameters and outputs. A
// parameter with "use" is a shared one, of which it can change the name, the description and
// the example. A tool without an output has the output of its toolset.
//
//go:embed tools.json
var toolsJSON []byte

// declaration describes a tool to clients.
type declaration struct {
	Name, Title, Description string
	Params                   []param
	// Effect is the effect of a call on the server's data.
	Effect effect
	// Paged is set if a call can be repeated for the next page although it does not only
	// read.
	Paged bool
	// Output has a valueKind or a JSON Schema for each member of the answer. The schema of the
	// answer requires no member, because errors have different members.
	Output map[string]any
}

var declaredTools = sync.OnceValue(func() map[string]map[string]declaration {
	tools, _ := parseDeclarations(toolsJSON) // A test parses the file, which is a part of the program.
	return tools
})

// parseDeclarations returns the declarations of a file by toolset and name.
func parseDeclarations(text []byte) (map[string]map[string]declaration, error) {
	var file struct {
		Params   map[string]param
		Toolsets map[string]struct {
			Output map[string]any
			Tools  []declaration
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	all := map[string]map[string]declaration{}
	for toolset, set := range file.Toolsets {
		all[toolset] = map[string]declaration{}
		for _, d := range set.Tools {
			for i, p := range d.Params {
				d.Params[i] = p.overlay(file.Params[p.Use])
			}
			if d.Output == nil {
				d.Output = set.Output
			}
			if d.Effect == effectNone || d.Paged {
				d.Params = append(d.Params, param{Name: "page", Kind: kindInteger})
			}
			all[toolset][d.Name] = d
		}
	}
	return all, nil
}

// overlay returns the shared parameter that p uses, with the changes that p states.
func (p param) overlay(shared param) param {
	if p.Use == "" {
		return p
	}
	shared.Name, shared.Description = cmp.Or(p.Name, shared.Name), cmp.Or(p.Description, shared.Description)
	if p.Example != nil {
		shared.Example = p.Example
	}
	return shared
}

// handlers are the handlers of the tools of a toolset, by the names of the tools.
type handlers map[string]func(ctx context.Context, c call) (any, error)

// newTools returns the tools of a toolset that have handlers, by their names.
func newTools(toolset string, serve handlers) map[string]*tool {
	tools := map[string]*tool{}
	for name, handler := range serve {
		d := declaredTools()[toolset][name]
		d.Params = slices.Clone(d.Params)
		tools[name] = &tool{declaration: d, serve: handler}
	}
	return tools
}
