package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	"github.com/guideway-dev/guideway/internal/platform/secret/secrettest"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/workflows"
)

// The test binary is also the script worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newPool returns a pool of workers that is closed at the end of the test.
func newPool(t *testing.T) *sandbox.Pool {
	t.Helper()
	pool, err := sandbox.NewPool(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := pool.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// linkBundled links a bundled graph after replacing some of its variables.
func linkBundled(t *testing.T, id string, variables map[string]string) *hookdef.Linked {
	t.Helper()
	data, err := fs.ReadFile(workflows.FS(), "hooks/"+id+".yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, found := workflow.CheckAs(id+".yaml", data, workflow.As{})
	if document == nil || document.Graph == nil || len(found) > 0 {
		t.Fatal(found)
	}
	g := *document.Graph
	for name, value := range variables {
		if _, ok := g.Variables[name]; !ok {
			t.Fatalf("%s has no variable %s", id, name)
		}
		g.Variables[name] = json.RawMessage(value)
	}
	return linkGraph(t, &g)
}

func linkGraph(t *testing.T, g *hookdef.Graph) *hookdef.Linked {
	t.Helper()
	var modules []hookdef.Module
	for i := range g.Nodes {
		if h := g.Nodes[i].Hook; h != nil && h.Module != "" {
			text, err := fs.ReadFile(workflows.FS(), "hooks/modules/"+h.Module+".js")
			if err != nil {
				t.Fatal(err)
			}
			modules = append(modules, hookdef.Module{ID: h.Module, Name: h.Module, Script: string(text)})
		}
	}
	l, problems := hookdef.Link(g, hookdef.NewLibrary(modules))
	if l == nil {
		t.Fatal(problems)
	}
	return l
}

// auditLog stores audit records.
type auditLog struct {
	mu      sync.Mutex
	records []string
}

func (k *auditLog) Audit(_ context.Context, e hookengine.AuditEntry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, e.Graph+" "+string(e.Record))
	return nil
}

// example is one request to a bundled graph.
type example struct {
	name, graph string
	variables   map[string]string
	params      string
	response    string // the response of the server; if empty, the call fails
	status      hookengine.Status
	// sent and got are the expected request to the server and the expected response.
	sent, got string
	err       string
	audit     string
}

func textContent(s string) string {
	out, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return `{"content":[{"type":"text","text":` + string(out) + `}]}`
}

func newExamples() []example {
	const call = `{"name":"read","arguments":{"path":"notes/a.txt"}}`
	return []example{
		{
			name: "secrets are redacted", graph: "redact-secrets", params: call,
			response: textContent("key AKIAABCDEFGHIJKLMNOP and password = \"hunter2222\" and Authorization: Bearer abc.def\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nrest"),
			status:   hookengine.StatusChanged, sent: call,
			got: textContent("key [redacted] and password = \"[redacted]\" and Authorization: [redacted]\n[redacted]\nrest"),
		},
		{
			name: "secrets in structured content, but not in images", graph: "redact-secrets", params: call,
			response: `{"content":[{"type":"image","data":"ghp_012345678901234567890123456789012345","mimeType":"image/png"}],"structuredContent":{"env":{"x":"ghp_012345678901234567890123456789012345"}},"id":12345678901234567890}`,
			status:   hookengine.StatusChanged, sent: call,
			got: `{"content":[{"type":"image","data":"ghp_012345678901234567890123456789012345","mimeType":"image/png"}],"structuredContent":{"env":{"x":"[redacted]"}},"id":12345678901234567890}`,
		},
		{
			name: "structured passwords are redacted by their names", graph: "redact-secrets", params: call,
			response: `{"content":[],"structuredContent":{"password":"hunter2hunter2","accessToken":["a b","c"],"secret":{"type":"none"},"tokens":7,"apiKey":"","password_hint":"a dog"}}`,
			status:   hookengine.StatusChanged, sent: call,
			got: `{"content":[],"structuredContent":{"password":"[redacted]","accessToken":["[redacted]","[redacted]"],"secret":{"type":"none"},"tokens":7,"apiKey":"","password_hint":"a dog"}}`,
		},
		{
			name: "keys of objects are redacted, and keep their values", graph: "redact-secrets", params: call,
			response: `{"content":[],"structuredContent":{"AKIAABCDEFGHIJKLMNOP":1,"AKIAABCDEFGHIJKLMNOQ":{"a":"b"},"__proto__":"c"}}`,
			status:   hookengine.StatusChanged, sent: call,
			got: `{"content":[],"structuredContent":{"__proto__":"c","[redacted]":1,"[redacted] 2":{"a":"b"}}}`,
		},
		{
			name: "passwords in addresses are redacted", graph: "redact-secrets", params: call,
			response: textContent("postgres://u:p4ssw0rd@host/db redis://:p@ss@host https://host:8080/a@b mailto:a@b ssh://me@host"),
			status:   hookengine.StatusChanged, sent: call,
			got: textContent("postgres://u:[redacted]@host/db redis://:[redacted]@host https://host:8080/a@b mailto:a@b ssh://me@host"),
		},
		{
			name: "custom patterns", graph: "redact-secrets", variables: map[string]string{"patterns": `["ACME-\\d+"]`, "replacement": `"XXX"`},
			params: call, response: textContent("ticket ACME-17"), status: hookengine.StatusChanged, sent: call, got: textContent("ticket XXX"),
		},
		{name: "nothing to redact", graph: "redact-secrets", params: call, response: `{ "content": [ ] }`, status: hookengine.StatusPassed, sent: call, got: `{ "content": [ ] }`},
		{
			name: "an invalid pattern stops the call", graph: "redact-secrets", variables: map[string]string{"patterns": `["("]`},
			params: call, response: textContent("x"), status: hookengine.StatusError, sent: call, err: "redact-secrets.js:",
		},

		{
			name: "a file with secrets is blocked", graph: "block-by-argument", params: `{"name":"read","arguments":{"paths":["a","/home/u/.ssh/id_rsa"]}}`,
			status: hookengine.StatusRefused, err: "it names a file of secrets; the call was not sent",
		},
		{name: "an environment file is blocked", graph: "block-by-argument", params: `{"name":"read","arguments":{"path":".env.local"}}`, status: hookengine.StatusRefused, err: "names a file of secrets"},
		{
			name: "other files are not blocked", graph: "block-by-argument", params: `{"name":"read","arguments":{"path":"src/.environment.ts"}}`,
			response: textContent("x"), status: hookengine.StatusPassed, sent: `{"name":"read","arguments":{"path":"src/.environment.ts"}}`, got: textContent("x"),
		},
		{name: "a call without arguments", graph: "block-by-argument", params: `{"name":"list"}`, response: textContent("x"), status: hookengine.StatusPassed, sent: `{"name":"list"}`, got: textContent("x")},
		{
			name: "only the configured argument is checked", graph: "block-by-argument", variables: map[string]string{"argument": `"sql"`, "pattern": `"^\\s*drop"`, "message": `"no drops"`},
			params: `{"name":"q","arguments":{"sql":" DROP TABLE x"}}`, status: hookengine.StatusRefused, err: "no drops",
		},
		{
			name: "other arguments are not checked", graph: "block-by-argument", variables: map[string]string{"argument": `"options.sql"`, "pattern": `"^drop"`},
			params: `{"name":"q","arguments":{"note":"drop"}}`, response: textContent("x"), status: hookengine.StatusPassed, sent: `{"name":"q","arguments":{"note":"drop"}}`, got: textContent("x"),
		},

		{
			name: "a default is added", graph: "default-argument", params: `{"name":"search","arguments":{"q":"a","big":12345678901234567890}}`, response: textContent("x"),
			status: hookengine.StatusChanged, sent: `{"name":"search","arguments":{"q":"a","big":12345678901234567890,"limit":20}}`, got: textContent("x"),
		},
		{
			name: "a given argument is kept", graph: "default-argument", params: `{"name":"search","arguments":{"limit":3}}`, response: textContent("x"),
			status: hookengine.StatusPassed, sent: `{"name":"search","arguments":{"limit":3}}`, got: textContent("x"),
		},
		{
			name: "without any", graph: "default-argument", params: `{"name":"search"}`, response: textContent("x"),
			status: hookengine.StatusChanged, sent: `{"name":"search","arguments":{"limit":20}}`, got: textContent("x"),
		},

		{
			name: "a call is audited", graph: "audit-calls", params: call, response: textContent("x"), status: hookengine.StatusPassed, sent: call, got: textContent("x"),
			audit: `audit-calls {"tool":"read","arguments":["path"],"ms":0,"outcome":"ok"}`,
		},
		{
			name: "a failed call is audited", graph: "audit-calls", variables: map[string]string{"values": "true"}, params: call, status: hookengine.StatusError, sent: call, err: "the server is down",
			audit: `audit-calls {"tool":"read","arguments":{"path":"notes/a.txt"},"ms":0,"outcome":"failed","error":"the server is down"}`,
		},

		{
			name: "a long result is shortened", graph: "cap-result-size", variables: map[string]string{"limit": "10"}, params: call,
			response: `{"content":[{"type":"text","text":"12345678"},{"type":"text","text":"9😀more"}],"structuredContent":{"a":["0123456789abc"]}}`, status: hookengine.StatusChanged, sent: call,
			got: `{"content":[{"type":"text","text":"12345678"},{"type":"text","text":"9"},{"type":"text","text":"[The result was cut: 9 characters are left out. Ask for less, or for a part.]"}],"structuredContent":{"a":["0123456789"]}}`,
		},
		{name: "a short result is unchanged", graph: "cap-result-size", params: call, response: textContent("x"), status: hookengine.StatusPassed, sent: call, got: textContent("x")},
		{
			name: "an error is not shortened", graph: "cap-result-size", variables: map[string]string{"limit": "1"}, params: call,
			response: `{"isError":true,"content":[{"type":"text","text":"long"}]}`, status: hookengine.StatusPassed, sent: call, got: `{"isError":true,"content":[{"type":"text","text":"long"}]}`,
		},

		{
			name: "tools are renamed", graph: "rename-tools", variables: map[string]string{"descriptions": `{"b": "Better."}`},
			params: `{}`, response: `{"tools":[{"name":"get_file_contents","inputSchema":{}},{"name":"b","description":"Bad."}]}`, status: hookengine.StatusChanged, sent: `{}`,
			got: `{"tools":[{"name":"read_file","inputSchema":{}},{"name":"b","description":"Better."}]}`,
		},
		{
			name: "a tool is not renamed to an existing name", graph: "rename-tools", params: `{}`,
			response: `{"tools":[{"name":"get_file_contents"},{"name":"read_file"}]}`, status: hookengine.StatusError, sent: `{}`, err: "a tool has that name",
		},
		{
			name: "renamed tools are called by their new names", graph: "rename-tools-back", params: `{"name":"read_file","arguments":{}}`, response: textContent("x"),
			status: hookengine.StatusChanged, sent: `{"name":"get_file_contents","arguments":{}}`, got: textContent("x"),
		},
	}
}

// newBlockedExamples returns arguments that the default pattern of block-by-argument refuses,
// and similar ones that it does not.
func newBlockedExamples() []example {
	var list []example
	for name, arguments := range map[string]string{
		"in a command":             `{"command":"cat .env"}`,
		"in a list of commands":    `{"command":"cat /home/me/.env; true"}`,
		"with a space":             `{"path":"/home/me/.env "}`,
		"with a query":             `{"uri":"file:///home/me/.env?x"}`,
		"with codes":               `{"uri":"file:///home/me/%2Eenv"}`,
		"in a directory":           `{"command":"cd ~/.ssh && cat config"}`,
		"a key alone":              `{"command":"cat id_rsa"}`,
		"a copy of a key":          `{"path":"id_rsa.bak"}`,
		"a copy of an environment": `{"path":"a/.env_old"}`,
		"the passwords of git":     `{"path":"/home/me/.git-credentials"}`,
		"with a NUL":               `{"path":"/home/me/.env\u0000"}`,
		"in the name of a member":  `{"files":{"/home/me/.ssh/id_rsa":true}}`,
		"on Windows":               `{"path":"C:\\Users\\me\\.aws\\credentials"}`,
	} {
		list = append(list, example{
			name: "a file with secrets " + name, graph: "block-by-argument", params: `{"name":"run","arguments":` + arguments + `}`,
			status: hookengine.StatusRefused, err: "it names a file of secrets; the call was not sent",
		})
	}
	for _, arguments := range []string{
		`{"path":"src/.environment.ts"}`,
		`{"code":"process.env.HOME"}`,
		`{"path":".aws-sam/build"}`,
		`{"path":"id_rsa.pub"}`,
		`{"text":"valid_rsa_key"}`,
		`{"n":[1,null,true]}`,
	} {
		params := `{"name":"run","arguments":` + arguments + `}`
		list = append(list, example{
			name: "no file with secrets: " + arguments, graph: "block-by-argument", params: params,
			response: textContent("x"), status: hookengine.StatusPassed, sent: params, got: textContent("x"),
		})
	}
	return list
}

// The bundled graphs work as documented, with their own scripts in the sandbox.
func TestExamples(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	for _, tt := range slices.Concat(newExamples(), newBlockedExamples()) {
		t.Run(tt.graph+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			program, err := hookengine.Compile(linkBundled(t, tt.graph, tt.variables))
			if err != nil {
				t.Fatal(err)
			}
			audit := &auditLog{}
			engine := hookengine.New(hookengine.Options{Scripts: &runner.Scripts{Runner: pool}, Audit: audit, Timeout: time.Minute, Now: func() time.Time { return time.UnixMilli(1) }})
			defer engine.Close(t.Context())
			sent := ""
			out := engine.Run(t.Context(), program, hookengine.Request{Params: json.RawMessage(tt.params)},
				hookengine.CallerFunc(func(_ context.Context, c hookengine.Call) (json.RawMessage, error) {
					sent = string(c.Params)
					if tt.response == "" {
						return nil, errors.New("the server is down")
					}
					return json.RawMessage(tt.response), nil
				}))
			if _, err := out.Settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if out.Status != tt.status || (out.Err != nil) != (tt.err != "") || out.Err != nil && !strings.Contains(out.Err.Error(), tt.err) {
				t.Errorf("the outcome is %s: %v", out.Status, out.Err)
			}
			if diff := cmp.Diff([]string{tt.sent, tt.got, tt.audit}, []string{sent, string(out.Response), strings.Join(audit.records, "\n")}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// redact-secrets redacts the cases of the detector, in texts and in names of members.
func TestDetectorInHooks(t *testing.T) {
	t.Parallel()
	program, err := hookengine.Compile(linkBundled(t, "redact-secrets", nil))
	if err != nil {
		t.Fatal(err)
	}
	engine := hookengine.New(hookengine.Options{Scripts: &runner.Scripts{Runner: newPool(t)}, Timeout: time.Minute})
	defer engine.Close(t.Context())
	type content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var given, want struct {
		Content    []content                   `json:"content"`
		Structured []map[string]map[string]int `json:"structuredContent"`
	}
	for _, c := range secrettest.Cases() {
		given.Content, want.Content = append(given.Content, content{"text", c.Text}), append(want.Content, content{"text", c.Redacted})
		given.Structured = append(given.Structured, map[string]map[string]int{"x": {c.Text: 1}})
		want.Structured = append(want.Structured, map[string]map[string]int{"x": {c.Redacted: 1}})
	}
	response, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	out := engine.Run(t.Context(), program, hookengine.Request{Params: json.RawMessage(`{"name":"read"}`)},
		hookengine.CallerFunc(func(context.Context, hookengine.Call) (json.RawMessage, error) { return response, nil }))
	got := given
	got.Content, got.Structured = nil, nil
	if err := json.Unmarshal(out.Response, &got); err != nil {
		t.Fatal(err, out.Err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// redact-secrets redacts everything that reaches a client: results of tools, failed or not,
// structured content, names of members, addresses, resources, prompts, errors of the protocol
// and progress messages. Encoded files stay as they are.
func TestRedactedPlaces(t *testing.T) {
	t.Parallel()
	const key, file = "AKIAABCDEFGHIJKLMNOP", "ghp_012345678901234567890123456789012345"
	program, err := hookengine.Compile(linkBundled(t, "redact-secrets", nil))
	if err != nil {
		t.Fatal(err)
	}
	engine := hookengine.New(hookengine.Options{Scripts: &runner.Scripts{Runner: newPool(t)}, Timeout: time.Minute})
	t.Cleanup(func() { engine.Close(context.Background()) })
	for name, tt := range map[string]struct {
		method                            hookdef.Type
		response, failure, data, progress string
		want                              string
	}{
		"text":       {hookdef.ToolsCall, textContent(key), "", "", "", textContent("[redacted]")},
		"failed":     {hookdef.ToolsCall, `{"isError":true,"content":[{"type":"text","text":"` + key + `"}]}`, "", "", "", `{"isError":true,"content":[{"type":"text","text":"[redacted]"}]}`},
		"structured": {hookdef.ToolsCall, `{"content":[],"structuredContent":{"password":"hunter2hunter2"}}`, "", "", "", `{"content":[],"structuredContent":{"password":"[redacted]"}}`},
		"nested":     {hookdef.ToolsCall, textContent(`{"password":"a b"}`), "", "", "", textContent(`{"password":"[redacted]"}`)},
		"key":        {hookdef.ToolsCall, `{"content":[],"structuredContent":{"` + key + `":1}}`, "", "", "", `{"content":[],"structuredContent":{"[redacted]":1}}`},
		"address":    {hookdef.ToolsCall, textContent("postgres://u:p4ssw0rd@host/db"), "", "", "", textContent("postgres://u:[redacted]@host/db")},
		"link":       {hookdef.ToolsCall, `{"content":[{"type":"resource_link","uri":"redis://u:p4ssw0rd@host/0","name":"n"}]}`, "", "", "", `{"content":[{"type":"resource_link","uri":"redis://u:[redacted]@host/0","name":"n"}]}`},
		"image":      {hookdef.ToolsCall, `{"content":[{"type":"image","data":"` + file + `","mimeType":"image/png"}]}`, "", "", "", `{"content":[{"type":"image","data":"` + file + `","mimeType":"image/png"}]}`},
		"resource":   {hookdef.ResourceRead, `{"contents":[{"uri":"memory://x","text":"` + key + `"}]}`, "", "", "", `{"contents":[{"uri":"memory://x","text":"[redacted]"}]}`},
		"file":       {hookdef.ResourceRead, `{"contents":[{"uri":"x","mimeType":"a/b","blob":"` + file + `"}]}`, "", "", "", `{"contents":[{"uri":"x","mimeType":"a/b","blob":"` + file + `"}]}`},
		"prompt":     {hookdef.PromptGet, `{"messages":[{"role":"user","content":{"type":"text","text":"` + key + `"}}]}`, "", "", "", `{"messages":[{"role":"user","content":{"type":"text","text":"[redacted]"}}]}`},
		"error":      {hookdef.ToolsCall, "", "no access with " + key, `{"password":"hunter2hunter2"}`, "", `no access with [redacted] {"password":"[redacted]"}`},
		"read error": {hookdef.ResourceRead, "", "no access with " + key, `["` + key + `"]`, "", `no access with [redacted] ["[redacted]"]`},
		"progress":   {hookdef.ToolsCall, textContent("x"), "", "", `{"progress":1,"message":"` + key + `"}`, textContent("x") + ` {"progress":1,"message":"[redacted]"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			progress := ""
			out := engine.Run(t.Context(), program, hookengine.Request{Method: tt.method, Params: json.RawMessage(`{}`)},
				hookengine.CallerFunc(func(ctx context.Context, c hookengine.Call) (json.RawMessage, error) {
					if tt.progress != "" {
						progress = " " + string(c.Progress(ctx, json.RawMessage(tt.progress)))
					}
					if tt.failure != "" {
						return nil, &jsonrpc.Error{Code: -32000, Message: tt.failure, Data: json.RawMessage(tt.data)}
					}
					return json.RawMessage(tt.response), nil
				}))
			got := string(out.Response) + progress
			var failed *jsonrpc.Error
			if errors.As(out.Err, &failed) {
				got = failed.Message + " " + string(failed.Data)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s (%v)", got, tt.want, out.Err)
			}
		})
	}
}

// Errors of the sandbox have the position in the user's script, its console and a code; a
// syntax error is found without running the script.
func TestErrors(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	scripts := &runner.Scripts{Runner: pool, Owner: func(context.Context) string { return "me" }}
	run := func(source string, timeout time.Duration) error {
		_, err := scripts.RunHook(t.Context(), hookengine.ScriptCall{
			Script: hookdef.Script{Name: "g/h.js", Text: source}, Context: json.RawMessage(`{}`), Timeout: timeout,
		})
		return err
	}
	for _, tt := range []struct {
		source string
		code   string
		line   int
	}{
		{"console.log('first');\n  throw new Error('boom');", hookengine.CodeScript, 2},
		{"export default async () => {\n\n await sleep(1); null.x; }", hookengine.CodeScript, 3},
		{"await sleep(10000)", hookengine.CodeTimeout, 0},
		{"while (true) {}", hookengine.CodeTimeout, 0},
		{"new Uint8Array(2 ** 30)", hookengine.CodeScript, 1},
	} {
		timeout := time.Minute // the timeout is long, so that the test does not fail on a busy machine
		if tt.code == hookengine.CodeTimeout {
			timeout = 300 * time.Millisecond
		}
		var failed *hookengine.ScriptError
		if err := run(tt.source, timeout); !errors.As(err, &failed) || failed.Code != tt.code || tt.line > 0 && (failed.Line != tt.line || failed.File != "g/h.js") {
			t.Errorf("%s: %+v (%v)", tt.source, failed, err)
		}
	}
	var failed *hookengine.ScriptError
	if err := run("console.log('first');\nthrow 1", time.Minute); !errors.As(err, &failed) || len(failed.Console) != 1 || failed.Console[0].Text != "first" {
		t.Errorf("the console is %+v", failed)
	}
	document, found := workflow.CheckAs("g.json", []byte(`{"id": "g", "name": "G", "workflowType": "tools/call", "nodes": [{"id": "s", "type": "start"},
		{"id": "h", "type": "hook", "data": {"hook": {"script": "let x = 1;\nlet = (;"}}}, {"id": "c", "type": "mcp-call"}, {"id": "e", "type": "end"}],
		"edges": [{"source": "s", "target": "h"}, {"source": "h", "target": "c"}, {"source": "c", "target": "e"}]}`), workflow.As{})
	if document == nil {
		t.Fatal(found)
	}
	wrong, err := runner.Check(t.Context(), pool, linkGraph(t, document.Graph))
	if err != nil || len(wrong) != 1 || wrong[0].Node != "h" || wrong[0].File != "g/h.js" || wrong[0].Line != 2 {
		t.Errorf("%+v, %v", wrong, err)
	}
	for _, graph := range []string{"redact-secrets", "block-by-argument", "default-argument", "audit-calls", "cap-result-size", "rename-tools", "rename-tools-back", "rate-limit", "quota", "response-cache", "deduplicate"} {
		if wrong, err := runner.Check(t.Context(), pool, linkBundled(t, graph, nil)); err != nil || len(wrong) > 0 {
			t.Errorf("%s: %v, %v", graph, wrong, err)
		}
	}
}
