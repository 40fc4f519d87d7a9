package ci

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// bench is a repository with a policy in its branch trunk, and a branch with a change.
type bench struct {
	t         *testing.T
	dir       string
	key, host attest.PrivateKey
	errors    bytes.Buffer
}

const (
	definition = "id: task\nname: T\ndescription: d\nversion: 1.0.0\nsteps:\n  - { id: one, title: One, prompt: p }\n"
	checks     = "checks:\n  test: { argv: [sh, test.sh] }\n  other: { argv: ['true'] }\n"
	passes     = "grep -q good code.txt\n"
	policyText = `
keys:
  - file: keys/ann.pub
  - { file: keys/host.pub, host: builder }
rules:
  - paths: ["docs/**"]
  - paths: ["code.txt", "*.sh", ".guideway/**"]
    workflow: task
    definition: .guideway/workflows/task.yaml
    evidence: [test]
    approvals: [review=confirm]
`
)

func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs git and a shell")
	}
	b := &bench{t: t, dir: t.TempDir(), key: attest.NewPrivateKey(), host: attest.NewPrivateKey()}
	b.git("init", "-q", "-b", "trunk")
	b.write(".guideway/policy.yaml", policyText)
	b.write(".guideway/checks.yaml", checks)
	b.write(".guideway/workflows/task.yaml", definition)
	b.write("keys/ann.pub", b.key.Public().PEM())
	b.write("keys/host.pub", b.host.Public().PEM())
	b.write("test.sh", passes)
	b.write("code.txt", "old")
	return b
}

// change commits the base and begins the change.
func (b *bench) change() {
	b.commit()
	b.git("checkout", "-q", "-b", "change")
}

func (b *bench) git(args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = b.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) commit() {
	b.t.Helper()
	b.git("add", "-A")
	b.git("commit", "-q", "--allow-empty", "-m", "change")
}

// statement returns an honest statement about the checked out commit.
func (b *bench) statement() *attest.Statement {
	b.t.Helper()
	tree, at, exit := b.git("rev-parse", "HEAD^{tree}"), time.Unix(9, 0).UTC(), 0
	return attest.NewStatement(b.git("rev-parse", "HEAD"), tree, attest.Predicate{
		Guideway: "v1", AttestedAt: at, Run: attest.Run{ID: "r_1", StartedAt: at, CompletedAt: at, Events: 9, Head: "00"},
		Workflow: attest.Workflow{ID: "task", Version: "1.0.0", Definition: hashOf(b.t, definition)},
		Steps: []attest.Step{{ID: "one", Seq: 3, At: at, Label: attest.Evidence, Checks: []attest.Check{{
			Key: "/0", Type: criteria.NamedCheck, Name: "test", Passed: true, Decided: true, Argv: []string{"sh", "test.sh"}, ExitCode: &exit,
			Workspace: &attest.Workspace{Commit: b.git("rev-parse", "HEAD"), Tree: tree}, Host: "builder",
		}}}},
		Approvals: []attest.Approval{{Gate: "review", Option: "confirm", Seq: 4, At: at, By: "ann", Via: "terminal", Person: true}},
	})
}

// attest commits an attestation.
func (b *bench) attest(s *attest.Statement, key attest.PrivateKey) {
	b.t.Helper()
	b.write(attest.Directory+"/a.json", b.sign(s, key))
	b.commit()
}

func (b *bench) sign(s *attest.Statement, key attest.PrivateKey) string {
	b.t.Helper()
	file, err := attest.Sign(s, key)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(file)
}

// honest makes an honest change with an attestation.
func (b *bench) honest() {
	b.change()
	b.write("code.txt", "good")
	b.commit()
	b.attest(b.statement(), b.key)
}

func hashOf(t *testing.T, text string) string {
	t.Helper()
	hash, err := hashDefinition("task.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// verify runs the verification.
func (b *bench) verify(change func(o *verifyOptions)) *Report {
	b.t.Helper()
	o := &verifyOptions{app: &app.App{Host: &app.Host{Dir: b.dir, Err: &b.errors}}, Base: "trunk"}
	if change != nil {
		change(o)
	}
	return o.verify(b.t.Context())
}

// reasons returns the reasons of all refusals of rules, and the states of the checks.
func (r *Report) reasons() (list []string) {
	for _, n := range r.Needs {
		for _, refusal := range n.Refusals {
			list = append(list, string(refusal.Reason))
		}
	}
	for _, c := range r.Checks {
		list = append(list, c.Name+" "+string(c.State))
	}
	return list
}

func TestVerify(t *testing.T) {
	t.Parallel()
	// edited makes an honest change, and attests it with an edited statement.
	edited := func(change func(s *attest.Statement)) func(b *bench) {
		return func(b *bench) {
			b.change()
			b.write("code.txt", "good")
			b.commit()
			s := b.statement()
			change(s)
			b.attest(s, b.key)
		}
	}
	// withParameter makes a change of a project whose check has a parameter with a definition.
	// The attested check has the value.
	withParameter := func(parameter, code, value string) func(b *bench) {
		return func(b *bench) {
			b.write(".guideway/checks.yaml", "checks:\n  test: { argv: [sh, test.sh, '{{word}}'], parameters: { word: "+parameter+" } }\n")
			b.write("test.sh", "test -n \"$1\" && grep -q \"$1\" code.txt\n")
			b.change()
			b.write("code.txt", code)
			b.commit()
			s := b.statement()
			if value != "" {
				s.Predicate.Steps[0].Checks[0].With = map[string]string{"word": value}
			}
			b.attest(s, b.key)
		}
	}
	for name, c := range map[string]struct {
		make    func(b *bench)
		options func(o *verifyOptions)
		verdict Verdict
		want    []string
		// message is a part of the only problem.
		message string
	}{
		"honest change":                  {make: (*bench).honest, verdict: Passed, want: []string{"test passed"}},
		"documentation":                  {make: func(b *bench) { b.change(); b.write("docs/a.md", "x"); b.commit() }, verdict: Passed},
		"unmatched path":                 {make: func(b *bench) { b.change(); b.write("other", "x"); b.commit() }, verdict: Passed},
		"no change":                      {make: (*bench).change, verdict: Passed},
		"no attestation":                 {make: func(b *bench) { b.change(); b.write("code.txt", "good"); b.commit() }, verdict: Refused, want: []string{"attestation-missing"}},
		"a change after the attestation": {make: func(b *bench) { b.honest(); b.write("code.txt", "good, changed"); b.commit() }, verdict: Refused, want: []string{"tree-differs"}},
		"a documentation change after the attestation": {make: func(b *bench) { b.honest(); b.write("docs/a.md", "x"); b.commit() }, verdict: Refused, want: []string{"tree-differs"}},
		"replay for another change": {make: func(b *bench) {
			b.honest()
			b.git("checkout", "-q", "trunk")
			b.git("checkout", "-q", "-b", "other")
			b.git("checkout", "change", "--", attest.Directory)
			b.write("code.txt", "good, but other")
			b.commit()
		}, verdict: Refused, want: []string{"tree-differs"}},
		"unknown tree": {make: edited(func(s *attest.Statement) {
			s.Subject[1].Digest["gitTree"] = strings.Repeat("a", 40)
			s.Predicate.Steps[0].Checks[0].Workspace.Tree = strings.Repeat("a", 40)
		}), verdict: Refused, want: []string{"tree-differs"}},
		"a program beside the attestation": {make: func(b *bench) { b.honest(); b.write(attest.Directory+"/evil.sh", "x"); b.commit() }, verdict: Refused, want: []string{"tree-differs"}},
		"foreign key": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "good")
			b.commit()
			b.attest(b.statement(), attest.NewPrivateKey())
		}, verdict: Refused, want: []string{"key-untrusted"}},
		"no attestation, but a file": {make: func(b *bench) { b.honest(); b.write(attest.Directory+"/a.json", "{}"); b.commit() }, verdict: Refused, want: []string{"payload-type-unknown"}},
		"another workflow":           {make: edited(func(s *attest.Statement) { s.Predicate.Workflow.ID = "research" }), verdict: Refused, want: []string{"attestation-missing"}},
		"older definition":           {make: edited(func(s *attest.Statement) { s.Predicate.Workflow.Definition = "sha256:0" }), verdict: Refused, want: []string{"definition-differs"}},
		"definition of the change": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "good")
			b.write(".guideway/workflows/task.yaml", definition+"  - { id: two, title: Two, prompt: p }\n")
			b.commit()
			s := b.statement()
			s.Predicate.Workflow.Definition = hashOf(b.t, definition+"  - { id: two, title: Two, prompt: p }\n")
			b.attest(s, b.key)
		}, verdict: Refused, want: []string{"definition-differs"}},
		"missing approval":     {make: edited(func(s *attest.Statement) { s.Predicate.Approvals = []attest.Approval{} }), verdict: Refused, want: []string{"approval-missing"}},
		"approval by an agent": {make: edited(func(s *attest.Statement) { s.Predicate.Approvals[0].Person = false }), verdict: Refused, want: []string{"approval-missing"}},
		"claim": {make: edited(func(s *attest.Statement) {
			s.Predicate.Steps[0].Checks, s.Predicate.Steps[0].Label = nil, attest.Claim
		}), verdict: Refused, want: []string{"evidence-missing"}},
		"invented evidence": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "bad")
			b.commit()
			b.attest(b.statement(), b.key)
		}, verdict: Refused, want: []string{"test failed"}},
		"weakened script": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "bad")
			b.write("test.sh", "exit 0\n")
			b.commit()
			b.attest(b.statement(), b.key)
		}, verdict: Refused, want: []string{"test failed"}},
		"weakened checks file": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "bad")
			b.write(".guideway/checks.yaml", "checks:\n  test: { argv: ['true'] }\n")
			b.commit()
			b.attest(b.statement(), b.key)
		}, verdict: Refused, want: []string{"test failed"}},
		"weakened script, trusted by a flag": {make: func(b *bench) {
			b.change()
			b.write("test.sh", "exit 0\n")
			b.commit()
			b.attest(b.statement(), b.key)
		}, options: func(o *verifyOptions) { o.ChangedChecks = true }, verdict: Passed, want: []string{"test passed"}},
		"changed script, allowed by the policy": {make: func(b *bench) {
			b.write(".guideway/policy.yaml", policyText+"    changedChecks: true\n")
			b.change()
			b.write("test.sh", "exit 0\n")
			b.commit()
			b.attest(b.statement(), b.key)
		}, verdict: Passed, want: []string{"test passed"}},
		"better script, executed as in the base": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "good")
			b.write("test.sh", passes+"grep -q new code.txt\n")
			b.commit()
			b.attest(b.statement(), b.key)
		}, verdict: Passed, want: []string{"test passed"}},
		"weakened policy": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "bad")
			b.write(".guideway/policy.yaml", "rules: [{paths: ['**']}]")
			b.commit()
		}, verdict: Refused, want: []string{"attestation-missing"}},
		"added key": {make: func(b *bench) {
			b.change()
			key := attest.NewPrivateKey()
			b.write("keys/ann.pub", key.Public().PEM())
			b.write("code.txt", "good")
			b.commit()
			b.attest(b.statement(), key)
		}, verdict: Refused, want: []string{"key-untrusted"}},
		"trusted host": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "bad")
			b.commit()
			b.attest(b.statement(), b.host)
		}, verdict: Passed, want: []string{"test trusted"}},
		"key of a trusted host, another host": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "bad")
			b.commit()
			s := b.statement()
			s.Predicate.Steps[0].Checks[0].Host = "laptop"
			b.attest(s, b.host)
		}, verdict: Refused, want: []string{"test failed"}},
		"evidence of a rule": {make: func(b *bench) {
			b.write(".guideway/policy.yaml", strings.Replace(policyText, "[test]", "[one]", 1))
			b.change()
			b.write("code.txt", "good")
			b.commit()
			s := b.statement()
			s.Predicate.Steps[0].Checks[0].Name, s.Predicate.Steps[0].Checks[0].Type = "", criteria.Command
			b.attest(s, b.key)
		}, verdict: Refused, want: []string{"evidence-not-repeated"}},
		"evidence of a step": {make: func(b *bench) {
			b.write(".guideway/policy.yaml", strings.Replace(policyText, "[test]", "[one]", 1))
			b.honest()
		}, verdict: Passed, want: []string{"test passed"}},
		"prepared checkout": {make: func(b *bench) {
			b.write(".guideway/policy.yaml", "prepare: [install]\n"+policyText)
			b.write(".guideway/checks.yaml", checks+"  install: { argv: [touch, installed] }\n")
			b.write("test.sh", "test -e installed\n")
			b.honest()
		}, verdict: Passed, want: []string{"test passed"}},
		"preparation fails": {make: func(b *bench) {
			b.write(".guideway/policy.yaml", "prepare: [install]\n"+policyText)
			b.write(".guideway/checks.yaml", checks+"  install: { argv: ['false'] }\n")
			b.honest()
		}, verdict: Undecided, want: []string{"test unknown"}, message: "cannot be prepared"},
		"inconclusive check": {make: func(b *bench) {
			b.write(".guideway/checks.yaml", "checks:\n  test: { argv: [no-such-program-xyz] }\n")
			b.honest()
		}, verdict: Undecided, want: []string{"test unknown"}, message: "the check test has no result"},
		"undefined check": {make: func(b *bench) {
			b.write(".guideway/checks.yaml", "checks:\n  other: { argv: [sh, test.sh] }\n")
			b.honest()
		}, verdict: Undecided, want: []string{"test unknown"}, message: `defines no check "test"`},
		"required parameter":                    {make: withParameter("{pattern: '[a-z]+'}", "good", "good"), verdict: Passed, want: []string{"test passed"}},
		"required parameter, invented evidence": {make: withParameter("{pattern: '[a-z]+'}", "bad", "good"), verdict: Refused, want: []string{"test failed"}},
		"required parameter, an option":         {make: withParameter("{}", "good", "-e"), verdict: Undecided, want: []string{"test unknown"}, message: `begins with "-"`},
		"required parameter, no value":          {make: withParameter("{}", "good", ""), verdict: Undecided, want: []string{"test unknown"}, message: "needs the parameter word"},
		"parameter with a default":              {make: withParameter("{default: good}", "bad", "bad"), verdict: Refused, want: []string{"test failed"}},
		"attestation from a file": {make: func(b *bench) {
			b.change()
			b.write("code.txt", "good")
			b.commit()
			b.write("elsewhere/a.json", b.sign(b.statement(), b.key))
		}, options: func(o *verifyOptions) { o.Attestations = []string{filepath.Join(o.app.Host.Dir, "elsewhere/a.json")} }, verdict: Passed, want: []string{"test passed"}},
		"removed attestation": {make: func(b *bench) {
			b.write(attest.Directory+"/old.json", "{}")
			b.change()
			b.write("code.txt", "good")
			b.git("rm", "-q", attest.Directory+"/old.json")
			b.commit()
			b.attest(b.statement(), b.key)
		}, verdict: Passed, want: []string{"test passed"}},
		"no policy": {make: func(b *bench) {
			b.git("rm", "-q", "--cached", "--ignore-unmatch", ".guideway/policy.yaml")
			_ = os.Remove(filepath.Join(b.dir, ".guideway/policy.yaml"))
			b.honest()
		}, verdict: Undecided, message: "has no file .guideway/policy.yaml"},
		"damaged policy": {make: func(b *bench) { b.write(".guideway/policy.yaml", "rules: [{path: x}]"); b.honest() }, verdict: Undecided, message: "cannot be used: line 1"},
		"no key": {make: func(b *bench) {
			_, rules, _ := strings.Cut(policyText, "rules:")
			b.write(".guideway/policy.yaml", "rules:"+rules)
			b.honest()
		}, verdict: Undecided, message: "no key is trusted"},
		"missing key file":   {make: func(b *bench) { _ = os.Remove(filepath.Join(b.dir, "keys/ann.pub")); b.honest() }, verdict: Undecided, message: "keys/ann.pub"},
		"missing definition": {make: func(b *bench) { _ = os.Remove(filepath.Join(b.dir, ".guideway/workflows/task.yaml")); b.honest() }, verdict: Undecided, message: "task.yaml"},
		"unknown base":       {make: (*bench).honest, options: func(o *verifyOptions) { o.Base = "nothing" }, verdict: Undecided, message: "the commit nothing is not in the repository"},
		"unrelated base": {make: func(b *bench) {
			b.honest()
			b.git("checkout", "-q", "--orphan", "alone")
			b.commit()
		}, verdict: Undecided, message: "a common ancestor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			c.make(b)
			r := b.verify(c.options)
			if diff := cmp.Diff(c.want, r.reasons(), cmpopts.EquateEmpty()); diff != "" || r.Verdict != c.verdict {
				t.Errorf("the verdict is %s, want %s (-want +got):\n%s%v\n%s", r.Verdict, c.verdict, diff, r.Problems, &b.errors)
			}
			if (c.message == "") != (len(r.Problems) == 0) || len(r.Problems) > 0 && (!strings.Contains(r.Problems[0].Message, c.message) || r.Problems[0].Fix == "") {
				t.Errorf("the problems are %q, want %q and a fix", r.Problems, c.message)
			}
			if text := r.Markdown(); !strings.HasPrefix(text, "## Guideway: "+string(c.verdict)+"\n") {
				t.Errorf("the summary is %s", text)
			}
			if status := b.git("status", "--porcelain") + b.git("worktree", "list", "--porcelain"); strings.Count(status, "worktree ") != 1 {
				t.Errorf("the repository was changed: %s", status)
			}
		})
	}
}

// TestReplacedDefinition checks that the report names the files that the change edited and
// that were replaced with those of the base for the check.
func TestReplacedDefinition(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.change()
	b.write("code.txt", "good")
	b.write("test.sh", "exit 0\n")
	b.write(".guideway/checks.yaml", strings.Replace(checks, "test.sh", "test.sh, fast", 1))
	b.commit()
	b.attest(b.statement(), b.key)
	r := b.verify(nil)
	if len(r.Checks) != 1 || !slices.Equal(r.Checks[0].Replaced, []string{".guideway/checks.yaml", "test.sh"}) || r.Verdict != Passed {
		t.Fatalf("the verdict is %s, the checks are %+v", r.Verdict, r.Checks)
	}
	if text := r.Markdown(); !strings.Contains(text, "The change edits files that define the check `test`: `.guideway/checks.yaml`, `test.sh`.") {
		t.Errorf("the summary is %s", text)
	}
}

// TestSummaryQuotesUntrustedTexts checks that a text of the change can neither add a line,
// a cell or a link to the summary, nor mention a person.
func TestSummaryQuotesUntrustedTexts(t *testing.T) {
	t.Parallel()
	evil := "a`b``|[x](y)\n## Passed @ann\x1b[2J"
	s := attest.NewStatement(strings.Repeat("a", 40), strings.Repeat("b", 40), attest.Predicate{
		Run: attest.Run{ID: evil}, Workflow: attest.Workflow{ID: evil, Version: evil},
		Steps:     []attest.Step{{ID: evil, Label: attest.Claim, Checks: []attest.Check{{Name: evil}}}},
		Approvals: []attest.Approval{{Gate: evil, Option: evil, By: evil, Via: evil}},
	})
	refusal := []*attest.Refusal{{Reason: attest.ReasonKey, Message: evil, Fix: evil}}
	r := &Report{
		Verdict: Refused, Head: "c", Unmatched: []string{evil}, Problems: []Problem{{evil, evil}},
		Needs:        []*Need{{Workflow: evil, Paths: []string{evil}, Refusals: refusal}},
		Checks:       []*Check{{Name: evil, State: StateFailed, Argv: []string{evil}, Message: evil, Output: "```\n" + evil, Replaced: []string{evil}}},
		Attestations: []*Attestation{{File: evil, Keys: []string{"k"}, statement: s}, {File: evil, Refusals: refusal}},
	}
	text := r.Markdown()
	fenced := strings.Index(text, "````text")
	if fenced < 0 {
		t.Fatalf("the fence of the output is not longer than the one in it: %s", text)
	}
	end := fenced + strings.Index(text[fenced:], "\n````\n")
	outside := text[:fenced] + text[end:]
	if strings.Contains(outside, "\n## Passed") || strings.ContainsRune(text, 0x1b) || strings.Contains(outside, "``|") {
		t.Errorf("the summary is formatted by a text of the change: %s", text)
	}
	for line := range strings.Lines(outside) {
		if strings.Contains(line, "@ann") && !strings.Contains(line, "```") {
			t.Errorf("a text is not code: %s", line)
		}
	}
}

func TestErrorsOfVerifyHaveCodes(t *testing.T) {
	t.Parallel()
	o := &verifyOptions{}
	if err := o.checkOptions(); guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
		t.Errorf("without a base: %v", err)
	}
	if err := appendFile(t.TempDir(), "x"); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("a directory as the summary: %v", err)
	}
}
