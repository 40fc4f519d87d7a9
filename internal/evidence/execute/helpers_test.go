package execute_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// rig is a workspace with a checker.
type rig struct {
	t        *testing.T
	root     string
	approved approval.Records
	opts     execute.Options
	checker  *execute.Checker
	start    *evidence.Workspace
	// vars are the variables of the run.
	vars map[string]any
	// progress, if set, receives the messages of a check.
	progress func(string)
}

// newRig returns a repository with a commit of these files.
func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	r := &rig{t: t, root: root, vars: map[string]any{}}
	r.opts = execute.Options{
		Approvals: func() (approval.Records, error) { return r.approved, nil }, Instance: "instance", Host: "host",
		Limits: execute.Limits{Grace: 50 * time.Millisecond},
	}
	r.git("init", "-q", "-b", "main")
	r.write("README", "text\n")
	for name, text := range files {
		r.write(name, text)
	}
	r.commit()
	r.open()
	return r
}

// open opens the checker and starts a run.
func (r *rig) open() {
	r.t.Helper()
	r.checker = execute.New(r.opts)
	start, err := r.checker.Workspace(r.t.Context(), r.root)
	check(r.t, err)
	r.start = start
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *rig) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change")
}

func (r *rig) path(name string) string { return filepath.Join(r.root, filepath.FromSlash(name)) }

func (r *rig) write(name, text string) {
	r.t.Helper()
	check(r.t, os.MkdirAll(filepath.Dir(r.path(name)), 0o755))
	check(r.t, os.WriteFile(r.path(name), []byte(text), 0o755))
}

// request returns the request of a rule in JSON.
func (r *rig) request(rule string) evidence.Request {
	r.t.Helper()
	var object map[string]any
	check(r.t, jsontext.Decode([]byte(rule), &object))
	c := criteria.Parse(object)
	if c.CheckRule == nil {
		r.t.Fatalf("%s is no check: %v", rule, c.Diagnostics())
	}
	filled := c.CheckRule.FillTemplates(func(text string) string {
		return template.Render(template.Parse(text), func(name string) (any, bool) { v, ok := r.vars[name]; return v, ok })
	})
	return evidence.Request{Run: "run_1", Step: "step", Key: "/0", Template: c.CheckRule, Rule: filled, Start: r.start, ProjectPath: r.root, Progress: r.progress}
}

// approve approves what a rule executes now.
func (r *rig) approve(rule string) {
	r.t.Helper()
	request := r.request(rule)
	found, err := checksfile.Resolve(r.root, request.Template, request.Rule, nil)
	check(r.t, err)
	if found == nil || found.Subject == nil {
		r.t.Fatalf("%s needs no approval", rule)
	}
	record, err := found.Subject.Record("me")
	check(r.t, err)
	r.put(record)
}

func (r *rig) put(record approval.Record) {
	r.approved = append(slices.DeleteFunc(slices.Clone(r.approved), func(a approval.Record) bool { return a.Key() == record.Key() }), record)
}

// run executes a rule.
func (r *rig) run(rule string) evidence.Result {
	r.t.Helper()
	result, err := r.checker.Check(r.t.Context(), r.request(rule))
	check(r.t, err)
	return result
}

// runApproved approves a rule and executes it.
func (r *rig) runApproved(rule string) evidence.Result {
	r.t.Helper()
	r.approve(rule)
	return r.run(rule)
}

// runFails returns the error of a rule that cannot be executed.
func (r *rig) runFails(rule string) error {
	r.t.Helper()
	result, err := r.checker.Check(r.t.Context(), r.request(rule))
	if err == nil {
		r.t.Errorf("%s was executed: %+v", rule, result)
	}
	return err
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outcome describes the outcome of a result: passed, failed or inconclusive, and the issue.
func outcome(r evidence.Result) string {
	switch {
	case r.Passed:
		return "passed" + r.Issue
	case r.Undefined:
		return "undefined" + r.Issue
	case r.Inconclusive:
		return "inconclusive: " + r.Issue
	default:
		return "failed: " + r.Issue
	}
}
