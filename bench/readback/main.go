// Package readback measures in tokens whether the answers of the tools for contexts keep
// their budgets, and what reading a part of an omitted text costs.
package readback

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// transcriptBytes is the size of the transcript, in turns of different length.
	transcriptBytes = 50_000
	turns           = 136
	tolerance       = 0.05
)

// bench is one run of the measurement.
type bench struct {
	session *mcp.ClientSession
	counter *compress.Tokenizer
}

// Run measures and prints the tables.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := measure.Options{Stdout: stdout, Stderr: stderr}
	flags := flag.NewFlagSet("readback", flag.ContinueOnError)
	remove, err := o.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	session, _, err := o.ConnectStdio(ctx, "--answers", "both")
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	list, err := transcript()
	if err != nil {
		return err
	}
	b := &bench{session: session, counter: compress.NewTokenizer()}
	budgets, err := b.measureBudgets(ctx, shapes(list))
	if err != nil {
		return err
	}
	parts, err := b.measureParts(ctx, strings.Join(list, "\n"))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "Tokens of the texts of whole answers.\n\n%s\n%s", budgets, parts)
	return nil
}

// transcript returns the turns of a transcript: parts of the documentation and the code.
func transcript() ([]string, error) {
	var text strings.Builder
	for _, name := range []string{"docs/context.md", "internal/contexts/compress/node.go", "docs/checkpoints.md", "internal/contexts/compress/score.go", "docs/steps.md", "docs/gateway.md"} {
		data, err := os.ReadFile(filepath.Join(measure.Root, name)) //nolint:gosec // G304: a file of the repository
		if err != nil {
			return nil, fmt.Errorf("read the transcript: %w", err)
		}
		text.Write(data[:min(len(data), transcriptBytes/5)])
		text.WriteString("\n")
	}
	rest := strings.ToValidUTF8(text.String(), "")[:transcriptBytes]
	var list []string
	for i := range turns {
		size := 2 * transcriptBytes * (1 + i%7) / (8 * turns)
		if i == turns-1 {
			size = len(rest)
		}
		size = min(size, len(rest))
		if line := strings.LastIndexByte(rest[:size], '\n'); line > size/2 {
			size = line + 1
		}
		list, rest = append(list, strings.TrimSpace(strings.ToValidUTF8(rest[:size], ""))), rest[size:]
	}
	return list, nil
}

// shape is a form of the transcript in a context.
type shape struct {
	name    string
	context map[string]any
}

func shapes(list []string) []shape {
	roles := []string{"user", "assistant", "tool"}
	messages, variables := []any{}, map[string]any{}
	for i, text := range list {
		messages = append(messages, map[string]any{"role": roles[i%len(roles)], "content": text})
		variables[fmt.Sprintf("turn%03d", i)] = text
	}
	return []shape{
		{"one text", map[string]any{"transcript": strings.Join(list, "\n")}},
		{"list of messages", map[string]any{"messages": messages}},
		{fmt.Sprintf("%d variables", turns), variables},
	}
}

// measureBudgets compares the requested budgets with the answers as sent.
func (b *bench) measureBudgets(ctx context.Context, list []shape) (string, error) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "context\tcall\trequested\ttold\tsent\tof the budget\t\t")
	kept, cells := 0, 0
	for i, s := range list {
		text, err := json.Marshal(s.context)
		if err != nil {
			return "", fmt.Errorf("encode a context: %w", err)
		}
		whole := b.counter.Count(string(text))
		session := fmt.Sprint("bench-", i)
		if _, _, err := b.call(ctx, "workflow_checkpoint_save", map[string]any{"sessionId": session, "context": s.context}); err != nil {
			return "", err
		}
		for _, c := range []struct {
			name, tool string
			requested  int
			args       map[string]any
		}{
			{"compress, ratio 4", "workflow_context_compress", whole / 4, map[string]any{"context": s.context, "ratio": 4}},
			{"compress, ratio 10", "workflow_context_compress", whole / 10, map[string]any{"context": s.context, "ratio": 10}},
			{"compress, a question", "workflow_context_compress", 2000, map[string]any{"context": s.context, "budgetTokens": 2000, "question": "Which parts of a text stay?"}},
			{"prioritize", "workflow_context_prioritize", 1400, map[string]any{"context": s.context, "budgetTokens": 1400}},
			{"load", "workflow_checkpoint_load", 1400, map[string]any{"sessionId": session, "budgetTokens": 1400}},
		} {
			text, structure, err := b.call(ctx, c.tool, c.args)
			if err != nil {
				return "", err
			}
			var told struct {
				Tokens int `json:"tokensAfter"`
			}
			_ = json.Unmarshal([]byte(structure), &told) // A text in pages is not JSON.
			sent := b.counter.Count(text)
			off, verdict := float64(sent)/float64(c.requested), "off"
			cells++
			// A whole text that does not fit leaves its budget unused.
			if off <= 1+tolerance && (off >= 1-tolerance || c.name == "prioritize") {
				kept++
				verdict = "ok"
			}
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.1f %%\t%s\t\n", s.name, c.name, c.requested, told.Tokens, sent, 100*off, verdict)
		}
	}
	_ = w.Flush() // A builder does not fail.
	fmt.Fprintf(&out, "\nWithin 5 %% of the budget: %d of %d answers. Prioritize keeps whole items, so it may only stay below.\n", kept, cells)
	return out.String(), nil
}

// measureParts reads parts of an omitted text, and compares the tokens of the answers with
// those of the parts.
func (b *bench) measureParts(ctx context.Context, text string) (string, error) {
	_, structure, err := b.call(ctx, "workflow_context_compress", map[string]any{"context": map[string]any{"transcript": text}, "ratio": 10})
	if err != nil {
		return "", err
	}
	var reduced struct {
		Omitted []struct {
			Ref string `json:"ref"`
		} `json:"omitted"`
	}
	if err := json.Unmarshal([]byte(structure), &reduced); err != nil || len(reduced.Omitted) != 1 {
		return "", fmt.Errorf("read the omissions of %.200s: %w", structure, err)
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "part of an omitted text\ttokens of the part\tof the answer\tfactor\t")
	for _, args := range []map[string]any{
		{"find": "has a word of change"}, {"find": "func ("}, {"lines": "40-60"}, {"lines": "200-210"}, {"lines": "300-"}, {},
		{"question": "Which parts of a text stay?", "budgetTokens": 500},
	} {
		label, err := json.Marshal(args)
		if err != nil {
			return "", fmt.Errorf("encode a call: %w", err)
		}
		args["ref"] = reduced.Omitted[0].Ref
		answer, structure, err := b.call(ctx, "workflow_checkpoint_load", args)
		if err != nil {
			return "", err
		}
		var part struct {
			Value string `json:"value"`
		}
		if err := json.Unmarshal([]byte(structure), &part); err != nil {
			return "", fmt.Errorf("read the part: %w", err)
		}
		tokens, sent := b.counter.Count(part.Value), b.counter.Count(answer)
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t\n", label, tokens, sent, float64(sent)/float64(tokens))
	}
	_ = w.Flush() // A builder does not fail.
	return out.String(), nil
}

// call calls a tool and returns all pages of the text of its answer, or the structured
// content if there is no text, and the structured content, or the text if there is none.
func (b *bench) call(ctx context.Context, tool string, args map[string]any) (text, structure string, err error) {
	for page := 1; ; page++ {
		if page > 1 {
			args["page"] = page
		}
		res, err := b.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			return "", "", fmt.Errorf("call %s: %w", tool, err)
		}
		shown := ""
		for _, c := range res.Content {
			if t, ok := c.(*mcp.TextContent); ok {
				shown += t.Text
			}
		}
		if res.IsError {
			return "", "", fmt.Errorf("call %s: %s", tool, shown)
		}
		if page == 1 && res.StructuredContent != nil {
			encoded, err := json.Marshal(res.StructuredContent)
			if err != nil {
				return "", "", fmt.Errorf("encode the answer of %s: %w", tool, err)
			}
			structure = string(encoded)
		}
		text += shown
		if !strings.Contains(shown, "; for the next page call ") {
			break
		}
	}
	delete(args, "page")
	if text == "" {
		text = structure
	}
	if structure == "" {
		structure = text
	}
	return text, structure, nil
}
