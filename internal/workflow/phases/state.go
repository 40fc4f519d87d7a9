package phases

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// State is a document with the progress of a workflow. It refers to phases, steps,
// checkpoints, decisions and loops by numbers from 1, in the order of the workflow. The
// engine reads the progress from Canonical.
type State struct {
	WorkflowID, WorkflowVersion string
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
}

// ParseState checks and parses a state. It reports all errors; the state is nil if
// there are any. It does not check its numbers against a workflow.
func ParseState(file string, root *doc.Node) (*State, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "state")
	if !p.Document(at, "A state", "write one object with workflowId, workflowVersion, startedAt, updatedAt and currentPhase") {
		return nil, p.Found
	}
	p.checkState(at)
	if len(p.Found) > 0 {
		return nil, p.Findings(guideway.SeverityError)
	}
	return &State{
		WorkflowID: root.Get("workflowId").Text, WorkflowVersion: root.Get("workflowVersion").Text, Canonical: string(doc.Canonical(root)),
	}, nil
}

// checkState checks the root.
func (p *parser) checkState(at shape.Place) {
	p.Object(at, "workflowId", "workflowVersion", "stateVersion", "startedAt", "updatedAt", "completedAt", "currentPhase", "currentStep",
		"completedPhases", "skippedPhases", "completedSteps", "checkpointResponses", "decisionOutcomes", "activeLoops", "variables",
		"history", "status", "lastError")
	p.Require(at, "workflowId", "workflowVersion", "startedAt", "updatedAt", "currentPhase")
	p.readID(at.Key("workflowId"))
	p.readText(at.Key("workflowVersion"))
	p.checkTimes(at, "startedAt", "updatedAt", "completedAt")
	p.checkNumbers(at, "stateVersion", "currentPhase", "currentStep")
	p.checkIntegers(at.Key("completedPhases"))
	p.checkIntegers(at.Key("skippedPhases"))
	p.checkTable(at.Key("completedSteps"), 1, p.checkIntegers)
	p.checkTable(at.Key("checkpointResponses"), 2, p.checkResponse)
	p.checkTable(at.Key("decisionOutcomes"), 2, p.checkOutcome)
	p.checkEntries(at.Key("activeLoops"), "loop", p.checkActiveLoop)
	p.Open(at.Key("variables"))
	p.checkEntries(at.Key("history"), "entry", p.checkHistoryEntry)
	p.Choice(at.Key("status"), shape.CodeEnum, "running", "paused", "completed", "aborted", "error")
	if last, ok := p.openNested(at.Key("lastError"), "message", "code", "phase", "step", "timestamp"); ok {
		p.Require(last, "message", "timestamp")
		p.readText(last.Key("message"))
		p.readText(last.Key("code"))
		p.checkNumbers(last, "phase", "step")
		p.checkTimes(last, "timestamp")
	}
}

// checkTimes checks members that are times.
func (p *parser) checkTimes(at shape.Place, keys ...string) {
	for _, key := range keys {
		p.checkTime(at.Key(key))
	}
}

// checkNumbers checks members that are integers from 1.
func (p *parser) checkNumbers(at shape.Place, keys ...string) {
	for _, key := range keys {
		p.checkInteger(at.Key(key), 1)
	}
}

// checkEntries checks each entry of a list of objects.
func (p *parser) checkEntries(at shape.Place, noun string, check func(shape.Place)) {
	readList(p, at, noun, func(at shape.Place) struct{} {
		check(at)
		return struct{}{}
	})
}

// checkTable checks an object whose keys are the given number of integers from 1, joined by
// hyphens.
func (p *parser) checkTable(at shape.Place, numbers int, check func(shape.Place)) {
	if !p.Open(at) {
		return
	}
	for i := range at.Node.Members {
		member := at.Member(i)
		value := at.Key(member.Name)
		value.Name = at.Name + "." + member.Name
		if !isStateKey(member.Name, numbers) {
			form, example := "a phase's number, from 1", "1"
			if numbers > 1 {
				form, example = "two numbers from 1, separated by a hyphen: the number of the phase and the number within the phase", "2-1"
			}
			p.Errorf(member, CodeStateKey, fmt.Sprintf("write the key as %s, such as \"%s\"", form, example),
				"The key %s of '%s' is not of the form \"%s\".", shape.Quote(member.Name), at.Name, example)
		}
		check(value)
	}
}

// isStateKey reports whether a key consists of the given number of positive integers,
// joined by hyphens.
func isStateKey(key string, numbers int) bool {
	parts := strings.Split(key, "-")
	for _, part := range parts {
		if !isDigits(part) || part[0] == '0' {
			return false
		}
	}
	return len(parts) == numbers
}

// checkResponse checks the answer to a checkpoint.
func (p *parser) checkResponse(at shape.Place) {
	at, ok := p.openNested(at, "optionId", "respondedAt", "effects")
	if !ok {
		return
	}
	p.Require(at, "optionId", "respondedAt")
	p.readID(at.Key("optionId"))
	p.checkTimes(at, "respondedAt")
	if effects, ok := p.openNested(at.Key("effects"), "variablesSet", "transitionedTo", "phasesSkipped"); ok {
		p.Open(effects.Key("variablesSet"))
		p.checkNumbers(effects, "transitionedTo")
		p.checkIntegers(effects.Key("phasesSkipped"))
	}
}

// checkOutcome checks the selected branch of a decision.
func (p *parser) checkOutcome(at shape.Place) {
	at, ok := p.openNested(at, "branchId", "decidedAt", "transitionedTo")
	if !ok {
		return
	}
	p.Require(at, "branchId", "decidedAt", "transitionedTo")
	p.readID(at.Key("branchId"))
	p.checkTimes(at, "decidedAt")
	p.checkNumbers(at, "transitionedTo")
}

// checkActiveLoop checks a loop in progress.
func (p *parser) checkActiveLoop(at shape.Place) {
	p.Object(at, "phaseIndex", "loopIndex", "currentIteration", "totalItems", "currentItem", "startedAt")
	p.Require(at, "phaseIndex", "loopIndex", "currentIteration", "startedAt")
	p.checkNumbers(at, "phaseIndex", "loopIndex")
	p.checkInteger(at.Key("currentIteration"), 0)
	p.checkInteger(at.Key("totalItems"), 0)
	p.checkTimes(at, "startedAt")
}

// checkHistoryEntry checks an entry of the history.
func (p *parser) checkHistoryEntry(at shape.Place) {
	p.Object(at, "timestamp", "type", "phase", "step", "checkpoint", "decision", "loop", "data", "error")
	p.Require(at, "timestamp", "type")
	p.checkTimes(at, "timestamp")
	p.Choice(at.Key("type"), shape.CodeEnum,
		"workflow_started", "workflow_completed", "workflow_aborted", "phase_entered", "phase_exited", "phase_skipped",
		"step_started", "step_completed", "checkpoint_reached", "checkpoint_response", "decision_reached", "decision_branch_taken",
		"loop_started", "loop_iteration", "loop_completed", "loop_break", "variable_set", "error")
	p.checkNumbers(at, "phase", "step", "checkpoint", "decision", "loop")
	p.Open(at.Key("data"))
	if problem, ok := p.openNested(at.Key("error"), "message", "code"); ok {
		p.Require(problem, "message")
		p.readText(problem.Key("message"))
		p.readText(problem.Key("code"))
	}
}
