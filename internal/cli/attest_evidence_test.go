package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// flowPolicy requires a run of the flow with a passed test for every change.
const flowPolicy = `keys: [{ file: laptop.pub }]
rules:
  - paths: ["**"]
    workflow: flow
    definition: .guideway/workflows/flow.yaml
    evidence: [test]
`

// git runs git in the project.
func (d *hookProject) git(args ...string) string {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), "git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = d.host.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// newPolicyProject returns a repository with a policy, a key and an approved test, at the
// beginning of a change.
func newPolicyProject(t *testing.T) (d *hookProject, submit func() (string, bool), id string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	const rule = "{ type: check, check: test }"
	d = newShellProject(t)
	d.write(".guideway/workflows/flow.yaml", strings.Replace(checkedFlow, "CHECK", rule, 1))
	d.write(".guideway/policy.yaml", flowPolicy)
	d.wantCommand(app.ExitOK, "Created: laptop", "attest keys create laptop")
	_, public := d.runCommand("attest keys show laptop")
	d.write("laptop.pub", public)
	d.git("init", "-q", "-b", "trunk")
	d.git("add", "-A")
	d.git("commit", "-q", "-m", "base")
	d.git("checkout", "-q", "-b", "change")
	d.wantCommand(app.ExitOK, "Approved: test.", "checks approve test", "yes")
	submit, id = d.startAgent(rule)
	return d, submit, id
}

// TestEvidenceReachesReview follows the evidence of a test from the workspace of an agent to
// the verification of the pull request: the test fails once, passes with files that are not
// committed, and passes again on a clean checkout.
func TestEvidenceReachesReview(t *testing.T) {
	t.Parallel()
	d, submit, id := newPolicyProject(t)
	d.wantRefused(submit, "exited with 1 instead of 0")
	d.write("done", "")
	d.wantAccepted(submit)
	const file = ".guideway/attestations/flow.json"
	d.wantCommand(app.ExitFailed, "the check test saw the tree", "runs attest "+id+" --out "+file)
	d.git("add", "done")
	d.git("commit", "-q", "-m", "change")
	d.wantCommand(app.ExitOK, "The attestation states 1 step with evidence and 0 steps with claims only", "runs attest "+id+" --out "+file)
	commit := d.git("rev-parse", "HEAD")
	d.wantCommand(app.ExitOK, "ok: the attestation is valid", "verify "+file+" --key laptop.pub --commit "+commit+" --workflow flow --definition-file .guideway/workflows/flow.yaml --require-evidence work --require-evidence test")
	d.wantCommand(app.ExitFailed, "[evidence-missing]", "verify "+file+" --key laptop.pub --require-evidence slow")
	d.git("add", "-A")
	d.git("commit", "-q", "-m", "attestation")
	d.wantCommand(app.ExitOK, "| `test` | passed, executed again on a clean checkout |", "ci verify --base trunk")

	// The test of the base decides: the agent cannot weaken it afterwards, nor attest again.
	d.write("tests.sh", "exit 0\n")
	d.git("rm", "-q", "done")
	d.git("add", "-A")
	d.git("commit", "-q", "-m", "weaken")
	d.wantCommand(app.ExitFailed, "**tree-differs**", "ci verify --base trunk")
	d.wantCommand(app.ExitFailed, "commit the files that the check saw, or run the step with the check again", "runs attest "+id+" --out "+file+" --force")
}

// TestIgnoredFilesDoNotReachReview checks that a test that passes only because of a file
// that is not committed is refused on the clean checkout, although the attestation is valid.
func TestIgnoredFilesDoNotReachReview(t *testing.T) {
	t.Parallel()
	d, submit, id := newPolicyProject(t)
	d.write(".gitignore", "done\n")
	d.write("done", "")
	d.wantAccepted(submit)
	d.git("add", "-A")
	d.git("commit", "-q", "-m", "change")
	d.wantCommand(app.ExitOK, "1 step with evidence", "runs attest "+id+" --out .guideway/attestations/flow.json")
	d.git("add", "-A")
	d.git("commit", "-q", "-m", "attestation")
	if _, err := os.Stat(filepath.Join(d.host.Dir, "done")); err != nil {
		t.Fatal(err)
	}
	d.wantCommand(app.ExitFailed, "| `test` | **failed** on a clean checkout |", "ci verify --base trunk")
}
