package install

import (
	"bytes"
	"testing"
)

var jsonSeeds = []string{
	"", " \n", "{}", "{ }", "{\n}", "{}\n", "\xef\xbb\xbf{}\r\n", "// only\n", "{ /* c */ }", "{ // c\n}",
	`{"a":1}`, `{"a": 1}`, "{\n  \"a\": 1\n}\n", "{\r\n\t\"a\": [1, 2,],\r\n}\r\n",
	`{"mcpServers":{}}`, `{"mcpServers": { }}`, "{\n  \"mcpServers\": {\n  }\n}",
	"{\n    \"mcpServers\": {\n        \"x\": {\"command\": \"y\"} // keep\n        // last\n    },\n    \"z\": null,\n}",
	`{"mcpServers":{"guideway":{"command":"/old","args":["mcp"],"disabled":true}}}`,
	`{"mcpServers":{"guideway":{"url":"http://x"}}}`,
	`{"mcpServers":[]}`, `{"a":1 // c` + "\n}", `{"a":1,/* b */}`, `[1]`, `{"a":"\u00e9\ud83d\ude00"}`,
	`{"a":1}}`, `{"mcpServers":{},"mcpServers":{}}`, `{"a" 1}`, "{\"a\":\"\n\"}",
}

// FuzzEdit checks that any edited document can be parsed and has the new entry, that undo
// returns the original bytes with and without the backup, and that nothing panics.
func FuzzEdit(f *testing.F) {
	for _, s := range jsonSeeds {
		f.Add([]byte(s), "/opt/guideway", "VALUE")
	}
	f.Fuzz(func(t *testing.T, src []byte, command, value string) {
		for _, form := range []format{findClient(t, "cursor").Form, findClient(t, "vscode").Form, findClient(t, "opencode").Form, findClient(t, "cline").Form} {
			checkEdit(t, Client{ID: "fuzz", declaration: declaration{Form: form}}, src, command, value)
		}
	})
}

// FuzzEditYAML is FuzzEdit for YAML. The parsed file gains exactly one server.
func FuzzEditYAML(f *testing.F) {
	for _, s := range yamlSeeds {
		f.Add([]byte(s), "/opt/guideway", "VALUE")
	}
	f.Fuzz(func(t *testing.T, src []byte, command, value string) {
		checkEdit(t, Client{ID: "fuzz", declaration: declaration{Form: findClient(t, "continue").Form}}, src, command, value)
	})
}

var yamlSeeds = []string{
	"", "\n", "# only\n", "---\n", "---\n# c\n...\n", "{}", "{}\n", "a: 1", "a: 1\n", "\xef\xbb\xbfa: 1\r\nb:\r\n  - c\r\n", "  a: 1\n  b: 2\n",
	"mcpServers:\n", "mcpServers: # c\nb: 1\n", "mcpServers: []\n", "mcpServers: [ ] # c\n", "mcpServers: ~\n", "mcpServers: {}\n",
	"mcpServers:\n  - name: x\n    command: y\n", "mcpServers:\n- name: x\n  command: y\nz: 1\n", "mcpServers:\n  -   name: x\n      command: y # c\n\n  # - name: old\n\n# models\nmodels: []",
	"mcpServers: [{name: x, command: y}]\n", "mcpServers: [\n  {name: x, command: \"y]\"}, # c\n  # d\n]\n", "{\"a\": 1, \"mcpServers\": [{\"name\": \"x\"}]}",
	"mcpServers:\n  - name: guideway\n    command: /old # c\n    args:\n      - mcp # m\n    env:\n      A: 1\n    cwd: /\n  - name: x\n",
	"mcpServers:\n  - {name: guideway, command: '/it''s', args: [mcp]}\n", "mcpServers:\n  - name: guideway\n    type: sse\n    url: http://x\n",
	"a: |+\n  # text\n\n", "a: >-\n  b\nmcpServers:\n  - name: x\n    rules: |\n      # text\n\n\n", "a: &x [1]\nb: *x\n", "a: &x\n  mcpServers: []\n<<: *x\n",
	"mcpServers: &x\n  - name: y\n", "mcpServers:\n  -\n    name: guideway\n    command: z\n  -\n    name: y\n", "? mcpServers\n: - name: x\n", "a: 1\n---\nb: 2\n", "a: [\n", "\ta: 1\n",
	"mcpServers:\n  - uses: a/b\n  - name: guideway\n    env:\n    command: é\n",
}

// FuzzEditTOML is FuzzEdit for TOML.
func FuzzEditTOML(f *testing.F) {
	for _, s := range tomlSeeds {
		f.Add([]byte(s), "/opt/guideway", "VALUE")
	}
	f.Fuzz(func(t *testing.T, src []byte, command, value string) {
		checkEdit(t, Client{ID: "fuzz", declaration: declaration{Form: findClient(t, "codex").Form}}, src, command, value)
	})
}

var tomlSeeds = []string{
	"", "\n", "# only\n", "model = \"x\"", "model = \"x\"\n", "model = \"x\"\r\n\r\n[a]\r\nb = 1\r\n", "\xef\xbb\xbfa = 1\n",
	"mcp_servers = {}\n", "mcp_servers = { a = { command = \"x\" } } # c\n", "mcp_servers.a.command = \"x\"\n",
	"[mcp_servers]\n", "[mcp_servers]\nguideway = { command = \"/old\", args = [\"mcp\"] }\n",
	"[mcp_servers.guideway]\ncommand = '/old'\nargs = [\n  \"mcp\", # c\n]\n[mcp_servers.guideway.env]\nA = \"1\"\n[z]\n",
	"[mcp_servers.\"guideway\"]\ncommand = \"\"\"\n/old\"\"\"\n", "a = '''\n[mcp_servers.guideway]\n'''\n",
	"[[p]]\na = 1979-05-27T07:32:00Z\n[[p]]\nb = [ {x = 1}, {y = nan} ]\n", "mcp_servers = 1\n", "[a\n",
}

func checkEdit(t *testing.T, client Client, src []byte, command, value string) {
	t.Helper()
	if command == "" {
		return
	}
	req := Request{Command: command, Env: map[string]string{"KEY": value}, Force: true}
	file := File{Path: "f", Exists: true, Content: src}
	change, err := Plan(Env{}, client, req, file)
	if err != nil || change.Action == ActionNone {
		return
	}
	form := client.Form
	entry, found, err := form.lookupEntry(change.After, DefaultName)
	if err != nil || !found || entry.Command != command || entry.Env["KEY"] != value {
		t.Fatalf("entry = %+v, %v, %v\n%s", entry, found, err, change.After)
	}
	again, err := Plan(Env{}, client, req, File{Path: "f", Exists: true, Content: change.After})
	if err != nil || again.Action != ActionNone {
		t.Fatalf("again: %v, %v\n%q", again.Action, err, change.After)
	}
	edited := File{Path: "f", Exists: true, Content: change.After, Backups: []Backup{{"b", src}}}
	undo, err := PlanUndo(Env{}, client, req, edited)
	if err != nil || !bytes.Equal(undo.After, src) {
		t.Fatalf("undo: %v\n got %q\nwant %q\nfrom %q", err, undo.After, src, change.After)
	}
	if change.Action != ActionInstalled {
		return
	}
	bare, err := form.removeEntry(change.After, DefaultName, src)
	if err != nil {
		t.Fatalf("remove: %v\n%s", err, change.After)
	}
	if form.Language == languageJSON && !bytes.Equal(bare, src) {
		if d, err := readJSON(src); err == nil && d.root != nil {
			t.Fatalf("remove by edit of %s\n got %q\nwant %q\nfrom %q", form.Key, bare, src, change.After)
		}
	}
}
