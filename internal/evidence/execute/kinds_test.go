package execute_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// TestFile checks the rules on files.
func TestFile(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"dir/report.json": `{"ok": true, "n": 3}`, "dir/text": "not JSON"})
	outside := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(outside, []byte("secret"), 0o600))
	for link, target := range map[string]string{"link": "dir/text", "escape": outside, "up": "../" + filepath.Base(filepath.Dir(outside)), "loop": "loop", "dangling": "missing", "etc": "/etc"} {
		check(t, os.Symlink(target, r.path(link)))
	}
	check(t, os.Truncate(createFile(t, r.path("large")), 17<<20))
	if runtime.GOOS != "windows" {
		check(t, makePipe(r.path("pipe")))
	}
	for rule, want := range map[string]string{
		`{"type":"file","path":"dir/text"}`:                                              "passed",
		`{"type":"file","path":"dir"}`:                                                   "passed",
		`{"type":"file","path":"link"}`:                                                  "passed",
		`{"type":"file","path":"missing"}`:                                               "failed: the file missing does not exist",
		`{"type":"file","path":"missing","exists":false}`:                                "passed",
		`{"type":"file","path":"dir/text","exists":false}`:                               "failed: the file dir/text exists, but must not",
		`{"type":"file","path":"dangling","exists":false}`:                               "failed: the file dangling exists, but must not",
		`{"type":"file","path":"dangling"}`:                                              "failed: the file dangling does not exist",
		`{"type":"file","path":"escape"}`:                                                "failed: the file escape cannot be read: path escapes from parent",
		`{"type":"file","path":"escape","matches":"secret"}`:                             "failed: the file escape cannot be read: path escapes from parent",
		`{"type":"file","path":"etc/passwd","exists":false}`:                             "inconclusive: the file etc/passwd cannot be read: path escapes from parent",
		`{"type":"file","path":"up/secret"}`:                                             "failed: the file up/secret cannot be read: path escapes from parent",
		`{"type":"file","path":"loop"}`:                                                  "failed: the file loop cannot be read: too many levels of symbolic links",
		`{"type":"file","path":"dir/text","matches":"^not"}`:                             "passed",
		`{"type":"file","path":"dir/text","matches":"^none"}`:                            "failed: the file dir/text does not match /^none/",
		`{"type":"file","path":"dir/text","excludes":"JSON"}`:                            "failed: the file dir/text matches /JSON/",
		`{"type":"file","path":"dir/text","minBytes":8,"maxBytes":8}`:                    "passed",
		`{"type":"file","path":"dir/text","minBytes":9}`:                                 "failed: the file dir/text has 8 bytes, fewer than 9",
		`{"type":"file","path":"dir/text","maxBytes":7}`:                                 "failed: the file dir/text has 8 bytes, more than 7",
		`{"type":"file","path":"dir","minBytes":1}`:                                      "failed: dir is a directory, not a regular file",
		`{"type":"file","path":"pipe","matches":"x"}`:                                    "failed: pipe is a named pipe, not a regular file",
		`{"type":"file","path":"large","matches":"x"}`:                                   "inconclusive: the file large has more than 16777216 bytes, so that its content cannot be checked",
		`{"type":"file","path":"large","minBytes":17000000}`:                             "passed",
		`{"type":"file","path":"dir/report.json","schema":{"required":["ok"]}}`:          "passed",
		`{"type":"file","path":"dir/report.json","schema":{"required":["no"]}}`:          "failed: the file dir/report.json does not conform to its schema: ",
		`{"type":"file","path":"dir/text","schema":{"type":"object"}}`:                   "failed: the file dir/text does not conform to its schema: the text is not JSON",
		`{"type":"file","path":"dir/report.json","matches":"no","schema":{}}`:            "failed: the file dir/report.json does not match",
		`{"type":"file","path":"dir/report.json","schema":{"$ref":"https://x.example"}}`: "inconclusive: the file dir/report.json cannot be checked against its schema: ",
	} {
		if runtime.GOOS == "windows" && (strings.Contains(rule, "pipe") || strings.Contains(rule, "loop") || strings.Contains(rule, "etc/")) {
			continue
		}
		got := r.run(rule)
		if !strings.HasPrefix(outcome(got), want) || want == "passed" && got.Issue != "" {
			t.Errorf("%s: %s, want %s", rule, outcome(got), want)
		}
		if got.Hash == "" || got.Workspace == nil || strings.Contains(got.Head+got.Tail, "secret") {
			t.Errorf("%s: %+v", rule, got)
		}
	}
	for _, value := range []string{"../" + filepath.Base(r.root) + "/README", outside, "a/../../b", `C:\x`} {
		r.vars["x"] = value
		if got := outcome(r.run(`{"type":"file","path":"{{x}}"}`)); !strings.Contains(got, "leaves the workspace") && !strings.Contains(got, "has a backslash or a colon") {
			t.Errorf("%q: %s", value, got)
		}
	}
	r.vars["x"] = ""
	if got := outcome(r.run(`{"type":"file","path":"{{x}}"}`)); got != "inconclusive: the path of the file is empty: set the variable that fills it" {
		t.Errorf("an empty path: %s", got)
	}
}

// createFile creates an empty file and returns its name.
func createFile(t *testing.T, name string) string {
	t.Helper()
	check(t, os.WriteFile(name, nil, 0o600))
	return name
}

// TestGit checks the rules on the commit and the changed files.
func TestGit(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"src/a.go": "a", "docs/a.md": "a"})
	first := r.git("rev-parse", "HEAD")
	expect := func(rule, want string) {
		t.Helper()
		if got := outcome(r.run(rule)); got != want {
			t.Errorf("%s:\n%s, want\n%s", rule, got, want)
		}
	}
	expect(`{"type":"git","clean":true,"inside":["src/**"],"outside":["docs/**"],"commit":"`+first+`"}`, "passed")
	r.write("src/a.go", "b")
	expect(`{"type":"git","clean":true}`, "failed: the work tree is not clean: these files differ from the checked out commit, or are not in it: src/a.go")
	expect(`{"type":"git","inside":["src/**"]}`, "passed")
	expect(`{"type":"git","inside":["docs/**","*.md"]}`, "failed: files outside docs/**, *.md changed since the start of the run: src/a.go (modified)")
	expect(`{"type":"git","outside":["src/*.go"]}`, "failed: files in src/*.go changed since the start of the run: src/a.go (modified)")
	r.commit()
	expect(`{"type":"git","clean":true}`, "passed")
	expect(`{"type":"git","outside":["src/**"],"clean":true}`, "failed: files in src/** changed since the start of the run: src/a.go (modified)")
	r.write("new file", "x")
	r.git("add", "new file")
	expect(`{"type":"git","inside":["src/**"]}`, "failed: files outside src/** changed since the start of the run: new file (added)")
	check(t, os.Remove(r.path("docs/a.md")))
	expect(`{"type":"git","outside":["docs/**"]}`, "failed: files in docs/** changed since the start of the run: docs/a.md (deleted)")
	for i := range 25 {
		r.write("many/"+string(rune('a'+i)), "x")
	}
	if got := outcome(r.run(`{"type":"git","outside":["many/**"]}`)); !strings.HasSuffix(got, "many/t (added) and 5 more") {
		t.Error(got)
	}

	expect(`{"type":"git","commit":"`+first+`"}`, "passed")
	expect(`{"type":"git","commit":"`+first[:8]+`"}`, "passed")
	r.git("stash", "-q", "-u")
	r.git("checkout", "-q", "-b", "other", first)
	r.write("other", "x")
	r.commit()
	other := r.git("rev-parse", "HEAD")
	r.git("checkout", "-q", "main")
	missing := strings.Repeat("1", 40)
	for name, want := range map[string]string{
		r.git("rev-parse", "HEAD"): "passed", other: "failed: the commit " + other + " is not part of the checked out branch", missing: "failed: the commit " + missing + " does not exist",
		"HEAD": `failed: "HEAD" is not the hash of a commit`, "-p": `failed: "-p" is not the hash of a commit`, "": `failed: "" is not the hash of a commit`,
		r.git("rev-parse", "HEAD:src"): "failed: the commit " + r.git("rev-parse", "HEAD:src") + " does not exist", "main": `failed: "main" is not the hash of a commit`,
	} {
		r.vars["x"] = name
		if name == "" { // a rule without any requirement is not a check
			continue
		}
		expect(`{"type":"git","commit":"{{x}}"}`, want)
	}
	start := r.start
	r.start = nil
	if got := outcome(r.run(`{"type":"git","inside":["src/**"]}`)); !strings.HasPrefix(got, "inconclusive: the state of the work tree at the start") {
		t.Error(got)
	}
	r.start = start
	check(t, os.RemoveAll(r.path(".git")))
	for _, rule := range []string{`{"type":"git","clean":true}`, `{"type":"git","inside":["**"]}`, `{"type":"protect","paths":["**"]}`} {
		if got := outcome(r.run(rule)); !strings.HasPrefix(got, "inconclusive: ") || !strings.Contains(got, "not a work tree of Git") {
			t.Errorf("%s without a repository: %s", rule, got)
		}
	}
}

// TestProtect checks that changed protected files are refused until a person approves exactly
// this content for exactly this run. Package worktree tests the ways to change a file.
func TestProtect(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"src/a.go": "a\n", "src/a_test.go": "func TestA\n", ".github/workflows/ci.yml": "run: test\n"})
	const rule = `{"type":"protect","paths":["**/*_test.go",".github/**"]}`
	r.write("src/a.go", "b\n")
	if got := outcome(r.run(rule)); got != "passed" {
		t.Error(got)
	}
	r.write("src/a_test.go", "func TestA // weakened\n")
	r.write("src/new_test.go", "func TestMain\n")
	check(t, os.Remove(r.path(".github/workflows/ci.yml")))
	want := "failed: protected files differ from the start of the run: .github/workflows/ci.yml (deleted), src/a_test.go (modified), src/new_test.go (added); " +
		"restore them, or ask a person to review the changes in a terminal in " + r.root + ": guideway checks approve --run run_1"
	if d := cmp.Diff(want, outcome(r.run(rule))); d != "" {
		t.Error(d)
	}
	if got := outcome(r.run(`{"type":"protect","paths":["**/*_test.go"],"allowNew":true}`)); strings.Contains(got, "new_test.go") || !strings.Contains(got, "a_test.go (modified)") {
		t.Errorf("with new files: %s", got)
	}
	request := r.request(rule)
	changes, err := r.checker.ProtectedChanges(t.Context(), "run_1", r.start, []*criteria.CheckRule{request.Rule, request.Rule})
	check(t, err)
	if len(changes) != 3 || !strings.Contains(changes[1].Diff, "-func TestA\n+func TestA // weakened\n") || !strings.Contains(changes[0].Diff, "-run: test\n") ||
		!strings.Contains(changes[2].Diff, "+func TestMain\n") {
		t.Fatalf("%+v", changes)
	}
	var accepted []checksfile.ProtectedChange
	for i := range changes {
		if got := outcome(r.run(rule)); !strings.HasPrefix(got, "failed") {
			t.Errorf("with %d of 3 approvals: %s", i, got)
		}
		accepted = append(accepted, changes[i].ProtectedChange)
		record, err := checksfile.NewChangesRecord(r.root, "run_1", "me", accepted)
		check(t, err)
		r.put(record)
	}
	if got := outcome(r.run(rule)); got != "passed" {
		t.Errorf("with all approvals: %s", got)
	}
	again, err := r.checker.ProtectedChanges(t.Context(), "run_1", r.start, []*criteria.CheckRule{request.Rule})
	if err != nil || len(again) != 3 || slices.ContainsFunc(again, func(c execute.ProtectedChange) bool { return !c.Approved }) {
		t.Errorf("%+v, %v", again, err)
	}
	other := request
	other.Run = "run_2"
	if got, err := r.checker.Check(t.Context(), other); err != nil || got.Passed {
		t.Errorf("the approval is valid for another run: %+v, %v", got, err)
	}
	r.write("src/a_test.go", "func TestA // weakened more\n")
	if got := outcome(r.run(rule)); !strings.HasPrefix(got, "failed: protected files differ from the start of the run: src/a_test.go (modified);") {
		t.Errorf("the approval is valid for another content: %s", got)
	}
	r.git("checkout", "-q", "--", "src/a_test.go")
	if got := outcome(r.run(rule)); got != "passed" {
		t.Errorf("restored: %s", got)
	}
}

// TestUnapprovableChange checks that an added file that a changed .gitignore hides cannot be
// approved, because its content is not known, and that hidden characters of a difference are
// visible. A link is not followed.
func TestUnapprovableChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a_test.go": "a\n"})
	r.write(".gitignore", "hidden_test.go\n")
	r.write("hidden_test.go", "func TestMain\n")
	r.write("a_test.go", "a\u202e\n")
	check(t, os.Symlink("a_test.go", r.path("link_test.go")))
	const rule = `{"type":"protect","paths":["**/*_test.go"]}`
	changes, err := r.checker.ProtectedChanges(t.Context(), "run_1", r.start, []*criteria.CheckRule{r.request(rule).Rule})
	if err != nil || len(changes) != 3 || !strings.Contains(changes[0].Diff, `+a\u{202E}`) || !strings.Contains(changes[1].Diff, "cannot be shown") || changes[2].Approvable {
		t.Fatalf("%+v, %v", changes, err)
	}
	var all []checksfile.ProtectedChange
	for _, c := range changes {
		all = append(all, c.ProtectedChange)
	}
	record, err := checksfile.NewChangesRecord(r.root, "run_1", "me", all)
	check(t, err)
	r.put(record)
	if got := outcome(r.run(rule)); !strings.HasPrefix(got, "failed: protected files differ from the start of the run: hidden_test.go (added);") {
		t.Error(got)
	}
}

// TestNamedProtect checks a check of the project that protects files.
func TestNamedProtect(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{checksPath: "checks:\n  kept: {protect: [\"**/*_test.go\"], allowNew: true}\n", "a_test.go": "a", "\x01": "x"})
	const rule = `{"type":"check","check":"kept"}`
	if got := outcome(r.runApproved(rule)); got != "passed" {
		t.Error(got)
	}
	r.write("a_test.go", "\x00\xff")
	if got := r.run(rule); got.Passed || got.Workspace == nil || !strings.Contains(got.Issue, "a_test.go (modified)") {
		t.Errorf("%+v", got)
	}
	rules := []*criteria.CheckRule{r.request(rule).Rule, {Type: criteria.NamedCheck, Check: "undefined"}, {Type: criteria.File, Path: "x"}}
	changes, err := r.checker.ProtectedChanges(t.Context(), "run_1", r.start, rules)
	if err != nil || len(changes) != 1 || !strings.Contains(changes[0].Diff, "cannot be shown") {
		t.Errorf("%+v, %v", changes, err)
	}
}

// TestHTTP checks requests to this machine, which need an approval of the address.
func TestHTTP(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("elsewhere")) }))
	defer elsewhere.Close()
	stop := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodGet || q.Header.Get("Authorization") != "" || q.Header.Get("Cookie") != "" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write([]byte("up " + q.URL.Query().Get("q")))
	})
	mux.HandleFunc("/missing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	mux.HandleFunc("/here", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/ok", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, elsewhere.URL, http.StatusFound) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/loop", http.StatusFound) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("begin" + strings.Repeat("x", 2<<20)))
	})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, q *http.Request) {
		select {
		case <-stop:
		case <-q.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(stop)
	r := newRig(t, nil)
	r.vars["x"] = "a b&c"
	rule := func(path, more string) string { return `{"type":"http","url":"` + server.URL + path + `"` + more + `}` }
	if err := r.runFails(rule("/ok", "")); guideway.ErrorCode(err) != guideway.CodeForbidden || guideway.ErrorFix(err) == "" {
		t.Errorf("an address that is not approved: %v", err)
	}
	r.approve(rule("/ok", ""))
	for _, tt := range []struct{ path, more, want string }{
		{"/ok", "", "passed"},
		{"/ok", `,"matches":"^up"`, "passed"},
		{"/ok", `,"excludes":"up"`, "failed: the answer of " + server.URL + "/ok matches /up/"},
		{"/ok", `,"status":404`, "failed: " + server.URL + "/ok answered with the status 200 instead of 404"},
		{"/missing", "", "failed: " + server.URL + "/missing answered with the status 404 instead of 200"},
		{"/missing", `,"status":404`, "passed"},
		{"/here", `,"matches":"^up"`, "passed"},
		{"/away", "", "inconclusive: " + server.URL + "/away redirects to another origin or more than 5 times, which is not followed"},
		{"/loop", "", "inconclusive: " + server.URL + "/loop redirects to another origin or more than 5 times, which is not followed"},
		{"/large", `,"matches":"^begin"`, "passed"},
		{"/large", `,"excludes":"end"`, "inconclusive: the answer of " + server.URL + "/large has no match"},
		{"/hang", `,"timeout":"100ms"`, "inconclusive: " + server.URL + "/hang did not answer within its time limit of 100ms"},
	} {
		if got := outcome(r.run(rule(tt.path, tt.more))); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s%s: %s, want %s", tt.path, tt.more, got, tt.want)
		}
	}
	if err := r.runFails(`{"type":"http","url":"` + elsewhere.URL + `"}`); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("another port: %v", err)
	}
	r.approve(`{"type":"http","url":"` + elsewhere.URL + `"}`)
	r.vars["x"] = "@" + strings.TrimPrefix(elsewhere.URL, "http://") + "/"
	if got := outcome(r.run(rule("{{x}}", ""))); !strings.Contains(got, "has a different origin than") {
		t.Errorf("a value that changes the host: %s", got)
	}
	const nobody = "http://127.0.0.1:1" // a port that no other test may take
	r.approve(`{"type":"http","url":"` + nobody + `"}`)
	if got := outcome(r.run(`{"type":"http","url":"` + nobody + `"}`)); got != "failed: "+nobody+" refused the connection" {
		t.Errorf("a port without a server: %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := r.checker.Check(ctx, r.request(rule("/ok", ""))); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %+v, %v", got, err)
	}
}

// TestPrivateAddresses checks that private addresses are not requested, and that the
// approval of a loopback address does not approve a host name that resolves to it.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, url := range []string{"http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://192.168.0.1:8080/", "http://[fd00::1]/", "http://0.0.0.0:1/", "http://[::ffff:10.0.0.1]/"} {
		got := r.run(`{"type":"http","url":"` + url + `","timeout":"2s"}`)
		if !got.Inconclusive || !strings.Contains(got.Issue, "private or reserved address not allowed") {
			t.Errorf("%s: %s", url, outcome(got))
		}
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check(t, err)
	for _, host := range []string{"localhost", "127.0.0.1", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]", "LOCALHOST.", "app.localhost"} {
		if err := r.runFails(`{"type":"http","url":"http://` + host + ":" + port + `/"}`); guideway.ErrorCode(err) != guideway.CodeForbidden {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// tools is a gateway with one result.
type tools struct {
	result    execute.ToolResult
	err       error
	name      string
	arguments map[string]any
}

func (f *tools) CallTool(_ context.Context, name string, arguments map[string]any) (execute.ToolResult, error) {
	f.name, f.arguments = name, arguments
	return f.result, f.err
}

// TestTool checks conditions on the results of tools.
func TestTool(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	fake := &tools{}
	const rule = `{"type":"tool","tool":"ci__status","arguments":{"branch":"main"},"result":{"var":"run.state","equals":"green"}}`
	r.approve(rule)
	if err := r.runFails(rule); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("without a gateway: %v", err)
	}
	r.opts.Tools = fake
	r.open()
	state := func(s string) any { return map[string]any{"run": map[string]any{"state": s}} }
	for name, tt := range map[string]struct {
		result execute.ToolResult
		err    error
		want   string
	}{
		"the condition holds":         {execute.ToolResult{Structured: state("green")}, nil, "passed"},
		"the condition does not hold": {execute.ToolResult{Structured: state("red")}, nil, "failed: the result of the tool ci__status does not meet the condition: "},
		"no structured result":        {execute.ToolResult{Text: "green"}, nil, "failed: the result of the tool ci__status does not meet the condition: "},
		"an error of the tool":        {execute.ToolResult{IsError: true, Text: "no such branch", Structured: state("green")}, nil, "failed: the tool ci__status reported an error: no such branch"},
		"no answer":                   {execute.ToolResult{}, errors.New("it has ended"), "inconclusive: the call of the tool ci__status failed: it has ended"},
	} {
		fake.result, fake.err = tt.result, tt.err
		got := r.run(rule)
		if !strings.HasPrefix(outcome(got), tt.want) || fake.name != "ci__status" || !cmp.Equal(fake.arguments, map[string]any{"branch": "main"}) {
			t.Errorf("%s: %+v, called %s with %v", name, got, fake.name, fake.arguments)
		}
	}
	fake.err = guideway.Errorf(guideway.CodeNotFound, "there is no such tool")
	if err := r.runFails(rule); !errors.Is(err, fake.err) {
		t.Errorf("%v", err)
	}
	fake.result, fake.err, fake.name = execute.ToolResult{Structured: []any{"green"}}, nil, ""
	if err := r.runFails(`{"type":"tool","tool":"ci__delete","arguments":{"branch":"main"}}`); guideway.ErrorCode(err) != guideway.CodeForbidden || fake.name != "" {
		t.Errorf("a tool that is not approved: %v, called %q", err, fake.name)
	}
	if got := r.runApproved(`{"type":"tool","tool":"ci__status","result":{"var":"result.0","equals":"green"}}`); !got.Passed || got.Head != `["green"]` {
		t.Errorf("a list: %+v", got)
	}
	if got := r.runApproved(`{"type":"tool","tool":"ci__status"}`); !got.Passed {
		t.Errorf("without a condition: %+v", got)
	}
}
