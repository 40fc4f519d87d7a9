package library

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

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
