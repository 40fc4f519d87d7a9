package phases

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// variableIndex describes the variables of a workflow.
type variableIndex struct {
	declared map[string]*Variable
	// written maps a variable to the distinct values that effects and set actions write to
	// it. It has only one of the lists and objects that are written, because comparisons do
	// not distinguish them.
	written map[string][]any
	// writers maps the name of a variable to the indices of the phases that write it.
	writers map[string][]int
	// loops contains the names of the iteration variables of loops.
	loops map[string]bool
	// asked are the variables that a validate action requires: the run asks the agent for
	// them at that action.
	asked map[string]bool
}

// newVariables indexes the variables of a workflow.
func newVariables(w *Workflow) *variableIndex {
	v := &variableIndex{
		declared: map[string]*Variable{}, written: map[string][]any{}, writers: map[string][]int{}, loops: map[string]bool{}, asked: map[string]bool{},
	}
	for i := range w.Variables {
		v.declared[w.Variables[i].Name] = &w.Variables[i]
	}
	for i := range w.Phases {
		p := &w.Phases[i]
		v.addActions(i, p.EntryActions)
		v.addActions(i, p.ExitActions)
		v.addSteps(i, p.Steps)
		for j := range p.Loops {
			if name := p.Loops[j].Variable; name != "" {
				v.loops[name] = true
			}
			v.addSteps(i, p.Loops[j].Steps)
		}
		for j := range p.Checkpoints {
			for _, option := range p.Checkpoints[j].Options {
				for _, set := range option.Effect.SetVariable {
					v.addWrite(i, set.Name, set.Value)
				}
			}
		}
	}
	return v
}

func (v *variableIndex) addSteps(phase int, steps []Step) {
	for i := range steps {
		v.addActions(phase, steps[i].Actions)
	}
}

func (v *variableIndex) addActions(phase int, actions []Action) {
	for i := range actions {
		switch a := &actions[i]; {
		case a.Action == ActionSet && a.Target != "":
			v.addWrite(phase, a.Target, a.Value)
		case a.Action == ActionValidate:
			v.asked[expr.Root(a.Target)] = true
		}
	}
}

// manyValues is the number of values above which the domain of a variable is treated as
// unknown.
const manyValues = 64

// addWrite records a value that the engine writes to a variable, or to a member of it.
func (v *variableIndex) addWrite(phase int, path string, value any) {
	name := expr.Root(path)
	value = SetPath(nil, path, value)[name]
	if values := v.written[name]; len(values) <= manyValues && !slices.ContainsFunc(values, func(other any) bool { return areAlike(value, other) }) {
		v.written[name] = append(values, value)
	}
	if n := len(v.writers[name]); n == 0 || v.writers[name][n-1] != phase {
		v.writers[name] = append(v.writers[name], phase)
	}
}

// areAlike reports whether no comparison distinguishes two values.
func areAlike(a, b any) bool {
	switch a.(type) {
	case []any:
		_, ok := b.([]any)
		return ok
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// domain describes the possible values at a path. The zero value means unknown.
type domain struct {
	// kind is the type of all values; "" means any. If null is set, null is possible too.
	kind VariableType
	null bool
	// values are all possible values; nil means unknown.
	values []any
	// set reports whether the path always has a value.
	set bool
}

// sampleValues returns values of the domain so that every possible value compares with the
// literals like one of the samples.
func (d domain) sampleValues(literals []any) []any {
	if d.values != nil {
		return d.values
	}
	all, word := []any{nil, true, false, 0.0, []any{}, map[string]any{}}, "~"
	for _, literal := range literals {
		switch literal := literal.(type) {
		case string:
			all = append(all, literal)
			if len(literal) >= len(word) {
				word = literal + "~" // longer than every literal
			}
		case float64:
			all = append(all, literal, math.Nextafter(literal, math.Inf(-1)), math.Nextafter(literal, math.Inf(1)))
		}
	}
	return slices.DeleteFunc(append(all, word), func(value any) bool {
		return d.kind != "" && !d.kind.Fits(value) && (value != nil || !d.null)
	})
}

// domainOf returns the domain of a path. A variable that the engine writes has only the
// written values, and before them its default or null; see Workflow.Owned.
func (v *variableIndex) domainOf(path string) domain {
	root := expr.Root(path)
	declared := v.declared[root]
	if v.loops[root] {
		return domain{}
	}
	if root != path {
		return v.partDomain(declared, path)
	}
	if written, ok := v.written[path]; ok {
		if len(written) > manyValues {
			return domain{set: true}
		}
		values := slices.Clone(written)
		if declared != nil && declared.HasDefault {
			return domain{values: append(values, declared.DefaultValue), set: true}
		}
		return domain{values: append(values, nil), set: true}
	}
	if declared == nil {
		return domain{}
	}
	if declared.HasDefault && declared.DefaultValue == nil {
		return domain{kind: declared.Type, null: true, set: true}
	}
	return domain{kind: declared.Type, set: declared.HasDefault || declared.Required}
}

// partDomain returns the domain of a path into a variable: a scalar has no parts, and a
// list has indices and a length.
func (v *variableIndex) partDomain(declared *Variable, path string) domain {
	if declared == nil {
		return domain{}
	}
	first, _, deeper := strings.Cut(strings.TrimPrefix(path, declared.Name+"."), ".")
	switch {
	case declared.Type == TypeObject, declared.Type == TypeArray && isDigits(first):
		return domain{}
	case declared.Type == TypeArray && first == "length" && !deeper:
		return domain{kind: TypeNumber, set: declared.HasDefault || declared.Required}
	default:
		return domain{values: []any{}}
	}
}

// constantReason returns the reason why a comparison always has the same result, or "" if
// the comparison itself makes the reason obvious.
func (v *variableIndex) constantReason(leaf *expr.Expr) string {
	root := expr.Root(leaf.Var)
	declared := v.declared[root]
	_, number := leaf.Value.(float64)
	orders := slices.Contains([]expr.Op{expr.Gt, expr.Gte, expr.Lt, expr.Lte}, leaf.Op)
	switch written := v.written[leaf.Var]; {
	case orders && !number:
		return "only numbers have an order"
	case v.loops[root] || declared == nil && written == nil:
		return ""
	case root != leaf.Var && declared != nil:
		return fmt.Sprintf("'%s' is %s", root, shape.WithArticle(string(declared.Type)))
	case declared != nil && leaf.Value != nil && !declared.Type.Fits(leaf.Value):
		return fmt.Sprintf("'%s' is %s", root, shape.WithArticle(string(declared.Type)))
	case written != nil:
		return fmt.Sprintf("no answer or action changes '%s', and only the workflow can set it", root)
	case declared.HasDefault:
		return fmt.Sprintf("'%s' has a default", root)
	case declared.Required:
		return fmt.Sprintf("'%s' is required", root)
	default:
		return ""
	}
}
