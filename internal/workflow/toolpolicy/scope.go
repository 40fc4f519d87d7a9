package toolpolicy

import "fmt"

// Scope is the policy of the current step of a run. A Scope in which only Policy is set is
// the policy of calls without a run.
type Scope struct {
	Run, Workflow, Step string
	Policy              *Policy
}

// String names the scope in a message.
func (s *Scope) String() string {
	if s.Run == "" {
		return "the configuration"
	}
	return fmt.Sprintf("step %q of run %s (%s)", s.Step, s.Run, s.Workflow)
}

// Decision is the verdict on a call with the scope and the rule that led to it. Both are nil
// if the call is allowed. Rule is nil if the call is denied because allow does not contain
// it.
type Decision struct {
	Verdict Verdict
	Scope   *Scope
	Rule    *Rule
}

// DecideAll returns the strictest verdict of several scopes; of equal verdicts the first
// one. Without scopes a call is allowed.
func DecideAll(scopes []Scope, c Call) Decision {
	var d Decision
	for i := range scopes {
		if v, rule := scopes[i].Policy.Decide(c); v > d.Verdict {
			d = Decision{Verdict: v, Scope: &scopes[i], Rule: rule}
		}
	}
	return d
}
