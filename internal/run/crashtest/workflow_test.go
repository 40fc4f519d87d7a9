package crashtest

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
)

// The workflow of all runs: a loop that no test comes to the end of, with a step
// that has a criterion, a gate, and a step that has neither.
const (
	workflowID = "crash-loop"
	workflow   = `
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

// shelf is a catalog of one workflow.
type shelf struct{ definition *definition.Definition }

func newShelf() (*shelf, error) {
	d, found := definition.Parse(workflowID+".yaml", []byte(workflow))
	if d == nil {
		return nil, fmt.Errorf("the workflow does not parse: %+v", found)
	}
	return &shelf{d}, nil
}

// Startable implements run.Definitions.
func (s *shelf) Startable(_ context.Context, id string) (*definition.Definition, error) {
	if id != workflowID {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no workflow %s", id)
	}
	return s.definition, nil
}

func (s *shelf) program() *guide.Program { return guide.Compile(s.definition.Steps) }
