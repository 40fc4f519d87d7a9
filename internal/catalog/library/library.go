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

// Source is what one source of definitions gives to a library.
type Source struct {
	// Name is the name of the source.
	Name string
	// Items are the documents that load, in the order of their paths.
	Items []*Item
	// Broken are those that do not.
	Broken []Broken
	// Owners are the ids of the workflows in the folders of the source. A folder
	// that is not there belongs to the workflow of its own name.
	Owners map[string]string
}

// Broken is a document that does not load.
type Broken struct {
	Place Place
	// ID is what its id probably is.
	ID string
	// Why is the first finding.
	Why guideway.Diagnostic
}

// Entry is a document that is served.
type Entry struct {
	*Item
	// Source is the name of the source that it is served from.
	Source string
	// Workflow is the id of the workflow that it belongs to; "" for a skill for
	// all workflows, an activity and rules.
	Workflow string
}

// key tells documents apart of which one is served. Guides and templates are
// known by their number, the others by their id.
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

// Library holds the documents of all sources that are served. It never changes;
// what its methods return belongs to it.
type Library struct {
	byKey  map[key]*Entry
	lists  map[key][]*Entry // by kind and workflow, in order of the index
	broken map[key]Broken
	owners []string
}

// Activities are the activities in the order of their indices.
func (l *Library) Activities() []*Entry { return l.lists[key{kind: KindActivity}] }

// Activity gives the activity with an id, or nil.
func (l *Library) Activity(id string) *Entry { return l.byKey[key{kind: KindActivity, id: id}] }

// Rules are the rules for all workflows, or nil.
func (l *Library) Rules() *Entry { return l.byKey[key{kind: KindRules}] }

// Skills are the skills of a workflow alone; of "" those for all workflows.
func (l *Library) Skills(workflow string) []*Entry {
	return l.lists[key{kind: KindSkill, workflow: workflow}]
}

// Skill gives the skill with an id: that of the workflow, else the one for all
// workflows, else nil.
func (l *Library) Skill(workflow, id string) *Entry {
	if own := l.byKey[key{KindSkill, workflow, id}]; own != nil {
		return own
	}
	return l.byKey[key{kind: KindSkill, id: id}]
}

// Texts are the guides or the templates of a workflow in the order of their
// indices.
func (l *Library) Texts(kind phases.EntryKind, workflow string) []*Entry {
	return l.lists[key{kind: kind, workflow: workflow}]
}

// Text gives a guide or a template by its index, with any number of zeros before
// it, by its name, or by its file as a workflow names it: "01-plan.md" or
// "guides/01-plan.md". It is nil if there is none.
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

// Numbered gives the only entry of a list whose file has an index, with any number
// of zeros before it; nil where there is none or more than one.
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

// Owners are the ids of all workflows that a skill, a guide or a template
// belongs to, in order.
func (l *Library) Owners() []string { return l.owners }

// Why says why a document that is not served did not load; nil if there is none
// that would be the one.
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

// Equal says whether two libraries serve the same documents.
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

// sortEntries puts entries in the order of their indices, and then of names.
func sortEntries(entries []*Entry) {
	slices.SortStableFunc(entries, func(a, b *Entry) int {
		return cmp.Or(a.Index-b.Index, strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
}
