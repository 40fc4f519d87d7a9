package workflow

import (
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// CheckRules returns the checks in the criteria of all steps, in document order.
func (d *Definition) CheckRules() (list []*criteria.CheckRule) {
	if d.Phases != nil {
		for i := range d.Phases.Phases {
			phase := &d.Phases.Phases[i]
			for j := range phase.Steps {
				list = append(list, phase.Steps[j].Criteria.CheckRules()...)
			}
			for j := range phase.Loops {
				for k := range phase.Loops[j].Steps {
					list = append(list, phase.Loops[j].Steps[k].Criteria.CheckRules()...)
				}
			}
		}
		return list
	}
	return stepCheckRules(d.Steps.Steps)
}

// stepCheckRules returns the checks of steps and of the loops among them. The body of a loop
// that is a step of its own is read there.
func stepCheckRules(list []steps.Step) (out []*criteria.CheckRule) {
	for i := range list {
		out = append(out, list[i].Criteria.CheckRules()...)
		if l := list[i].Loop; l != nil && l.BodyRef == "" {
			out = append(out, stepCheckRules(l.Body)...)
		}
	}
	return out
}
