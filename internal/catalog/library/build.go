package library

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// The codes of findings on a library as a whole.
const (
	CodeIDDuplicate          = "id-duplicate"
	CodeIndexDuplicate       = "index-duplicate"
	CodeOverrideBroken       = "override-broken"
	CodeRecognitionDuplicate = "recognition-duplicate"
	CodeSkillUnknown         = "skill-unknown"
	CodeGuideUnknown         = "guide-unknown"
	CodeOwnerUnknown         = "folder-without-workflow"
)

// Build makes a library of sources, which are in order of rank, lowest first: of
// two documents for one use that of the higher source is served, and within one
// source the first by path. A document that does not load never hides another.
// Known says whether there is a workflow; nil knows none.
func Build(sources []Source, known func(workflow string) bool) (*Library, []guideway.Diagnostic) {
	b := &builder{lib: &Library{byKey: map[key]*Entry{}, lists: map[key][]*Entry{}, broken: map[key]Broken{}}, known: known}
	for _, source := range sources {
		b.add(source)
	}
	for _, source := range sources {
		b.explain(source)
	}
	b.arrange()
	b.lookThrough()
	return b.lib, b.found
}

type builder struct {
	lib   *Library
	known func(string) bool
	found []guideway.Diagnostic
}

func (b *builder) report(severity guideway.Severity, code, file, message, fix string) {
	b.found = append(b.found, guideway.Diagnostic{Severity: severity, Code: code, File: file, Message: message, Fix: fix})
}

// owner is the id of the workflow that a folder belongs to.
func (s *Source) owner(folder string) string {
	if id := s.Owners[folder]; id != "" {
		return id
	}
	return folder
}

// add puts the documents of a source above those that are there.
func (b *builder) add(source Source) {
	own := map[key]*Item{}
	type slot struct {
		kind     phases.EntryKind
		workflow string
		number   int
	}
	slots := map[slot]*Item{}
	orphans := map[string]bool{}
	for _, item := range source.Items {
		workflow := source.owner(item.Place.Workflow)
		k := keyOf(item.Place, workflow, item.ID)
		if first := own[k]; first != nil {
			b.duplicate(item, first)
			continue
		}
		own[k] = item
		if at := (slot{item.Kind, k.workflow, item.Index}); item.Kind != KindRules {
			if first := slots[at]; first != nil {
				b.report(guideway.SeverityWarning, CodeIndexDuplicate, item.File,
					fmt.Sprintf("the index %s is that of %s too; both are served by their ids", item.Digits, first.File),
					"give one of the two another index")
			}
			slots[at] = item
		}
		if k.workflow != "" && k.workflow != Meta && b.known != nil && !b.known(k.workflow) && !orphans[k.workflow] {
			orphans[k.workflow] = true
			b.report(guideway.SeverityWarning, CodeOwnerUnknown, item.File,
				fmt.Sprintf("the folder %q has %ss, and there is no workflow %q", item.Place.Workflow, item.Kind, k.workflow),
				fmt.Sprintf("put the workflow into %s/%s.yaml, or name the folder as the workflow", item.Place.Workflow, item.Place.Workflow))
		}
		b.lib.byKey[k] = &Entry{Item: item, Source: source.Name, Workflow: k.workflow}
	}
}

// duplicate reports a document that another of its source keeps from being served.
func (b *builder) duplicate(item, first *Item) {
	code, what := CodeIDDuplicate, fmt.Sprintf("the id %q", item.ID)
	if item.IsText() {
		code, what = CodeIndexDuplicate, "the index "+item.Digits
	}
	if item.Kind == KindRules {
		what = "the place of the rules"
	}
	b.report(guideway.SeverityError, code, item.File,
		fmt.Sprintf("%s is taken by %s, which is served; this file is not", what, first.File),
		"give one of the two another, or delete it")
}

// explain says of documents that do not load what is served in their place.
func (b *builder) explain(source Source) {
	for _, broken := range source.Broken {
		k := keyOf(broken.Place, source.owner(broken.Place.Workflow), broken.ID)
		serving := b.lib.byKey[k]
		if serving == nil {
			b.lib.broken[k] = broken
			// What breaks off may not say its id: it is asked for by its name, too.
			if named := keyOf(broken.Place, source.owner(broken.Place.Workflow), broken.Place.Name); b.lib.byKey[named] == nil {
				b.lib.broken[named] = broken
			}
			continue
		}
		b.report(guideway.SeverityWarning, CodeOverrideBroken, broken.Why.File,
			fmt.Sprintf("%s %q is served from %s (%s), because this file did not load", serving.Kind, serving.ID, serving.Source, serving.File),
			"mend this file to have it served")
	}
}

// arrange makes the lists.
func (b *builder) arrange() {
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

// lookThrough checks what activities refer to, and that a phrase leads to one of
// them.
func (b *builder) lookThrough() {
	phrases := map[string]*Entry{}
	for _, entry := range b.lib.Activities() {
		a := entry.Activity
		for _, id := range append([]string{a.Skills.Primary}, a.Skills.Supporting...) {
			if b.lib.Skill("", id) == nil {
				b.report(guideway.SeverityWarning, CodeSkillUnknown, entry.File,
					fmt.Sprintf("the activity refers to the skill %q, which is not there", id), "name one of "+names(b.lib.Skills("")))
			}
		}
		if g := a.Guide; g != nil && b.lib.Text(KindGuide, g.WorkflowID, g.Index) == nil {
			b.report(guideway.SeverityWarning, CodeGuideUnknown, entry.File,
				fmt.Sprintf("the activity refers to guide %q of the workflow %q, which is not there", g.Index, g.WorkflowID),
				"name one of "+names(b.lib.Texts(KindGuide, g.WorkflowID)))
		}
		for _, phrase := range a.Recognition {
			phrase = strings.ToLower(phrase)
			if first := phrases[phrase]; first != nil && first != entry {
				b.report(guideway.SeverityWarning, CodeRecognitionDuplicate, entry.File,
					fmt.Sprintf("the phrase %q is one of the activity %q too (%s); in quick_match it leads there", phrase, first.ID, first.File),
					"leave it to one of the two")
				continue
			}
			phrases[phrase] = entry
		}
	}
}

// names lists the ids of entries for a sentence.
func names(entries []*Entry) string {
	if len(entries) == 0 {
		return "none, for there is none"
	}
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.ID
	}
	return strings.Join(ids, ", ")
}
