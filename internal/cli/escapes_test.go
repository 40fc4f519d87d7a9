package cli

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/workflows"
	"go.yaml.in/yaml/v3"
)

// hostileText has the characters that a terminal executes or hides.
const hostileText = "\x1b]0;PWN\x07\x1b[31m\u009b31m\u202elive\u200b\U000E0041\u2028\x08end"

// plantText adds hostileText to every name and text of a decoded document.
func plantText(v any) any {
	texts := map[string]bool{
		"name": true, "title": true, "description": true, "label": true, "prompt": true, "message": true, "text": true,
		"version": true, "goal": true, "system": true, "agent": true, "notes": true,
	}
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if text, ok := member.(string); ok && texts[key] {
				v[key] = text + hostileText
			} else {
				v[key] = plantText(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = plantText(v[i])
		}
	}
	return v
}

// writeHostile writes a bundled document with hostile texts.
func writeHostile(t *testing.T, from, to string, change func(map[string]any)) {
	t.Helper()
	text, err := fs.ReadFile(workflows.FS(), from)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	plantText(doc)
	if change != nil {
		change(doc)
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(out))
}

// No command prints a raw control, bidi or zero-width character of a file or a run: neither
// in lists, texts, diagnostics or errors, nor in JSON.
func TestNoCommandPrintsRawEscapes(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	dir := filepath.Join(host.Dir, "work")
	host.Dir = dir
	flows := filepath.Join(dir, ".guideway", "workflows")
	flow, _ := json.Marshal(map[string]any{
		"id": "flow", "name": "Flow" + hostileText, "description": "d" + hostileText, "version": "1.0.0",
		"steps": []any{map[string]any{
			"id": "one", "title": "One" + hostileText, "prompt": "Do it." + hostileText, "approval": "human", "guidance": []string{hostileText},
			"validationCriteria": []any{map[string]any{"type": "contains", "value": "ok", "message": "say ok" + hostileText}},
		}},
	})
	writeFile(t, filepath.Join(flows, "flow.json"), string(flow))
	broken, _ := json.Marshal(map[string]any{"id": "x" + hostileText, "kind": "hooks", "name": hostileText, "type": hostileText, "variables": map[string]any{"v" + hostileText: 1}, hostileText: 1})
	for _, name := range []string{"hooks/broken.json", "broken.json", "hooks/modules/broken.json"} {
		writeFile(t, filepath.Join(flows, name), string(broken))
	}
	writeFile(t, filepath.Join(flows, "hooks", "bad.json"), `{"id": "bad`+hostileText+`", "nodes": [`)
	writeHostile(t, "hooks/default-argument.yaml", filepath.Join(flows, "hooks", "hostile.json"), func(doc map[string]any) { doc["id"] = "hostile" })
	machine := filepath.Join(flows, "machines", "desk")
	writeHostile(t, "machines/support-desk/machine.json", filepath.Join(machine, "machine.json"), nil)
	writeHostile(t, "machines/support-desk/roles.json", filepath.Join(machine, "roles.json"), nil)
	writeFile(t, filepath.Join(machine, "script.js"), "// "+hostileText+"\n")
	text := strings.Trim(string(mustJSON(t, hostileText)), `"`)
	id := agent(t, host, `start {"WorkflowID":"flow","Goal":"the goal`+text+`"}
		continue {"Output":"ok `+text+`","Notes":"note`+text+`","Context":{"k`+text+`":"`+text+`"}}`)
	commands := []string{
		"runs approve --set-passphrase",
		"list", "list --json", "show flow", "show flow --json", "validate .guideway", "validate .guideway --json",
		"validate .guideway/workflows/broken.json", "doctor", "doctor --json", "sources", "sources --json",
		"hooks list", "hooks list --json", "hooks show hostile", "hooks show hostile --json", "hooks test hostile", "hooks test hostile --json",
		"hooks export hostile", "hooks show bad", "hooks show broken", "hooks enable broken", "hooks test broken", "hooks export broken",
		"hooks show .guideway/workflows/hooks/broken.json", "hooks test .guideway/workflows/hooks/bad.json", "hooks enable .guideway/workflows/hooks/broken.json",
		"hooks validate .guideway/workflows/hooks/broken.json", "hooks validate .guideway/workflows/hooks/hostile.json --json", "hooks enable hostile",
		"machine list", "machine list --json", "machine show desk", "machine show desk --json", "machine validate .guideway/workflows/machines/desk", "machine approve desk",
		"runs list", "runs list --json", "runs show RUN", "runs show RUN --events --vars", "runs show RUN --json", "runs show RUN --state", "runs export RUN", "runs verify", "runs approve RUN", "runs resume RUN",
		"run flow", "show nothing", "runs abort RUN --json",
	}
	for _, command := range commands {
		out.Reset()
		in := &fakeTerminal{echo: out, lines: []string{personsWords, personsWords}}
		host.In = in
		typeSecrets(&host, in)
		code := Run(t.Context(), strings.Fields(strings.ReplaceAll(command, "RUN", id)), host)
		for line := range strings.Lines(out.String()) {
			if strings.ContainsFunc(line, visible.IsHidden) || strings.Contains(strings.TrimSuffix(line, "\r\n"), "\r") {
				t.Errorf("guideway %s (exit code %d) prints %q", command, code, line)
				break
			}
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
