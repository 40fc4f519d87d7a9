package cli

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	upstreamcmd "github.com/guideway-dev/guideway/internal/cli/upstream"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/install"
)

// writeSettings writes settings of the gateway into the configuration file.
func (d *hookProject) writeSettings(gateway string) {
	d.Helper()
	cfg, err := (&app.App{Host: &d.host, Flags: &app.SettingFlags{}}).Load()
	if err != nil {
		d.Fatal(err)
	}
	_, err = (&app.App{Host: &d.host, Flags: &app.SettingFlags{}}).EditConfig(context.Background(), cfg, func(src []byte) ([]byte, error) {
		return install.SetMember(src, []string{"gateway"}, []byte(gateway))
	})
	if err != nil {
		d.Fatal(err)
	}
}

// Exposure and project take effect without a restart, and clients are notified.
func TestReloadAppliesSettings(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	a := d.connectClient("--toolsets", "gateway")
	if names := a.toolNames(); !slices.Contains(names, "one__echo") {
		t.Fatalf("the tools are %v", names)
	}
	for _, step := range []struct {
		settings string
		tools    []string
	}{
		{`{"exposure":"search","health":"1s"}`, []string{"tool_search", "tool_call"}},
		{`{"project":"none","health":"0s"}`, nil},
	} {
		d.writeSettings(step.settings)
		a.waitForNotification("notifications/tools/list_changed")
		if names := a.toolNames(); !slices.Equal(names, step.tools) {
			t.Errorf("with the settings %s, the tools are %v", step.settings, names)
		}
	}
	a.end()
}

// With the default toolsets, the tools of an upstream that is added while the server runs are
// available at once, after a notification, with both exposures; removing the upstream removes
// them. Named toolsets stay as they are.
func TestUpstreamAddedAtRunTime(t *testing.T) {
	t.Parallel()
	for exposure, tool := range map[string]string{"all": "one__echo", "search": "tool_search"} {
		d := newHookProject(t)
		a, named := d.connectClient("--gateway-exposure", exposure), d.connectClient("--toolsets", "steps")
		before := a.toolNames()
		if slices.Contains(before, tool) || !slices.Contains(before, "workflow_start") {
			t.Errorf("%s: without an upstream the tools are %v", exposure, before)
		}
		fixed := named.toolNames()
		d.addTestUpstream(filepath.Join(t.TempDir(), "count"), "good")
		a.waitForNotification("notifications/tools/list_changed")
		if names := a.toolNames(); !slices.Contains(names, tool) || !slices.Contains(names, "workflow_start") {
			t.Errorf("%s: with an upstream the tools are %v", exposure, names)
		}
		if exposure == "all" {
			if got := a.callWithText(tool, "hi"); got != "hi" {
				t.Errorf("the call returned %q", got)
			}
		}
		next := d.connectClient("--gateway-exposure", exposure)
		if names := next.toolNames(); !slices.Contains(names, tool) {
			t.Errorf("%s: the tools of the next client are %v", exposure, names)
		}
		d.wantCommand(app.ExitOK, "", "upstream remove one")
		for !slices.Equal(a.toolNames(), before) { // The discovery of the tools may have caused a further notification.
			a.waitForNotification("notifications/tools/list_changed")
		}
		if names := named.toolNames(); !slices.Equal(names, fixed) {
			t.Errorf("%s: the named toolsets have %v", exposure, names)
		}
		for _, client := range []*gatewayClient{a, named, next} {
			client.end()
		}
	}
}

// An upstream that is removed and added again, replaced by itself, or restarted by a command
// runs its current program: its old process ends, even if the server reads the configuration
// only afterwards. After a removal, the tools of the new process are approved at the first
// use.
func TestRestartedUpstreamRunsItsCurrentProgram(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pins     string
		commands []string
	}{
		"removed and added": {"first-use", []string{"upstream remove one", "upstream add one ADD"}},
		"replaced":          {"off", []string{"upstream add one --replace ADD"}},
		"restarted":         {"off", []string{"upstream restart one"}},
	} {
		d := newHookProject(t)
		add := "--pins " + c.pins + " --env " + upstreamtest.Variable + "=" + upstreamtest.Updated + " --env " + upstreamtest.CountFile + "=" + filepath.Join(t.TempDir(), "count") + " -- " + program
		d.wantCommand(app.ExitOK, "", "upstream add one "+add)
		a := d.connectClient()
		if got := a.callWithText("one__echo", "hi"); got != "hi" {
			t.Fatalf("%s: the call returned %q", name, got)
		}
		a.callWithText("one__count", "") // From now on, new processes have one tool more.
		if names := a.toolNames(); slices.Contains(names, "one__updated") {
			t.Fatalf("%s: before, the tools are %v", name, names)
		}
		for _, command := range c.commands {
			d.wantCommand(app.ExitOK, "", strings.Replace(command, "ADD", add, 1))
		}
		for !slices.Contains(a.toolNames(), "one__updated") { // A call starts the new process.
			a.callWithText("one__echo", "again")
		}
		a.end()
	}
}

// Settings that only take effect at the next start are logged by name, once; settings that
// the gateway applies immediately are not logged.
func TestPendingSettingsAreLogged(t *testing.T) {
	t.Parallel()
	host, _ := newTerminal(t, nil)
	load := func(file string) *config.Config {
		t.Helper()
		path := t.TempDir() + "/guideway.json"
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := (&app.App{Host: &host, Flags: &app.SettingFlags{File: path}}).Load()
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	var log bytes.Buffer
	u := &server.Upstreams{InitialValues: load(`{}`).Values(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	for _, step := range []struct{ file, said string }{
		{`{"gateway":{"exposure":"search","project":"x","health":"1m","callsPerMinute":3}}`, ""},
		{`{"toolsets":["steps"],"log":{"level":"debug"}}`, `settings="toolsets, log.level"`},
		{`{"toolsets":["steps"],"log":{"level":"debug"},"gateway":{"exposure":"search"}}`, ""},
		{`{}`, ""},
		{`{"log":{"level":"debug"}}`, "settings=log.level"},
	} {
		log.Reset()
		u.LogPendingSettings(load(step.file))
		if got := log.String(); step.said == "" && got != "" || !strings.Contains(got, step.said) {
			t.Errorf("%s: the log has %q, want %q", step.file, got, step.said)
		}
	}
}

// A tool rule without effect is reported.
func TestInvalidRulesAreReported(t *testing.T) {
	t.Parallel()
	got := upstreamcmd.RuleNotes(map[string]config.UpstreamTool{
		"gone": {Hide: true}, "b": {Name: "a"}, "c": {Hide: true, Name: "a"}, "d": {Name: "e"},
	}, []string{"a", "b", "c", "d"})
	want := []string{"gone: the configuration has a rule for this tool, but the upstream has no such tool", "b: omitted, because the tool a already has the name a"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
