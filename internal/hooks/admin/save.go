package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/writer"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// SaveRequest is a new version of a graph or a module.
type SaveRequest struct {
	ID string
	// Source is the name of the source to save the graph in.
	Source string
	// Base is the version of the file that the change started from; empty for a new file.
	Base string
	// Graph is the document as JSON, which Render writes. If Graph is empty, Text is
	// written, which is the complete file.
	Graph json.RawMessage
	Text  string
	// Who is the person who saves the graph, and Note the reason; the list of versions
	// shows both.
	Who, Note string
}

// Save writes a graph to a directory of the user or the project, and returns the detail of
// the graph that now has this ID. It refuses a graph that breaks a rule, and a change that
// started from another version of the file. If an active graph belongs to the user, its new
// version becomes active immediately.
func (d *Service) Save(ctx context.Context, r SaveRequest) (*Detail, error) {
	if err := d.changeFile(ctx, func() error { return d.saveDocument(ctx, r) }); err != nil {
		return nil, err
	}
	return d.Get(ctx, r.ID)
}

func (d *Service) saveDocument(ctx context.Context, r SaveRequest) error {
	m, err := d.currentState()
	if err != nil {
		return err
	}
	info, err := findSource(m.Snapshot, r.Source)
	if err != nil {
		return err
	}
	name, err := nameOf(m.Snapshot, info, r.ID)
	if err != nil {
		return err
	}
	was, _ := writer.Read(info, name) // the save below reads the file again and reports an error
	text, err := r.newText(was)
	if err != nil {
		return err
	}
	verdict, err := d.Check(ctx, CheckRequest{Text: text, Source: info.Name})
	if err != nil {
		return err
	}
	if err := checkSavable(r.ID, verdict); err != nil {
		return err
	}
	if filepath.Ext(name) == "" {
		name += "." + writer.Format(text)
	}
	at := versionSet{source: info.Key(), id: r.ID}
	if err := d.versions.addFound(at, was); err != nil {
		return err
	}
	if err := writer.Save(info, writer.Change{Name: name, Text: text, Base: r.Base}); err != nil {
		return err
	}
	return d.versions.addVersion(at, text, r.Who, r.Note)
}

// newText returns the text to write; was is the previous text of the file.
func (r *SaveRequest) newText(was []byte) (string, error) {
	if len(r.Graph) == 0 {
		return r.Text, nil
	}
	root, _ := doc.Parse("", was, doc.Limits{}) // a file with errors is replaced completely
	if n := findLongNumber(root); n != nil {
		return "", guideway.Errorf(guideway.CodeInvalid, "the file cannot be saved from a browser: a browser would round the number %s on line %d", n.Text, n.Line).
			WithFix("edit the file, or write the number as a string in quotes")
	}
	text, err := Render(was, r.Graph)
	return string(text), err
}

// findLongNumber returns the first number whose absolute value is larger than 2^53-1, or
// nil. A script and a browser would round it.
func findLongNumber(n *doc.Node) *doc.Node {
	if n == nil {
		return nil
	}
	if n.Kind == doc.Number && math.Abs(n.Num) > 1<<53-1 {
		return n
	}
	for _, item := range n.Items {
		if found := findLongNumber(item); found != nil {
			return found
		}
	}
	for _, member := range n.Members {
		if found := findLongNumber(member.Value); found != nil {
			return found
		}
	}
	return nil
}

// checkSavable refuses a document that is not a valid graph or has a different ID.
func checkSavable(id string, v *Verdict) error {
	switch {
	case !v.Valid:
		return v.firstError()
	case v.Kind != hookdef.KindGraph:
		return guideway.Errorf(guideway.CodeInvalid, "the document is a %s, not a hook graph", v.Kind).
			WithFix("write one object with id, name, workflowType, nodes and edges")
	case v.ID != id:
		return guideway.Errorf(guideway.CodeInvalid, "the graph has the id %q, but is saved as %q", v.ID, id).WithFix("save the graph under its own id")
	}
	return nil
}

// Remove deletes the file of a graph. The saved versions are kept. Remove refuses to delete
// an enabled graph, because the requests that the graph applies to would then be refused.
func (d *Service) Remove(ctx context.Context, id, source, base string) error {
	return d.changeFile(ctx, func() error { return d.removeFile(id, source, base) })
}

// changeFile changes a file of the catalog, and loads the catalog again.
func (d *Service) changeFile(ctx context.Context, change func() error) error {
	d.writing.Lock()
	err := change()
	d.writing.Unlock()
	if err != nil {
		return err
	}
	if err := d.opts.Catalog.Load(context.WithoutCancel(ctx)); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the file is changed, but the change is not active yet, because the catalog could not be loaded again: %w", err).WithFix("restart the server")
	}
	return nil
}

func (d *Service) removeFile(id, source, base string) error {
	m, err := d.currentState()
	if err != nil {
		return err
	}
	info, err := findSource(m.Snapshot, source)
	if err != nil {
		return err
	}
	served, err := m.Snapshot.Hook(id)
	if err != nil {
		return err
	}
	if c := Candidate(served); c.Source == info.Key() && m.Records.Find(c.Key()) != nil {
		return guideway.Errorf(guideway.CodeConflict, "the hook graph %s is enabled; without its file, matching requests would be refused", id).
			WithFix("disable the graph first: guideway hooks disable %s", id)
	}
	name, err := nameOf(m.Snapshot, info, id)
	if err != nil {
		return err
	}
	was, err := writer.Read(info, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return guideway.Errorf(guideway.CodeUnavailable, "read %s: %w", name, err).WithFix("check that the file is readable")
	}
	if err != nil {
		return guideway.Errorf(guideway.CodeNotFound, "the source %s has no file for the hook graph %s", info.Name, id).WithFix("guideway hooks list")
	}
	if err := d.versions.addFound(versionSet{source: info.Key(), id: id}, was); err != nil {
		return err
	}
	return writer.Remove(info, name, base)
}

// findSource returns a source that people can save graphs in.
func findSource(snapshot *catalog.Snapshot, source string) (catalog.SourceInfo, error) {
	var names []string
	for _, s := range snapshot.Sources() {
		if !writer.IsWritable(s.SourceInfo) {
			continue
		}
		if s.Name == source {
			return s.SourceInfo, nil
		}
		names = append(names, s.Name)
	}
	bad := guideway.Errorf(guideway.CodeInvalid, "hook graphs and modules cannot be saved or deleted in the source %q", source)
	if len(names) == 0 {
		return catalog.SourceInfo{}, bad.WithFix("no source is writable; set workflows.user or workflows.project to true in the configuration and restart the server")
	}
	return catalog.SourceInfo{}, bad.WithFix("choose one of these sources: %s", strings.Join(names, ", "))
}

// nameOf returns the name of a graph's file in a source: the name of the existing file, or
// the name without extension for a new file.
func nameOf(snapshot *catalog.Snapshot, info catalog.SourceInfo, id string) (string, error) {
	if e, err := snapshot.Hook(id); err == nil {
		if e.Source.Name == info.Name {
			return nameIn(info, e.Path)
		}
		for _, o := range e.Overrides {
			if o.Source.Name == info.Name {
				return nameIn(info, o.Path)
			}
		}
	}
	return "hooks/" + id, nil
}

// nameIn returns the name of a file within its source.
func nameIn(info catalog.SourceInfo, path string) (string, error) {
	name, err := filepath.Rel(info.Location, path)
	if err != nil || !filepath.IsLocal(name) {
		return "", guideway.Errorf(guideway.CodeInternal, "the file %s is not in the source directory %s", path, info.Location)
	}
	return name, nil
}

// ModuleText is a module with its script.
type ModuleText struct {
	Module
	Script string `json:"script"`
	// Base is the version of the module's file, if that is a writable .js file.
	Base string `json:"base,omitempty"`
}

// GetModule returns the module with an ID from the source with the highest rank.
func (d *Service) GetModule(_ context.Context, id string) (*ModuleText, error) {
	m, err := d.currentState()
	if err != nil {
		return nil, err
	}
	for _, module := range slices.Backward(m.Snapshot.HookModules()) {
		if module.ID != id {
			continue
		}
		out := &ModuleText{Module: m.newModule(&module), Script: module.Script}
		if !out.Writable || filepath.Ext(module.Path) != ".js" {
			out.Writable = false // a module in JSON contains more than its script
			return out, nil
		}
		name, err := nameIn(module.Source, module.Path)
		if err != nil {
			return nil, err
		}
		text, err := writer.Read(module.Source, name)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "read %s: %w", module.Path, err).WithFix("check that the file exists and is readable")
		}
		out.Script, out.Base = string(text), writer.Version(text)
		return out, nil
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no hook module with the id %.128q", id).WithFix("guideway hooks list --modules")
}

// SaveModule writes a module's script to a directory of the user or the project. Active
// graphs of the user that use the module use the new script immediately.
func (d *Service) SaveModule(ctx context.Context, r SaveRequest) (*ModuleText, error) {
	text, err := json.Marshal(hookdef.Module{ID: r.ID, Name: r.ID, Script: r.Text})
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "write the module %s: %w", r.ID, err)
	}
	if module, found := workflow.ParseAs("", text, workflow.As{Dialect: guideway.DialectHooks, Kind: phases.Kind(hookdef.KindModule)}); module == nil {
		return nil, (&Verdict{Diagnostics: found}).firstError()
	}
	found, err := checkScript(ctx, d.opts.Scripts, r.ID, r.Text)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, (&Verdict{Diagnostics: found}).firstError()
	}
	info, err := findSource(d.opts.Catalog.Snapshot(), r.Source)
	if err != nil {
		return nil, err
	}
	err = d.changeFile(ctx, func() error {
		return writer.Save(info, writer.Change{Name: "hooks/modules/" + r.ID + ".js", Text: r.Text, Base: r.Base})
	})
	if err != nil {
		return nil, err
	}
	return d.GetModule(ctx, r.ID)
}
