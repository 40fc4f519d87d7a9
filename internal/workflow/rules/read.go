// Package rules reads the criteria of steps in the documents of the guided dialects, which
// differ only in the form of their conditions.
package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// CodeComposition reports an object with none or several of and, or and not.
const CodeComposition = "criteria-composition"

// Reader reads the criteria of one document.
type Reader struct {
	// Report receives the diagnostics.
	Report *shape.Report
	// CheckCondition checks a condition in the form of the dialect.
	CheckCondition func(at shape.Place)
	read           []placedCriteria
}

// placedCriteria are criteria with their place.
type placedCriteria struct {
	at       shape.Place
	criteria *criteria.Criterion
}

// Read reads the criteria of a step: a list of rules or a composition. It returns nil if
// they are missing or invalid.
func (r *Reader) Read(at shape.Place) *criteria.Criterion {
	if at.Node == nil {
		return nil
	}
	before := len(r.Report.Found)
	switch at.Node.Kind {
	case doc.Array:
		for i := range at.Node.Items {
			r.readRule(at.Index(i))
		}
	case doc.Object:
		if at.Node.Get("type") != nil {
			r.Report.Errorf(at, shape.CodeType, "wrap the rule in a list: [{...}]", "Field '%s' %s must be a list of rules or a composition with and, or or not, but it is one rule.", at.Name, at.Where)
			return nil
		}
		r.readComposition(at)
	default:
		r.Report.WrongType(at, "a list of rules or a composition with and, or or not")
	}
	if len(r.Report.Found) > before {
		return nil
	}
	read := criteria.Parse(at.Node.Any())
	r.read = append(r.read, placedCriteria{at, read})
	r.reportErrors(at, read.Errors())
	return read
}

// reportErrors reports the errors of package criteria.
func (r *Reader) reportErrors(at shape.Place, diagnostics []criteria.Diagnostic) {
	for _, d := range diagnostics {
		if !d.Warning {
			r.Report.Errorf(at.Below(d.Path), d.Code, d.Fix, "%s (%s %s)", d.Message, at.Name, at.Where)
		}
	}
}

// ReportDeepErrors reports patterns and schemas that do not compile. A definition loads
// with them, because compiling all of them is slow and few are used, so the linter reports
// them. If a definition does not load anyway, they are reported together with its other
// errors.
func (r *Reader) ReportDeepErrors() {
	for _, j := range r.read {
		shallow := j.criteria.Errors()
		r.reportErrors(j.at, slices.DeleteFunc(j.criteria.Diagnostics(), func(d criteria.Diagnostic) bool {
			return slices.Contains(shallow, d)
		}))
	}
}

// Lint reports the diagnostics of package criteria for the step with an ID.
func Lint(report *shape.Report, at shape.Place, c *criteria.Criterion, step string) {
	for _, d := range c.Diagnostics() {
		add := report.Warnf
		if !d.Warning {
			add = report.Errorf
		}
		add(at.Below(d.Path), d.Code, d.Fix, "%s (step '%s')", d.Message, step)
	}
}

// VisitConditions calls visit with the conditions of rules and of the results of tools at
// any depth.
func VisitConditions(at shape.Place, visit func(shape.Place)) {
	visitRules(at, func(rule shape.Place) {
		for _, key := range []string{"condition", "result"} {
			if when := rule.Key(key); when.Node != nil {
				visit(when)
			}
		}
	})
}

// VisitTexts calls visit with each text of a check that may have variables.
func VisitTexts(at shape.Place, visit func(at shape.Place, text string)) {
	visitRules(at, func(rule shape.Place) {
		c := criteria.Parse(rule.Node.Any())
		if c == nil || c.CheckRule == nil {
			return
		}
		for _, t := range c.CheckRule.Texts() {
			visit(rule.Below(t.Path), t.Text)
		}
	})
}

// visitRules calls visit with the rules at any depth.
func visitRules(at shape.Place, visit func(shape.Place)) {
	switch {
	case at.Node == nil:
	case at.Node.Kind == doc.Array:
		for i := range at.Node.Items {
			visitRules(at.Index(i), visit)
		}
	case at.Node.Get("type") != nil:
		visit(at)
	default:
		for _, key := range []string{"and", "or", "not"} {
			visitRules(at.Key(key), visit)
		}
	}
}

// readCriterion reads a rule or a composition.
func (r *Reader) readCriterion(at shape.Place) {
	if at.Node.Kind == doc.Object && at.Node.Get("type") == nil && isComposition(at.Node) {
		r.readComposition(at)
		return
	}
	r.readRule(at)
}

// isComposition reports whether an object has a member of a composition.
func isComposition(n *doc.Node) bool {
	return n.Get("and") != nil || n.Get("or") != nil || n.Get("not") != nil
}

// textTypes are the types of rules over the output.
func textTypes() []string {
	return []string{string(criteria.Contains), string(criteria.Regex), string(criteria.Length), string(criteria.Schema)}
}

// textFields are the fields of rules over the output. Package criteria checks the fields
// that each type needs.
func textFields() []string {
	return []string{"type", "value", "pattern", "flags", "min", "max", "message", "schema", "condition"}
}

// readRule reads one rule.
func (r *Reader) readRule(at shape.Place) {
	where := fmt.Sprintf("in %s %s", at.Name, at.Where)
	if at.Node.Kind != doc.Object {
		r.Report.WrongType(at, "a rule such as {\"type\": \"contains\", \"value\": \"...\", \"message\": \"...\"}")
		return
	}
	at.Where = where
	types := textTypes()
	for _, t := range criteria.CheckTypes() {
		types = append(types, string(t))
	}
	known := textFields()
	switch kind := at.Node.Get("type"); {
	case kind == nil || kind.Kind != doc.String || !slices.Contains(types, kind.Text): // if the type is invalid, the fields of all types are accepted
		for _, t := range criteria.CheckTypes() {
			known = append(known, criteria.CheckFields(t)...)
		}
	case criteria.Type(kind.Text).IsCheck():
		r.readCheck(at, criteria.Type(kind.Text))
		return
	}
	hint := ""
	if isComposition(at.Node) {
		hint = "write validationCriteria as one object with and, or or not, without a list around it"
	}
	r.Report.Closed(at, hint, known)
	r.Report.Require(at, "type")
	if kind := at.Node.Get("type"); kind == nil || slices.Contains(textTypes(), kind.Text) { // a misspelled type may mean a check
		r.Report.Require(at, "message")
	}
	r.Report.Choice(at.Key("type"), shape.CodeEnum, types...)
	for _, key := range textFields() {
		r.readField(at.Key(key), 0)
	}
}

// readCheck reads a rule that the server executes.
func (r *Reader) readCheck(at shape.Place, t criteria.Type) {
	fields := criteria.CheckFields(t)
	r.Report.Closed(at, "", fields)
	required := criteria.RequiredField(t)
	if required != "" {
		r.Report.Require(at, required)
	}
	for _, key := range fields {
		low := 0
		if key == required {
			low = 1
		}
		r.readField(at.Key(key), low)
	}
}

// readField reads a field of a rule. A text or a list must have at least low characters or
// elements.
func (r *Reader) readField(at shape.Place, low int) {
	if at.Node == nil {
		return
	}
	switch at.Name {
	case "min", "max":
		if at.Node.Kind != doc.Number {
			r.Report.WrongType(at, "a number")
		}
	case "exitCode":
		r.readInteger(at, 0, criteria.MaxExitCode)
	case "status":
		r.readInteger(at, criteria.MinStatus, criteria.MaxStatus)
	case "minBytes", "maxBytes":
		r.readInteger(at, 0, math.MaxInt)
	case "exists", "clean", "allowNew":
		r.Report.Flag(at)
	case "argv", "env", "inside", "outside", "paths":
		r.Report.Texts(at, 0, 0)
		if low > 0 {
			r.Report.NotEmpty(at, "add an element, such as "+map[string]string{"argv": `"make"`, "paths": `"**/*_test.go"`}[at.Name])
		}
	case "schema":
		if at.Node.Kind != doc.Object {
			r.Report.WrongType(at, "a JSON schema object")
		}
	case "with", "arguments":
		if r.Report.Open(at) && at.Name == "with" {
			for i := range at.Node.Members {
				r.Report.Text(at.Key(at.Node.Members[i].Key), 0, 0)
			}
		}
	case "condition", "result":
		r.CheckCondition(at)
	default:
		r.Report.Text(at, low, 0)
	}
}

// readInteger reads a whole number from low to high.
func (r *Reader) readInteger(at shape.Place, low, high int) {
	bounds := fmt.Sprintf("a whole number from %d to %d", low, high)
	if high == math.MaxInt {
		bounds = fmt.Sprintf("a whole number of at least %d", low)
	}
	switch n := at.Node; {
	case n.Kind != doc.Number:
		r.Report.WrongType(at, "a number")
	case n.Num != math.Trunc(n.Num) || n.Num < float64(low) || n.Num > float64(high):
		r.Report.Errorf(at, shape.CodeRange, "write "+bounds, "Field '%s' %s must be %s, but it is %s.", at.Name, at.Where, bounds, n.Text)
	}
}

// readComposition reads an object with exactly one of and, or and not.
func (r *Reader) readComposition(at shape.Place) {
	outer := at.Where
	at.Where = fmt.Sprintf("in %s %s", at.Name, at.Where)
	r.Report.Closed(at, "", []string{"and", "or", "not"})
	kinds := 0
	for _, key := range []string{"and", "or", "not"} {
		part := at.Key(key).In(outer)
		if part.Node == nil {
			continue
		}
		kinds++
		part.Name = at.Name + "." + key
		if key == "not" {
			r.readCriterion(part)
			continue
		}
		if !r.Report.Array(part, "a list of criteria") {
			continue
		}
		r.Report.NotEmpty(part, "add a rule, or remove the composition")
		for i := range part.Node.Items {
			r.readCriterion(part.Index(i))
		}
	}
	if kinds != 1 {
		r.Report.Errorf(at, CodeComposition, "write exactly one of: and, or, not; nest them for more", "Field '%s' %s must have exactly one of 'and', 'or' and 'not', but it has %d.", at.Name, outer, kinds)
	}
}
