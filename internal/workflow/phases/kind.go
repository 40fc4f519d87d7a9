package phases

import (
	"embed"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Kind is the kind of a document of the dialect.
type Kind = shape.Kind

// The kinds.
const (
	KindWorkflow  Kind = "workflow"
	KindCondition Kind = "condition"
	KindState     Kind = "state"
	KindSkill     Kind = "skill"
	KindActivity  Kind = "activity"
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{KindWorkflow, KindCondition, KindState, KindSkill, KindActivity}
}

// Guess returns the kind of a document by the members that only this kind has, or "".
func Guess(root *doc.Node) Kind {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return root.Get(key) != nil })
	}
	switch {
	case has("phases", "initialPhase"):
		return KindWorkflow
	case has("recognition", "problem", "context_to_preserve"):
		return KindActivity
	case has("capability", "execution_pattern", "architecture", "matching", "interpretation"):
		return KindSkill
	case has("currentPhase", "completedPhases", "checkpointResponses", "decisionOutcomes"):
		return KindState
	}
	if kind := root.Get("type"); kind != nil && !has("id") {
		switch kind.Text {
		case "simple", "and", "or", "not":
			return KindCondition
		}
	}
	return ""
}

// KindAt returns the kind of a document by its path: a skill or an activity in the
// directory layout (see Entry), for any root; "" otherwise.
func KindAt(file string) Kind {
	const deep = 3
	parts := strings.Split(filepath.ToSlash(file), "/")
	entry, ok := Locate(strings.Join(parts[max(0, len(parts)-deep):], "/"))
	switch {
	case ok && entry.Kind == EntrySkill:
		return KindSkill
	case ok && entry.Kind == EntryActivity:
		return KindActivity
	default:
		return ""
	}
}

//go:embed schema/*.schema.json
var schemas embed.FS

// Schema returns the published JSON Schema (draft-07) of a kind, or nil for an unknown
// kind. It accepts every document that the parser of the kind accepts; the parser also
// checks rules that a schema cannot express.
func Schema(kind Kind) []byte {
	text, err := schemas.ReadFile("schema/" + string(kind) + ".schema.json")
	if err != nil {
		return nil
	}
	return text
}

// EntryKind is the kind of a file of the layout.
type EntryKind string

// The kinds of files.
const (
	EntryWorkflow EntryKind = "workflow"
	EntryRules    EntryKind = "rules"
	EntryActivity EntryKind = "activity"
	EntrySkill    EntryKind = "skill"
	EntryGuide    EntryKind = "guide"
	EntryTemplate EntryKind = "template"
)

// Meta is the directory of shared files: activities, universal skills and rules. Like any
// directory of the layout, it can also contain a workflow, guides and templates.
const Meta = "meta"

// Entry is a file of the layout:
//
//	{id}.json                          a workflow
//	{id}/{id}.json                     a workflow
//	{id}/skills/01-{name}.json         a skill; in meta, a skill for all workflows
//	{id}/guides/01-{name}.md           a guide
//	{id}/templates/01-{name}.md        a template
//	meta/activities/01-{name}.json     an activity
//	meta/rules.json                    the rules
//
// A .json file may be .yaml or .yml instead; a guide may be any of these as well.
type Entry struct {
	Kind EntryKind
	// Workflow is the id of the workflow, derived from the path.
	Workflow string
	// Index is the number before the name, or -1.
	Index int
	// Name is the name of the file without number and extension.
	Name string
}

// Locate classifies a file by its slash-separated path below the layout's root; ok is false
// for other files.
func Locate(file string) (entry Entry, ok bool) {
	parts := strings.Split(file, "/")
	base := parts[len(parts)-1]
	ext := strings.ToLower(path.Ext(base))
	name := base[:len(base)-len(ext)]
	data := slices.Contains([]string{".json", ".yaml", ".yml"}, ext)
	if name == "" || slices.ContainsFunc(parts, func(part string) bool { return part == "" || part[0] == '.' }) {
		return Entry{}, false
	}
	switch {
	case len(parts) == 1:
		return Entry{EntryWorkflow, name, -1, name}, data
	case len(parts) == 2 && parts[0] == Meta && name == "rules":
		return Entry{EntryRules, Meta, -1, name}, data
	case len(parts) == 2:
		return Entry{EntryWorkflow, name, -1, name}, data && parts[0] == name
	case len(parts) != 3:
		return Entry{}, false
	}
	entry = Entry{Workflow: parts[0]}
	if entry.Index, entry.Name, ok = cutIndex(name); !ok {
		return Entry{}, false
	}
	switch parts[1] {
	case "activities":
		entry.Kind, ok = EntryActivity, data && parts[0] == Meta
	case "skills":
		entry.Kind, ok = EntrySkill, data
	case "guides":
		entry.Kind, ok = EntryGuide, data || ext == ".md"
	case "templates":
		entry.Kind, ok = EntryTemplate, ext == ".md"
	default:
		ok = false
	}
	return entry, ok
}

// cutIndex splits the number from a name such as 01-start-here.
func cutIndex(name string) (index int, rest string, ok bool) {
	digits, rest, ok := strings.Cut(name, "-")
	index, numbered := Index(digits)
	return index, rest, ok && numbered && rest != ""
}

// Index parses a number of at most six digits: 1, 01 and 001 are equal.
func Index(text string) (int, bool) {
	const most = 6
	if !isDigits(text) || len(text) > most {
		return 0, false
	}
	index, err := strconv.Atoi(text)
	return index, err == nil
}

// Title converts a name to a title: start-here becomes Start Here.
func (e Entry) Title() string {
	words := strings.FieldsFunc(e.Name, func(r rune) bool { return r == '-' || r == '_' })
	for i, word := range words {
		first, size := utf8.DecodeRuneInString(word)
		words[i] = string(unicode.ToUpper(first)) + word[size:]
	}
	return strings.Join(words, " ")
}

// Layout lists the files that belong to a workflow.
type Layout struct {
	// Guides are the file names of the guides, such as 01-review.md; nil means unknown.
	Guides []string
}

// Guide returns the file of a guide by a reference: its name with or without the directory,
// the number and the extension, or the number only.
func (l Layout) Guide(reference string) (file string, ok bool) {
	reference = strings.TrimPrefix(strings.TrimPrefix(reference, "./"), "guides/")
	wanted, numbered := Index(reference)
	for _, file := range l.Guides {
		name := strings.TrimSuffix(file, path.Ext(file))
		index, rest, indexed := cutIndex(name)
		if reference == file || reference == name || indexed &&
			(numbered && index == wanted || reference == rest || reference == rest+path.Ext(file)) {
			return file, true
		}
	}
	return "", false
}

// isExternalGuide reports whether a guide is a URL, or a file outside the layout's guides.
func isExternalGuide(reference string) bool {
	return strings.Contains(reference, "://") || strings.Contains(strings.TrimPrefix(strings.TrimPrefix(reference, "./"), "guides/"), "/")
}
