package admin

import (
	"context"
	"encoding/json"
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

// SaveRequest is a new version of a graph.
type SaveRequest struct {
	ID string
	// Source is the name of the source that it is saved in.
	Source string
	// Base is the version of that source's file that the change began from; empty
	// where it has none.
	Base string
	// Graph is the document as JSON, which is written so that the file differs in
	// nothing but what has changed; or Text is the file's text itself.
	Graph json.RawMessage
	Text  string
	// Who saves it, and Note why, for the list of versions.
	Who, Note string
}

// Save writes a graph into a directory of the user or the project, and gives what
// is served for the id then. What breaks a rule is refused, and so is a change
// that began from another version than the one that is there, and one by which two
// active graphs would stand around one request. An active graph of the user's own
// goes on as the new version at once.
func (d *Desk) Save(ctx context.Context, r SaveRequest) (*Detail, error) {
	d.writing.Lock()
	err := d.save(ctx, r)
	d.writing.Unlock()
	if err != nil {
		return nil, err
	}
	if err := d.opts.Catalog.Load(context.WithoutCancel(ctx)); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "read the catalog again: %w", err)
	}
	return d.Get(ctx, r.ID)
}

func (d *Desk) save(ctx context.Context, r SaveRequest) error {
	m, err := d.moment()
	if err != nil {
		return err
	}
	info, err := place(m.snapshot, r.Source)
	if err != nil {
		return err
	}
	name, err := nameOf(m.snapshot, info, r.ID)
	if err != nil {
		return err
	}
	was, _ := writer.Read(info, name) // none is as good: the save below looks again
	text, err := r.text(was)
	if err != nil {
		return err
	}
	verdict, err := d.Check(ctx, CheckRequest{Text: text, Source: info.Name})
	if err != nil {
		return err
	}
	if err := savable(m, info, r.ID, verdict); err != nil {
		return err
	}
	if filepath.Ext(name) == "" {
		name += "." + writer.Format(text)
	}
	at := shelf{source: info.Key(), id: r.ID}
	if err := d.versions.keepFound(at, was); err != nil {
		return err
	}
	if err := writer.Save(info, writer.Change{Name: name, Text: text, Base: r.Base}); err != nil {
		return err
	}
	return d.versions.keep(at, text, r.Who, r.Note)
}

// text is the text to write, where there was another one.
func (r *SaveRequest) text(was []byte) (string, error) {
	if len(r.Graph) == 0 {
		return r.Text, nil
	}
	root, _ := doc.Parse("", was, doc.Limits{}) // a file that does not parse is replaced as a whole
	if n := findLongNumber(root); n != nil {
		return "", guideway.Errorf(guideway.CodeInvalid, "the file cannot be saved from a browser: it has the number %s in line %d, which a browser would round", n.Text, n.Line).
			WithFix("change the graph in its file, or write the number as a text, in quotes")
	}
	text, err := Render(was, r.Graph)
	return string(text), err
}

// findLongNumber returns the first number of more than 53 bits, or nil: a script and
// a browser read another number.
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

// savable refuses what would not load, or would load as something else, or would
// have two active graphs stand around one request.
func savable(m *moment, info catalog.SourceInfo, id string, v *Verdict) error {
	switch {
	case !v.Valid:
		return v.firstError()
	case v.Kind != hookdef.KindGraph:
		return guideway.Errorf(guideway.CodeInvalid, "it is a %s, and no hook graph", v.Kind)
	case v.ID != id:
		return guideway.Errorf(guideway.CodeInvalid, "the graph has the id %q, and is saved as %q", v.ID, id).WithFix("save it under its own id")
	}
	served, err := m.snapshot.Hook(id)
	if err != nil || served.Source.Name != info.Name {
		return nil // what is not served cannot be active
	}
	candidate := Candidate(served)
	if m.records.Find(candidate.Key()) != nil && len(v.Overlaps) > 0 {
		return guideway.Errorf(guideway.CodeConflict, "%s is active, and would stand around some of the same requests as %s", id, strings.Join(v.Overlaps, ", ")).
			WithFix("give the two bindings that do not overlap, or turn one off first")
	}
	return nil
}

// Remove deletes the file of a graph. The version stays among those that were
// saved. One that is enabled is refused: what it stands around would be, too.
func (d *Desk) Remove(ctx context.Context, id, source, base string) error {
	d.writing.Lock()
	err := d.remove(id, source, base)
	d.writing.Unlock()
	if err != nil {
		return err
	}
	if err := d.opts.Catalog.Load(context.WithoutCancel(ctx)); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "read the catalog again: %w", err)
	}
	return nil
}

func (d *Desk) remove(id, source, base string) error {
	m, err := d.moment()
	if err != nil {
		return err
	}
	info, err := place(m.snapshot, source)
	if err != nil {
		return err
	}
	served, err := m.snapshot.Hook(id)
	if err != nil {
		return err
	}
	if c := Candidate(served); c.Source == info.Key() && m.records.Find(c.Key()) != nil {
		return guideway.Errorf(guideway.CodeConflict, "%s is enabled; without it, what it stands around would be refused", id).
			WithFix("turn it off first")
	}
	name, err := nameOf(m.snapshot, info, id)
	if err != nil {
		return err
	}
	was, err := writer.Read(info, name)
	if err != nil {
		return guideway.Errorf(guideway.CodeNotFound, "%s has no file of the hook graph %s", info.Name, id)
	}
	if err := d.versions.keepFound(shelf{source: info.Key(), id: id}, was); err != nil {
		return err
	}
	return writer.Remove(info, name, base)
}

// place finds a source that a person may save in.
func place(snapshot *catalog.Snapshot, source string) (catalog.SourceInfo, error) {
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
	return catalog.SourceInfo{}, guideway.Errorf(guideway.CodeInvalid, "hook graphs cannot be saved in %q", source).
		WithFix("choose one of: %s", strings.Join(names, ", "))
}

// nameOf is the name of a graph's file in a source: that of the file which has it,
// or of a new one, without extension.
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

// nameIn is the name of a file within its source.
func nameIn(info catalog.SourceInfo, path string) (string, error) {
	name, err := filepath.Rel(info.Location, path)
	if err != nil || !filepath.IsLocal(name) {
		return "", guideway.Errorf(guideway.CodeInternal, "%s is not in %s", path, info.Location)
	}
	return name, nil
}

// ModuleText is a module with its script.
type ModuleText struct {
	Module
	Script string `json:"script"`
	// Base names this version of its file, where that can be saved.
	Base string `json:"base,omitempty"`
}

// GetModule gives the module that an id is of: that of the source with the highest
// rank.
func (d *Desk) GetModule(_ context.Context, id string) (*ModuleText, error) {
	m, err := d.moment()
	if err != nil {
		return nil, err
	}
	for _, module := range slices.Backward(m.snapshot.HookModules()) {
		if module.ID != id {
			continue
		}
		out := &ModuleText{Module: m.module(&module), Script: module.Script}
		if !out.Writable || filepath.Ext(module.Path) != ".js" {
			out.Writable = false // a module in JSON has more than its script
			return out, nil
		}
		name, err := nameIn(module.Source, module.Path)
		if err != nil {
			return nil, err
		}
		text, err := writer.Read(module.Source, name)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "read %s: %w", module.Path, err).WithFix("look whether it is there")
		}
		out.Script, out.Base = string(text), writer.Version(text)
		return out, nil
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no hook module with the id %q", id).WithFix("guideway hooks list --modules")
}

// SaveModule writes a module's script into a directory of the user or the project.
// Graphs of the user's own that are active run it at once.
func (d *Desk) SaveModule(ctx context.Context, r SaveRequest) (*ModuleText, error) {
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
	info, err := place(d.opts.Catalog.Snapshot(), r.Source)
	if err != nil {
		return nil, err
	}
	d.writing.Lock()
	err = writer.Save(info, writer.Change{Name: "hooks/modules/" + r.ID + ".js", Text: r.Text, Base: r.Base})
	d.writing.Unlock()
	if err != nil {
		return nil, err
	}
	if err := d.opts.Catalog.Load(context.WithoutCancel(ctx)); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "read the catalog again: %w", err)
	}
	return d.GetModule(ctx, r.ID)
}
