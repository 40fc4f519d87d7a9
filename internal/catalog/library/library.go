package library

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
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

// The codes of diagnostics of a library as a whole.
const (
	CodeIDDuplicate          = "id-duplicate"
	CodeIndexDuplicate       = "index-duplicate"
	CodeOverrideBroken       = "override-broken"
	CodeRecognitionDuplicate = "recognition-duplicate"
	CodeSkillUnknown         = "skill-unknown"
	CodeGuideUnknown         = "guide-unknown"
	CodeOwnerUnknown         = "folder-without-workflow"
)

// Build returns the library of sources in order of precedence, lowest first. If several
// documents have the same key, the one from the source with the highest precedence is
// served, and within a source the first by path. A document that does not load never hides
// another one. known reports whether a workflow exists; it may be nil.
func Build(sources []Source, known func(workflow string) bool) (*Library, []guideway.Diagnostic) {
	b := &builder{lib: &Library{byKey: map[key]*Entry{}, lists: map[key][]*Entry{}, broken: map[key]Broken{}}, known: known}
	for _, source := range sources {
		b.addSource(source)
	}
	for _, source := range sources {
		b.reportFallbacks(source)
	}
	b.buildLists()
	b.checkActivities()
	return b.lib, b.found
}

type builder struct {
	lib   *Library
	known func(string) bool
	found []guideway.Diagnostic
}

func (b *builder) addDiagnostic(severity guideway.Severity, code, file, message, fix string) {
	b.found = append(b.found, guideway.Diagnostic{Severity: severity, Code: code, File: file, Message: message, Fix: fix})
}

// workflowOf returns the id of the workflow that a folder belongs to.
func (s *Source) workflowOf(folder string) string {
	if id := s.Owners[folder]; id != "" {
		return id
	}
	return folder
}

// addSource adds the documents of a source, which take precedence over the earlier ones.
func (b *builder) addSource(source Source) {
	own := map[key]*Item{}
	type slot struct {
		kind     phases.EntryKind
		workflow string
		number   int
	}
	slots := map[slot]*Item{}
	orphans := map[string]bool{}
	for _, item := range source.Items {
		workflow := source.workflowOf(item.Place.Workflow)
		k := keyOf(item.Place, workflow, item.ID)
		if first := own[k]; first != nil {
			b.reportDuplicate(item, first)
			continue
		}
		own[k] = item
		if at := (slot{item.Kind, k.workflow, item.Index}); item.Kind != KindRules {
			if first := slots[at]; first != nil {
				b.addDiagnostic(guideway.SeverityWarning, CodeIndexDuplicate, item.File,
					fmt.Sprintf("the index %s is also the index of %s; both documents are served by their ids", item.Digits, first.File),
					"change the index of one of the two files")
			}
			slots[at] = item
		}
		if k.workflow != "" && k.workflow != Meta && b.known != nil && !b.known(k.workflow) && !orphans[k.workflow] {
			orphans[k.workflow] = true
			b.addDiagnostic(guideway.SeverityWarning, CodeOwnerUnknown, item.File,
				fmt.Sprintf("the folder %q has %ss, but there is no workflow %q", item.Place.Workflow, item.Kind, k.workflow),
				fmt.Sprintf("put the workflow into %s/%s.yaml, or rename the folder to the id of its workflow", item.Place.Workflow, item.Place.Workflow))
		}
		b.lib.byKey[k] = &Entry{Item: item, Source: source.Name, Workflow: k.workflow}
	}
}

// reportDuplicate reports a document that is not served because another document of the
// same source has the same key.
func (b *builder) reportDuplicate(item, first *Item) {
	code, what, fix := CodeIDDuplicate, fmt.Sprintf("the id %q", item.ID), "change one of the two ids, or delete one of the two files"
	if item.IsText() {
		code, what, fix = CodeIndexDuplicate, "the index "+item.Digits, "change the index of one of the two files, or delete one"
	}
	if item.Kind == KindRules {
		what, fix = "the name meta/rules", "merge the two files into one"
	}
	b.addDiagnostic(guideway.SeverityError, code, item.File,
		fmt.Sprintf("%s is already used by %s, which is served; this file is not", what, first.File), fix)
}

// reportFallbacks reports which documents are served in place of those that do not load.
func (b *builder) reportFallbacks(source Source) {
	for _, broken := range source.Broken {
		k := keyOf(broken.Place, source.workflowOf(broken.Place.Workflow), broken.ID)
		serving := b.lib.byKey[k]
		if serving == nil {
			b.lib.broken[k] = broken
			// An incomplete file may lack its id, so it is also found by its file name.
			if named := keyOf(broken.Place, source.workflowOf(broken.Place.Workflow), broken.Place.Name); b.lib.byKey[named] == nil {
				b.lib.broken[named] = broken
			}
			continue
		}
		b.addDiagnostic(guideway.SeverityWarning, CodeOverrideBroken, broken.Why.File,
			fmt.Sprintf("%s %q is served from %s (%s), because this file did not load", serving.Kind, serving.ID, serving.Source, serving.File),
			"fix this file")
	}
}

// buildLists groups the served documents by kind and workflow.
func (b *builder) buildLists() {
	owners := map[string]bool{}
	for k, entry := range b.lib.byKey {
		in := key{kind: k.kind, workflow: k.workflow}
		b.lib.lists[in] = append(b.lib.lists[in], entry)
		if k.workflow != "" {
			owners[k.workflow] = true
		}
	}
	for _, list := range b.lib.lists {
		sortEntries(list)
	}
	b.lib.owners = slices.Sorted(maps.Keys(owners))
}

// checkActivities checks the references of activities, and that no phrase occurs in two
// activities.
func (b *builder) checkActivities() {
	phrases := map[string]*Entry{}
	for _, entry := range b.lib.Activities() {
		a := entry.Activity
		for _, id := range append([]string{a.Skills.Primary}, a.Skills.Supporting...) {
			if b.lib.Skill("", id) == nil {
				b.addDiagnostic(guideway.SeverityWarning, CodeSkillUnknown, entry.File,
					fmt.Sprintf("the activity refers to the skill %q, which does not exist", id), suggestIDs(b.lib.Skills("")))
			}
		}
		if g := a.Guide; g != nil && b.lib.Text(KindGuide, g.WorkflowID, g.Index) == nil {
			b.addDiagnostic(guideway.SeverityWarning, CodeGuideUnknown, entry.File,
				fmt.Sprintf("the activity refers to the guide %q, which does not exist in the workflow %q", g.Index, g.WorkflowID),
				suggestIDs(b.lib.Texts(KindGuide, g.WorkflowID)))
		}
		for _, phrase := range a.Recognition {
			phrase = strings.ToLower(phrase)
			if first := phrases[phrase]; first != nil && first != entry {
				b.addDiagnostic(guideway.SeverityWarning, CodeRecognitionDuplicate, entry.File,
					fmt.Sprintf("the phrase %q also belongs to the activity %q (%s); get_activities assigns it to that activity only", phrase, first.ID, first.File),
					"remove the phrase from one of the two activities")
				continue
			}
			phrases[phrase] = entry
		}
	}
}

// suggestIDs returns the fix for a reference to an unknown document: the ids of entries.
func suggestIDs(entries []*Entry) string {
	if len(entries) == 0 {
		return "add the document, or remove the reference"
	}
	ids := lists.Map(entries, func(entry *Entry) string { return entry.ID })
	return "name one of " + strings.Join(ids, ", ")
}
