package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// shownTool is a tool as a client sees it.
type shownTool struct {
	Name, Title, Description string
	InputSchema              shownSchema
	OutputSchema             shownSchema
	Annotations              struct {
		ReadOnlyHint, IdempotentHint bool
		DestructiveHint              *bool
	}
}

type shownSchema struct {
	Type        any
	Description string
	Properties  map[string]shownSchema
	Required    []string
	Enum        []any
	Items       *shownSchema
}

// referenceOfTools checks that the reference of the tools agrees with their descriptions
// for clients, by toolset.
func referenceOfTools(t *testing.T) {
	t.Helper()
	var want strings.Builder
	want.WriteString("# Tools\n\nWritten by `go test ./internal/cli -run TestReference -update` from the descriptions that clients get. Toolsets are chosen by `--toolsets`. The default, `auto`, offers steps, runs, sessions and context, gateway as soon as an upstream is configured, and phases and machines as soon as a source other than the bundled one has such a definition. Answers come as text, as structured content or as both, by the setting `answers`. An invalid call gets an answer with `isError` that names the field, the given value, the allowed values and a call that works.\n")
	seen := map[string]bool{}
	for _, toolset := range []string{"steps", "runs", "sessions", "context", "phases", "machines", "gateway"} {
		fmt.Fprintf(&want, "\n## Toolset `%s`\n", toolset)
		for _, tool := range toolsIn(t, toolset) {
			if !seen[tool.Name] {
				tool.writeMarkdown(&want)
			}
			seen[tool.Name] = true
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d tools were found, want at least 40", len(seen))
	}
	compareReference(t, "tools.md", want.String())
}

// toolsIn asks a server for its tools.
func toolsIn(t *testing.T, toolset string) []shownTool {
	t.Helper()
	var out bytes.Buffer
	home := t.TempDir()
	settings := filepath.Join(home, "guideway.json")
	writeFile(t, settings, `{"upstreams": {"never-started": {"command": "never-started"}}}`)
	code := Main([]string{"mcp", "--config", settings, "--toolsets", toolset, "--gateway-exposure", "search"}, app.Host{
		In: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"reference","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}
`),
		Out: &out, Err: &bytes.Buffer{}, Dir: t.TempDir(),
		Getenv: func(name string) string {
			return map[string]string{"HOME": home, "GUIDEWAY_LISTEN": "127.0.0.1:0"}[name]
		},
	})
	for line := range strings.Lines(out.String()) {
		var answer struct {
			ID     int
			Result struct{ Tools []shownTool }
		}
		if err := json.Unmarshal([]byte(line), &answer); err == nil && answer.ID == 2 {
			return answer.Result.Tools
		}
	}
	t.Fatalf("%s: no tool list, exit code %d:\n%s", toolset, code, out.String())
	return nil
}

func (tool shownTool) writeMarkdown(w *strings.Builder) {
	fmt.Fprintf(w, "\n### %s\n\n%s\n", tool.Name, strings.TrimSpace(tool.Description))
	switch {
	case tool.Annotations.ReadOnlyHint:
		w.WriteString("\nReads only.\n")
	case tool.Annotations.DestructiveHint != nil && *tool.Annotations.DestructiveHint:
		w.WriteString("\nOverwrites or ends something.\n")
	case tool.Annotations.IdempotentHint:
		w.WriteString("\nAdds something; the same call again adds nothing.\n")
	default:
		w.WriteString("\nAdds something, at each call again.\n")
	}
	tool.InputSchema.writeTable(w, "Argument", true)
	tool.OutputSchema.writeTable(w, "Answer", false)
}

// writeTable writes the members of an object; if marked is set, it marks the optional
// members.
func (s shownSchema) writeTable(w *strings.Builder, what string, marked bool) {
	if len(s.Properties) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| %s | Is | |\n|---|---|---|\n", what)
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { // required members first, in the order of "required"
		return strings.Compare(s.propertyOrder(a), s.propertyOrder(b))
	})
	for _, name := range names {
		optional := ""
		if marked && !slices.Contains(s.Required, name) {
			optional = "?"
		}
		m := s.Properties[name]
		text := strings.ReplaceAll(strings.Join(strings.Fields(m.Description), " "), "|", `\|`)
		fmt.Fprintf(w, "%s |\n", strings.TrimRight(fmt.Sprintf("| `%s`%s | %s | %s", name, optional, m.typeName(), text), " "))
	}
}

func (s shownSchema) propertyOrder(name string) string {
	if at := slices.Index(s.Required, name); at >= 0 {
		return fmt.Sprintf("0 %03d", at)
	}
	return "1 " + name
}

func (s shownSchema) typeName() string {
	switch {
	case len(s.Enum) > 0:
		var words []string
		for _, word := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", word))
		}
		return strings.Join(words, ", ")
	case s.Type == "array" && s.Items != nil:
		return "list of " + s.Items.typeName()
	case s.Type == nil:
		return "any"
	}
	if several, ok := s.Type.([]any); ok {
		var words []string
		for _, word := range several {
			words = append(words, fmt.Sprint(word))
		}
		return strings.Join(words, " or ")
	}
	return fmt.Sprint(s.Type)
}
