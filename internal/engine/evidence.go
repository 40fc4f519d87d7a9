package engine

import (
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// Evidence is the outcome of a check of a completed step.
type Evidence struct {
	// Key is the JSON pointer of the rule in the step's criteria.
	Key    string `json:"key"`
	Passed bool   `json:"passed"`
	// Undefined is set for a check that the project does not define: the step is a claim
	// there.
	Undefined bool `json:"undefined,omitempty"`
	// Inconclusive is set for a check that did not run to its end.
	Inconclusive bool `json:"inconclusive,omitempty"`
}

// evidenceOf returns the outcomes of checks in the order of their keys.
func evidenceOf(checks map[string]criteria.CheckOutcome) []Evidence {
	var list []Evidence
	for _, key := range slices.Sorted(maps.Keys(checks)) {
		list = append(list, Evidence{Key: key, Passed: checks[key].Passed, Undefined: checks[key].Undefined, Inconclusive: checks[key].Inconclusive})
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
