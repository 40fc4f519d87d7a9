package httpapi

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/writer"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// sourceStatus describes a source of definitions.
type sourceStatus struct {
	catalog.SourceStatus
	// Writable reports whether a person can save definitions in the source.
	Writable bool `json:"writable"`
}

// catalogState returns the diagnostics of the catalog, and the sources by increasing
// precedence.
func (a *api) catalogState(*call) (any, error) {
	sources := []sourceStatus{}
	for _, s := range a.Catalog.Sources() {
		sources = append(sources, sourceStatus{s, writer.IsWritable(s.SourceInfo)})
	}
	return object{"sources": sources, "diagnostics": replaceNil(a.Catalog.Diagnostics())}, nil
}

// workflowText is the text of a definition's file.
type workflowText struct {
	Workflow workflowSummary `json:"workflow"`
	Text     string          `json:"text"`
	// Format is the format of the text.
	Format string `json:"format"`
	// Base identifies this version of the text; a save must name it.
	Base string `json:"base"`
	// Writable reports whether a person can save the text in the same source.
	Writable bool `json:"writable"`
	// Diagnostics are the diagnostics of the text.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

func (a *api) workflowSource(c *call) (any, error) {
	id := c.PathValue("id")
	entry, err := a.Catalog.Get(id)
	if err != nil {
		return nil, err
	}
	data := entry.Text()
	if data == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "cannot read the text of the definition %q", clipText(id)).
			WithFix("check that %s exists and is readable", entry.Path)
	}
	return workflowText{
		Workflow: summarizeEntry(entry.Entry), Text: string(data), Format: writer.Format(string(data)), Base: writer.Version(data),
		Writable: writer.IsWritable(entry.Source), Diagnostics: replaceNil(entry.Lint()),
	}, nil
}

// saveBody is a new text of a definition.
type saveBody struct {
	// Source is the source to save the definition in.
	Source string `json:"source"`
	Text   string `json:"text"`
	// Base is the version of the text that the change started from. It is empty if the
	// source does not have the definition yet.
	Base string `json:"base"`
}

// saveWorkflow writes a definition to a directory of the user or the project. It requires a
// person, because otherwise an agent could remove the gates of its own workflow.
func (a *api) saveWorkflow(c *call) (any, error) {
	if c.authGrant().Proof != auth.ProofBrowser {
		return nil, guideway.Errorf(guideway.CodeForbidden, "this credential cannot save definitions").
			WithFix("use a browser that is logged in (guideway open), or edit the file of the definition")
	}
	var body saveBody
	if err := c.decodeBody(&body); err != nil {
		return nil, err
	}
	id := c.PathValue("id")
	if err := checkSavable(id, body.Text); err != nil {
		return nil, err
	}
	info, name, err := a.findFile(id, body)
	if err != nil {
		return nil, err
	}
	a.writing.Lock()
	err = writer.Save(info, writer.Change{Name: name, Text: body.Text, Base: body.Base})
	a.writing.Unlock()
	if err != nil {
		return nil, err
	}
	if err := a.Catalog.Load(context.WithoutCancel(c.Context())); err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the file is saved, but is not served yet, because the catalog could not be loaded again: %w", err).WithFix("restart the server")
	}
	return a.workflowSource(c)
}

// fileName matches the ids that can name a file.
var fileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`) })

// checkSavable refuses a text that does not load or that has a different id, and an id that
// cannot name a file.
func checkSavable(id, text string) error {
	loads, found := workflow.Parse("", []byte(text))
	if loads == nil {
		return loadError(found)
	}
	if loads.ID != id {
		return guideway.Errorf(guideway.CodeInvalid, "the definition has the id %q and cannot be saved as %q", clipText(loads.ID), clipText(id)).
			WithFix("save the definition under its own id")
	}
	if !fileName().MatchString(id) {
		return guideway.Errorf(guideway.CodeInvalid, "the id %q cannot name a file", clipText(id)).
			WithFix("use at most 128 letters, digits, dots, hyphens and underscores, and start with a letter or a digit")
	}
	return nil
}

// loadError returns the error for a text that does not load, with its first error.
func loadError(found []guideway.Diagnostic) error {
	i := slices.IndexFunc(found, func(d guideway.Diagnostic) bool { return d.Severity == guideway.SeverityError })
	if i < 0 {
		return guideway.Errorf(guideway.CodeInvalidDefinition, "the definition does not load: the document is not a workflow").
			WithFix("write a workflow with steps or phases; guideway schema prints the schema of each dialect")
	}
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "the definition does not load: %s", found[i].Message)
	if found[i].Fix != "" {
		err = err.WithFix("%s", found[i].Fix)
	}
	return err
}

// findFile returns the source and the file name for a definition.
func (a *api) findFile(id string, body saveBody) (catalog.SourceInfo, string, error) {
	var info *catalog.SourceInfo
	var names []string
	for _, s := range a.Catalog.Sources() {
		if writer.IsWritable(s.SourceInfo) {
			names = append(names, s.Name)
			if s.Name == body.Source {
				info = &s.SourceInfo
			}
		}
	}
	if info == nil {
		err := guideway.Errorf(guideway.CodeInvalid, "definitions cannot be saved in the source %q", clipText(body.Source))
		if len(names) == 0 {
			return catalog.SourceInfo{}, "", err.WithFix("no source is writable; set workflows.user or workflows.project to true in the configuration and restart the server")
		}
		return catalog.SourceInfo{}, "", err.WithFix("choose one of these sources: %s", strings.Join(names, ", "))
	}
	name := id + "." + writer.Format(body.Text)
	if entry, err := a.Catalog.Get(id); err == nil {
		path := ""
		if entry.Source.Name == info.Name {
			path = entry.Path
		}
		for _, o := range entry.Overrides {
			if path == "" && o.Source.Name == info.Name {
				path = o.Path
			}
		}
		if rel, err := filepath.Rel(info.Location, path); path != "" && err == nil {
			name = rel
		}
	}
	return *info, name, nil
}
