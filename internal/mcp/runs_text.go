package mcp

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
)

// textAnswer returns the answer as text, which an agent reads at each step of a workflow
// (ADR 10). The text omits members that follow from others; the structured content is
// complete.
func (a runAnswer) textAnswer() (textAnswer, error) {
	var b answerText
	a.writeHead(&b)
	head := b.String()
	a.writeText(&b)
	return textAnswer{text: strings.TrimSuffix(b.String(), "\n"), head: head, structure: a}, b.err
}

// answerText is the text of an answer.
type answerText struct {
	strings.Builder
	// err is the first error of encodeValue.
	err error
}

// writeHead writes the part of the answer that a later workflow_status does not repeat.
func (a runAnswer) writeHead(b *answerText) {
	if a.WorkflowID != "" {
		fmt.Fprintf(b, "Run %s of %s\n", a.RunID, a.WorkflowID)
	}
	if a.Replayed {
		b.WriteString("The same call was made before; its answer is repeated.\n")
	}
	writeChecks(b, a.Checks)
}

func (a runAnswer) writeText(b *answerText) {
	writePosition(b, &a.Position, a.Status)
	if a.Hint != "" {
		fmt.Fprintf(b, "(%s)\n", a.Hint)
	}
	if a.Notice != "" {
		fmt.Fprintf(b, "(%s)\n", a.Notice)
	}
	writeNext(b, a.Next, a.Handle, a.Position.Options)
	writeBrief(b, a.Brief)
	if a.State != nil {
		writeJSON(b, "State: ", a.State)
	}
}

// writeChecks writes the checks that the server executed for the submitted output.
func writeChecks(b *answerText, checks []run.CheckSummary) {
	for _, c := range checks {
		switch {
		case c.Undefined:
			fmt.Fprintf(b, "Not checked: %s; the project does not define it, so the step is a claim\n", c.Check)
		case c.Passed:
			fmt.Fprintf(b, "Checked: %s\n", c.Check)
		default:
			fmt.Fprintf(b, "Check failed: %s\n", c.Check)
		}
	}
}

// writeBrief writes the summary of a run's context.
func writeBrief(b *answerText, brief *contexts.Brief) {
	if brief == nil {
		return
	}
	if brief.Summary != nil {
		writeText(&b.Builder, "Done so far:\n"+brief.Summary.Text)
	}
	if len(brief.Context) > 0 {
		writeJSON(b, "Context: ", brief.Context)
	}
	for _, o := range brief.Omitted {
		keys := strings.Join(o.Keys, ", ")
		if o.More > 0 {
			keys += fmt.Sprintf(" and %d more", o.More)
		}
		fmt.Fprintf(b, "- %s: %s; %s\n", keys, o.Reason, o.Ref)
	}
	for _, note := range []string{brief.Note, brief.Problem} {
		if note != "" {
			fmt.Fprintf(b, "(%s)\n", note)
		}
	}
}

// writePosition writes the current position of a run.
func writePosition(b *answerText, pos *engine.Position, status engine.Status) {
	if pos.Kind == engine.PositionEnd {
		fmt.Fprintf(b, "%s: the run is %s\n", pos.Kind, status)
	}
	if ph := pos.Phase; ph != nil && ph.Title != "" {
		fmt.Fprintf(b, "Phase %d of %d, %s: %s\n", ph.Number, ph.Of, ph.ID, ph.Title)
	}
	writeRound(b, pos)
	if pos.ID != "" {
		fmt.Fprintf(b, "%s %s: %s\n", pos.Kind, pos.ID, pos.Title)
	}
	writeList(&b.Builder, "Rules of the workflow:", pos.MetaGuidance)
	if pos.Prompt != pos.Title {
		writeText(&b.Builder, pos.Prompt)
	}
	for _, g := range pos.Guides {
		if g.Text != "" {
			fmt.Fprintf(b, "--- %s\n%s\n---\n", g.Path, g.Text)
		}
	}
	writeText(&b.Builder, pos.Message)
	writeList(&b.Builder, "Criteria:", pos.Criteria)
	if tools := pos.Tools.String(); tools != "" {
		fmt.Fprintf(b, "Tools: %s\n", tools)
	}
	writeOptions(b, pos)
	writeNeeds(b, pos.Needs)
	if pos.AskForFiles {
		b.WriteString("Ask the user for the files that the step needs.\n")
	}
	if len(pos.Functions) > 0 {
		writeJSON(b, "Functions: ", pos.Functions)
	}
	if len(pos.Calls) > 0 {
		writeJSON(b, "Calls: ", pos.Calls)
	}
}

// writeRound writes the round of a loop, and the round's item if the prompt does not name
// it.
func writeRound(b *answerText, pos *engine.Position) {
	l := pos.Loop
	if l == nil {
		return
	}
	fmt.Fprintf(b, "Round %d", l.Round)
	if l.Rounds > 0 {
		fmt.Fprintf(b, " of %d", l.Rounds)
	}
	b.WriteString(" of " + l.ID)
	if l.Item != nil {
		if item := b.encodeValue(l.Item); !strings.Contains(pos.Prompt, item) {
			b.WriteString(": " + item)
		}
	}
	b.WriteByte('\n')
}

// writeOptions lists the options of a gate.
func writeOptions(b *answerText, pos *engine.Position) {
	for _, o := range pos.Options {
		fmt.Fprintf(b, "- %s: %s", o.ID, o.Label)
		if o.Description != "" {
			fmt.Fprintf(b, " (%s)", o.Description)
		}
		b.WriteByte('\n')
	}
	if pos.Declinable {
		b.WriteString("- or decline: true\n")
	}
}

// writeNeeds lists the variables that a run waits for.
func writeNeeds(b *answerText, needs []engine.Need) {
	for _, n := range needs {
		about := slices.Clone(n.Tests)
		if n.Description != "" {
			about = append(about, n.Description)
		}
		if n.Type != "" {
			about = append(about, n.Type)
		}
		for i, v := range n.Allowed {
			if i == 0 {
				about = append(about, b.encodeValue(v))
			} else {
				about[len(about)-1] += " or " + b.encodeValue(v)
			}
		}
		if len(n.Allowed) > 1 && areTexts(n.Allowed) { // The list may be incomplete.
			about[len(about)-1] += ", or another requested value"
		}
		if n.Found != "" {
			about = append(about, "found "+n.Found)
		}
		fmt.Fprintf(b, "- %s", n.Variable)
		if len(about) > 0 {
			b.WriteString(": " + strings.Join(about, "; "))
		}
		b.WriteByte('\n')
	}
}

func areTexts(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { _, text := v.(string); return !text })
}

// writeNext writes the next call with its fields, and the handle if the call does not
// contain it.
func writeNext(b *answerText, next *run.Call, handle string, options []engine.Option) {
	if next == nil {
		if handle != "" {
			fmt.Fprintf(b, "Handle: %s\n", handle)
		}
		return
	}
	if next.Arguments["handle"] != handle && handle != "" {
		fmt.Fprintf(b, "Handle: %s\n", handle)
	}
	writeJSON(b, "Next: "+next.Tool+" ", next.Arguments)
	writeFields(b, next.Fields, options)
}

// writeFields lists the fields of a form. It omits the choices of a field that are the
// listed options of the gate.
func writeFields(b *answerText, fields []engine.Field, options []engine.Option) {
	if len(fields) > 0 {
		b.WriteString("with\n")
	}
	for _, f := range fields {
		b.WriteString("- " + f.Name)
		if f.Type != "" {
			b.WriteString(" (" + f.Type + ")")
		}
		b.WriteString(": " + f.Description)
		if !areOptions(f.Choices, options) {
			separator := "; one of "
			for _, choice := range f.Choices {
				b.WriteString(separator + b.encodeValue(choice))
				separator = ", "
			}
		}
		if f.Optional {
			b.WriteString(" (optional)")
		}
		b.WriteByte('\n')
	}
}

// areOptions reports whether the choices of a field are the ids of the options.
func areOptions(choices []any, options []engine.Option) bool {
	return slices.EqualFunc(choices, options, func(c any, o engine.Option) bool { return c == o.ID })
}

// refusalText returns a refusal in words. It omits the arguments of alternative calls, which
// the next call has, and the run's id if the next call identifies the run.
func refusalText(r *run.Refusal) (string, error) {
	var b answerText
	fmt.Fprintf(&b, "%s (%s): %s\n", r.Code, r.Rule, r.Message)
	for _, issue := range r.Issues {
		b.WriteString("- " + issue + "\n")
	}
	writeChecks(&b, r.Checks)
	if r.Given != nil {
		writeJSON(&b, "Given: ", r.Given)
	}
	if r.Allowed != nil {
		writeJSON(&b, "Allowed: ", r.Allowed)
	}
	if r.Position != nil {
		writePosition(&b, r.Position, "")
	}
	if r.Fix != "" {
		b.WriteString("Fix: " + r.Fix + "\n")
	}
	if r.Next != nil {
		writeNext(&b, r.Next, "", nil)
	}
	if r.RunID != "" && (r.Next == nil || r.Next.Arguments["handle"] == nil) && !strings.Contains(b.String(), r.RunID) {
		b.WriteString("Run: " + r.RunID + "\n")
	}
	var others []string
	for _, a := range r.Alternatives {
		if a.Call != nil {
			a.Do = a.Call.Tool
		}
		others = append(others, a.Do)
	}
	if len(others) > 0 {
		b.WriteString("Or: " + strings.Join(others, ", ") + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), b.err
}

func writeList(b *strings.Builder, head string, list []string) {
	if len(list) == 0 {
		return
	}
	b.WriteString(head + "\n")
	for _, text := range list {
		b.WriteString("- " + text + "\n")
	}
}

func writeText(b *strings.Builder, text string) {
	if text != "" {
		b.WriteString(strings.TrimSuffix(text, "\n") + "\n")
	}
}

func writeJSON(b *answerText, head string, v any) {
	b.WriteString(head + b.encodeValue(v) + "\n")
}

// encodeValue returns a value as JSON.
func (b *answerText) encodeValue(v any) string {
	text, err := jsontext.Marshal(v)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("write the answer: %w", err)
	}
	return string(text)
}

// maxGuide bounds the text of a guide in an answer, in bytes.
const maxGuide = 4 << 10

// withGuides adds the guides that the position names to an answer, for agents whose client
// only has the toolset "runs".
func withGuides(lib *library.Library, a *run.Answer) *run.Answer {
	if len(a.Position.Guides) == 0 {
		return a
	}
	copied := *a
	copied.Position.Guides = slices.Clone(a.Position.Guides)
	for i := range copied.Position.Guides {
		g := &copied.Position.Guides[i]
		text := guideText(lib, a.Workflow, g)
		told := slices.ContainsFunc(copied.Position.Guides[:i], func(before engine.GuideText) bool {
			return before.Path == g.Path && strings.Contains(before.Text, text)
		})
		if !told { // The whole guide includes its sections.
			g.Text = text
		}
	}
	return &copied
}

// guideText returns the named section of a guide, or the whole guide. It truncates a long
// text and appends the URI of the whole guide. If the guide or the section is missing, the
// text says so.
func guideText(lib *library.Library, workflow string, g *engine.GuideText) string {
	base := path.Base(g.Path)
	entry := lib.Text(library.KindGuide, workflow, strings.TrimSuffix(base, path.Ext(base)))
	if entry == nil {
		if strings.Contains(g.Path, "/") && !strings.HasPrefix(strings.TrimPrefix(g.Path, "./"), "guides/") {
			return "" // a file outside of the guides
		}
		return "(The workflow has no such guide, or its file did not load: work without it, and tell the user that it is missing.)"
	}
	text := entry.Text
	if g.Section != "" {
		section, ok := library.Section(text, g.Section)
		if !ok {
			section = fmt.Sprintf("(The guide has no section %q. The whole guide:)\n%s", g.Section, text)
		}
		text = section
	}
	text = strings.TrimSpace(text)
	if len(text) > maxGuide {
		text = strings.ToValidUTF8(text[:maxGuide], "") + "…\n(truncated; the full text is the resource " + guidePrefix + workflow + "/" + entry.ID + ")"
	}
	return text
}
