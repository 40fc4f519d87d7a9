package gateway_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/results"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

func newResults(t *testing.T) (store *results.Store, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "results")
	return results.NewStore(results.Options{Dir: dir, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}), dir
}

var refPattern = regexp.MustCompile(`result_[0-9a-z]+`)

// A client gets the summary of a large result and reads its parts byte for byte; small
// results and errors of the client stay as they are. A different client, also one with a
// different token of the same user, cannot read it.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	store, _ := newResults(t)
	r := newFixture(t, gateway.Options{
		Upstreams: []gateway.Entry{newEntry(t, "files")}, Results: store, LargeResult: 2000,
		Policies: &fixedPolicies{}, Tools: &toolpolicy.Policy{Deny: rules("files__env")}, // a call with policies is not one of a machine
	})
	r.allow = map[string]auth.Allow{"one": {Upstreams: []string{"files"}}, "two": {Upstreams: []string{"files"}}}
	text := strings.Repeat("line of text äöü\n", 2000)
	for _, version := range []string{legacy, modern} {
		p := r.connectClient(t, clientSetup{user: "one", version: version})
		if names := fmt.Sprint(p.toolNames()); !strings.Contains(names, "result_read") {
			t.Errorf("%s: the tools are %s", version, names)
		}
		if got := p.callTool("files__echo", map[string]any{"text": "short"}); got != "short" {
			t.Errorf("%s: a small result is %q", version, got)
		}
		summary := p.callTool("files__echo", map[string]any{"text": text})
		ref := refPattern.FindString(summary)
		if ref == "" || len(summary) > 4000 || !strings.Contains(summary, "Start of content[0]:\nline of text äöü\n") {
			t.Fatalf("%s: the summary is %s", version, summary)
		}
		if got := p.callTool("result_read", map[string]any{"ref": ref, "lines": "7-8"}); got != "line of text äöü\nline of text äöü\n" {
			t.Errorf("%s: two lines are %q", version, got)
		}
		if got := p.callTool("result_read", map[string]any{"ref": ref}); got != text[:results.MaxAnswer] && got != text[:results.MaxAnswer-1] {
			t.Errorf("%s: the first page is %.100q…", version, got)
		}
		for _, user := range []string{"two", "ann"} {
			foreign := r.connectClient(t, clientSetup{user: user, version: version})
			if got := foreign.callTool("result_read", map[string]any{"ref": ref}); !strings.Contains(got, "there is no result") {
				t.Errorf("%s: %s reads %.100q", version, user, got)
			}
		}
		for _, args := range []map[string]any{{}, {"ref": ref, "line": "1"}, {"ref": 1}, {"ref": ref, "offset": "1"}} {
			if got := p.callTool("result_read", args); !strings.Contains(got, "the arguments are invalid") || !strings.Contains(got, "lines") {
				t.Errorf("%s: %v returns %.200q", version, args, got)
			}
		}
	}
}

// The large result of a task is stored too, for the client of the task; a small one stays as it
// is.
func TestLargeResultsOfTasks(t *testing.T) {
	t.Parallel()
	store, _ := newResults(t)
	r := newTasksFixture(t, gateway.Options{Results: store, LargeResult: 300})
	id := strings.Repeat("long ", 100)
	handle, _ := r.startJob(t, "ann", withTasks, "one__job", id)
	got := r.aboutTask(t, "ann", withTasks, "tasks/get", handle)
	ref := refPattern.FindString(got)
	if ref == "" || strings.Contains(got, `"text":"result of`) || !strings.Contains(got, `"status":"completed"`) {
		t.Fatalf("the task is %s", got)
	}
	read := func(user string) string {
		return r.request(t, user, withTasks, "tools/call", "result_read", `"name":"result_read","arguments":{"ref":"`+ref+`"},`)
	}
	if got := read("ann"); !strings.Contains(got, "result of "+id) {
		t.Errorf("the stored result is %s", got)
	}
	if got := read("bob"); !strings.Contains(got, "there is no result") {
		t.Errorf("another user reads %s", got)
	}
	handle, _ = r.startJob(t, "ann", withTasks, "one__job", "short")
	if got := r.aboutTask(t, "ann", withTasks, "tasks/get", handle); !strings.Contains(got, "result of short") {
		t.Errorf("a small task is %s", got)
	}
}

// Machines and checks get the whole result. A result that cannot be stored is passed on
// whole, and without a store there is no tool that reads results.
func TestWholeResults(t *testing.T) {
	t.Parallel()
	text, _ := json.Marshal(map[string]any{"size": 5000}) // always marshals
	call := func(store gateway.Results, scopes []toolpolicy.Scope) string {
		g := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "files")}, Results: store, LargeResult: 2000}).Gateway
		result, err := g.Call(t.Context(), &gateway.Client{Principal: guideway.Principal{User: "ann"}}, gateway.Request{Name: "files__big", Arguments: text, Scopes: scopes})
		if err != nil {
			t.Fatal(err)
		}
		return string(result)
	}
	whole := strings.Repeat("x", 5000)
	store, dir := newResults(t)
	if got := call(store, []toolpolicy.Scope{}); !strings.Contains(got, whole) {
		t.Errorf("a machine gets %.300s", got)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := call(store, nil); !strings.Contains(got, whole) {
		t.Errorf("without room for it, the result is %.300s", got)
	}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "files")}})
	p := r.connectClient(t, clientSetup{user: "ann", version: modern})
	if names := fmt.Sprint(p.toolNames()); strings.Contains(names, "result_read") || r.HasTool(&gateway.Client{}, "result_read") {
		t.Errorf("without a store the tools are %s", names)
	}
}
