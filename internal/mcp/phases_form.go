package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// textAnswer is an answer whose text differs from its structured content. Text for phase
// workflows is that of the original server: indented JSON or the content of a file.
type textAnswer struct {
	// text is the text of the answer. "" means the indented structure, unless verbatim is
	// set, since a file may be empty.
	text     string
	verbatim bool
	// structure is the structured content, an object.
	structure any
	// note is a second text, for information that the original server has no member for.
	note string
	// head is the beginning of the text that only the first page has. body, if set, replaces
	// the rest of the text in pages, and reserve makes each page shorter.
	head, body string
	reserve    int
}

// indentText sets the text to the indented structure if the answer has no text.
func (w *textAnswer) indentText() (err error) {
	if w.text == "" && !w.verbatim {
		if w.text, err = indentJSON(w.structure); err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
	}
	return nil
}

// encodeResult returns the answer as the result of a call, in a form of answers.
func (w textAnswer) encodeResult(form string) (*mcp.CallToolResult, error) {
	res := &mcp.CallToolResult{Content: []mcp.Content{}}
	if form != AnswersText {
		structure, err := jsontext.Marshal(w.structure)
		if err != nil {
			return nil, fmt.Errorf("write the answer: %w", err)
		}
		res.StructuredContent = json.RawMessage(structure)
	}
	if form != AnswersStructured {
		res.Content = append(res.Content, &mcp.TextContent{Text: w.text})
		if w.note != "" {
			res.Content = append(res.Content, &mcp.TextContent{Text: w.note})
		}
	}
	return res, nil
}

// itemList returns a list as the text of the original server, and as an object.
func itemList[T any](items []T, note string) (any, error) {
	if items == nil {
		items = []T{}
	}
	text, err := indentJSON(items)
	return textAnswer{text: text, structure: map[string]any{"items": items}, note: note}, err
}

// rawText returns the unchanged content of a file.
func rawText(content, format string) textAnswer {
	return textAnswer{text: content, verbatim: true, structure: map[string]any{"content": content, "format": format}}
}

// indentJSON returns JSON indented by two spaces, as JavaScript does.
func indentJSON(v any) (string, error) {
	text, err := jsontext.Indent(v)
	return string(text), err
}

// memberOrder returns the names of the members that come first, in order. The others follow
// alphabetically.
func memberOrder() []string {
	return strings.Fields("$schema id version title name label type path section problem capability description author tags precedence priority " +
		"message action target variable operator value over to condition conditions transitionTo isDefault recognition skills primary supporting " +
		"outcome architecture execution_pattern tools when params returns flow context_to_preserve usage notes matching state interpretation " +
		"rules sections variables defaultValue required blocking approval initialPhase phases estimatedTime guide entryActions steps loops " +
		"checkpoints options effect setVariable skipPhases decisions branches transitions exitActions actions breakCondition maxIterations errors")
}

// encodeReadable writes a document with its members in memberOrder.
func encodeReadable(members map[string]any) (json.RawMessage, error) {
	ranks := map[string]int{}
	for i, name := range memberOrder() {
		ranks[name] = i - len(memberOrder()) // A negative rank comes before all other members.
	}
	var b bytes.Buffer
	err := writeReadable(&b, members, ranks)
	return b.Bytes(), err
}

func writeReadable(b *bytes.Buffer, v any, ranks map[string]int) error {
	switch v := v.(type) {
	case map[string]any:
		names := slices.SortedStableFunc(slices.Values(slices.Sorted(maps.Keys(v))), func(a, b string) int { return ranks[a] - ranks[b] })
		b.WriteByte('{')
		for i, name := range names {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeReadable(b, name, ranks); err != nil {
				return err
			}
			b.WriteByte(':')
			if err := writeReadable(b, v[name], ranks); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeReadable(b, item, ranks); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	default:
		text, err := jsontext.Marshal(v)
		if err != nil {
			return err
		}
		b.Write(text)
	}
	return nil
}

// wholeDocument returns a document with the changes that complete makes to its members.
func wholeDocument(canonical string, complete func(members map[string]any)) (any, error) {
	var members map[string]any
	if err := jsontext.Decode([]byte(canonical), &members); err != nil {
		return nil, fmt.Errorf("read a document: %w", err)
	}
	complete(members)
	text, err := encodeReadable(members)
	return textAnswer{structure: text}, err
}

// withDefaults adds the defaults of a phase workflow, as the original server does.
func withDefaults(workflow map[string]any) {
	forEachObject(workflow["variables"], func(v map[string]any) { setDefault(v, "required", false) })
	forEachObject(workflow["phases"], phaseDefaults)
}

func phaseDefaults(phase map[string]any) {
	steps := func(step map[string]any) { setDefault(step, "required", true) }
	setDefault(phase, "required", true)
	forEachObject(phase["steps"], steps)
	forEachObject(phase["checkpoints"], checkpointDefaults)
	forEachObject(phase["loops"], func(loop map[string]any) {
		setDefault(loop, "maxIterations", 100)
		forEachObject(loop["steps"], steps)
	})
	setIsDefault := func(transition map[string]any) { setDefault(transition, "isDefault", false) }
	forEachObject(phase["decisions"], func(decision map[string]any) { forEachObject(decision["branches"], setIsDefault) })
	forEachObject(phase["transitions"], setIsDefault)
}

func checkpointDefaults(checkpoint map[string]any) {
	setDefault(checkpoint, "required", true)
	setDefault(checkpoint, "blocking", true)
}

func forEachObject(list any, f func(map[string]any)) {
	items, _ := list.([]any)
	for _, item := range items {
		if members, ok := item.(map[string]any); ok {
			f(members)
		}
	}
}

func setDefault(members map[string]any, name string, value any) {
	if _, ok := members[name]; !ok {
		members[name] = value
	}
}

// checkOwner checks that a call names a workflow, or a folder with texts.
func (p *phaseTools) checkOwner(c call) error {
	id := c.textArg("workflow_id")
	if id == library.Meta || slices.Contains(p.currentLibrary().Owners(), id) {
		return nil
	}
	_, err := p.findWorkflow(c)
	return err
}

// textInfo is a guide or a template in a list.
type textInfo struct {
	Index  string `json:"index"`
	Name   string `json:"name"`
	Title  string `json:"title"`
	Format string `json:"format,omitempty"`
}

func (p *phaseTools) listTexts(kind phases.EntryKind, c call) (any, error) {
	if err := p.checkOwner(c); err != nil {
		return nil, err
	}
	var items []textInfo
	for _, e := range p.currentLibrary().Texts(kind, c.textArg("workflow_id")) {
		line := textInfo{Index: e.Digits, Name: e.Name, Title: e.Title}
		if kind == library.KindGuide {
			line.Format = e.Format
		}
		items = append(items, line)
	}
	return itemList(items, "")
}

func (p *phaseTools) getText(kind phases.EntryKind, c call) (any, error) {
	if err := p.checkOwner(c); err != nil {
		return nil, err
	}
	lib, workflow, index := p.currentLibrary(), c.textArg("workflow_id"), c.textArg("index")
	e := lib.Text(kind, workflow, index)
	if e == nil {
		return nil, p.explainMissingText(lib, kind, c)
	}
	section := c.textArg("section")
	if section == "" {
		return rawText(e.Text, e.Format), nil
	}
	part, ok := library.Section(e.Text, section)
	if ok {
		return rawText(part, e.Format), nil
	}
	bad := notFound("Section", "section", section, library.Headings(e.Text))
	bad.suggestRetry(c)
	return nil, bad
}

// explainMissingText returns the error about an unknown guide or template, in the wording
// of the original server.
func (p *phaseTools) explainMissingText(lib *library.Library, kind phases.EntryKind, c call) *callError {
	workflow, index := c.textArg("workflow_id"), c.textArg("index")
	allowed := lists.Map(lib.Texts(kind, workflow), func(e *library.Entry) string { return e.Digits })
	bad := p.explainMissing(lib, kind, c, "index", workflow, index, allowed)
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

func (p *phaseTools) listResources(context.Context, call) (any, error) {
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
}
