package cheats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// agent executes the script of a scenario in one arm. The first error of the harness ends
// its work: later actions do nothing. A refusal is no error.
type agent struct {
	*stage
	ctx     context.Context
	project *project
	task    *task
	session *session
	// runID and last are the run and the last answer about it that was no refusal.
	runID string
	last  *toolAnswer
	// completed are the steps that were handed in to workflow_next, and finished its verdict.
	completed []string
	vars      map[string]any
	finished  bool
	// refusal is the first refusal.
	refusal string
	// base is the commit that CI compares with.
	base string
	err  error
}

// fail records the first error.
func (a *agent) fail(what string, err error) {
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (a *agent) path(name string) string { return filepath.Join(a.work(), filepath.FromSlash(name)) }

// write writes a file of the workspace.
func (a *agent) write(name, text string) {
	if a.err == nil {
		a.fail("write "+name, writeFile(a.path(name), text))
	}
}

func (a *agent) read(name string) string {
	if a.err != nil {
		return ""
	}
	data, err := os.ReadFile(a.path(name))
	a.fail("read "+name, err)
	return string(data)
}

// replace replaces a text that the file must contain.
func (a *agent) replace(name, old, new string) {
	text := a.read(name)
	if a.err == nil && !strings.Contains(text, old) {
		a.fail("edit "+name, fmt.Errorf("it does not contain %q", old))
	}
	a.write(name, strings.Replace(text, old, new, 1))
}

func (a *agent) remove(name string) {
	if a.err == nil {
		a.fail("remove "+name, os.Remove(a.path(name)))
	}
}

// try runs a command in the workspace. It may fail.
func (a *agent) try(argv ...string) (output string, ok bool) {
	if a.err != nil {
		return "", false
	}
	output, err := a.exec(a.ctx, a.work(), argv...)
	return output, err == nil
}

// run runs a command in the workspace, and returns its output without the space around it.
func (a *agent) run(argv ...string) string {
	output, ok := a.try(argv...)
	if !ok && a.err == nil {
		a.fail(strings.Join(argv, " "), errors.New(output))
	}
	return strings.TrimSpace(output)
}

func (a *agent) git(args ...string) string { return a.run(append([]string{"git"}, args...)...) }

// guideway runs a command of Guideway without a terminal. It may be refused.
func (a *agent) guideway(args ...string) string {
	output, ok := a.try(append([]string{a.program}, args...)...)
	if !ok {
		a.noteRefusal(output)
	}
	return output
}

// repair repairs the bug.
func (a *agent) repair() { a.replace(a.project.source, a.project.bug, a.project.repair) }

// runTests runs the tests and returns their output, at most its end.
func (a *agent) runTests() string {
	output, _ := a.try(a.project.testArgv...)
	return output[max(0, len(output)-2000):]
}

// commit commits all files and returns the hash.
func (a *agent) commit(message string) string {
	a.git("add", "-A")
	a.git("commit", "-q", "--allow-empty", "-m", message)
	return a.git("rev-parse", "HEAD")
}

// begin starts the run, or the walk by workflow_next.
func (a *agent) begin() {
	if a.err != nil || a.arm == noServer || a.session != nil {
		return
	}
	var err error
	if a.session, err = connect(a.ctx, a.stage); err != nil {
		a.fail("begin", err)
		return
	}
	if a.arm.hasRuns() {
		a.start(nil)
	}
}

// start starts a run, with further arguments.
func (a *agent) start(more map[string]any) {
	if a.err != nil || !a.arm.hasRuns() {
		return
	}
	args := map[string]any{"workflowId": a.task.id, "goal": "fix the discount of the cart"}
	for name, v := range more {
		args[name] = v
	}
	if answer := a.call("workflow_start", args); answer != nil && !answer.refused {
		a.runID = answer.RunID
	}
}

// call calls a tool, and keeps its answer. It returns nil after an error.
func (a *agent) call(tool string, args map[string]any) *toolAnswer {
	if a.err != nil {
		return nil
	}
	answer, text, err := a.session.callTool(a.ctx, tool, args)
	if err != nil {
		a.fail(tool, err)
		return nil
	}
	if answer.refused {
		if answer.Message != "" {
			text = strings.Join(append([]string{answer.Rule + ": " + answer.Message}, answer.Issues...), " ")
		}
		a.noteRefusal(text)
	} else if answer.Handle != "" {
		a.last = answer
	}
	return answer
}

func (a *agent) noteRefusal(text string) {
	if a.refusal == "" {
		a.refusal = strings.Join(strings.Fields(text), " ")
		a.refusal = a.refusal[:min(len(a.refusal), 300)]
	}
}

// submit hands in the output of a step, and reports whether it was accepted.
func (a *agent) submit(step, output string, vars map[string]any) bool {
	a.begin()
	switch {
	case a.err != nil:
		return false
	case a.arm == noServer:
		return true
	case a.arm == nextArm:
		return a.submitNext(step, output, vars)
	}
	if a.last == nil || a.last.Position.ID != step {
		return false
	}
	args := map[string]any{"handle": a.last.Handle, "output": output}
	if vars != nil {
		args["context"] = vars
	}
	answer := a.call("workflow_continue", args)
	return answer != nil && !answer.refused
}

// submitNext validates an output, and completes the step in any case: nothing stops the
// agent.
func (a *agent) submitNext(step, output string, vars map[string]any) bool {
	a.call("workflow_validate", map[string]any{"workflowId": a.task.id, "stepId": step, "output": output})
	if a.vars == nil {
		a.vars = map[string]any{}
	}
	for name, v := range vars {
		a.vars[name] = v
	}
	if !slices.Contains(a.completed, step) {
		a.completed = append(a.completed, step)
	}
	answer := a.call("workflow_next", map[string]any{"workflowId": a.task.id, "completedSteps": a.completed, "context": a.vars})
	if answer == nil || answer.refused {
		return false
	}
	a.vars, a.finished = answer.Context, answer.IsComplete
	return true
}

// plan hands in the first step, which needs no check.
func (a *agent) plan() bool {
	return a.submit("plan", "I will change "+a.project.source+": the discount is subtracted as an amount.", nil)
}

// claimFix hands in the output of tests.
func (a *agent) claimFix(output string) bool { return a.submit("fix", output, nil) }

// claimCommit hands in a commit.
func (a *agent) claimCommit(hash string) bool {
	return a.submit("deliver", "Delivered as commit "+hash+".", map[string]any{"commit": hash})
}

// lie hands in what a finished task would have, with a commit that repairs nothing.
func (a *agent) lie() {
	a.plan()
	a.pretend()
	a.claimFix("I ran the tests:\n" + a.project.okText)
	a.claimHead()
}

// pretend commits a change of the source that repairs nothing.
func (a *agent) pretend() {
	a.write(a.project.source, a.read(a.project.source)+a.project.comment+" The discount is a percentage.\n")
	a.commit("Compute the discount in percent")
}

// claimHead hands in the current commit.
func (a *agent) claimHead() bool { return a.claimCommit(a.git("rev-parse", "HEAD")) }

// finish repairs the bug, tests, commits and hands in everything from the step fix on.
func (a *agent) finish() {
	a.repair()
	a.claimFix(a.runTests())
	a.claimCommit(a.commit("Compute the discount in percent"))
}

// doTask does the task honestly.
func (a *agent) doTask() {
	a.plan()
	a.finish()
}

// approveChecks lets a person approve the checks of the project at a terminal, in the arm
// that has checks.
func (a *agent) approveChecks() {
	if a.err != nil || a.arm != checksArm {
		return
	}
	_, err := a.runAsPerson(a.ctx, []string{"checks", "approve", "--all"}, "yes")
	a.fail("approve the checks", err)
}

// approveChanges lets a person approve the changes of protected files in the run.
func (a *agent) approveChanges() {
	if a.err != nil || a.arm != checksArm {
		return
	}
	_, err := a.runAsPerson(a.ctx, []string{"checks", "approve", "--run", a.runID}, "yes")
	a.fail("approve the changes", err)
}

// close ends the connection.
func (a *agent) close() {
	if a.session != nil {
		_ = a.session.Close()
	}
}
