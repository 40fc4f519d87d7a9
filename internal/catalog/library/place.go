// Package library contains the documents that supplement phase workflows: activities that
// lead from a goal to a workflow, skills, guides, templates and rules. It parses them and
// finds them; it reads no files.
package library

import (
	"path"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// The kinds of documents, as in the layout.
const (
	KindActivity = phases.EntryActivity
	KindSkill    = phases.EntrySkill
	KindGuide    = phases.EntryGuide
	KindTemplate = phases.EntryTemplate
	KindRules    = phases.EntryRules
)

// Meta is the folder of documents for all workflows.
const Meta = phases.Meta

// Place is the position of a document of the library in a source; see phases.Locate. The
// zero Place means that the file is a workflow or not a document of the library.
type Place struct {
	// Entry has the kind, the folder (as Workflow), the index and the name.
	phases.Entry
	// Digits is the index in the name of the file: "02".
	Digits string
	// Format is json, yaml, markdown, toon or text.
	Format string
	// Path is the path of the document in its source.
	Path string
}

// PlaceOf returns the place of a document by its path in a source, with slashes. Its kind
// is "" if it is not a document of the library. Guides and templates can have each of the
// formats.
func PlaceOf(name string) Place {
	stem, format := splitFormat(name)
	if format == "" {
		return Place{}
	}
	entry, ok := phases.Locate(name)
	if !ok {
		if entry, ok = phases.Locate(stem + ".md"); !ok || !isText(entry.Kind) {
			return Place{}
		}
	}
	if entry.Kind == phases.EntryWorkflow {
		return Place{}
	}
	digits, _, _ := strings.Cut(path.Base(name), "-")
	if entry.Kind == KindRules {
		digits = ""
	}
	return Place{Entry: entry, Digits: digits, Format: format, Path: name}
}

// IsText reports whether the document is served unchanged.
func (p Place) IsText() bool { return isText(p.Kind) }

func isText(kind phases.EntryKind) bool { return kind == KindGuide || kind == KindTemplate }

// ID returns the id that the path of a document implies.
func (p Place) ID() string {
	if p.IsText() {
		return p.Digits + "-" + p.Name
	}
	return p.Name
}

// Misnamed reports whether a text is among the guides or templates of a workflow but is
// ignored, because its name does not start with an index. A README is not a guide.
func Misnamed(name string) bool {
	dir, base := path.Split(name)
	stem, format := splitFormat(base)
	if format == "" || format == "json" || format == "yaml" || strings.EqualFold(stem, "readme") || PlaceOf(name).Kind != "" {
		return false
	}
	entry, ok := phases.Locate(dir + "00-" + stem + ".md")
	return ok && isText(entry.Kind)
}

// IsToon reports whether a document is in the TOON notation and cannot be read. TOON is
// supported only for texts that are served unchanged.
func IsToon(name string) bool {
	_, format := splitFormat(name)
	return format == "toon" && !PlaceOf(name).IsText()
}

// splitFormat splits the extension off a name. The format of an unknown extension is "".
func splitFormat(name string) (stem, format string) {
	ext := path.Ext(name)
	format = map[string]string{
		".json": "json", ".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".markdown": "markdown", ".txt": "text", ".toon": "toon",
	}[strings.ToLower(ext)]
	return strings.TrimSuffix(name, ext), format
}
