package engine

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// Evidence is the outcome of a check of a completed step.
type Evidence struct {
	// Key is the JSON pointer of the rule in the step's criteria.
	Key    string `json:"key"`
	Passed bool   `json:"passed"`
	// Undefined is set for a check that the project does not define: the step is then
	// labelled a claim.
	Undefined bool `json:"undefined,omitempty"`
	// Inconclusive is set for a check that did not run to its end.
	Inconclusive bool `json:"inconclusive,omitempty"`
	// Decided is set if the output would have been refused with the other outcome. Otherwise
	// a rule over the text let the output pass.
	Decided bool `json:"decided,omitempty"`
}

// The labels of a completed step.
const (
	// LabelEvidence is the label of a step that a check decided.
	LabelEvidence = "evidence"
	// LabelClaim is the label of a step that the agent reported.
	LabelClaim = "claim"
)

// Label returns the label of the step that an event completes.
func (e Event) Label() string {
	if slices.ContainsFunc(e.Evidence, func(one Evidence) bool { return one.Decided }) {
		return LabelEvidence
	}
	return LabelClaim
}

// evidenceOf returns the outcomes of the checks of an accepted output in the order of their
// keys. scopes are the variables with which the output was judged.
func evidenceOf(c *criteria.Criterion, in criteria.Input, scopes []expr.Lookup) []Evidence {
	var list []Evidence
	for _, key := range slices.Sorted(maps.Keys(in.Checks)) {
		outcome := in.Checks[key]
		one := Evidence{Key: key, Passed: outcome.Passed, Undefined: outcome.Undefined, Inconclusive: outcome.Inconclusive}
		if !one.Undefined && !one.Inconclusive {
			flipped := maps.Clone(in.Checks)
			flipped[key] = criteria.CheckOutcome{Passed: !outcome.Passed}
			one.Decided = slices.ContainsFunc(scopes, func(vars expr.Lookup) bool {
				res, err := c.Judge(criteria.Input{Output: in.Output, Vars: vars, Checks: flipped})
				return err == nil && !res.Valid
			})
		}
		list = append(list, one)
	}
	return list
}

// outcomesOf returns the outcomes that evidence was made of, without their issues.
func outcomesOf(list []Evidence) map[string]criteria.CheckOutcome {
	if list == nil {
		return nil
	}
	checks := map[string]criteria.CheckOutcome{}
	for _, e := range list {
		checks[e.Key] = criteria.CheckOutcome{Passed: e.Passed, Undefined: e.Undefined, Inconclusive: e.Inconclusive}
	}
	return checks
}
