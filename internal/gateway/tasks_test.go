package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

const (
	withTasks     = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	asksWithTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

// startJob calls the tool that starts the task of an ID, and returns the handle and the answer.
func (r *fixture) startJob(t *testing.T, user, capabilities, tool, id string) (handle, answer string) {
	t.Helper()
	answer = r.request(t, user, capabilities, "tools/call", tool, `"name":"`+tool+`","arguments":{"text":"`+id+`"},`)
	var got struct {
		Result struct {
			Type string `json:"resultType"`
			ID   string `json:"taskId"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if got.Result.Type != "task" {
		return "", answer
	}
	return got.Result.ID, answer
}

func (r *fixture) aboutTask(t *testing.T, user, capabilities, method, handle string) string {
	t.Helper()
	return r.request(t, user, capabilities, method, handle, `"taskId":"`+handle+`","inputResponses":{"q":{"action":"accept"}},`)
}

// switchedHooks apply to all calls while they are on, and change nothing.
type switchedHooks struct{ on atomic.Bool }

func (*switchedHooks) Versions(string, string) map[string]string { return nil }

func (h *switchedHooks) Applies(method, _, _ string) bool {
	return method == "tools/call" && h.on.Load()
}

func (h *switchedHooks) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	return send(ctx, call.Params)
}

// requestState returns a request state of a call.
func (r *fixture) requestState(t *testing.T) string {
	t.Helper()
	return stateIn(t, r.request(t, "ann", asksWithTasks, "tools/call", "one__ask", `"name":"one__ask","arguments":{"text":"who?"},`))
}

func newTasksFixture(t *testing.T, opts gateway.Options, change ...string) *fixture {
	t.Helper()
	if opts.Upstreams == nil {
		opts.Upstreams = []gateway.Entry{newEntry(t, "one", upstreamtest.Modern, upstreamtest.Tasks, upstreamtest.Apps), newEntry(t, "two", upstreamtest.Modern, upstreamtest.Tasks)}
	}
	r := newFixture(t, opts, change...)
	r.request(t, "first", `{}`, "tools/list", "", "")
	return r
}

// A task of a modern upstream is started, polled, answered and cancelled by a modern client,
// by a handle that does not contain the upstream's ID in readable form.
func TestTasksAreCarried(t *testing.T) {
	t.Parallel()
	for _, change := range []string{slow, "fast"} {
		one := newEntry(t, "one", upstreamtest.Modern, upstreamtest.Tasks)
		r := newTasksFixture(t, gateway.Options{Upstreams: []gateway.Entry{one}}, change)
		handle, answer := r.startJob(t, "ann", withTasks, "one__job", "job-1")
		if handle == "" || strings.Contains(answer, "job-1") || !strings.Contains(answer, `"ttlMs":60000`) {
			t.Fatalf("starting the task returned %s", answer)
		}
		got := r.aboutTask(t, "ann", withTasks, "tasks/get", handle)
		if !strings.Contains(got, `"taskId":"`+handle+`"`) || !strings.Contains(got, `"text":"result of job-1"`) || !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("polling the task returned %s", got)
		}
		for _, method := range []string{"tasks/update", "tasks/cancel"} {
			if got := r.aboutTask(t, "ann", withTasks, method, handle); !strings.Contains(got, `"resultType":"complete"`) || strings.Contains(got, "leaked") {
				t.Errorf("%s returned %s", method, got)
			}
		}
		if got := countCalls(one); got != 2 {
			t.Errorf("the upstream got %d updates and cancellations, want 2", got)
		}
		if _, answer := r.startJob(t, "ann", `{}`, "one__job", "job-2"); !strings.Contains(answer, "done at once") {
			t.Errorf("without tasks the call returned %s", answer)
		}
		asks, _ := r.startJob(t, "ann", asksWithTasks, "one__job", "asks")
		if got := r.aboutTask(t, "ann", asksWithTasks, "tasks/get", asks); !strings.Contains(got, `"status":"input_required"`) || !strings.Contains(got, "Which?") {
			t.Errorf("a task with a question returned %s", got)
		}
	}
}

// A handle works for the client that got it, at its own upstream, as long as the client may
// call the tool. Nothing else is accepted: neither an ID of the upstream, nor a changed
// handle, nor the handle of another user, token or client.
func TestTaskHandlesBelongToTheirClient(t *testing.T) {
	t.Parallel()
	one := newEntry(t, "one", upstreamtest.Modern, upstreamtest.Tasks)
	r := newTasksFixture(t, gateway.Options{Upstreams: []gateway.Entry{one, newEntry(t, "two", upstreamtest.Modern, upstreamtest.Tasks)}})
	r.allow = map[string]auth.Allow{"other-token": {All: true}}
	handle, _ := r.startJob(t, "ann", withTasks, "one__job", "job-1")
	two, _ := r.startJob(t, "ann", withTasks, "two__job", "job-1")
	body, mac, _ := strings.Cut(handle, ".")
	body2, _, _ := strings.Cut(two, ".")
	flipped := []byte(handle)
	flipped[3] ^= 1
	for name, each := range map[string]struct{ user, handle string }{
		"the upstream's ID":            {"ann", "job-1"},
		"an empty handle":              {"ann", ""},
		"no MAC":                       {"ann", body},
		"the MAC of another handle":    {"ann", body2 + "." + mac},
		"a changed handle":             {"ann", string(flipped)},
		"the handle of another user":   {"bob", handle},
		"the handle of another token":  {"other-token", handle},
		"a request state as a handle":  {"ann", r.requestState(t)},
		"the handle with another name": {"ann", handle + ".x"},
	} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			if got := r.aboutTask(t, each.user, withTasks, method, each.handle); !strings.Contains(got, `"code":-32602`) {
				t.Errorf("%s: %s returned %s", name, method, got)
			}
		}
	}
	params := `"taskId":"` + handle + `",`
	other := strings.Replace(`{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{`+params+modernMeta+`}}`, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":`+withTasks, 1)
	other = strings.Replace(other, `"clientInfo":{"name":"`, `"clientInfo":{"name":"other `, 1)
	if _, got := r.postAs(t, "ann", other, map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": "tasks/get", "Mcp-Name": handle}); strings.Contains(got, "result of") {
		t.Errorf("another client of the same user got %s", got)
	}
	if got := countCalls(one); got != 0 {
		t.Errorf("the upstream got %d updates and cancellations", got)
	}
}

// Requests about tasks need the extension, and the header that names the task.
func TestTaskRequestsAreChecked(t *testing.T) {
	t.Parallel()
	r := newTasksFixture(t, gateway.Options{})
	handle, _ := r.startJob(t, "ann", withTasks, "one__job", "job-1")
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if got := r.aboutTask(t, "ann", `{}`, method, handle); !strings.Contains(got, `"code":-32021`) || !strings.Contains(got, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`) {
			t.Errorf("%s without the extension returned %s", method, got)
		}
		if got := r.request(t, "ann", withTasks, method, "other", `"taskId":"`+handle+`",`); !strings.Contains(got, `"code":-32020`) {
			t.Errorf("%s with another name in the header returned %s", method, got)
		}
	}
	for _, method := range []string{"tasks/list", "tasks/result"} {
		if got := r.request(t, "ann", withTasks, method, "", ""); !strings.Contains(got, `"code":-32601`) {
			t.Errorf("%s returned %s", method, got)
		}
	}
	session := openSession(t, r)
	if _, got, _ := postRaw(t, r.url, session, `{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"`+handle+`"}}`); !strings.Contains(got, `"code":-32601`) {
		t.Errorf("tasks/get of a client of %s returned %s", legacy, got)
	}
}

// A task that the upstream started although the client did not ask for one is reported as
// such an error, for every pair of versions, also if the client supports tasks of another
// version.
func TestTaskThatNobodyAskedForIsAnError(t *testing.T) {
	t.Parallel()
	for _, modes := range [][]string{
		{upstreamtest.TasksAlways}, {upstreamtest.TasksUndeclared}, {upstreamtest.Modern, upstreamtest.TasksAlways}, {upstreamtest.Modern, upstreamtest.TasksUndeclared},
	} {
		for _, change := range []string{slow, "fast"} {
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", modes...)}}, change)
			answers := []string{
				r.connectClient(t, clientSetup{user: "ann", version: legacy, extensions: []string{tasks}}).callTool("one__job", args{"text": "x"}),
				r.connectClient(t, clientSetup{user: "ann", version: modern}).callTool("one__job", args{"text": "x"}),
			}
			if len(modes) == 1 || modes[1] == upstreamtest.TasksUndeclared {
				_, answer := r.startJob(t, "ann", withTasks, "one__job", "x")
				answers = append(answers, answer)
			}
			for i, got := range answers {
				if !strings.Contains(got, "started a task without being asked to") || strings.Contains(got, "taskId") {
					t.Errorf("%v, client %d: the call returned %s", modes, i, got)
				}
			}
		}
	}
}

// A call to whose result hooks apply does not run as a task, because no hook sees the result
// of a task; a task that was started before gives no result any more.
func TestHooksPreventTasks(t *testing.T) {
	t.Parallel()
	hooks := &switchedHooks{}
	r := newTasksFixture(t, gateway.Options{Hooks: hooks})
	before, _ := r.startJob(t, "ann", withTasks, "one__job", "job-1")
	hooks.on.Store(true)
	if got := r.aboutTask(t, "ann", withTasks, "tasks/get", before); strings.Contains(got, "result of job") || !strings.Contains(got, "withheld") {
		t.Errorf("the result of an earlier task is %s", got)
	}
	if _, answer := r.startJob(t, "ann", withTasks, "one__job", "job-2"); !strings.Contains(answer, "done at once") {
		t.Errorf("a call with hooks returned %s", answer)
	}
	if _, answer := r.startJob(t, "ann", withTasks, "one__always", "job-2"); !strings.Contains(answer, "runs only as a task, but a hook") {
		t.Errorf("a call that needs a task returned %s", answer)
	}
}

// An upstream cannot use the answers about a task for what a call must not do: ask for what
// the client does not support, ask in a result, answer for another task, or hand out a page of
// another upstream.
func TestHostileTasks(t *testing.T) {
	t.Parallel()
	r := newTasksFixture(t, gateway.Options{Upstreams: []gateway.Entry{
		newEntry(t, "zero", upstreamtest.Pages), newEntry(t, "one", upstreamtest.Modern, upstreamtest.Tasks, upstreamtest.Pages),
	}})
	for id, want := range map[string]string{
		"asks": `"code":-32021`, "samples": `"code":-32021`, "lures": "asks for input", "other": "another task", "unknown": "no such task",
	} {
		handle, answer := r.startJob(t, "ann", withTasks, "one__job", id)
		if handle == "" {
			t.Fatalf("starting %s returned %s", id, answer)
		}
		if got := r.aboutTask(t, "ann", withTasks, "tasks/get", handle); !strings.Contains(got, want) || strings.Contains(got, "javascript") {
			t.Errorf("%s: the task is %s", id, got)
		}
	}
	linked, _ := r.startJob(t, "ann", withTasks, "one__job", "links")
	if got := r.aboutTask(t, "ann", withTasks, "tasks/get", linked); !strings.Contains(got, `"uri":"ui://one/chart/view.html"`) || strings.Contains(got, "requestState") {
		t.Errorf("the task with a link is %s", got)
	}
	for _, id := range []string{"", strings.Repeat("x", 1025)} {
		if handle, answer := r.startJob(t, "ann", withTasks, "one__job", id); handle != "" || !strings.Contains(answer, "the ID of the task must have") {
			t.Errorf("a task ID of %d bytes returned %s", len(id), answer)
		}
	}
}

// After its upstream is removed or configured anew, a handle is not accepted: a different
// server may have the name now.
func TestTaskEndsWithItsUpstream(t *testing.T) {
	t.Parallel()
	r := newTasksFixture(t, gateway.Options{})
	handle, _ := r.startJob(t, "ann", withTasks, "two__job", "job-1")
	if err := r.Configure(gateway.Settings{Upstreams: []gateway.Entry{newEntry(t, "two", upstreamtest.Modern, upstreamtest.Tasks)}}); err != nil {
		t.Fatal(err)
	}
	r.request(t, "ann", `{}`, "tools/list", "", "")
	if got := r.aboutTask(t, "ann", withTasks, "tasks/get", handle); !strings.Contains(got, "there is no such task") {
		t.Errorf("the task of a replaced upstream is %s", got)
	}
}
