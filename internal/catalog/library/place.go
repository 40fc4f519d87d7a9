// Package library holds what stands beside the phase workflows: activities that
// lead from a goal to a workflow, skills, guides, templates and rules. It knows
// where they lie in a source and how to find them; it reads no files.
package library

import (
	"path"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// The kinds of documents, as the layout has them.
const (
	KindActivity = phases.EntryActivity
	KindSkill    = phases.EntrySkill
	KindGuide    = phases.EntryGuide
	KindTemplate = phases.EntryTemplate
	KindRules    = phases.EntryRules
)

// Meta is the folder of what is for all workflows.
const Meta = phases.Meta

// Place is where a document of the library lies in a source; see phases.Locate.
// The zero Place is that of a workflow, or of nothing.
type Place struct {
	// Entry has the kind, the folder (as Workflow), the index and the name.
	phases.Entry
	// Digits is the index as the name of the file has it: "02".
	Digits string
	// Format is json, yaml, markdown, toon or text.
	Format string
	// Path is the whole name of the document in its source.
	Path string
}

// PlaceOf gives the place of a document by its name in a source, with slashes.
// Its kind is "" if it is none of the library's. Guides and templates can be of
// any format of text.
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

// IsText says whether the document is served as it is, whatever is in it.
func (p Place) IsText() bool { return isText(p.Kind) }

func isText(kind phases.EntryKind) bool { return kind == KindGuide || kind == KindTemplate }

// ID is the id that a document has by its place.
func (p Place) ID() string {
	if p.IsText() {
		return p.Digits + "-" + p.Name
	}
	return p.Name
}

// Misnamed says whether a text lies among the guides or templates of a workflow
// and has no place there, because its name does not begin with an index. A
// README is nobody's guide.
func Misnamed(name string) bool {
	dir, base := path.Split(name)
	stem, format := splitFormat(base)
	if format == "" || format == "json" || format == "yaml" || strings.EqualFold(stem, "readme") || PlaceOf(name).Kind != "" {
		return false
	}
	entry, ok := phases.Locate(dir + "00-" + stem + ".md")
	return ok && isText(entry.Kind)
}

// IsToon says whether a document is in the notation TOON, which is read nowhere
// but where texts are served as they are.
func IsToon(name string) bool {
	_, format := splitFormat(name)
	return format == "toon" && !PlaceOf(name).IsText()
}

// splitFormat takes the extension off a name; the format of one that is not
// known is "".
func splitFormat(name string) (stem, format string) {
	ext := path.Ext(name)
	format = map[string]string{
		".json": "json", ".yaml": "yaml", ".yml": "yaml", ".md": "markdown", ".markdown": "markdown", ".txt": "text", ".toon": "toon",
	}[strings.ToLower(ext)]
	return strings.TrimSuffix(name, ext), format
}
