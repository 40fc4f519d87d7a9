// Package library contains the documents that supplement phase workflows: activities that
// lead from a goal to a workflow, skills, guides, templates and rules. It parses them and
// finds them; it reads no files.
package library

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Item is a document of a library that loads. It is immutable.
type Item struct {
	Place
	// ID is the id of an activity, a skill or rules. For a guide or a template it is the
	// name of the file without its extension.
	ID string
	// Title is the title for people.
	Title string
	// File is the path of the document for people.
	File string
	// Canonical is an activity, a skill or rules as RFC 8785 JSON.
	Canonical string
	// Text is the text of a guide or a template.
	Text string
	// Skill is set for a skill, Activity for an activity.
	Skill    *phases.Skill
	Activity *phases.Activity
}

// The codes of diagnostics of one document.
const (
	CodeEncoding = "text-encoding"
	CodeRules    = "rules-object"
	CodeFileID   = "file-id-differs"
	CodeLost     = "text-lost"
)

// Parse parses a document. The item is nil if a diagnostic prevents it from being served.
func Parse(place Place, file string, data []byte) (*Item, []guideway.Diagnostic) {
	item := &Item{Place: place, File: file, ID: place.ID(), Title: place.Title()}
	switch place.Kind {
	case KindActivity, KindSkill:
		return parseDocument(item, data)
	case KindRules:
		return parseRules(item, data)
	default:
		return parseText(item, data)
	}
}

// parseDocument parses an activity or a skill.
func parseDocument(item *Item, data []byte) (*Item, []guideway.Diagnostic) {
	kind := phases.KindActivity
	if item.Kind == KindSkill {
		kind = phases.KindSkill
	}
	document, found := workflow.CheckAs(item.File, data, workflow.As{Dialect: guideway.DialectPhases, Kind: kind})
	if document == nil {
		return nil, found
	}
	item.ID, item.Canonical, item.Skill, item.Activity = document.ID, document.Canonical, document.Skill, document.Activity
	warn := func(code, fix, format string, args ...any) {
		found = append(found, guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: code, File: item.File, Message: fmt.Sprintf(format, args...), Fix: fix,
		})
	}
	if item.ID != item.Name {
		warn(CodeFileID, fmt.Sprintf("name the file %s-%s, or change the id", item.Digits, item.ID),
			"the %s has the id %q but its file is named %q; tools use the id", item.Kind, item.ID, item.Path)
	}
	for _, mark := range []string{"|", ">"} {
		if strings.Contains(item.Canonical, `:"`+mark+`"`) {
			warn(CodeLost, "rewrite the text, or copy it from the original, unconverted file",
				"a field of the %s has only the text %q: a conversion from YAML may have lost its multi-line text", item.Kind, mark)
		}
	}
	return item, found
}

// parseRules parses the rules for all workflows, which may be any object.
func parseRules(item *Item, data []byte) (*Item, []guideway.Diagnostic) {
	root, found := doc.Parse(item.File, data, doc.Limits{})
	if root == nil {
		return nil, found
	}
	if root.Kind != doc.Object {
		return nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeRules, File: item.File, Line: root.Line, Column: root.Column,
			Message: "The rules must be an object, but they are " + shape.Describe(root) + ".", Fix: "write the rules as one object",
		}}
	}
	item.Canonical = string(doc.Canonical(root))
	return item, nil
}

// parseText checks that a text is UTF-8, and removes its byte order mark.
func parseText(item *Item, data []byte) (*Item, []guideway.Diagnostic) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeEncoding, File: item.File,
			Message: fmt.Sprintf("the %s is not UTF-8 text, or contains a NUL character", item.Kind), Fix: "save the file as UTF-8 without NUL characters",
		}}
	}
	item.Text = string(data)
	return item, nil
}

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

// Headings returns the headings of a Markdown text in order, without their marks.
func Headings(text string) []string {
	var list []string
	for _, h := range findHeadings(text) {
		list = append(list, h.title)
	}
	return list
}

// Section returns a section of a Markdown text: its heading and the text up to the next
// heading of the same or a higher level. The heading is found regardless of case and
// punctuation. If no heading equals name, Section uses a heading that contains its words,
// if there is only one.
func Section(text, name string) (string, bool) {
	wanted := plainWords(name)
	if wanted == "" {
		return "", false
	}
	all := findHeadings(text)
	found, partial := -1, []int{}
	for i, h := range all {
		have := plainWords(h.title)
		if have == wanted {
			found = i
			break
		}
		if strings.Contains(" "+have+" ", " "+wanted+" ") {
			partial = append(partial, i)
		}
	}
	if found < 0 && len(partial) == 1 {
		found = partial[0]
	}
	if found < 0 {
		return "", false
	}
	end := len(text)
	for _, h := range all[found+1:] {
		if h.level <= all[found].level {
			end = h.at
			break
		}
	}
	return strings.TrimRight(text[all[found].at:end], "\n") + "\n", true
}

// heading is a line such as "## Plan".
type heading struct {
	at, level int
	title     string
}

// findHeadings returns the Markdown headings that start with number signs, except those in
// code.
func findHeadings(text string) []heading {
	var list []heading
	fence := ""
	at := 0
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		mark := fenceOf(bare)
		switch {
		case fence != "":
			if strings.HasPrefix(mark, fence) && strings.Trim(bare, fence[:1]) == "" {
				fence = ""
			}
		case mark != "":
			fence = mark
		case strings.HasPrefix(line, "#"):
			title := strings.TrimLeft(bare, "#")
			level := len(bare) - len(title)
			const deepest = 6
			if level <= deepest && (title == "" || title[0] == ' ' || title[0] == '\t') {
				list = append(list, heading{at, level, strings.TrimSpace(strings.TrimRight(title, "# "))})
			}
		}
		at += len(line)
	}
	return list
}

// fenceOf returns the mark that starts or ends a block of code, or "".
func fenceOf(line string) string {
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		const shortest = 3
		if n := len(line) - len(rest); n >= shortest && !strings.Contains(rest, mark) {
			return line[:n]
		}
	}
	return ""
}

// plainWords returns a text in lower case with one space between its words.
func plainWords(text string) string { return strings.Join(splitWords(text), " ") }

// splitWords splits a text into words of letters and digits in lower case. Apostrophes are
// removed.
func splitWords(text string) []string {
	text = strings.NewReplacer("'", "", "\u2019", "").Replace(strings.ToLower(text))
	return strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	})
}
