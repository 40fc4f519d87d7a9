package engine

import "slices"

// Through returns the phase that a run with the state document d enters after a transition
// to phase number to. It passes through the phases that answers have skipped and returns
// them in past. end is 0 if the run ends. ok is false if the target of a skipped phase is
// undecided or the skipped phases form a cycle.
func (p *PhaseProgram) Through(d *StateDocument, to int) (end int, past []int, ok bool) {
	skips := p.phasesToSkip(d)
	s := State{Vars: d.Variables}
	for end = to; end > 0 && end <= len(p.Workflow.Phases) && slices.Contains(skips, end); {
		if slices.Contains(past, end) {
			return 0, past, false
		}
		past = append(past, end)
		if end, ok = p.skippedTarget(s, &p.Workflow.Phases[end-1]); !ok {
			return 0, past, false
		}
	}
	return end, past, true
}
