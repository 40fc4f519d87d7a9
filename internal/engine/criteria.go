package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// judgeCriteria refuses an output that does not meet the criteria of a step with each of
// the scopes, or whose checks have no outcome yet. Otherwise it returns the outcomes of its
// checks. scopes are the variables with which the output is judged; the last scope has the
// variables after the call, with which the texts of checks are filled in.
func judgeCriteria(rules *criteria.Criterion, c *Continue, scopes []expr.Lookup) ([]Evidence, *Refusal) {
	if rules == nil {
		return nil, nil
	}
	var pending []criteria.PendingCheck
	for _, vars := range scopes {
		now, r := checkCriteria(rules, c, vars)
		if r != nil {
			return nil, r
		}
		for _, p := range now {
			if !slices.ContainsFunc(pending, func(known criteria.PendingCheck) bool { return known.Key == p.Key }) {
				pending = append(pending, p)
			}
		}
	}
	if len(pending) > 0 {
		return nil, fillChecks(pending, scopes[len(scopes)-1])
	}
	return evidenceOf(rules, criteria.Input{Output: c.Output, Checks: c.Checks}, scopes), nil
}

// checkCriteria refuses an output that does not meet the criteria, or that repeats one of
// their issues or suggestions. It returns the checks without an outcome that the verdict
// depends on.
func checkCriteria(rules *criteria.Criterion, c *Continue, vars expr.Lookup) ([]criteria.PendingCheck, *Refusal) {
	res, err := rules.Judge(criteria.Input{Output: c.Output, Vars: vars, Checks: c.Checks})
	switch {
	case err != nil:
		return nil, &Refusal{Rule: RuleDefinition, Message: err.Error()}
	case len(res.Pending) > 0:
		return res.Pending, nil
	case !res.Valid:
		return nil, &Refusal{Rule: RuleCriteria, Message: "the output does not meet the step's criteria", Issues: res.Issues}
	case isIssueEcho(rules, c.Output, vars):
		return nil, &Refusal{Rule: RulePlaceholder, Given: map[string]any{"output": c.Output}, Message: "output repeats the text of a refusal: replace it with the actual content"}
	}
	return nil, nil
}

// isIssueEcho reports whether an output repeats an issue or a suggestion that the criteria
// return for an empty output. Such an output could meet the criteria, because an issue
// quotes the text that a rule requires.
func isIssueEcho(rules *criteria.Criterion, output string, vars expr.Lookup) bool {
	res, err := rules.Check("", vars)
	if err != nil {
		return false
	}
	output = trimToWords(output)
	return slices.ContainsFunc(append(res.Issues, res.Suggestions...), func(text string) bool { return trimToWords(text) == output })
}

// fillChecks returns the refusal that asks for the outcomes of checks. It refuses an unset
// variable, and a value that would turn an argument of a command into an option.
func fillChecks(pending []criteria.PendingCheck, vars expr.Lookup) *Refusal {
	r := &Refusal{Rule: RuleChecksPending, Message: "checks of the step have no result"}
	for _, p := range pending {
		if unset := unsetVariables(p.Template, vars); len(unset) > 0 {
			return &Refusal{
				Rule: RuleCheckVariable, Allowed: unset,
				Message: fmt.Sprintf("%s: the check needs variables that are not set: %s. Set them in context; if only the workflow sets them, abort the run or fork it at an earlier event", p.Template.Describe(), strings.Join(unset, ", ")),
			}
		}
		filled := p.Template.FillTemplates(func(text string) string { return template.Render(template.Parse(text), vars) })
		for i, argument := range filled.Argv {
			if strings.HasPrefix(argument, "-") && !strings.HasPrefix(p.Template.Argv[i], "-") {
				return &Refusal{
					Rule: RuleCheckVariable, Given: argument,
					Message: fmt.Sprintf("%s: the value of %s begins with a hyphen, so the program would read it as an option. Set a value without the hyphen", p.Template.Describe(), p.Template.Argv[i]),
				}
			}
		}
		if filled.Path == "" && p.Template.Path != "" {
			return &Refusal{
				Rule:    RuleCheckVariable,
				Message: fmt.Sprintf("%s: the value of %s is empty, so the check has no file. Set the path in context", p.Template.Describe(), p.Template.Path),
			}
		}
		r.Pending = append(r.Pending, criteria.PendingCheck{Key: p.Key, Template: p.Template, Rule: filled})
	}
	return r
}

// unsetVariables returns the variables in the texts of a check that have no value.
func unsetVariables(rule *criteria.CheckRule, vars expr.Lookup) []string {
	var names []string
	for _, text := range rule.Texts() {
		for _, part := range template.Parse(text.Text) {
			if part.Path == nil {
				continue
			}
			name := strings.Join(part.Path, ".")
			value := template.Render([]template.Part{part}, withoutNull(vars))
			if (value == part.Text || value == "null") && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// withoutNull returns a lookup in which a variable with the value null is unset.
func withoutNull(vars expr.Lookup) expr.Lookup {
	return func(name string) (any, bool) {
		value, ok := vars(name)
		return value, ok && value != nil
	}
}

// CheckInfo describes a check of a step.
type CheckInfo struct {
	// Key is the JSON pointer of the rule in the criteria of the step.
	Key  string        `json:"key"`
	Type criteria.Type `json:"type"`
	// Name is the name of a check of the project.
	Name string `json:"name,omitempty"`
	// Describe describes the check in words.
	Describe string `json:"describe"`
}

// The limits of Position.Checks.
const (
	maxCheckInfos    = 10
	maxCheckDescribe = 160
)

// addChecks adds the checks of a step to its position, and asks for the variables that they
// need and that a caller can set. The last criteria of the position are those of the step.
func (pos *Position) addChecks(rules *criteria.Criterion, vars expr.Lookup, canSet func(path string) bool) {
	first := len(pos.Criteria) - len(rules.Describe())
	for _, line := range rules.CheckedLines() {
		pos.Checked = append(pos.Checked, first+line)
	}
	for _, check := range rules.Checks(vars) {
		for _, name := range unsetVariables(check.Rule, vars) {
			need := Need{Variable: name, Description: "needed by a check: " + check.Rule.Describe()}
			if canSet(name) && !slices.ContainsFunc(pos.Sets, func(n Need) bool { return n.Variable == name }) {
				pos.Sets = append(pos.Sets, need)
			}
		}
		if len(pos.Checks) == maxCheckInfos {
			continue
		}
		words := template.Render(template.Parse(check.Rule.Describe()), withoutNull(vars))
		if len(words) > maxCheckDescribe {
			words = strings.ToValidUTF8(words[:maxCheckDescribe], "") + "…"
		}
		pos.Checks = append(pos.Checks, CheckInfo{Key: check.Key, Type: check.Rule.Type, Name: check.Rule.Check, Describe: words})
	}
}

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

// Recheck returns the state after all events of a run, as Fold does, but decides every
// command again and compares the result with the events. It is for events without
// authentication. The events may end within the last command. If an event differs from the
// engine's own, Recheck returns an error with guideway.CodeConflict that names the event.
func Recheck(f Flow, events []Event) (State, error) {
	var s State
	for i := 0; i < len(events); {
		decided, refusal := f.Decide(s, commandOf(f, events[i]))
		if p, ok := f.(*PhaseProgram); ok && events[i].Kind == EventStateImported {
			if i > 0 || !p.acceptsImport(events[i]) {
				return s, mismatchError(i, events[i], "the imported state does not match its document")
			}
			decided, refusal = addConsequences(p, s, events[i]), nil
		}
		if refusal != nil {
			return s, mismatchError(i, events[i], refusal.Rule)
		}
		for _, want := range decided {
			if i == len(events) {
				return s, nil
			}
			if !sameEvent(want, events[i]) {
				return s, mismatchError(i, events[i], "expected "+describeEvent(want))
			}
			s = Apply(s, events[i])
			i++
		}
	}
	return s, nil
}

func mismatchError(i int, e Event, why string) error {
	return guideway.Errorf(guideway.CodeConflict, "event %d of the workflow (%s) does not follow from the events before it: %s", i+1, describeEvent(e), why)
}

// describeEvent returns the kind of an event, and its step if it has one.
func describeEvent(e Event) string { return strings.TrimSpace(string(e.Kind) + " " + e.Step) }

// sameEvent reports whether events are equal as JSON. It ignores reasons: the engine's
// reasons may change between versions, and a caller's reason is copied from the event into
// the command.
func sameEvent(a, b Event) bool {
	a.Reason, b.Reason = "", ""
	return jsontext.Equal(a, b)
}

// commandOf returns the command that results in an event.
func commandOf(f Flow, e Event) Command {
	c := &Continue{Person: true}
	switch e.Kind {
	case EventRunStarted:
		return Command{Start: &Start{Context: withoutDefaults(f, e.Vars), Person: e.Person}}
	case EventRunAborted:
		return Command{Abort: &Abort{Reason: e.Reason}}
	case EventContextSet:
		c.Context = e.Vars
	case EventStepCompleted:
		c.Output, c.Notes, c.Context, c.Checks = e.Output, e.Notes, e.Vars, outcomesOf(e.Evidence)
	case EventAsserted:
		c.Notes, c.Context = e.Notes, e.Vars
	case EventStepSkipped, EventPhaseSkipped:
		c.Skip = &Skip{Reason: e.Reason}
	case EventGateApproved, EventGateAnswered, EventCheckpointAnswer, EventBranchTaken:
		if c.By.User = e.User; !e.Local {
			c.By.Roles = []guideway.Role{guideway.RoleAdmin} // any role; without one it would be the local user
		}
		c.Answer = &Answer{OptionID: e.Option, Decline: e.Option == "", Note: e.Notes}
	}
	return Command{Continue: c}
}

// withoutDefaults returns the variables that a run was started with, except those that
// equal a default of the definition.
func withoutDefaults(f Flow, vars map[string]any) map[string]any {
	p, ok := f.(*PhaseProgram)
	if !ok {
		return vars
	}
	out := maps.Clone(vars)
	for _, v := range p.Workflow.Variables {
		if value, set := out[v.Name]; set && v.HasDefault && jsontext.Equal(value, v.DefaultValue) {
			delete(out, v.Name)
		}
	}
	return out
}
