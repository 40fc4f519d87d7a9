package mcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
)

// textAnswer returns the answer as text, since an agent reads it at each step of a workflow
// (ADR 10). It repeats no member of the structured content, which is complete.
func (a runAnswer) textAnswer() (textAnswer, error) {
	var b strings.Builder
	if err := a.writeText(&b); err != nil {
		return textAnswer{}, err
	}
	return textAnswer{text: strings.TrimSuffix(b.String(), "\n"), structure: a}, nil
}

func (a runAnswer) writeText(b *strings.Builder) error {
	if a.WorkflowID != "" {
		fmt.Fprintf(b, "Run %s of %s\n", a.RunID, a.WorkflowID)
	}
	if a.Replayed {
		b.WriteString("This call was made before; this is its answer.\n")
	}
	if err := writePosition(b, &a.Position, a.Status); err != nil {
		return err
	}
	if a.Hint != "" {
		fmt.Fprintf(b, "(%s)\n", a.Hint)
	}
	if a.Notice != "" {
		fmt.Fprintf(b, "(%s)\n", a.Notice)
	}
	if err := writeBrief(b, a.Brief); err != nil {
		return err
	}
	if err := writeNext(b, a.Next, a.Handle); err != nil {
		return err
	}
	if a.State != nil {
		return writeJSON(b, "State: ", a.State)
	}
	return nil
}

// writeBrief writes the summary of a run's context.
func writeBrief(b *strings.Builder, brief *contexts.Brief) error {
	if brief == nil {
		return nil
	}
	if brief.Summary != nil {
		writeText(b, "Done so far:\n"+brief.Summary.Text)
	}
	if len(brief.Context) > 0 {
		if err := writeJSON(b, "Context: ", brief.Context); err != nil {
			return err
		}
	}
	for _, o := range brief.Omitted {
		fmt.Fprintf(b, "- %s: %s; %s\n", o.Key, o.Reason, o.Ref)
	}
	for _, note := range []string{brief.Note, brief.Problem} {
		if note != "" {
			fmt.Fprintf(b, "(%s)\n", note)
		}
	}
	return nil
}

// writePosition writes what the run asks for.
func writePosition(b *strings.Builder, pos *engine.Position, status engine.Status) error {
	if pos.Kind == engine.PositionEnd {
		fmt.Fprintf(b, "%s: the run is %s\n", pos.Kind, status)
	}
	if ph := pos.Phase; ph != nil && ph.Title != "" {
		fmt.Fprintf(b, "Phase %d of %d, %s: %s\n", ph.Number, ph.Of, ph.ID, ph.Title)
	}
	if err := writeRound(b, pos); err != nil {
		return err
	}
	if pos.ID != "" {
		fmt.Fprintf(b, "%s %s: %s\n", pos.Kind, pos.ID, pos.Title)
	}
	writeList(b, "Rules throughout:", pos.MetaGuidance)
	if pos.Prompt != pos.Title {
		writeText(b, pos.Prompt)
	}
	for _, g := range pos.Guides {
		if g.Text != "" {
			fmt.Fprintf(b, "--- %s\n%s\n---\n", g.Path, g.Text)
		}
	}
	writeText(b, pos.Message)
	writeList(b, "Criteria:", pos.Criteria)
	writeOptions(b, pos)
	if err := writeNeeds(b, pos.Needs); err != nil {
		return err
	}
	if pos.AskForFiles {
		b.WriteString("Ask the user for the files that this needs.\n")
	}
	if len(pos.Functions) > 0 {
		if err := writeJSON(b, "Functions: ", pos.Functions); err != nil {
			return err
		}
	}
	if len(pos.Calls) > 0 {
		return writeJSON(b, "Calls: ", pos.Calls)
	}
	return nil
}

// writeRound writes the round of a loop, and its item if the prompt does not name it.
func writeRound(b *strings.Builder, pos *engine.Position) error {
	l := pos.Loop
	if l == nil {
		return nil
	}
	fmt.Fprintf(b, "Round %d", l.Round)
	if l.Rounds > 0 {
		fmt.Fprintf(b, " of %d", l.Rounds)
	}
	b.WriteString(" of " + l.ID)
	if l.Item != nil {
		item, err := jsontext.Marshal(l.Item)
		if err != nil {
			return fmt.Errorf("write the item of a round: %w", err)
		}
		if !strings.Contains(pos.Prompt, string(item)) {
			b.WriteString(": " + string(item))
		}
	}
	b.WriteByte('\n')
	return nil
}

// writeOptions lists the options of a gate.
func writeOptions(b *strings.Builder, pos *engine.Position) {
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
func writeNeeds(b *strings.Builder, needs []engine.Need) error {
	for _, n := range needs {
		about := slices.Clone(n.Tests)
		for i, v := range n.Allowed {
			text, err := jsontext.Marshal(v)
			if err != nil {
				return fmt.Errorf("write a value of %s: %w", n.Variable, err)
			}
			if i == 0 {
				about = append(about, string(text))
			} else {
				about[len(about)-1] += " or " + string(text)
			}
		}
		if len(n.Allowed) > 1 && areTexts(n.Allowed) { // the list may be incomplete
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
	return nil
}

func areTexts(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { _, text := v.(string); return !text })
}

// writeNext writes the next call, ready to copy, or else the handle.
func writeNext(b *strings.Builder, next *run.Call, handle string) error {
	if next == nil {
		if handle != "" {
			fmt.Fprintf(b, "Handle: %s\n", handle)
		}
		return nil
	}
	if next.Arguments["handle"] != handle && handle != "" {
		fmt.Fprintf(b, "Handle: %s\n", handle)
	}
	return writeJSON(b, "Next: "+next.Tool+" ", next.Arguments)
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

func writeJSON(b *strings.Builder, head string, v any) error {
	text, err := jsontext.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	b.WriteString(head)
	b.Write(text)
	b.WriteByte('\n')
	return nil
}
