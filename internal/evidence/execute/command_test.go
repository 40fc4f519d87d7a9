package execute_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/evidence/execute/runner"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
)

// needShell skips a test on systems without a shell of Unix.
func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("this test needs a shell")
	}
}

// TestCommand checks the result of commands that end.
func TestCommand(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, map[string]string{"dir/script.sh": "#!/bin/sh\necho in $(basename $PWD): $1\n"})
	for rule, want := range map[string]string{
		`{"type":"command","argv":["echo","hello world"]}`:                                              "passed",
		`{"type":"command","argv":["sh","-c","exit 3"]}`:                                                "failed: `sh -c exit 3` exited with 3 instead of 0",
		`{"type":"command","argv":["sh","-c","exit 3"],"exitCode":3}`:                                   "passed",
		`{"type":"command","argv":["true"],"exitCode":3}`:                                               "failed: `true` exited with 0 instead of 3",
		`{"type":"command","argv":["echo","3 passed"],"matches":"^\\d+ passed"}`:                        "passed",
		`{"type":"command","argv":["echo","none"],"matches":"^\\d+ passed"}`:                            "failed: the output of `echo none` does not match /^\\d+ passed/",
		`{"type":"command","argv":["echo","1 SKIPPED"],"matches":"1","excludes":"SKIPPED"}`:             "failed: the output of `echo 1 SKIPPED` matches /SKIPPED/",
		`{"type":"command","argv":["sh","-c","echo to stderr >&2"],"matches":"stderr"}`:                 "passed",
		`{"type":"command","argv":["./script.sh","x"],"dir":"dir","matches":"^in dir: x\n$"}`:           "passed",
		`{"type":"command","argv":["./dir/script.sh","x"],"matches":": x\n$"}`:                          "passed",
		`{"type":"command","argv":["no-such-program"]}`:                                                 "inconclusive: the program no-such-program was not found, or is not executable; a name without a slash must be on PATH",
		`{"type":"command","argv":["./README"]}`:                                                        "inconclusive: the command was not executed: start " + r.path("README") + ": exec format error",
		`{"type":"command","argv":["sh","-c","kill -9 $$"]}`:                                            "inconclusive: the command was killed by the signal SIGKILL",
		`{"type":"command","argv":["sh","-c","cat; test -t 0 || echo no input"],"matches":"^no input"}`: "passed",
	} {
		if got := outcome(r.runApproved(rule)); got != want {
			t.Errorf("%s:\n%s, want\n%s", rule, got, want)
		}
	}
	got := r.runApproved(`{"type":"command","argv":["sh","-c","printf 'a\\377b'; exit 1"],"dir":"dir"}`)
	sum := sha256.Sum256([]byte("a\377b"))
	code := 1
	want := evidence.Result{
		Step: "step", Key: "/0", Type: "command", Describe: got.Describe, Hash: got.Hash, CheckOutcome: got.CheckOutcome, Argv: []string{"sh", "-c", `printf 'a\377b'; exit 1`},
		Dir: r.path("dir"), ExitCode: &code, DurationMS: got.DurationMS, OutputHash: hex.EncodeToString(sum[:]), OutputBytes: 3, Head: "a\uFFFDb", Workspace: r.start, Instance: "instance",
	}
	if d := cmp.Diff(want, got); d != "" || got.Hash == "" || got.Describe == "" {
		t.Error(d)
	}
}

// TestOutput checks that the beginning and the end of a long output are kept, that all of it
// is hashed, and that a pattern is not decided by a part that was not searched.
func TestOutput(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, nil)
	line := strings.Repeat("x", 99) + "\n"
	text := "begin\n" + strings.Repeat(line, 1000) + "end\n"
	r.write("long", text)
	got := r.runApproved(`{"type":"command","argv":["cat","long"],"matches":"begin"}`)
	sum := sha256.Sum256([]byte(text))
	if !got.Passed || got.OutputBytes != int64(len(text)) || got.OutputHash != hex.EncodeToString(sum[:]) ||
		got.Head != text[:8<<10] || got.Tail != text[len(text)-8<<10:] {
		t.Errorf("%+v", got)
	}
	r.write("huge", "begin\n"+strings.Repeat(line, 40000)+"middle\n"+strings.Repeat(line, 40000)+"end\n")
	for rule, want := range map[string]string{
		`{"type":"command","argv":["cat","huge"],"matches":"begin"}`:    "passed",
		`{"type":"command","argv":["cat","huge"],"matches":"end\n$"}`:   "passed",
		`{"type":"command","argv":["cat","huge"],"matches":"middle"}`:   "inconclusive: the output of `cat huge` has no match of /middle/ in its beginning and its end; its middle is too large to be searched",
		`{"type":"command","argv":["cat","huge"],"excludes":"middle"}`:  "inconclusive: the output of `cat huge` has no match of /middle/ in its beginning and its end; its middle is too large to be searched",
		`{"type":"command","argv":["cat","huge"],"excludes":"end"}`:     "failed: the output of `cat huge` matches /end/",
		`{"type":"command","argv":["cat","long"],"matches":"(x+x+)+y"}`: "inconclusive: the output of `cat long` cannot be searched for /(x+x+)+y/: the pattern took longer than 250ms",
	} {
		if got := outcome(r.runApproved(rule)); got != want {
			t.Errorf("%s:\n%s, want\n%s", rule, got, want)
		}
	}
}

// TestHostileCommands checks that commands that do not end are stopped and reported, and that
// they leave no process. The file "pid" of the workspace names a process of each of them.
func TestHostileCommands(t *testing.T) {
	t.Parallel()
	needShell(t)
	for name, tt := range map[string]struct {
		script, timeout, want string
		limits                execute.Limits
	}{
		"hangs":           {`echo $$ >pid; exec sleep 1000`, "300ms", "inconclusive: the command did not end within its time limit of 300ms", execute.Limits{}},
		"ignores signals": {`echo $$ >pid; trap '' TERM INT HUP; while :; do sleep 0.1; done`, "300ms", "inconclusive: the command did not end within its time limit of 300ms", execute.Limits{}},
		"claims success after its time": {
			`echo $$ >pid; trap 'exit 0' TERM; sleep 1000 & wait`, "300ms", "inconclusive: the command did not end within its time limit of 300ms", execute.Limits{},
		},
		"floods": {`echo $$ >pid; exec yes`, "5m", "inconclusive: the command was stopped because it wrote more than 100000 bytes", execute.Limits{OutputBytes: 100_000}},
		"has many processes": {
			`echo $$ >pid; for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; wait`, "5m", "inconclusive: the command was stopped because it had more than 5 processes at the same time", execute.Limits{Processes: 5},
		},
		"detaches": {`setsid sh -c 'echo $$ >pid; exec sleep 1000' & while ! [ -s pid ]; do sleep 0.01; done`, "5m", "passed", execute.Limits{}},
		"detaches and hides": {
			`env -i PATH="$PATH" setsid sh -c '(echo $$ >pid; exec sleep 1000) &' >/dev/null 2>&1 & while ! [ -s pid ]; do sleep 0.01; done`, "5m", "passed", execute.Limits{},
		},
		"kills its keeper": {`echo $$ >pid; kill -9 $PPID; exec sleep 1000`, "5m", "inconclusive: the command was interrupted: the process that supervised the command was killed or did not answer; the result is unknown: run the check again", execute.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && (strings.Contains(name, "hides") || strings.Contains(name, "many") || strings.Contains(name, "keeper") || strings.Contains(name, "detaches")) {
				t.Skip("only Linux contains this command")
			}
			r := newRig(t, map[string]string{"run.sh": tt.script})
			r.opts.Limits.OutputBytes, r.opts.Limits.Processes = tt.limits.OutputBytes, tt.limits.Processes
			r.open()
			rule := `{"type":"command","argv":["sh","run.sh"],"timeout":"` + tt.timeout + `"}`
			got := r.runApproved(rule)
			if outcome(got) != tt.want {
				t.Errorf("%s, want %s", outcome(got), tt.want)
			}
			if strings.HasPrefix(name, "detaches") && got.Killed == 0 {
				t.Errorf("the killed process is not reported: %+v", got)
			}
			text, err := os.ReadFile(r.path("pid"))
			check(t, err)
			if status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat"); err == nil && !strings.Contains(string(status), ") Z ") {
				t.Errorf("a process is left: %s", status)
			}
		})
	}
}

// TestCancelledCommand checks that a command ends with the call, without a result.
func TestCancelledCommand(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, nil)
	const rule = `{"type":"command","argv":["sh","-c","echo begun; exec sleep 1000"]}`
	r.approve(rule)
	r.opts.Limits.Progress = time.Millisecond
	r.open()
	ctx, cancel := context.WithCancel(t.Context())
	r.progress = func(message string) {
		if strings.HasSuffix(message, ": begun") {
			cancel()
		}
	}
	if result, err := r.checker.Check(ctx, r.request(rule)); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestEnvironment checks which variables a command receives.
func TestEnvironment(t *testing.T) {
	needShell(t)
	for name, value := range map[string]string{"SECRET_TOKEN": "secret", "GUIDEWAY_PASSPHRASE": "secret", "LD_PRELOAD": "", "PASSED_ON": "value", "GOCACHE": "/tmp/cache", "BASH_ENV": "/tmp/evil"} {
		t.Setenv(name, value)
	}
	r := newRig(t, nil)
	got := r.runApproved(`{"type":"command","argv":["env"],"env":["PASSED_ON","NOT_SET"]}`)
	for _, want := range []string{"PATH=", "HOME=", "PASSED_ON=value\n", "GOCACHE=/tmp/cache\n"} {
		if !strings.Contains("\n"+got.Head, "\n"+want) {
			t.Errorf("the environment has no %q", want)
		}
	}
	for _, name := range []string{"SECRET_TOKEN", "GUIDEWAY_PASSPHRASE", "LD_PRELOAD", "NOT_SET", "BASH_ENV", "secret"} {
		if strings.Contains(got.Head, name) {
			t.Errorf("the environment has %s", name)
		}
	}
}

// TestValuesAreData checks values of variables that would be options, scripts or programs.
func TestValuesAreData(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, nil)
	for rule, cases := range map[string]map[string]string{
		`{"type":"command","argv":["echo","{{x}}"],"matches":"^\\$\\(touch hacked\\); ` + "`" + `id` + "`" + `\n$"}`: {"$(touch hacked); `id`": "passed"},
		`{"type":"command","argv":["echo","{{x}}"]}`: {
			"-n": "inconclusive: the value of {{x}} begins with", "--version": "inconclusive", "a -n": "passed", "": "passed", "a\x00b": "inconclusive", "a\nb": "passed",
		},
		`{"type":"command","argv":["echo","--run={{x}}"]}`:   {"-n": "passed"},
		`{"type":"command","argv":["make","{{x}}"]}`:         {"SHELL=/tmp/evil": "inconclusive: the value of {{x}} contains \"=\"", "-fevil": "inconclusive"},
		`{"type":"command","argv":["find","{{x}}"]}`:         {".": "inconclusive: find can run its arguments as commands"},
		`{"type":"command","argv":["{{x}}"]}`:                {"true": "inconclusive: a variable in the argument \"{{x}}\" would decide which program"},
		`{"type":"command","argv":["sh","-c","{{x}}"]}`:      {"true": "inconclusive: a variable"},
		`{"type":"command","argv":["python3","-c","{{x}}"]}`: {"1": "inconclusive: a variable"},
		`{"type":"command","argv":["env","A=1","{{x}}"]}`:    {"true": "inconclusive: a variable"},
		`{"type":"command","argv":["echo","--{{x}}"]}`:       {"help": "inconclusive: a variable in the argument \"--{{x}}\" would decide which option"},
	} {
		for value, want := range cases {
			r.vars["x"] = value
			if got := outcome(r.runApproved(rule)); !strings.HasPrefix(got, want) {
				t.Errorf("%s with %q: %s, want %s", rule, value, got, want)
			}
		}
	}
	if _, err := os.Stat(r.path("hacked")); err == nil {
		t.Error("a value was read by a shell")
	}
}

// TestApproval checks that a command is executed only after its approval, and that a change
// of a file that defines the command requires another approval, even if the file changes
// during the execution.
func TestApproval(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, map[string]string{"test.sh": "touch ran\n"})
	const rule = `{"type":"command","argv":["sh","test.sh"]}`
	refused := func() {
		t.Helper()
		err := r.runFails(rule)
		if guideway.ErrorCode(err) != guideway.CodeForbidden || !strings.Contains(guideway.ErrorFix(err), "guideway checks approve") {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(r.path("ran")); err == nil {
			t.Error("the command was executed")
		}
	}
	refused()
	r.approve(rule)
	r.write("test.sh", "touch ran; exit 0\n")
	refused()
	if got := outcome(r.runApproved(rule)); got != "passed" {
		t.Error(got)
	}
	r.write("test.sh", "echo exit 0 >test.sh\n")
	if got := outcome(r.runApproved(rule)); got != "inconclusive: the definition of the command, or a file that defines the command, changed or became unreadable while the command ran: run the check again" {
		t.Error(got)
	}
}

// TestWorkingDirectory checks that a command runs only below the workspace.
func TestWorkingDirectory(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, map[string]string{"dir/file": ""})
	check(t, os.Symlink("dir", r.path("inside")))
	if got := r.runApproved(`{"type":"command","argv":["pwd"],"dir":"inside"}`); got.Head != r.path("dir")+"\n" {
		t.Errorf("%+v", got)
	}
	const rule = `{"type":"command","argv":["pwd"],"dir":"sub"}`
	check(t, os.Mkdir(r.path("sub"), 0o755))
	r.approve(rule)
	check(t, os.Remove(r.path("sub")))
	if err := r.runFails(rule); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("a missing directory: %v", err)
	}
	check(t, os.Symlink(t.TempDir(), r.path("sub")))
	if err := r.runFails(rule); guideway.ErrorCode(err) != guideway.CodeForbidden || guideway.ErrorFix(err) == "" {
		t.Errorf("a directory outside the workspace: %v", err)
	}
}

// checksYAML is a checks file.
const checksYAML = `checks:
  test:
    argv: [sh, run.sh, "{{package}}"]
    parameters: {package: {default: all, pattern: "[a-z]+"}}
  cached: {argv: [sh, count.sh], cache: tree}
  boxed: {argv: [sh, box.sh], sandbox: true}
  broken: {argv: sh}
`

// TestNamedCheck checks the checks of the checks file.
func TestNamedCheck(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, map[string]string{checksPath: checksYAML, "run.sh": `echo "package $1"`})
	got := r.runApproved(`{"type":"check","check":"test"}`)
	if !got.Passed || got.Name != "test" || got.Type != "check" || got.Head != "package all\n" || !cmp.Equal(got.Argv, []string{"sh", "run.sh", "all"}) {
		t.Errorf("%+v", got)
	}
	if got := r.run(`{"type":"check","check":"test","with":{"package":"one"}}`); got.Head != "package one\n" {
		t.Errorf("%+v", got)
	}
	for _, value := range []string{"-n", "ONE", "a b", "--help", "", "a\nb"} {
		r.vars["x"] = value
		if got := r.run(`{"type":"check","check":"test","with":{"package":"{{x}}"}}`); !got.Inconclusive || got.Argv != nil || got.Issue == "" {
			t.Errorf("%q: %+v", value, got)
		}
	}
	if got := r.run(`{"type":"check","check":"undefined"}`); outcome(got) != "undefined" || got.Name != "undefined" {
		t.Errorf("%+v", got)
	}
	if err := r.runFails(`{"type":"check","check":"broken"}`); guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) == "" {
		t.Errorf("%v", err)
	}
	r.write("run.sh", "exit 0")
	if err := r.runFails(`{"type":"check","check":"test"}`); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("the script changed: %v", err)
	}
	check(t, os.Remove(r.path(checksPath)))
	if err := r.runFails(`{"type":"check","check":"test"}`); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("the approved check was removed: %v", err)
	}
}

const checksPath = ".guideway/checks.yaml"

// TestCache checks that a result is reused only for the same work tree and arguments.
func TestCache(t *testing.T) {
	t.Parallel()
	needShell(t)
	counter := filepath.Join(t.TempDir(), "counter")
	r := newRig(t, map[string]string{checksPath: checksYAML, "count.sh": "echo x >>" + counter + "\n! [ -e fail ]\n", "run.sh": "echo x >>" + counter})
	const rule = `{"type":"check","check":"cached"}`
	r.approve(rule)
	expect := func(what string, runs int, reused bool) evidence.Result {
		t.Helper()
		got := r.run(rule)
		text, err := os.ReadFile(counter)
		check(t, err)
		if n := strings.Count(string(text), "x"); n != runs || got.Reused != reused {
			t.Errorf("%s: %d executions, reused %t, want %d, %t", what, n, got.Reused, runs, reused)
		}
		return got
	}
	expect("first", 1, false)
	if got := expect("again", 1, true); !got.Passed || got.Workspace == nil || *got.ExitCode != 0 {
		t.Errorf("%+v", got)
	}
	r.write("new", "x")
	expect("a new file", 2, false)
	expect("again", 2, true)
	r.commit()
	expect("a commit", 3, false)
	r.write("fail", "")
	expect("a failure", 4, false)
	if got := expect("again", 5, false); got.Passed {
		t.Errorf("%+v", got)
	}
	check(t, os.Remove(r.path("fail")))
	r.write(checksPath, checksYAML+"  more: {argv: [x]}\n")
	expect("another checks file", 6, false)
	const other = `{"type":"check","check":"test"}`
	r.approve(other)
	if first, second := r.run(other), r.run(other); first.Reused || second.Reused {
		t.Error("a check without cache was reused")
	}
}

// TestSandboxedCheck checks that a check with a sandbox cannot write outside the workspace,
// and that it is never executed without a sandbox.
func TestSandboxedCheck(t *testing.T) {
	t.Parallel()
	needShell(t)
	outside := filepath.Join(t.TempDir(), "outside")
	script := "echo x >inside && echo x >$TMPDIR/file && [ \"$TMPDIR\" != /tmp ] || exit 1\necho x >" + outside + " && exit 2\nexit 0\n"
	r := newRig(t, map[string]string{checksPath: checksYAML, "box.sh": script})
	const rule = `{"type":"check","check":"boxed"}`
	r.approve(rule)
	if err := runner.CheckSandbox(false); err != nil {
		if err := r.runFails(rule); guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "approve the check again") {
			t.Errorf("%v", err)
		}
		if _, err := os.Stat(r.path("inside")); err == nil {
			t.Error("the command was executed without a sandbox")
		}
		return
	}
	got := r.run(rule)
	if outcome(got) != "passed" || !got.Sandboxed {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("the command wrote outside the workspace")
	}
}

// TestSandboxCaches checks that a command in a sandbox can write to the caches of tools, but
// not to the rest of the user's home.
func TestSandboxCaches(t *testing.T) {
	needShell(t)
	if err := runner.CheckSandbox(false); err != nil {
		t.Skip(err)
	}
	home := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(home, ".cache"), 0o755))
	check(t, os.MkdirAll(filepath.Join(home, "gocache"), 0o755))
	t.Setenv("HOME", home)
	t.Setenv("GOCACHE", filepath.Join(home, "gocache"))
	r := newRig(t, map[string]string{checksPath: checksYAML, "box.sh": "echo x >$HOME/.cache/x && echo x >$GOCACHE/x || exit 1\necho x >$HOME/.profile && exit 2\nexit 0\n"})
	if got := r.runApproved(`{"type":"check","check":"boxed"}`); outcome(got) != "passed" {
		t.Errorf("%s: %s", outcome(got), got.Head)
	}
}

// TestWorkspaceOfTheRun checks that a check runs in the workspace of the run, and that a
// server without access to it returns an error.
func TestWorkspaceOfTheRun(t *testing.T) {
	t.Parallel()
	needShell(t)
	r := newRig(t, map[string]string{"sub/file": ""})
	const rule = `{"type":"command","argv":["pwd"]}`
	r.approve(rule)
	request := r.request(rule)
	request.ProjectPath = t.TempDir()
	if got, err := r.checker.Check(t.Context(), request); err != nil || got.Head != r.root+"\n" {
		t.Errorf("%+v, %v", got, err)
	}
	request.Start, request.ProjectPath = nil, r.path("sub")
	if got, err := r.checker.Check(t.Context(), request); err != nil || got.Head != r.root+"\n" || got.Workspace.Commit != r.start.Commit {
		t.Errorf("without a recorded workspace: %+v, %v", got, err)
	}
	for name, start := range map[string]*evidence.Workspace{
		"no project": nil, "another host": {Root: r.root, Host: "other"}, "a missing directory": {Root: r.path("missing")}, "a file": {Root: r.path("README")},
	} {
		request.Start, request.ProjectPath = start, ""
		if got, err := r.checker.Check(t.Context(), request); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := r.checker.Workspace(t.Context(), r.path("missing")); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("%v", err)
	}
	plain, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	r.root = plain
	r.start, err = r.checker.Workspace(t.Context(), plain)
	check(t, err)
	if got := r.runApproved(rule); !got.Passed || got.Workspace.Root != plain || got.Workspace.Commit != "" {
		t.Errorf("without a repository: %+v", got)
	}
}

// TestFailingApprovals checks that nothing is executed if the approvals cannot be read.
func TestFailingApprovals(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.approved = nil
	broken := guideway.Errorf(guideway.CodeForbidden, "the approvals were edited")
	r.opts.Approvals = func() (approval.Records, error) { return nil, broken }
	r.open()
	if err := r.runFails(`{"type":"file","path":"README"}`); !errors.Is(err, broken) {
		t.Error(err)
	}
}
