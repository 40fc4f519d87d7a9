package install

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestUndoAfterEdits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, client, before string
		edit                 func(string) string
		want                 string
	}{
		{"other key", "cursor", "{\n  \"a\": 1\n}\n", replaceText(`"a": 1`, `"a": 2`), "{\n  \"a\": 2\n}\n"},
		{"servers were empty", "cursor", "{ \"mcpServers\": { }, \"a\": 1 }", replaceText(`"a": 1`, `"a": 2`), "{ \"mcpServers\": { }, \"a\": 2 }"},
		{"another server after it", "cursor", `{"a":1}`, replaceText(`]}}}`, `]},"x":{"command":"y"}}}`), `{"a":1,"mcpServers":{"x":{"command":"y"}}}`},
		{"field in the entry", "vscode", "{\n\t\"servers\": {}, // c\n}", replaceText(`"args"`, `"cwd": "/", "args"`), "{\n\t\"servers\": {}, // c\n}"},
		{"yaml other key", "continue", "a: 1", replaceText("a: 1", "a: 2"), "a: 2"},
		{"yaml another key after it", "continue", "a: 1\n", func(s string) string { return s + "z: 1\n" }, "a: 1\nz: 1\n"},
		{"yaml another server after it", "continue", "a: 1\n", func(s string) string { return s + "  - name: x\n" }, "a: 1\nmcpServers:\n  - name: x\n"},
		{"yaml member of the entry", "continue", "mcpServers: # c\na: 1\n", replaceText("args: [mcp]", "args: [mcp]\n    cwd: /"), "mcpServers: # c\na: 1\n"},
		{"opencode's schema", "opencode", "", replaceText("{", "{\n  \"$schema\": \"x\","), "{\n  \"$schema\": \"x\",\n  \"mcp\": {}\n}\n"},
		{"toml other key", "codex", "a = 1", replaceText("a = 1", "a = 2"), "a = 2"},
		{"toml another table after it", "codex", "a = 1\n", func(s string) string { return s + "\n[z]\nb = 1\n" }, "a = 1\n\n[z]\nb = 1\n"},
		{"toml subtable in the entry", "codex", "a = 1\n", func(s string) string { return s + "[mcp_servers.guideway.tools.x]\nb = 1\n" }, "a = 1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, req := findClient(t, tt.client), Request{Command: binary}
			after := tt.edit(string(mustPlan(t, c, req, existingFile(tt.before)).After))
			got, err := PlanUndo(Env{}, c, req, existingFile(after, tt.before))
			if err != nil || string(got.After) != tt.want || got.Action != ActionRemoved || !got.Backup {
				t.Errorf("undo = %s %q, %v; want %q", got.Action, got.After, err, tt.want)
			}
		})
	}
}

func replaceText(old, text string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, text, 1) }
}

func TestUndoUnwindsUpdates(t *testing.T) {
	t.Parallel()
	for _, c := range Clients() {
		before := "{\"a\": 1}"
		switch c.ID {
		case "codex":
			before = "a = 1"
		case "continue":
			before = "a: 1"
		}
		first := mustPlan(t, c, Request{Command: "/a/guideway"}, existingFile(before))
		second := mustPlan(t, c, Request{Command: "/b/guideway"}, existingFile(string(first.After)))
		if second.Action != ActionUpdated || second.OldTarget != "/a/guideway" {
			t.Errorf("%s: second = %s of %s", c.ID, second.Action, second.OldTarget)
		}
		undo, err := PlanUndo(Env{}, c, Request{}, existingFile(string(second.After), before, string(first.After)))
		if err != nil || string(undo.After) != before || len(undo.Consumed) != 2 {
			t.Errorf("%s: undo = %q, %v", c.ID, undo.After, err)
		}
		edited := strings.Replace(string(first.After), "1", "2", 1)
		third := mustPlan(t, c, Request{Command: "/b/guideway"}, existingFile(edited))
		undo, err = PlanUndo(Env{}, c, Request{}, existingFile(string(third.After), before, edited))
		if want := strings.Replace(before, "1", "2", 1); err != nil || string(undo.After) != want {
			t.Errorf("%s: undo after an edit between = %q, %v; want %q", c.ID, undo.After, err, want)
		}
	}
}

func TestUndoNewFile(t *testing.T) {
	t.Parallel()
	for _, c := range Clients() {
		made := mustPlan(t, c, Request{Command: binary}, File{Path: "config"})
		undo, err := PlanUndo(Env{}, c, Request{}, existingFile(string(made.After)))
		if err != nil || !undo.Delete || !undo.Changes() {
			t.Errorf("%s: undo = %+v, %v", c.ID, undo, err)
		}
		if again, err := PlanUndo(Env{}, c, Request{}, File{Path: "config"}); err != nil || again.Changes() {
			t.Errorf("%s: again = %s, %v", c.ID, again.Action, err)
		}
	}
}

func TestUndoRestoresUserEntry(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ client, before string }{
		{"cursor", `{"mcpServers":{"guideway":{"command":"npx","args":["guideway"]}},"a":1}`},
		{"continue", "a : 1\nmcpServers:\n- name: guideway\n  args: [guideway] # mine\n  command: \"npx\"\n  cwd: /\n- name: b\n"},
		{"opencode", `{"mcp":{"guideway":{"type":"local","command":["npx","guideway"],"enabled":false}},"a":1}`},
		{"codex", "a = 1\n[mcp_servers.guideway]\ncommand = \"npx\"\nargs = [\"guideway\"]\n"},
	} {
		c, req := findClient(t, tt.client), Request{Command: binary}
		after := string(mustPlan(t, c, req, existingFile(tt.before)).After)
		undo, err := PlanUndo(Env{}, c, req, existingFile(after, tt.before))
		if err != nil || string(undo.After) != tt.before || undo.Action != ActionRestored {
			t.Errorf("undo = %s %q, %v", undo.Action, undo.After, err)
		}
		edit := func(s string) string {
			return strings.NewReplacer(`"a":1`, `"a":2`, "a = 1", "a = 2", "a : 1", "a : 2").Replace(s)
		}
		undo, err = PlanUndo(Env{}, c, req, existingFile(edit(after), tt.before))
		if err != nil || string(undo.After) != edit(tt.before) || undo.Action != ActionRestored {
			t.Errorf("undo after an edit = %s %q, %v", undo.Action, undo.After, err)
		}
	}
}

func TestUndoBrokenFile(t *testing.T) {
	t.Parallel()
	if _, err := PlanUndo(Env{}, findClient(t, "cursor"), Request{}, existingFile("{")); err == nil ||
		!strings.Contains(err.Error(), "config:1:2") {
		t.Errorf("error = %v", err)
	}
}

// After an installation into a random document, undo restores the document with and without
// the backup.
func TestUndoProperty(t *testing.T) {
	t.Parallel()
	form := findClient(t, "vscode").Form
	rapid.Check(t, func(t *rapid.T) {
		gap := rapid.SampledFrom([]string{"", " ", "\n", "\r\n\t", "/* c */", " // l\n", "\n  // l\r\n  "})
		space := func() string { return gap.Draw(t, "gap") }
		var object func(depth int, keys []string) string
		object = func(depth int, keys []string) string {
			out, n := "{"+space(), rapid.IntRange(0, len(keys)).Draw(t, "members")
			for i, k := range keys[:n] {
				value := rapid.SampledFrom([]string{"1", `"x,}"`, "[1, 2,]", "null", "{}"}).Draw(t, "value")
				if k == "servers" || depth < 2 && rapid.Bool().Draw(t, "nested") {
					value = object(depth+1, []string{"a", "b"})
				}
				out += quoteJSON(k) + space() + ":" + space() + value + space()
				if i < n-1 || rapid.Bool().Draw(t, "trailing comma") {
					out += "," + space()
				}
			}
			return out + "}"
		}
		src := []byte(space() + object(0, rapid.Permutation([]string{"x", "servers", "y"}).Draw(t, "keys")) + space())
		after, err := form.putEntry(src, "guideway", Entry{Command: binary, Args: []string{"mcp"}})
		if err != nil {
			t.Fatalf("put into %q: %v", src, err)
		}
		back, err := form.removeEntry(after, "guideway", src)
		if err != nil || !bytes.Equal(back, src) {
			t.Fatalf("remove: %v\n got %q\nwant %q\nfrom %q", err, back, src, after)
		}
	})
}

// After an installation into a random YAML file, undo restores the file with and without the
// backup, and the file has exactly one more server.
func TestUndoPropertyYAML(t *testing.T) {
	t.Parallel()
	form := findClient(t, "continue").Form
	rapid.Check(t, func(t *rapid.T) {
		nl := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
		pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) }
		outer := pick("indent", "", "  ")
		gap := func() string { return pick("gap", "", "", nl, "# c"+nl, outer+"  # d"+nl+nl) }
		value := func() string {
			return pick("value", "1", "'it''s' # c", `"a\"b: "`, "x y", "[1, {a: b}] # [", "*n", "|"+nl+outer+"          # t"+nl, ">-"+nl+outer+"          a"+nl+nl+outer+"          b")
		}
		src, servers := gap()+outer+"anchor: &n 1"+nl, 0
		for _, key := range rapid.Permutation([]string{"a", "mcpServers", "b"}).Draw(t, "keys")[:rapid.IntRange(0, 3).Draw(t, "members")] {
			if key != "mcpServers" {
				src += gap() + outer + key + ": " + value() + nl
				continue
			}
			src += gap() + outer + key + ":" + pick("comment", "", " # list") + nl
			dash := outer + pick("dash", "", "  ", "    ") + "-" + pick("space", " ", "   ")
			for range rapid.IntRange(0, 3).Draw(t, "servers") {
				servers++
				src += gap() + dash + "name: s" + nl + strings.Repeat(" ", len(dash)) + "command: " + value() + nl
			}
		}
		src += gap()
		after, err := form.putEntry([]byte(src), "guideway", Entry{Command: binary, Args: []string{"mcp"}})
		if err != nil {
			t.Fatalf("put into %q: %v", src, err)
		}
		d, err := readYAML(after, form.Key)
		if err != nil || len(d.tree["mcpServers"].([]any)) != servers+1 {
			t.Fatalf("%v: the file has %v servers, want %d\n%s", err, d.tree["mcpServers"], servers+1, after)
		}
		back, err := form.removeEntry(after, "guideway", []byte(src))
		if err != nil || string(back) != src {
			t.Fatalf("remove: %v\n got %q\nwant %q\nfrom %q", err, back, src, after)
		}
	})
}
