package cli

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/testutil/leaves"
)

const wholeGraph = `{
  "id": "theirs", "name": "Theirs", "workflowType": "tools/call", "also": ["resources/read"], "order": 40,
  "bindings": [{"upstream": "files", "tool": "read*"}],
  "variables": {"limit": 5, "list": ["a  b", true]},
  "modules": [{"id": "m", "name": "m", "script": "context.request.params.mark = 1;"}, {"id": "m2", "name": "m2", "script": "context.request.params.mark = 3;"}],
  "nodes": [
    {"id": "start", "type": "start"},
    {"id": "h", "type": "hook", "data": {"hook": {"hookModuleId": "m", "blocking": true, "timeoutMs": 500, "handles": ["result"]}}},
    {"id": "c", "type": "condition", "data": {"condition": {"type": "simple", "variable": "limit", "operator": "==", "value": 5}, "onMismatch": "refuse"}},
    {"id": "i", "type": "hook", "data": {"hook": {"script": "context.request.params.other = 1;", "blocking": false}}},
    {"id": "call", "type": "mcp-call"},
    {"id": "r", "type": "hook", "data": {"hook": {"script": "return { response: { content: [] } };", "blocking": true, "answers": true}}},
    {"id": "end", "type": "end"}, {"id": "end2", "type": "end"}],
  "edges": [
    {"source": "start", "target": "h"}, {"source": "h", "target": "c"}, {"source": "h", "target": "i"},
    {"source": "c", "target": "call", "sourceHandle": "true"}, {"source": "c", "target": "r", "sourceHandle": "false"},
    {"source": "call", "target": "end"}, {"source": "r", "target": "end2"}]}`

// A person who enables a graph sees everything that affects its execution: each change of
// such a value changes the pin and the shown text.
func TestShownGraphHasEveryMember(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	file := filepath.Join(filepath.Dir(d.file), "theirs.json")
	pin := regexp.MustCompile(`pin sha256:[0-9a-f]+`)
	show := func(text string) (shown, hash string, ok bool) {
		writeFile(t, file, text)
		code, out := d.runCommand("hooks show " + file + " --scripts")
		if code != app.ExitOK || !pin.MatchString(out) {
			return out, "", false
		}
		return pin.ReplaceAllString(out, ""), pin.FindString(out), true
	}
	text, hash, ok := show(wholeGraph)
	if !ok {
		t.Fatal(text)
	}
	options := map[string][]any{
		"workflowType": {"tools/list"}, "also/0": {"prompts/get"}, "nodes/1/data/hook/handles/0": {"error"}, "nodes/2/data/onMismatch": {"record"}, "nodes/1/data/hook/hookModuleId": {"m2"}, "nodes/2/data/condition/operator": {"!=", ">"},
		"edges/2/sourceHandle": {"false"}, "edges/3/sourceHandle": {"true"}, "nodes/2/data/condition/variable": {"list"},
	}
	tested := 0
	check := func(path string, variants []string) {
		for _, variant := range variants {
			otherText, otherHash, ok := show(variant)
			if !ok {
				continue
			}
			tested++
			if otherText == text || otherHash == hash {
				t.Errorf("%s: same text: %t, same pin: %t", path, otherText == text, otherHash == hash)
			}
			return
		}
		t.Errorf("%s: no change of it is valid", path)
	}
	for _, c := range leaves.ChangesOf(t, wholeGraph, options) {
		switch {
		case c.Path == "name", strings.HasPrefix(c.Path, "modules/1"), c.Path == "modules/0/name": // these members have no effect
		case strings.HasSuffix(c.Path, "/id"), strings.HasSuffix(c.Path, "/type"), c.Path == "id": // references need these members
		case strings.HasSuffix(c.Path, "/blocking"), strings.HasSuffix(c.Path, "/answers"): // the edges require these members
		case strings.HasPrefix(c.Path, "edges/"), c.Path == "workflowType": // one change alone is invalid; the branches are tested below
		default:
			check(c.Path, c.Texts)
		}
	}
	swap := strings.NewReplacer(`"sourceHandle": "true"`, `"sourceHandle": "false"`, `"sourceHandle": "false"`, `"sourceHandle": "true"`)
	check("branches", []string{swap.Replace(wholeGraph)})
	check("a node", []string{strings.ReplaceAll(wholeGraph, `"i"`, `"i2"`)})
	check("the id", []string{strings.Replace(wholeGraph, `"theirs"`, `"theirs2"`, 1)})
	if tested < 15 {
		t.Errorf("only %d changes were tested", tested)
	}
}

// A script with a character that a reviewer does not see is refused with its position: a
// line separator ends a comment, but a terminal shows the next code in the comment. No
// character is exempt in a script, even one that forms an emoji in prose: an identifier may
// contain a selector or a joiner.
func TestHiddenCharactersAreNotApproved(t *testing.T) {
	t.Parallel()
	const shown = "// Notes the time…%scontext.request.params.path = 1"
	for name, tt := range map[string]struct {
		between, code string
		ok            bool
	}{
		"carriage return":     {"\r", "U+000D", false},
		"line separator":      {"\u2028", "U+2028", false},
		"paragraph separator": {"\u2029", "U+2029", false},
		"direction":           {"\u202e", "U+202E", false},
		"escape":              {"\x1b[2K", "U+001B", false},
		"zero width":          {"\u200b", "U+200B", false},
		"emoji selector":      {"\ufe0f", "U+FE0F", false},
		"text selector":       {"\ufe0e", "U+FE0E", false},
		"joiner":              {"\u200d", "U+200D", false},
		"Mongolian selector":  {"\u180b", "U+180B", false},
		"Khmer vowel":         {"\u17b4", "U+17B4", false},
		"reserved":            {"\U000E0FFF", "U+E0FFF", false},
		"line feed":           {"\n", "", true},
		"both":                {"\r\n", "", true},
		"tab":                 {"\t", "", true},
		"other languages":     {" für 日本 👍 ", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHookProject(t)
			script := quoteYAML(t, strings.Replace(shown, "%s", tt.between, 1))
			writeFile(t, d.file, strings.Replace(projectGraph, `"context.request.params.mark = 1;"`, script, 1))
			if tt.ok {
				d.wantCommand(app.ExitOK, "Enabled theirs", "hooks enable theirs", "theirs")
			} else {
				d.wantCommand(app.ExitInvalid, tt.code, "hooks enable theirs", "theirs")
				d.wantCommand(app.ExitInvalid, ":1:19", "hooks enable theirs", "theirs")
				d.wantCommand(app.ExitOK, "theirs             tools/call  off", "hooks list")
			}
			machine := filepath.Join(d.host.Dir, "workflows", "machines", "own")
			writeFile(t, filepath.Join(machine, "machine.json"), reviewedMachine)
			writeFile(t, filepath.Join(machine, "script.js"), "export default {\n  f() { "+strings.Replace(shown, "%s", tt.between, 1)+"\n},\n}\n")
			if tt.ok {
				d.wantCommand(app.ExitOK, "Approved own", "machine approve own", "own")
				d.wantCommand(app.ExitOK, "machine own", "audit list")
				for _, part := range []string{"read ~/.ssh/id_rsa", "fs__*", "calls: 7", "next_state: other", "// Notes the time…"} {
					d.wantCommand(app.ExitOK, part, "machine show own")
				}
			} else {
				d.wantCommand(app.ExitInvalid, tt.code, "machine approve own", "own")
				d.wantCommand(app.ExitInvalid, ":2:27", "machine approve own", "own")
			}
			// The linters report the character before a person is asked for an approval.
			for _, command := range []string{"machine validate --strict own", "validate --strict " + filepath.Join(machine, "machine.json"), "validate --strict " + d.file} {
				place := "script.js:2:27: warning"
				if strings.HasSuffix(command, d.file) {
					place = "[hidden-character] (/nodes/1/data/hook/script)"
				}
				if !tt.ok {
					d.wantCommand(app.ExitInvalid, tt.code, command)
					d.wantCommand(app.ExitInvalid, place, command)
				} else if _, out := d.runCommand(command); strings.Contains(out, "hidden-character") {
					t.Errorf("%s: %s", command, out)
				}
			}
		})
	}
}

const reviewedMachine = `{
  "workflow_name": "own", "description": "d", "inputs": [], "output": {"name": "out", "type": "string", "description": "d"},
  "contexts": [{"name": "talk", "starting_messages": [{"role": "user", "content": "go"}]}],
  "agents": [{"agent_role": "worker", "context": "talk", "role": "assistant"}], "budgets": {"calls": 7},
  "roles": {"worker": {"systemMessage": "read ~/.ssh/id_rsa", "includedTools": ["fs__*"]}},
  "states": [{"name": "start", "agent": "worker", "pre_handler": "f", "next_state": "other"}, {"name": "other"}, {"name": "stop"}]}`

// quoteYAML returns a text as a quoted value of YAML.
func quoteYAML(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}
