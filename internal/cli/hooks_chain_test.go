package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

const wrappingGraph = `id: words
name: Words
workflowType: tools/call
also: [resources/read, prompts/get]
nodes:
  - { id: start, type: start }
  - { id: call, type: mcp-call }
  - { id: words, type: hook, data: { hook: { handles: [result, error], script: "
      if (context.error) { context.error.message = context.error.message.replace('today', 'ever'); }
      else { context.response = mapStrings(context.response, (text) => text.replace('the note', 'a note').replace('secret', 'word')); }" } } }
  - { id: end, type: end }
edges: [{ source: start, target: call }, { source: call, target: words }, { source: words, target: end }]
`

const holdingGraph = `id: holding
name: Holding
workflowType: tools/call
order: 5
bindings: [{ tool: count }]
nodes:
  - { id: start, type: start }
  - { id: h, type: hook, data: { hook: { script: "return { hold: 'check it' };" } } }
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`

// TestGatewayRunsChains checks a chain in the running gateway: graphs also wrap errors,
// resources and prompts; a call that one graph holds still passes through the others; a
// call that an inner graph refuses is not held; and the request log has the trace of each
// graph, the outermost first.
func TestGatewayRunsChains(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	words, holding := filepath.Join(t.TempDir(), "words.yaml"), filepath.Join(t.TempDir(), "holding.yaml")
	writeFile(t, words, wrappingGraph)
	writeFile(t, holding, holdingGraph)
	for _, command := range []string{
		"hooks import " + words, "hooks import " + holding, "hooks enable words", "hooks enable holding",
		"hooks enable redact-secrets", "hooks enable block-by-argument",
	} {
		d.wantCommand(app.ExitOK, "", command)
	}
	a := d.connectClient("--toolsets", "gateway")
	for _, c := range []struct{ tool, text, want string }{
		{"one__echo", "a secret AKIAABCDEFGHIJKLMNOP", "a word [redacted]"},
		{"one__refuse", "x", "error: not ever"},
		{"one__count", "x", "waits for the approval of a person"},
		{"one__count", "x", "the hook graph holding: check it"},
		{"one__count", ".env", "it names a file of secrets"},
	} {
		if got := a.callWithText(c.tool, c.text); !strings.Contains(got, c.want) {
			t.Errorf("%s %q gives %s", c.tool, c.text, got)
		}
	}
	if answer := a.sendRequest("resources/read", map[string]any{"uri": "note://one"}); !strings.Contains(string(answer.Result), "a note") {
		t.Errorf("the resource is %s, %v", answer.Result, answer.Error)
	}
	prompt := a.sendRequest("prompts/get", map[string]any{"name": "one__greet", "arguments": map[string]any{"who": "secret"}})
	if !strings.Contains(string(prompt.Result), "word") || strings.Contains(string(prompt.Result), "secret") {
		t.Errorf("the prompt is %s, %v", prompt.Result, prompt.Error)
	}
	a.end()
	var list struct {
		Requests []struct {
			Tool  string
			Hooks []string
		}
	}
	_, out := d.runCommand("requests list --tool echo --json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Requests) != 1 || strings.Join(list.Requests[0].Hooks, " ") != "redact-secrets words block-by-argument" {
		t.Errorf("the request log has %s, %v", out, err)
	}
}
