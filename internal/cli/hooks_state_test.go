package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// TestHookStateCommands checks that a person lists and clears the values of one graph or
// client: a quota then counts from zero again, and other values stay. If a passphrase is set,
// only its owner clears them.
func TestHookStateCommands(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	d.wantCommand(app.ExitOK, "No values of hook graphs found.", "hooks state list")
	d.wantCommand(app.ExitOK, `"changed": false`, "hooks state clear quota --json")
	for _, command := range []string{
		"hooks import --template quota --id quota --upstream one --tool echo --set limit=2",
		"hooks import --template response-cache --id cache --upstream one --tool count --set per=upstream",
		"hooks enable quota", "hooks enable cache",
	} {
		d.wantCommand(app.ExitOK, "", command)
	}
	a := d.connectClient("--toolsets", "gateway")
	wantCalls := func(passed int) {
		t.Helper()
		for i := range passed + 1 {
			if got := a.callWithText("one__echo", "x"); (got == "x") != (i < passed) {
				t.Errorf("call %d of %d returned %s", i+1, passed, got)
			}
		}
	}
	wantCalls(2)
	a.callWithText("one__count", strings.Repeat("x", 100))
	code, out := d.runCommand("hooks state list --json")
	var values []struct {
		Graph, Scope, Key string
		For               []string
		Value             json.RawMessage
		Expires           time.Time
	}
	if err := json.Unmarshal([]byte(out), &values); err != nil || code != app.ExitOK || len(values) != 2 {
		t.Fatalf("the values are %s, %v", out, err)
	}
	if v := values[0]; v.Graph != "cache" || v.Scope != "upstream" || strings.Join(v.For, " ") != "one" || !strings.Contains(string(v.Value), "counted") {
		t.Errorf("the cached result is %+v", v)
	}
	if v := values[1]; v.Graph != "quota" || v.Scope != "client" || v.For[len(v.For)-1] != "agent" || string(v.Value) != "2" || !v.Expires.After(time.Now()) {
		t.Errorf("the count is %+v", v)
	}
	if _, out := d.runCommand("hooks state list"); !strings.Contains(out, " bytes") || strings.Contains(out, "counted") {
		t.Errorf("the list is\n%s", out)
	}
	d.wantCommand(app.ExitOK, "Cleared 0 values of quota.", "hooks state clear quota --for other")
	wantCalls(0)
	d.wantCommand(app.ExitOK, "Cleared 1 value of quota.", "hooks state clear quota --for agent")
	wantCalls(2)
	d.wantCommand(app.ExitOK, "cache", "hooks state list --for one")
	d.wantCommand(app.ExitOK, "", "runs approve --set-passphrase", "correct horse battery", "correct horse battery")
	d.wantCommand(app.ExitFailed, "", "hooks state clear quota", "wrong horse battery")
	wantCalls(0)
	d.wantCommand(app.ExitOK, `"changed": true`, "hooks state clear quota --json", "correct horse battery")
	wantCalls(2)
	a.end()
}
