package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/spf13/cobra"
)

// ownCommands are the commands on data of one user, with arguments that name objects of
// another one: RUN, CHECKPOINT and SERIES.
func ownCommands() map[string]string {
	return map[string]string{
		"runs list": "", "runs show": "RUN", "runs resume": "RUN", "runs export": "RUN", "runs fork": "RUN", "runs abort": "RUN", "runs approve": "RUN",
		"runs attest": "RUN", "stats": "", "checkpoint list": "", "checkpoint show": "CHECKPOINT", "checkpoint load": "CHECKPOINT", "checkpoint diff": "CHECKPOINT CHECKPOINT",
		"checkpoint export": "SERIES", "checkpoint log": "", "checkpoint delete": "CHECKPOINT --yes", "cleanup": "--older-than 1s", "checkpoint save": "context.json",
		"sessions list": "", "sessions show": "SERIES", "sessions delete": "SERIES --yes", "machine status": "RUN", "machine cancel": "RUN", "machine fork": "RUN",
		"machine input": "RUN --value x", "machine resume": "RUN", "machine replay": "RUN", "calls list": "", "calls show": "hc_none", "calls approve": "hc_none", "calls deny": "hc_none",
		"requests list": "", "requests show": "q_none", "requests stats": "", "token show": "anns", "token revoke": "anns",
	}
}

// sharedCommands are all other commands: on definitions, settings and the server, which the
// local user administers, and on what all users share. Who runs them has the data directory.
const sharedCommands = `attest keys create, attest keys list, attest keys remove, attest keys show, audit export, audit list, audit verify, backup,
	checkpoint import, checkpoint verify, checks approve, checks list, checks run, ci verify, client-hook, completion bash, completion fish,
	completion powershell, completion zsh, connect, doctor, encryption rotate, hooks disable, hooks enable, hooks export, hooks import, hooks list,
	hooks show, hooks state clear, hooks state list, hooks test, hooks types, hooks validate, init, install, key init, list, machine approve,
	machine list, machine run, machine show, machine validate, mcp, migrate hooks, migrate phases, migrate workrail, notify list, notify test, open,
	requests prune, requests tail, restore, run, runs import, runs verify, schema, serve, settings, show, sources list, sources sync, token create, token list,
	upstream add, upstream approve, upstream disable, upstream enable, upstream import, upstream list, upstream login, upstream logout, upstream logs,
	upstream project clear, upstream project list, upstream project set, upstream remove, upstream restart, upstream show, validate, verify, version`

// visibleCommands returns the paths of all commands that do something.
func visibleCommands(cmd *cobra.Command, prefix string) (paths []string) {
	for _, child := range cmd.Commands() {
		path := strings.TrimSpace(prefix + " " + child.Name())
		if !child.Hidden && child.Name() != "help" {
			if len(child.Commands()) == 0 {
				paths = append(paths, path)
			}
			paths = append(paths, visibleCommands(child, path)...)
		}
	}
	return paths
}

// A command on data of one user neither shows nor changes that of another. A command without
// a row fails.
func TestNoUserSeesAnothersByCommands(t *testing.T) {
	t.Parallel()
	const marker = "ANNS-SECRET"
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1", "GUIDEWAY_CHECKPOINT_AUTO_SAVE": "false"})
	host.InTerminal = false
	writeFile(t, filepath.Join(host.Dir, "workflows", "flow.json"), stepsFlow)
	id := agent(t, host, `start {"WorkflowID":"flow","Goal":"`+marker+`"}`)
	context := filepath.Join(host.Dir, "context.json")
	if err := os.WriteFile(context, []byte(`{"text":"`+marker+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	execute := func(args ...string) (string, int) {
		out.Reset()
		code := Run(t.Context(), args, host)
		return out.String(), code
	}
	saved, code := execute("checkpoint", "save", context, "--session", "anns-series", "--name", marker)
	if code != app.ExitOK {
		t.Fatal(saved)
	}
	checkpoint := strings.Fields(saved)[0]
	if text, code := execute("token", "create", "anns", "--toolset", "runs"); code != app.ExitOK {
		t.Fatal(text)
	}
	read := func() string {
		runs, _ := execute("runs", "list", "--json")
		checkpoints, _ := execute("checkpoint", "list", "--json")
		tokens, _ := execute("token", "show", "anns", "--json")
		return runs + checkpoints + tokens
	}
	before := read()
	if strings.Count(before, marker) < 2 || !strings.Contains(before, `"anns"`) {
		t.Fatalf("ann sees %s", before)
	}
	if err := os.WriteFile(context, []byte(`{"text":"bobs"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := strings.NewReplacer("RUN", id, "CHECKPOINT", checkpoint, "SERIES", "anns-series", "context.json", context)
	rows := ownCommands()
	for _, path := range visibleCommands(newRootCmd(&app.App{Host: &host}), "") {
		arguments, own := rows[path]
		delete(rows, path)
		shared := strings.Contains(" "+strings.Join(strings.Fields(sharedCommands), " ")+",", " "+path+",")
		if own == shared {
			t.Errorf("the command %q has no row, or two", path)
		}
		if !own {
			continue
		}
		args := append(strings.Fields(path), strings.Fields(objects.Replace(arguments))...)
		text, code := execute(append(args, "--user", "bob")...)
		if strings.Contains(text, marker) {
			t.Errorf("%q shows %s", path, text)
		}
		if strings.ContainsAny(arguments, "RCS") && arguments != "context.json" && code == app.ExitOK {
			t.Errorf("%q of an object of another user succeeds: %s", path, text)
		}
	}
	if len(rows) > 0 {
		t.Errorf("rows without a command: %v", rows)
	}
	if after := read(); after != before {
		t.Errorf("bob changed the objects of another user:\n%s\n%s", before, after)
	}
}
