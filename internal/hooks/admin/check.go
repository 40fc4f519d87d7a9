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

// CheckRequest is a graph or a module to check. The check does not save it.
type CheckRequest struct {
	// Text is the document, in JSON or YAML.
	Text string
	// Source is the name of the source that contains the document: its graphs use the
	// modules of that source and of sources with a lower rank. Empty means the user's own
	// source.
	Source string
}

// Verdict is the result of a check.
type Verdict struct {
	// Valid reports whether the document loads and, if it is a graph, its modules exist and
	// its scripts compile.
	Valid bool         `json:"valid"`
	Kind  hookdef.Kind `json:"kind,omitempty"`
	ID    string       `json:"id,omitempty"`
	// Pin is the hash of the graph's behavior.
	Pin string `json:"pin,omitempty"`
	// Graph is the document as JSON, if it loads; Module is set for a module.
	Graph  json.RawMessage `json:"graph,omitempty"`
	Module *hookdef.Module `json:"module,omitempty"`
	// Diagnostics of scripts have the pointer of the script, and line numbers within it.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`

	linked *hookdef.Linked
}

// Check checks a document: its structure and, if it is a graph, probable mistakes, the
// modules that it names, and the syntax of its scripts.
func (d *Service) Check(ctx context.Context, r CheckRequest) (*Verdict, error) {
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
	m, err := d.currentState()
	if err != nil {
		return nil, err
	}
	v.Graph = json.RawMessage(document.Graph.Canonical)
	linked, found := hookdef.Link(document.Graph, libraryOf(m.Snapshot, r.Source))
	v.Diagnostics = append(v.Diagnostics, found...)
	if linked == nil {
		return v, nil
	}
	v.linked, v.Pin = linked, linked.Pin
	found, err = runner.Check(ctx, d.opts.Scripts, linked)
	if err != nil {
		return nil, err
	}
	v.Diagnostics = append(v.Diagnostics, placeDiagnostics(linked, found)...)
	v.Valid = !slices.ContainsFunc(v.Diagnostics, func(f guideway.Diagnostic) bool { return f.Severity == guideway.SeverityError })
	return v, nil
}

// placeDiagnostics sets the pointer of each diagnostic of a script: it points to the script
// or the module ID in the document.
func placeDiagnostics(l *hookdef.Linked, found []guideway.Diagnostic) []guideway.Diagnostic {
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

func checkScript(ctx context.Context, checker runner.Checker, id, text string) ([]guideway.Diagnostic, error) {
	graph := &hookdef.Graph{ID: id, Nodes: []hookdef.Node{{ID: id, Kind: hookdef.HookNode, Hook: &hookdef.Hook{Script: text, Blocking: true}}}}
	linked, found := hookdef.Link(graph, hookdef.Library{})
	if linked == nil {
		return found, nil
	}
	return runner.Check(ctx, checker, linked)
}

// firstError returns the first error of an invalid document.
func (v *Verdict) firstError() error {
	for _, f := range v.Diagnostics {
		if f.Severity != guideway.SeverityError {
			continue
		}
		err := guideway.Errorf(guideway.CodeInvalidDefinition, "the document is not valid: %s", f.Message)
		if f.Fix != "" {
			err = err.WithFix("%s", f.Fix)
		}
		return err
	}
	return guideway.Errorf(guideway.CodeInvalidDefinition, "the document is not a hook graph").WithFix("write one object with id, name, workflowType, nodes and edges")
}

// libraryOf returns the modules for the graphs of a source: the modules of the source
// itself, and of sources with a lower rank. A source with a higher rank cannot affect the
// scripts of these graphs.
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

// userSource is the source of the user's own graphs.
const userSource = "user"
