package guide

import "slices"

// Through says where the way to a phase leads in a run or state that the document
// tells: past the phases that answers have had skipped. end is 0 at the end of the
// run; ok is false where it is not decided yet how a skipped phase leads on, or
// where they lead in a circle.
func (p *PhaseProgram) Through(d *StateDocument, to int) (end int, past []int, ok bool) {
	skips := p.toSkip(d)
	s := State{Vars: d.Variables}
	for end = to; end > 0 && end <= len(p.Workflow.Phases) && slices.Contains(skips, end); {
		if slices.Contains(past, end) {
			return 0, past, false
		}
		past = append(past, end)
		if end, ok = p.wayOn(s, &p.Workflow.Phases[end-1]); !ok {
			return 0, past, false
		}
	}
	return end, past, true
}
