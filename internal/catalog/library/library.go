package library

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Source has the documents of one source of definitions.
type Source struct {
	// Name is the name of the source.
	Name string
	// Items are the documents that load, in the order of their paths.
	Items []*Item
	// Broken are the documents that do not load.
	Broken []Broken
	// Owners maps a folder of the source to the id of the workflow that it belongs to. A
	// folder without an entry belongs to the workflow whose id is the name of the folder.
	Owners map[string]string
}

// Broken is a document that does not load.
type Broken struct {
	Place Place
	// ID is the probable id of the document.
	ID string
	// Why is the first diagnostic.
	Why guideway.Diagnostic
}

// Entry is a document that is served.
type Entry struct {
	*Item
	// Source is the name of the source of the document.
	Source string
	// Workflow is the id of the workflow that the document belongs to. It is "" for an
	// activity, for the rules, and for a skill for all workflows.
	Workflow string
}

// key identifies a document: of all documents with the same key, only one is served. id is
// the number in the file name for guides and templates, the id for activities and skills,
// and empty for the rules.
type key struct {
	kind         phases.EntryKind
	workflow, id string
}

func keyOf(p Place, workflow, id string) key {
	if p.IsText() {
		id = strconv.Itoa(p.Index)
	}
	if p.Kind == KindActivity || p.Kind == KindRules || p.Kind == KindSkill && p.Workflow == Meta {
		workflow = ""
	}
	if p.Kind == KindRules {
		id = ""
	}
	return key{p.Kind, workflow, id}
}

// Library contains the served documents of all sources. It is immutable; callers must not
// modify the results of its methods.
type Library struct {
	byKey  map[key]*Entry
	lists  map[key][]*Entry // by kind and workflow, in order of the index
	broken map[key]Broken
	owners []string
}

// Activities returns the activities in the order of their indices.
func (l *Library) Activities() []*Entry { return l.lists[key{kind: KindActivity}] }

// Activity returns the activity with an id, or nil.
func (l *Library) Activity(id string) *Entry { return l.byKey[key{kind: KindActivity, id: id}] }

// Rules returns the rules for all workflows, or nil.
func (l *Library) Rules() *Entry { return l.byKey[key{kind: KindRules}] }

// Skills returns the skills of a workflow. For "" it returns the skills for all workflows.
func (l *Library) Skills(workflow string) []*Entry {
	return l.lists[key{kind: KindSkill, workflow: workflow}]
}

// Skill returns the skill with an id, of the workflow or else for all workflows, or nil.
func (l *Library) Skill(workflow, id string) *Entry {
	if own := l.byKey[key{KindSkill, workflow, id}]; own != nil {
		return own
	}
	return l.byKey[key{kind: KindSkill, id: id}]
}

// Texts returns the guides or the templates of a workflow in the order of their indices.
func (l *Library) Texts(kind phases.EntryKind, workflow string) []*Entry {
	return l.lists[key{kind: kind, workflow: workflow}]
}

// Text returns a guide or a template by its index with any number of leading zeros, by its
// name, or by its file as a workflow refers to it: "01-plan.md" or "guides/01-plan.md". It
// returns nil if it does not exist.
func (l *Library) Text(kind phases.EntryKind, workflow, index string) *Entry {
	if number, ok := phases.Index(index); ok {
		return l.byKey[key{kind, workflow, strconv.Itoa(number)}]
	}
	index = strings.TrimPrefix(strings.TrimPrefix(index, "./"), string(kind)+"s/")
	for _, entry := range l.Texts(kind, workflow) {
		if name := strings.TrimSuffix(index, path.Ext(entry.Path)); name == entry.Name || name == entry.ID {
			return entry
		}
	}
	return nil
}

// Numbered returns the entry whose file name has the given index, with any number of
// leading zeros. It returns nil if there is no such entry, or more than one.
func Numbered(entries []*Entry, index string) (found *Entry) {
	number, ok := phases.Index(index)
	if !ok {
		return nil
	}
	for _, entry := range entries {
		if entry.Index == number && found != nil {
			return nil
		} else if entry.Index == number {
			found = entry
		}
	}
	return found
}

// Owners returns the ids of all workflows with a skill, a guide or a template, in order.
func (l *Library) Owners() []string { return l.owners }

// Why returns the reason why a document did not load, or nil if no such document is known.
func (l *Library) Why(kind phases.EntryKind, workflow, id string) *guideway.Diagnostic {
	if number, ok := phases.Index(id); ok && isText(kind) {
		id = strconv.Itoa(number)
	}
	for _, k := range []key{{kind, workflow, id}, {kind, "", id}} {
		if broken, ok := l.broken[k]; ok {
			return &broken.Why
		}
	}
	return nil
}

// Equal reports whether two libraries serve the same documents.
func (l *Library) Equal(other *Library) bool {
	if len(l.byKey) != len(other.byKey) {
		return false
	}
	for k, entry := range l.byKey {
		if o := other.byKey[k]; o == nil || o.Item != entry.Item || o.Source != entry.Source {
			return false
		}
	}
	return true
}

// sortEntries sorts entries by index and name.
func sortEntries(entries []*Entry) {
	slices.SortStableFunc(entries, func(a, b *Entry) int {
		return cmp.Or(a.Index-b.Index, strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
}
