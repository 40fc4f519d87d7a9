package crashtest

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// The workflows of all runs, whose end no test reaches. The step workflow has a plain step,
// and a loop over a step with a criterion, a step with a gate, and a plain step.
const (
	workflowID    = "crash-loop"
	crashWorkflow = `
id: crash-loop
name: Go round and round
description: A workflow that lasts longer than its machine.
version: 1.0.0
steps:
  - id: frame
    title: Frame the work
    prompt: Say what the work is.
  - id: rounds
    type: loop
    title: Go round
    loop: {type: for, count: 1000, maxIterations: 1000, iterationVar: round}
    body:
      - id: act
        title: Act
        prompt: Do the work of round {{round}}.
        validationCriteria:
          - {type: contains, value: done, message: Say that it is done.}
      - id: check
        title: Check
        prompt: Check what was done in round {{round}}.
        requireConfirmation: true
      - id: note
        title: Note
        prompt: Note what is left.
`
	// refusedOutput fails the criterion of act.
	refusedOutput = "not yet"
)

// The phase workflow returns from its build phase to its plan phase. It has a checkpoint
// with effects, an optional step, a loop over a list from the caller, actions and guarded
// transitions.
const (
	phasesID = "crash-circle"
	circle   = `
id: crash-circle
title: Go in a circle
version: 1.0.0
initialPhase: plan
variables:
  - {name: tasks, type: array, required: false}
  - {name: task, type: string, required: false}
  - {name: path, type: string, defaultValue: direct}
  - {name: stop, type: boolean, required: false}
  - {name: building, type: boolean, required: false}
phases:
  - id: plan
    name: Plan
    required: true
    entryActions:
      - {action: log, message: Planning begins.}
      - {action: set, target: building, value: false}
    steps:
      - {id: aim, name: Say the aim, required: true}
      - {id: aside, name: Look aside, required: false}
    checkpoints:
      - id: agree
        name: Agreement
        message: Is the plan good?
        required: true
        blocking: true
        options:
          - {id: go, label: Go}
          - {id: around, label: Go around, effect: {setVariable: {path: around}}}
          - {id: at-once, label: At once, effect: {setVariable: {path: direct}, transitionTo: build}}
    decisions:
      - id: way
        name: Which way
        branches:
          - id: back
            label: Back
            condition: {type: simple, variable: path, operator: "==", value: around}
            transitionTo: detour
          - {id: on, label: "On", isDefault: true, transitionTo: build}
  - id: detour
    name: Detour
    required: true
    steps:
      - {id: wander, name: Wander, required: true}
    transitions:
      - {to: build, isDefault: true}
  - id: build
    name: Build
    required: true
    entryActions:
      - {action: set, target: building, value: true}
    loops:
      - id: each
        name: Each task
        type: forEach
        over: tasks
        variable: task
        maxIterations: 4
        steps:
          - {id: make, name: Make it, required: true}
          - {id: try, name: Try it, required: true}
    transitions:
      - to: done
        condition: {type: simple, variable: stop, operator: "==", value: true}
      - {to: plan, isDefault: true}
    exitActions:
      - {action: emit, target: round, message: A round is over.}
  - id: done
    name: Done
    required: true
    steps:
      - {id: hand-over, name: Hand over, required: true}
`
)

// testCatalog is a catalog of both workflows.
type testCatalog map[string]*workflow.Definition

func newShelf() (testCatalog, error) {
	s := testCatalog{}
	for id, text := range map[string]string{workflowID: crashWorkflow, phasesID: circle} {
		d, found := workflow.Parse(id+".yaml", []byte(text))
		if d == nil {
			return nil, fmt.Errorf("the workflow %s cannot be parsed: %+v", id, found)
		}
		s[id] = d
	}
	return s, nil
}

// Startable implements run.Definitions.
func (s testCatalog) Startable(_ context.Context, id string) (*workflow.Definition, error) {
	if d := s[id]; d != nil {
		return d, nil
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "there is no workflow %s", id)
}

// project is the workflow of a client and its program.
type project struct {
	id      string
	program engine.Flow
}

// inSteps and inPhases return the projects of the two dialects.
func (s testCatalog) inSteps() project {
	return project{workflowID, engine.Compile(s[workflowID].Steps)}
}

func (s testCatalog) inPhases() project {
	return project{phasesID, engine.CompilePhases(s[phasesID].Phases)}
}

// projectAt alternates between the projects.
func (s testCatalog) projectAt(n int) project {
	if n%2 == 1 {
		return s.inPhases()
	}
	return s.inSteps()
}
