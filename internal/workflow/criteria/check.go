package criteria

import (
	"errors"
	"fmt"
	"strings"

	guideway "github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// The texts are those of WorkRail, because clients may compare them.
const (
	issueBlank       = "Output is empty or invalid."
	issueComposition = "Validation composition failed"
	issueNotJSON     = "Output is not valid JSON for schema validation"

	suggestContent = "Provide valid output content."
	suggestReview  = "Review validation criteria and adjust output accordingly."
)

// maxTimeouts limits the number of patterns of one check that may reach their time limit;
// later patterns are not tried.
const maxTimeouts = 3

// Result is the verdict on an output with its issues and hints. The lists are never nil.
type Result struct {
	Valid       bool
	Issues      []string
	Suggestions []string
	// Pending are the checks whose results decide the verdict, if Valid is false and there
	// are no issues.
	Pending []PendingCheck
}

// PendingCheck is a check that has no result yet.
type PendingCheck struct {
	// Key is the JSON pointer of the rule in its criteria.
	Key string
	// Template is the rule of the definition. Rule is the rule with the variables of the run
	// filled in; package engine sets it.
	Template, Rule *CheckRule
}

// CheckOutcome is the outcome of a check.
type CheckOutcome struct {
	Passed bool `json:"passed"`
	// Undefined is set for a check that the project does not define: the rule is skipped.
	Undefined bool `json:"undefined,omitempty"`
	// Inconclusive is set for a check that could not run to its end, for example because of
	// its time limit: neither the rule nor its negation passes.
	Inconclusive bool `json:"inconclusive,omitempty"`
	// Issue describes why the check failed.
	Issue string `json:"issue,omitempty"`
}

// Input is the input of a judgment.
type Input struct {
	Output string
	// Vars are the variables of the rules' conditions.
	Vars expr.Lookup
	// Checks are the outcomes of checks by their keys. If it is nil, checks are skipped, for
	// callers that cannot execute them.
	Checks map[string]CheckOutcome
}

// Check checks an output. vars are the variables of the rules' conditions: a rule whose
// condition does not hold is skipped, and so is a composition of only skipped rules.
//
// A list reports every issue in the order of its rules. A composition reports `Validation
// composition failed`, then its requirements. The author's message replaces the issue of
// its rule, as in WorkRail.
//
// The error is for mistakes of the author: an unknown type, a pattern or a schema that does
// not compile, a rule without its required field. Its code is
// guideway.CodeInvalidDefinition.
func (c *Criterion) Check(output string, vars expr.Lookup) (Result, error) {
	return c.Judge(Input{Output: output, Vars: vars})
}

// Judge checks an output like Check, with the outcomes of checks. It returns the
// pending checks if the verdict depends on them: rules over the output are checked first,
// and an alternative that holds needs no check after it.
func (c *Criterion) Judge(in Input) (Result, error) {
	if c == nil {
		if strings.TrimFunc(in.Output, expr.IsSpace) == "" {
			return Result{Issues: []string{issueBlank}, Suggestions: []string{suggestContent}}, nil
		}
		return Result{Valid: true, Issues: []string{}, Suggestions: []string{}}, nil
	}
	j := &checker{output: in.Output, vars: in.Vars, checks: in.Checks}
	f, err := j.checkCriterion(c, "")
	if err != nil {
		return Result{}, err
	}
	if f.outcome == pending {
		return Result{Issues: []string{}, Suggestions: []string{}, Pending: f.pending}, nil
	}
	if f.isAccepted() {
		return Result{Valid: true, Issues: []string{}, Suggestions: []string{}}, nil
	}
	return Result{
		Issues:      f.listIssues(c),
		Suggestions: append([]string{suggestReview}, f.hints...),
	}, nil
}

// outcome is the outcome of one criterion. The outcome of a list is the last one of its
// parts in this order.
type outcome uint8

const (
	skipped outcome = iota
	passed
	// pending is the outcome of a check without a result.
	pending
	// undecided is the outcome of a rule whose pattern reached its time limit, or whose check
	// is inconclusive: neither the rule nor its negation passes.
	undecided
	failed
)

// verdict has the outcome of one criterion with its issues and hints.
type verdict struct {
	outcome outcome
	issues  []string
	hints   []string
	pending []PendingCheck
}

// isAccepted reports whether the criterion lets the output pass.
func (f verdict) isAccepted() bool { return f.outcome == passed || f.outcome == skipped }

// listIssues returns the issues of a criterion in a list. For a composition, the first
// issue is issueComposition.
func (f verdict) listIssues(c *Criterion) []string {
	if c.isComposition() {
		return append([]string{issueComposition}, f.issues...)
	}
	return f.issues
}

// checker is the state of one check.
type checker struct {
	output string
	vars   expr.Lookup
	checks map[string]CheckOutcome
	// timeouts counts the patterns that reached their time limit.
	timeouts int
}

// checkCriterion checks one criterion; at is its JSON pointer.
func (j *checker) checkCriterion(c *Criterion, at string) (verdict, error) {
	if c == nil {
		return verdict{outcome: passed}, nil
	}
	if !c.Condition.Holds(j.vars) {
		return verdict{outcome: skipped}, nil
	}
	if c.unusable != "" {
		return verdict{}, guideway.Errorf(guideway.CodeInvalidDefinition, "%s", c.unusable)
	}
	switch c.Type {
	case All, And:
		return j.checkAll(c, at)
	case Or:
		return j.checkAny(c, at)
	case Not:
		return j.checkNot(c, at)
	case Contains:
		return c.ruleVerdict(strings.Contains(j.output, c.Value),
			fmt.Sprintf("Output must include %q", c.Value)), nil
	case Regex:
		return j.checkRegex(c)
	case Length:
		return j.checkLength(c), nil
	case Schema:
		return j.checkSchema(c)
	default:
		if c.CheckRule != nil {
			return j.lookUpCheck(c, at), nil
		}
		return verdict{}, guideway.Errorf(guideway.CodeInvalidDefinition,
			"Unsupported validation rule type: %s", c.Type).
			WithFix("use contains, regex, length or schema, or a check: %s", joinTypes(CheckTypes()))
	}
}

// lookUpCheck returns the verdict of a check.
func (j *checker) lookUpCheck(c *Criterion, at string) verdict {
	if j.checks == nil {
		return verdict{outcome: skipped}
	}
	result, ok := j.checks[at]
	switch {
	case !ok:
		return verdict{outcome: pending, pending: []PendingCheck{{Key: at, Template: c.CheckRule, Rule: c.CheckRule}}}
	case result.Undefined:
		return verdict{outcome: skipped}
	case result.Passed:
		return verdict{outcome: passed}
	default:
		f := c.failWith(result.Issue)
		if c.Message != "" {
			f.hints = []string{result.Issue}
		}
		if result.Inconclusive {
			f.outcome = undecided
		}
		return f
	}
}

// checkAll checks a list or an "and". It always checks all parts, so that all issues are
// reported.
func (j *checker) checkAll(c *Criterion, at string) (verdict, error) {
	var all verdict
	if len(c.Of) == 0 {
		all.outcome = passed
	}
	for i, part := range c.Of {
		f, err := j.checkCriterion(part, at+c.pathTo(i))
		if err != nil {
			return verdict{}, err
		}
		all.outcome = max(all.outcome, f.outcome)
		all.pending = append(all.pending, f.pending...)
		if f.isAccepted() {
			continue
		}
		all.hints = append(all.hints, f.hints...)
		if c.Type == All {
			all.issues = append(all.issues, f.listIssues(part)...)
		} else {
			all.issues = append(all.issues, f.issues...)
		}
	}
	return all, nil
}

// checkAny checks an "or": it passes at the first part that passes. Without parts it fails,
// as in WorkRail.
func (j *checker) checkAny(c *Criterion, at string) (verdict, error) {
	if len(c.Of) == 0 {
		return verdict{outcome: failed, issues: []string{"'or' has no criteria, so no output can meet it"}}, nil
	}
	var result, waits verdict // waits is the first alternative that needs a check
	var alternatives []string
	isUndecided := false
	for i, part := range c.Of {
		f, err := j.checkCriterion(part, at+c.pathTo(i))
		switch {
		case err != nil:
			return verdict{}, err
		case f.outcome == passed:
			return f, nil
		case f.outcome == skipped:
			continue
		case f.outcome == pending:
			if waits.outcome != pending {
				waits = f
			}
			continue
		}
		result.outcome = failed
		isUndecided = isUndecided || f.outcome == undecided
		result.hints = append(result.hints, f.hints...)
		alternatives = append(alternatives, strings.Join(f.issues, " and "))
	}
	if waits.outcome == pending {
		return waits, nil
	}
	if isUndecided {
		result.outcome = undecided
	}
	switch len(alternatives) {
	case 0:
	case 1:
		result.issues = alternatives
	default:
		result.issues = []string{"At least one must be met: " + strings.Join(alternatives, "; or: ")}
	}
	return result, nil
}

// checkNot checks a "not": it passes if its part fails. If the part is skipped or
// undecided, so is the "not".
func (j *checker) checkNot(c *Criterion, at string) (verdict, error) {
	var part *Criterion
	if len(c.Of) > 0 {
		part = c.Of[0]
	}
	f, err := j.checkCriterion(part, at+c.pathTo(0))
	if err != nil {
		return verdict{}, err
	}
	switch f.outcome {
	case failed:
		return verdict{outcome: passed}, nil
	case passed:
		return verdict{outcome: failed, issues: []string{"Must not hold: " + part.String()}}, nil
	default:
		return f, nil
	}
}

// ruleVerdict returns the verdict of a simple rule.
func (c *Criterion) ruleVerdict(ok bool, issue string) verdict {
	if ok {
		return verdict{outcome: passed}
	}
	return c.failWith(issue)
}

// failWith returns the verdict of a failed rule. If the author's message replaces the
// issues, the description of the rule becomes a hint.
func (c *Criterion) failWith(issues ...string) verdict {
	f := verdict{outcome: failed, issues: issues}
	if c.Message == "" {
		return f
	}
	for i := range issues {
		issues[i] = c.Message
	}
	f.hints = []string{"Required: " + c.describeRule() + "."}
	return f
}

// checkRegex checks a pattern.
func (j *checker) checkRegex(c *Criterion) (verdict, error) {
	p, err := c.compiledPattern()
	if err != nil {
		return verdict{}, guideway.Errorf(guideway.CodeInvalidDefinition,
			"Invalid regex pattern in validationCriteria: %s", c.Pattern).
			WithFix("fix the pattern: %v", err)
	}
	if j.timeouts >= maxTimeouts {
		return c.timedOut(fmt.Sprintf("Pattern /%s/ was not tested: %d other patterns took over %v each", c.Pattern, maxTimeouts, pattern.Limit)), nil
	}
	matched, err := p.Match(j.output)
	if err != nil {
		j.timeouts++
		return c.timedOut(fmt.Sprintf("Pattern /%s/ took too long on this output (over %v)", c.Pattern, pattern.Limit)), nil
	}
	return c.ruleVerdict(matched, "Output does not match required pattern: "+c.Pattern), nil
}

// timedOut returns the verdict of a rule that reached its time limit. The author's message
// does not replace the reason, because the output may be valid.
func (c *Criterion) timedOut(reason string) verdict {
	f := verdict{outcome: undecided, issues: []string{reason}}
	if c.Message != "" {
		f.issues = []string{c.Message, reason}
	}
	f.hints = []string{"Shorten the output, or ask the author of the workflow for a simpler pattern."}
	return f
}

// checkLength checks the number of UTF-16 units, with one issue per violated bound.
func (j *checker) checkLength(c *Criterion) verdict {
	n := float64(jsontext.CountUTF16(j.output))
	var issues []string
	if c.Min != nil && n < *c.Min {
		issues = append(issues, fmt.Sprintf("Output shorter than minimum length %s", formatAmount(*c.Min)))
	}
	if c.Max != nil && n > *c.Max {
		issues = append(issues, fmt.Sprintf("Output exceeds maximum length %s", formatAmount(*c.Max)))
	}
	if len(issues) == 0 {
		return verdict{outcome: passed}
	}
	f := c.failWith(issues...)
	f.hints = []string{fmt.Sprintf("Required: %s; the output has %s.", c.describeRule(), formatAmount(n))}
	return f
}

// checkSchema checks the output as a JSON document.
func (j *checker) checkSchema(c *Criterion) (verdict, error) {
	s, err := c.compiledSchema()
	if err != nil {
		return verdict{}, guideway.Errorf(guideway.CodeInvalidDefinition,
			"invalid JSON schema in validationCriteria: %w", err).
			WithFix("fix the schema of the rule")
	}
	if j.timeouts >= maxTimeouts {
		return c.timedOut(fmt.Sprintf("The schema was not tested: %d patterns took over %v each", maxTimeouts, pattern.Limit)), nil
	}
	issue, err := s.validateOutput(j.output)
	switch {
	case errors.Is(err, pattern.ErrTooLong):
		j.timeouts++
		return c.timedOut(fmt.Sprintf("A pattern of the schema took too long on this output (over %v)", pattern.Limit)), nil
	case err != nil:
		f := c.failWith(issueNotJSON)
		f.hints = append(f.hints, "Return only JSON, without text around it: "+err.Error()+".")
		return f, nil
	case issue != "":
		f := c.failWith(issue)
		if c.Message != "" {
			f.hints = []string{issue}
		}
		return f, nil
	}
	return verdict{outcome: passed}, nil
}
