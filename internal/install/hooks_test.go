package install

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func hookEnv(goos string) Env {
	return Env{GOOS: goos, Home: "/home/ada", Dir: "/home/me/shop", Getenv: func(string) string { return "" }}
}

func hookCommand() HookCommand {
	return HookCommand{Program: "/opt/my tools/guideway", Flags: []string{"--data-dir", "/data"}}
}

// hookFiles are the contents of a client's file before the hooks are added.
func hookFiles() map[string]string {
	return map[string]string{
		"missing":   "",
		"empty":     "{}\n",
		"settings":  "{\n    \"model\": \"opus\",\n    \"hooks\": {}\n}\n",
		"comments":  "{\n\t// mine\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{ \"hooks\": [ { \"type\": \"command\", \"command\": \"say done\" } ] } // keep\n\t\t],\n\t\t\"stop\": [{\"command\":\"say done\"}]\n\t}\n}",
		"one line":  `{"version":1,"hooks":{"PreToolUse":[]}}`,
		"CRLF":      "{\r\n  \"hooks\": {\r\n    \"BeforeTool\": []\r\n  }\r\n}\r\n",
		"own event": `{"hooks":{"Notification":[{"hooks":[{"type":"command","command":"beep"}]}]}}`,
	}
}

// TestHooksAreAddedAndRemoved checks for every client that adding the hooks keeps the other
// hooks and bytes of a file, that adding them again changes nothing, and that an undo
// restores the file byte for byte.
func TestHooksAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	env := hookEnv("linux")
	for _, c := range HookClients() {
		for name, before := range hookFiles() {
			f := File{Path: "/f", Exists: name != "missing", Content: []byte(before)}
			change, err := PlanHooks(env, c, hookCommand(), f)
			if err != nil || change.Action != ActionInstalled {
				t.Fatalf("%s: %s: %s, %v", c.ID, name, change.Action, err)
			}
			checkHooks(t, c, change.After)
			for _, keep := range []string{"say done", "// mine", "// keep", "beep", "opus"} {
				if strings.Count(string(change.After), keep) != strings.Count(before, keep) {
					t.Errorf("%s: %s: %q is lost:\n%s", c.ID, name, keep, change.After)
				}
			}
			again, err := PlanHooks(env, c, hookCommand(), File{Path: "/f", Exists: true, Content: change.After})
			if err != nil || again.Action != ActionNone || again.Changes() {
				t.Errorf("%s: %s: the second plan is %s, %v", c.ID, name, again.Action, err)
			}
			after := File{Path: "/f", Exists: true, Content: change.After}
			if f.Exists {
				after.Backups = []Backup{{Path: "/f.1", Content: []byte(before)}}
			}
			undo, err := PlanHooksUndo(env, c, after)
			if err != nil || undo.Action != ActionRemoved || undo.Delete != !f.Exists || string(undo.After) != before {
				t.Errorf("%s: %s: the undo is %s, delete %v, %v:\n%s", c.ID, name, undo.Action, undo.Delete, err, cmp.Diff(before, string(undo.After)))
			}
			if c.ID == "claude-code" && name == "comments" {
				const golden = "testdata/hooks-comments.golden"
				if *update {
					if err := os.WriteFile(golden, change.After, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil || !bytes.Equal(want, change.After) {
					t.Errorf("%v:\n%s", err, cmp.Diff(string(want), string(change.After)))
				}
			}
		}
	}
}

// checkHooks checks that a file has a hook of Guideway for each event of the client.
func checkHooks(t *testing.T, c HookClient, src []byte) {
	t.Helper()
	text := string(src)
	for _, event := range c.Events() {
		want := "'/opt/my tools/guideway' client-hook " + c.ID + " " + event + " --data-dir /data"
		if c.ID == "copilot" {
			compact := strings.Join(strings.Fields(text), "")
			if !strings.Contains(compact, `["client-hook","copilot","`+event+`","--data-dir","/data"]`) || !strings.Contains(text, `"/opt/my tools/guideway"`) {
				t.Errorf("%s: no hook for %s:\n%s", c.ID, event, text)
			}
		} else if strings.Count(text, want) != 1 {
			t.Errorf("%s: no single %q:\n%s", c.ID, want, text)
		}
	}
}

// TestHooksAreUpdated checks that hooks of another path or with other flags are replaced, and
// that an undo after a later edit removes the hooks and nothing else.
func TestHooksAreUpdated(t *testing.T) {
	t.Parallel()
	env := hookEnv("linux")
	for _, c := range HookClients() {
		old, err := PlanHooks(env, c, HookCommand{Program: "/old/guideway"}, File{Path: "/f"})
		if err != nil {
			t.Fatal(err)
		}
		change, err := PlanHooks(env, c, hookCommand(), File{Path: "/f", Exists: true, Content: old.After})
		if err != nil || change.Action != ActionUpdated || bytes.Contains(change.After, []byte("/old/")) {
			t.Errorf("%s: %s, %v:\n%s", c.ID, change.Action, err, change.After)
		}
		checkHooks(t, c, change.After)
		edited, err := SetMember(change.After, []string{"theme"}, json.RawMessage(`"dark"`))
		if err != nil {
			t.Fatal(err)
		}
		undo, err := PlanHooksUndo(env, c, File{Path: "/f", Exists: true, Content: edited})
		if err != nil || undo.Delete || !undo.Backup || bytes.Contains(undo.After, []byte("hooks")) || !bytes.Contains(undo.After, []byte("dark")) {
			t.Errorf("%s: the undo is %+v, %v:\n%s", c.ID, undo.Action, err, undo.After)
		}
		absent, err := PlanHooksUndo(env, c, File{Path: "/f", Exists: true, Content: undo.After})
		if err != nil || absent.Action != ActionAbsent || absent.Changes() {
			t.Errorf("%s: the second undo is %s, %v", c.ID, absent.Action, err)
		}
	}
}

// TestBrokenHookFilesAreUnchanged checks that a file that cannot be edited is reported.
func TestBrokenHookFilesAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"{", "[]", `{"hooks":[]}`, `{"hooks":{"Stop":{}}}`, `{"hooks":{"Stop":[],"Stop":[]}}`} {
		c := HookClients()[0]
		change, err := PlanHooks(hookEnv("linux"), c, hookCommand(), File{Path: "/f", Exists: true, Content: []byte(src)})
		if err == nil || !strings.Contains(err.Error(), "cannot edit /f") {
			t.Errorf("%s: %s, %v", src, change.After, err)
		}
	}
}

// TestHookCommandOnWindows checks that the command is the same for every shell on Windows.
func TestHookCommandOnWindows(t *testing.T) {
	t.Parallel()
	c, err := FindHookClient("Claude Code")
	if err != nil {
		t.Fatal(err)
	}
	change, err := PlanHooks(hookEnv("windows"), c, HookCommand{Program: `C:\Program Files\guideway.exe`}, File{Path: `C:\f`})
	if err != nil || !strings.Contains(string(change.After), `"\"C:/Program Files/guideway.exe\" client-hook claude-code Stop"`) {
		t.Errorf("%v:\n%s", err, change.After)
	}
}

// TestHookFilesOfScopes checks where each client reads its hooks.
func TestHookFilesOfScopes(t *testing.T) {
	t.Parallel()
	var got []string
	for _, c := range HookClients() {
		for _, scope := range []Scope{ScopeUser, ScopeProject} {
			path, err := c.Locate(hookEnv("linux"), scope)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, path)
		}
	}
	want := []string{
		"/home/ada/.claude/settings.json", "/home/me/shop/.claude/settings.json", "/home/ada/.codex/hooks.json", "/home/me/shop/.codex/hooks.json",
		"/home/ada/.cursor/hooks.json", "/home/me/shop/.cursor/hooks.json", "/home/ada/.gemini/settings.json", "/home/me/shop/.gemini/settings.json",
		"/home/ada/.copilot/hooks/guideway.json", "/home/me/shop/.github/hooks/guideway.json",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the files are %q, want %q", got, want)
	}
	home := Env{GOOS: "linux", Home: "/home/ada", Getenv: func(name string) string {
		return map[string]string{"GEMINI_CLI_HOME": "/g", "COPILOT_HOME": "/p", "CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/c"}[name]
	}}
	for id, want := range map[string]string{
		"claude-code": "/c/settings.json", "codex": "/x/hooks.json", "gemini": "/g/.gemini/settings.json", "copilot": "/p/hooks/guideway.json",
	} {
		c, err := FindHookClient(id)
		if err != nil {
			t.Fatal(err)
		}
		if path, err := c.Locate(home, ScopeUser); err != nil || path != want {
			t.Errorf("the moved file of %s is %q, want %q, %v", id, path, want, err)
		}
	}
	if _, err := FindHookClient("windsurf"); err == nil || !strings.Contains(err.Error(), "known: claude-code, codex, cursor, gemini, copilot") {
		t.Errorf("a client without hooks: %v", err)
	}
}

// TestOwnCommandsWithGuidewayAreKept checks that a command of the user that also starts
// Guideway is neither replaced nor removed.
func TestOwnCommandsWithGuidewayAreKept(t *testing.T) {
	t.Parallel()
	env := hookEnv("linux")
	for _, c := range HookClients() {
		if c.ID == "copilot" {
			continue // its commands have no shell
		}
		for _, own := range []string{
			"log.sh && guideway client-hook %s Stop", "guideway client-hook %s Stop | tee log", "nice guideway client-hook %s Stop", "guideway client-hook %s Stop; log.sh",
			"sh -c 'guideway client-hook %s Stop'", "echo guideway client-hook %s ", "guideway client-hook %s Stop > log", "'guideway client-hook %s Stop", "guideway client-hook %s $(log)",
		} {
			own = strings.ReplaceAll(own, "%s", c.ID)
			text, err := json.Marshal(own)
			if err != nil {
				t.Fatal(err)
			}
			before := `{"version":1,"hooks":{"` + c.Reports[0].Name + `":[{"hooks":[{"type":"command","command":` + string(text) + `}]},{"command":` + string(text) + `}]}}`
			change, err := PlanHooks(env, c, hookCommand(), File{Path: "/f", Exists: true, Content: []byte(before)})
			if err != nil || change.Action != ActionInstalled || bytes.Count(change.After, text) != 2 {
				t.Errorf("%s: %s: %s, %v:\n%s", c.ID, own, change.Action, err, change.After)
			}
			undo, err := PlanHooksUndo(env, c, File{Path: "/f", Exists: true, Content: change.After})
			if err != nil || bytes.Count(undo.After, text) != 2 || bytes.Contains(undo.After, []byte("/opt/my tools")) {
				t.Errorf("%s: %s: the undo results in %v:\n%s", c.ID, own, err, undo.After)
			}
		}
	}
}

// TestUndoAfterTheProgramMoved checks that an undo restores a file byte for byte, or removes
// one that did not exist, if the hooks start a program at another path, and if they were
// updated since.
func TestUndoAfterTheProgramMoved(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "windows"} {
		env := hookEnv(goos)
		for _, c := range HookClients() {
			for name, before := range hookFiles() {
				f := File{Path: "/f", Exists: name != "missing", Content: []byte(before)}
				for i, program := range []string{"/it's here/guideway", "/opt/guideway", `C:\new tools\guideway.exe`} {
					change, err := PlanHooks(env, c, HookCommand{Program: program, Flags: []string{"--data-dir", "/my data"}}, f)
					if err != nil || !change.Changes() {
						t.Fatalf("%s: %s: %s, %v", c.ID, name, change.Action, err)
					}
					if f.Exists {
						f.Backups = append(f.Backups, Backup{Path: "/f." + program, Content: f.Content})
					}
					f.Content, f.Exists = change.After, true
					undo, err := PlanHooksUndo(env, c, f)
					if err != nil || undo.Delete != (name == "missing") || string(undo.After) != before || len(undo.Consumed) != len(f.Backups) {
						t.Errorf("%s, %s: %s: the undo after %d updates deletes %v, consumes %d, %v:\n%s", goos, c.ID, name, i, undo.Delete, len(undo.Consumed), err, cmp.Diff(before, string(undo.After)))
					}
				}
			}
		}
	}
}
