package mcpserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/library"
)

// owner checks that a call names a workflow, or a folder that has something.
func (p *phaseTools) owner(toolName string, in arguments) error {
	id := in.text("workflow_id")
	if id == library.Meta || slices.Contains(p.library().Owners(), id) {
		return nil
	}
	_, err := p.workflow(toolName, in)
	return err
}

// textLine is a guide or a template in a list.
type textLine struct {
	Index  string `json:"index"`
	Name   string `json:"name"`
	Title  string `json:"title"`
	Format string `json:"format,omitempty"`
}

func (p *phaseTools) listTexts(kind phases.EntryKind) *tool {
	name, what := "list_guides", "Guides say how to do a phase or a step."
	if kind == library.KindTemplate {
		name, what = "list_templates", "Templates are forms of documents to fill in."
	}
	return &tool{
		name: name, title: fmt.Sprintf("List %ss", kind),
		description: fmt.Sprintf("List the %ss of a workflow. %s", kind, what),
		params:      []param{workflowIDParam()},
		output:      itemsSchema(),
		handle: func(_ context.Context, in arguments) (any, error) {
			if err := p.owner(name, in); err != nil {
				return nil, err
			}
			var items []textLine
			for _, e := range p.library().Texts(kind, in.text("workflow_id")) {
				line := textLine{Index: e.Digits, Name: e.Name, Title: e.Title}
				if kind == library.KindGuide {
					line.Format = e.Format
				}
				items = append(items, line)
			}
			return itemList(items, "")
		},
	}
}

func (p *phaseTools) getText(kind phases.EntryKind) *tool {
	name := "get_" + string(kind)
	return &tool{
		name: name, title: fmt.Sprintf("Get a %s", kind),
		description: fmt.Sprintf("Get a %s of a workflow as it is, or one section of it.", kind),
		params: []param{
			workflowIDParam(),
			{
				name: "index", kind: kindString, numbered: true, required: true, maxLength: maxID, example: "01",
				description: fmt.Sprintf("Index or name from list_%ss", kind),
			},
			{name: "section", kind: kindString, maxLength: 256, description: "Heading of the section that is wanted"},
		},
		output: object(map[string]any{"content": typed("string"), "format": typed("string")}),
		handle: func(_ context.Context, in arguments) (any, error) {
			if err := p.owner(name, in); err != nil {
				return nil, err
			}
			lib, workflow, index := p.library(), in.text("workflow_id"), in.text("index")
			e := lib.Text(kind, workflow, index)
			if e == nil {
				return nil, p.lostText(lib, kind, in)
			}
			section := in.text("section")
			if section == "" {
				return rawText(e.Text, e.Format), nil
			}
			part, ok := library.Section(e.Text, section)
			if ok {
				return rawText(part, e.Format), nil
			}
			bad := notFound("Section", "section", section, library.Headings(e.Text))
			bad.retry(name, in)
			return nil, bad
		},
	}
}

// lostText is the error about a guide or template that is not there, in the words
// of the original.
func (p *phaseTools) lostText(lib *library.Library, kind phases.EntryKind, in arguments) *callError {
	workflow, index := in.text("workflow_id"), in.text("index")
	allowed := []string{}
	for _, e := range lib.Texts(kind, workflow) {
		allowed = append(allowed, e.Digits)
	}
	bad := p.lost(lib, kind, "get_"+string(kind), "index", workflow, index, allowed, in)
	if bad.Code != guideway.CodeNotFound {
		return bad
	}
	format := "Guide not found: %v in workflow %s"
	if kind == library.KindTemplate {
		format = "Template not found: index %v in workflow %s"
	}
	bad.Message = fmt.Sprintf(format, shorten(index), workflow)
	if len(allowed) == 0 {
		bad.Fix = fmt.Sprintf("the workflow has no %ss", kind)
	}
	return bad
}

// shelfLine is what a workflow has of one kind.
type shelfLine struct {
	Count int    `json:"count"`
	Tool  string `json:"tool"`
}

func (p *phaseTools) listResources() *tool {
	return &tool{
		name: "list_resources", title: "List all there is",
		description: "List what there is by workflow: activities, skills, guides and templates, with the tools that get them.",
		output: object(map[string]any{
			"activities": typed("object"), "universal_skills": typed("object"), "workflows": listOf(typed("object")),
		}),
		handle: func(context.Context, arguments) (any, error) {
			snap := p.catalog.Snapshot()
			lib := snap.Library()
			out := map[string]any{
				"activities":       map[string]any{"tool": "get_activities", "description": "What users want, and how to begin with it"},
				"universal_skills": map[string]any{"items": ids(lib.Skills("")), "tool": "get_skill", "description": "Skills for all workflows"},
			}
			workflows := []map[string]any{}
			for _, e := range phaseWorkflows(snap) {
				workflows = append(workflows, map[string]any{"id": e.ID, "title": e.Name, "tool": "get_workflow"})
			}
			out["workflows"] = workflows
			for _, owner := range lib.Owners() {
				shelf := map[string]shelfLine{}
				add := func(name, tool string, n int) {
					if n > 0 {
						shelf[name] = shelfLine{n, tool}
					}
				}
				add("guides", "list_guides", len(lib.Texts(library.KindGuide, owner)))
				add("templates", "list_templates", len(lib.Texts(library.KindTemplate, owner)))
				add("skills", "list_skills", len(lib.Skills(owner)))
				if _, taken := out[owner]; taken {
					owner = "workflow " + owner // a workflow that is called as a member of ours
				}
				out[owner] = shelf
			}
			return worded{structure: out}, nil
		},
	}
}
