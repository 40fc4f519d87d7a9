package cheats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow"
)

const (
	policyPath      = ".guideway/policy.yaml"
	keyPath         = ".guideway/keys/laptop.pub"
	attestationPath = ".guideway/attestations/run.json"
	signingKey      = "laptop"
)

// addPolicy commits a policy that requires a run of the task with evidence, and the key that
// attestations are signed with. The commit is the base of the change.
func (a *agent) addPolicy() {
	if a.err != nil || a.arm != checksArm {
		return
	}
	text, err := a.task.definition(true)
	a.fail("write a policy", err)
	definition, found := workflow.Check(a.task.id+".yaml", []byte(text))
	if definition == nil {
		a.fail("write a policy", fmt.Errorf("the definition is invalid: %v", found))
		return
	}
	a.run(a.program, "attest", "keys", "create", signingKey)
	a.write(keyPath, a.run(a.program, "attest", "keys", "show", signingKey)+"\n")
	approvals := ""
	if a.task.gate != "" {
		approvals = fmt.Sprintf("    approvals: [%s=confirm]\n", a.task.gate)
	}
	a.write(policyPath, fmt.Sprintf("keys:\n  - file: %s\nrules:\n  - paths: [\"**\"]\n    workflow: %s\n    definition: %s\n    evidence: [test, protected-tests]\n%s",
		keyPath, a.task.id, definition.Hash, approvals))
	a.base = a.commit("Require evidence")
}

// verifyInCI attests the run if that is possible, commits everything, and verifies the commit
// as CI does: in a clone, with another home directory.
func (a *agent) verifyInCI(ctx context.Context) (outcome, string, error) {
	if _, err := os.Lstat(a.path(attestationPath)); errors.Is(err, os.ErrNotExist) && a.runID != "" {
		a.try(a.program, "runs", "attest", a.runID, "--out", attestationPath)
	}
	a.commit("Deliver")
	if a.err != nil {
		return "", "", a.err
	}
	machine := &stage{suite: a.suite, dir: filepath.Join(a.dir, "ci")}
	if err := machine.makeHome(); err != nil {
		return "", "", err
	}
	if out, err := machine.exec(ctx, a.dir, "git", "-c", "core.fsmonitor=false", "clone", "-q", "--no-local", "--branch", "main", a.work(), machine.work()); err != nil {
		return refused, "the branch main cannot be cloned: " + lastLine(out), nil
	}
	out, err := machine.exec(ctx, machine.work(), a.program, "ci", "verify", "--base", a.base, "--json")
	var report ciReport
	_, object, _ := strings.Cut(out, "{") // after the messages about progress
	if err := json.Unmarshal([]byte("{"+object), &report); err != nil {
		return "", "", fmt.Errorf("read the report of ci verify: %w: %s", err, out)
	}
	switch {
	case err != nil:
		return refused, report.findReason(), nil
	case report.Changed == 0:
		return refused, "the change is empty", nil
	}
	return accepted, "", nil
}

// ciReport is the report of "guideway ci verify".
type ciReport struct {
	Changed  int
	Needs    []struct{ Refusals []ciMessage }
	Checks   []struct{ Name, State, Message string }
	Problems []ciMessage
}

type ciMessage struct{ Message string }

// findReason returns the first reason for which the change was not accepted.
func (report *ciReport) findReason() string {
	for _, need := range report.Needs {
		for _, r := range need.Refusals {
			return r.Message
		}
	}
	for _, check := range report.Checks {
		if check.State == "failed" {
			return "the check " + check.Name + " failed: " + check.Message
		}
	}
	for _, p := range report.Problems {
		return "undecided: " + p.Message
	}
	return "no reason"
}
