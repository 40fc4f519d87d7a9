package mcp

import (
	"context"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// checkOwner checks that a call names a workflow, or a folder with texts.
func (p *phaseTools) checkOwner(toolName string, in arguments) error {
	id := in.textArg("workflow_id")
	if id == library.Meta || slices.Contains(p.currentLibrary().Owners(), id) {
		return nil
	}
	_, err := p.findWorkflow(toolName, in)
	return err
}

// textInfo is a guide or a template in a list.
type textInfo struct {
	Index  string `json:"index"`
	Name   string `json:"name"`
	Title  string `json:"title"`
	Format string `json:"format,omitempty"`
}

func (p *phaseTools) listTexts(kind phases.EntryKind) *tool {
	name, what := "list_guides", "Guides explain how to do a phase or a step."
	if kind == library.KindTemplate {
		name, what = "list_templates", "Templates are documents to fill in."
	}
	return &tool{
		name: name, title: fmt.Sprintf("List %ss", kind),
		description: fmt.Sprintf("List the %ss of a workflow. %s", kind, what),
		params:      []param{workflowIDParam()},
		output:      members{kindObjects: "items"}.schema(),
		handle: func(_ context.Context, in arguments) (any, error) {
			if err := p.checkOwner(name, in); err != nil {
				return nil, err
			}
			var items []textInfo
			for _, e := range p.currentLibrary().Texts(kind, in.textArg("workflow_id")) {
				line := textInfo{Index: e.Digits, Name: e.Name, Title: e.Title}
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
		description: fmt.Sprintf("Get a %s of a workflow unchanged, or one section of it.", kind),
		params: []param{
			workflowIDParam(),
			{
				name: "index", kind: kindString, acceptsNumber: true, required: true, maxLength: maxID, example: "01",
				description: fmt.Sprintf("Index or name from list_%ss", kind),
			},
			{name: "section", kind: kindString, maxLength: 256, description: "Heading of a section"},
		},
		output: members{kindString: "content format"}.schema(),
		handle: func(_ context.Context, in arguments) (any, error) {
			if err := p.checkOwner(name, in); err != nil {
				return nil, err
			}
			lib, workflow, index := p.currentLibrary(), in.textArg("workflow_id"), in.textArg("index")
			e := lib.Text(kind, workflow, index)
			if e == nil {
				return nil, p.explainMissingText(lib, kind, in)
			}
			section := in.textArg("section")
			if section == "" {
				return rawText(e.Text, e.Format), nil
			}
			part, ok := library.Section(e.Text, section)
			if ok {
				return rawText(part, e.Format), nil
			}
			bad := notFound("Section", "section", section, library.Headings(e.Text))
			bad.suggestRetry(name, in)
			return nil, bad
		},
	}
}

// explainMissingText returns the error about an unknown guide or template, in the wording
// of the original server.
func (p *phaseTools) explainMissingText(lib *library.Library, kind phases.EntryKind, in arguments) *callError {
	workflow, index := in.textArg("workflow_id"), in.textArg("index")
	allowed := lists.Map(lib.Texts(kind, workflow), func(e *library.Entry) string { return e.Digits })
	bad := p.explainMissing(lib, kind, "get_"+string(kind), "index", workflow, index, allowed, in)
	if bad.Code != guideway.CodeNotFound {
		return bad
	}
	format := "Guide not found: %v in workflow %s"
	if kind == library.KindTemplate {
		format = "Template not found: index %v in workflow %s"
	}
	bad.Message = fmt.Sprintf(format, shortenValue(index), workflow)
	if len(allowed) == 0 {
		bad.Fix = fmt.Sprintf("choose another workflow: %s has no %ss", workflow, kind)
	}
	return bad
}

// textCounts counts the guides, the templates or the skills of a workflow.
type textCounts struct {
	Count int    `json:"count"`
	Tool  string `json:"tool"`
}

func (p *phaseTools) listResources() *tool {
	return &tool{
		name: "list_resources", title: "List all resources",
		description: "List activities, skills, guides and templates by workflow, with the tools that return them.",
		output:      members{kindObject: "activities universal_skills", kindObjects: "workflows"}.schema(),
		handle: func(context.Context, arguments) (any, error) {
			snap := p.catalog.Snapshot()
			lib := snap.Library()
			out := map[string]any{
				"activities":       map[string]any{"tool": "get_activities", "description": "User goals and how to start"},
				"universal_skills": map[string]any{"items": entryIDs(lib.Skills("")), "tool": "get_skill", "description": "Skills for all workflows"},
			}
			workflows := []map[string]any{}
			for _, e := range phaseWorkflows(snap) {
				workflows = append(workflows, map[string]any{"id": e.ID, "title": e.Name, "tool": "get_workflow"})
			}
			out["workflows"] = workflows
			for _, owner := range lib.Owners() {
				shelf := map[string]textCounts{}
				add := func(name, tool string, n int) {
					if n > 0 {
						shelf[name] = textCounts{n, tool}
					}
				}
				add("guides", "list_guides", len(lib.Texts(library.KindGuide, owner)))
				add("templates", "list_templates", len(lib.Texts(library.KindTemplate, owner)))
				add("skills", "list_skills", len(lib.Skills(owner)))
				if _, taken := out[owner]; taken {
					owner = "workflow " + owner // A workflow may have the name of another member.
				}
				out[owner] = shelf
			}
			return textAnswer{structure: out}, nil
		},
	}
}
