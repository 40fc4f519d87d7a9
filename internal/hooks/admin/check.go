package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// CheckRequest is a graph, or a module, to look at. Nothing is kept of it.
type CheckRequest struct {
	// Text is the document, in JSON or YAML.
	Text string
	// Source is the name of the source that it is in or will be: its modules are
	// those of that source and of those below it. Empty is the user's own.
	Source string
}

// Verdict is what there is to say of a document.
type Verdict struct {
	// Valid says that it loads, that its modules are there, and that its scripts
	// compile.
	Valid bool         `json:"valid"`
	Kind  hookdef.Kind `json:"kind,omitempty"`
	ID    string       `json:"id,omitempty"`
	// Pin is the hash of what the graph does.
	Pin string `json:"pin,omitempty"`
	// Graph is the document as JSON, if it loads; Module where it is a module.
	Graph  json.RawMessage `json:"graph,omitempty"`
	Module *hookdef.Module `json:"module,omitempty"`
	// Overlaps names the active graphs that stand around some of the same
	// requests.
	Overlaps []string `json:"overlaps,omitempty"`
	// Diagnostics are the findings. Those of scripts have the pointer of the
	// script, and lines in it.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`

	linked *hookdef.Linked
}

// Check says what there is to say of a document: every rule of graphs, what is
// most likely not meant, the modules that it names, and the syntax of its scripts.
func (d *Desk) Check(ctx context.Context, r CheckRequest) (*Verdict, error) {
	v := &Verdict{Diagnostics: []guideway.Diagnostic{}}
	document, found := workflow.CheckAs("", []byte(r.Text), workflow.As{Dialect: guideway.DialectHooks})
	v.Diagnostics = append(v.Diagnostics, found...)
	if document == nil {
		return v, nil
	}
	v.Kind, v.ID = hookdef.Kind(document.Kind), document.ID
	if document.Graph == nil {
		v.Module, v.Valid = document.Module, true
		return v, nil
	}
	m, err := d.moment()
	if err != nil {
		return nil, err
	}
	v.Graph = json.RawMessage(document.Graph.Canonical)
	v.Overlaps = m.active.Set.Overlapping(document.Graph)
	linked, found := hookdef.Link(document.Graph, libraryOf(m.snapshot, r.Source))
	v.Diagnostics = append(v.Diagnostics, found...)
	if linked == nil {
		return v, nil
	}
	v.linked, v.Pin = linked, linked.Pin
	found, err = runner.Check(ctx, d.opts.Scripts, linked)
	if err != nil {
		return nil, err
	}
	v.Diagnostics = append(v.Diagnostics, placed(linked, found)...)
	v.Valid = !slices.ContainsFunc(v.Diagnostics, func(f guideway.Diagnostic) bool { return f.Severity == guideway.SeverityError })
	return v, nil
}

// placed gives findings about scripts the pointers of the scripts in the document.
func placed(l *hookdef.Linked, found []guideway.Diagnostic) []guideway.Diagnostic {
	for i := range found {
		n := slices.IndexFunc(l.Nodes, func(n hookdef.Node) bool { return n.ID == found[i].Node })
		if n < 0 {
			continue
		}
		member := "script"
		if l.Nodes[n].Hook.Module != "" {
			member = "hookModuleId"
		}
		found[i].Pointer = fmt.Sprintf("/nodes/%d/data/hook/%s", n, member)
	}
	return found
}

// checkScript looks at a script alone.
func checkScript(ctx context.Context, checker runner.Checker, id, text string) ([]guideway.Diagnostic, error) {
	graph := &hookdef.Graph{ID: id, Nodes: []hookdef.Node{{ID: id, Kind: hookdef.HookNode, Hook: &hookdef.Hook{Script: text, Blocking: true}}}}
	linked, found := hookdef.Link(graph, hookdef.Library{})
	if linked == nil {
		return found, nil
	}
	return runner.Check(ctx, checker, linked)
}

// firstError is the error of a document that is not valid.
func (v *Verdict) firstError() error {
	for _, f := range v.Diagnostics {
		if f.Severity != guideway.SeverityError {
			continue
		}
		err := guideway.Errorf(guideway.CodeInvalidDefinition, "it is no valid hook graph: %s", f.Message)
		if f.Fix != "" {
			err = err.WithFix("%s", f.Fix)
		}
		return err
	}
	return guideway.Errorf(guideway.CodeInvalidDefinition, "it is no hook graph").WithFix("write one object with id, name, workflowType, nodes and edges")
}

// libraryOf is the modules for the graphs of a source: its own, and those of the
// sources below it. A higher source has no say in the scripts of this one.
func libraryOf(snapshot *catalog.Snapshot, source string) hookdef.Library {
	if source == "" {
		source = userSource
	}
	rank := catalog.RankUser
	for _, s := range snapshot.Sources() {
		if s.Name == source {
			rank = s.Rank
		}
	}
	var modules []hookdef.Module
	for _, m := range slices.Backward(snapshot.HookModules()) {
		if m.Source.Rank <= rank {
			modules = append(modules, m.Module)
		}
	}
	return hookdef.NewLibrary(modules)
}

// userSource is the source that a person's own graphs are in.
const userSource = "user"
