package steps

import (
	"fmt"
	"math"
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// longLoop is the number of rounds above which a maximum is probably a mistake.
const longLoop = 100

// lintLoop checks the members of a loop that a step does not have.
func (l *linter) lintLoop(at shape.Place, step *Step, s scope) {
	loop, config := step.Loop, at.Key("loop")
	l.lintLoopNumbers(config, step)
	l.lintLoopNames(config, step)
	l.lintTemplate(at.Key("prompt"), step.Prompt, step, l.bodyScope(s.order-1))
	switch loop.Type {
	case LoopWhile, LoopUntil:
		inner := l.bodyScope(s.order - 1)
		l.lintIgnored(config.Key("condition"))
		l.lintLoopCondition(config.Key("condition"), step, inner)
		l.lintReads(config.Key("condition"), loop.Condition, "the condition of "+stepSubject(step), inner, s.order)
	case LoopFor:
		if loop.CountVar != "" {
			l.lintBounds(config.Key("count"), step, loop.CountVar, "the count of "+stepSubject(step), s)
		}
	case LoopForEach:
		l.lintBounds(config.Key("items"), step, loop.Items, "the list of "+stepSubject(step), s)
	}
}

// lintBounds checks the variable that contains the count or the list of a loop. No call can
// set the variable if a loop sets it.
func (l *linter) lintBounds(at shape.Place, step *Step, path, what string, s scope) {
	for i := range l.w.Steps {
		other := l.w.Steps[i].Loop
		if other == nil || !slices.Contains(other.Variables(), expr.Root(path)) {
			continue
		}
		l.Errorf(at, CodeLoopServerVariable, "read the value from another variable, or give the variable of that loop another name",
			"%s never runs: %s is read from '%s', but loop '%s' sets this name for its own rounds, so no other step or call can set it.", shape.Capital(stepSubject(step)), what, path, l.w.Steps[i].ID)
		return
	}
	l.lintRead(at, path, what, scope{}, s.order-1)
}

// lintLoopCondition checks the condition of a while or until loop.
func (l *linter) lintLoopCondition(at shape.Place, step *Step, s scope) {
	loop := step.Loop
	if value, constant := loop.Condition.Constant(); constant {
		if value == (loop.Type == LoopWhile) {
			l.Warnf(at, CodeLoopEndless, "compare a variable that the body sets, or use a for loop",
				"Loop '%s' ends only after %s: its condition is %s true%s.", step.ID, shape.Count(loop.MaxIterations, "round"), alwaysOrNever(value), conditionSuffix(loop.Condition))
		} else {
			l.Warnf(at, CodeLoopNever, "fix the condition, or remove the loop",
				"Loop '%s' never runs: its condition is %s true%s.", step.ID, alwaysOrNever(value), conditionSuffix(loop.Condition))
		}
		return
	}
	names := loop.Condition.Variables()
	if slices.ContainsFunc(names, s.hasLoopVariable) || slices.ContainsFunc(names, func(name string) bool { return bodyMentions(step, name) }) {
		return
	}
	l.Warnf(at, CodeLoopUntouched, "explain in a step of the body when to set "+shape.Quoted(names),
		"No step of the body of loop '%s' mentions %s, so only maxIterations (%d) is sure to end it.", step.ID, shape.Quoted(names), loop.MaxIterations)
}

// alwaysOrNever names the value of a constant condition.
func alwaysOrNever(value bool) string {
	if value {
		return "always"
	}
	return "never"
}

// bodyMentions reports whether a text of the loop or its body mentions the name.
func bodyMentions(step *Step, name string) bool {
	m := mentionIndex{cache: map[string]int{}}
	m.addTexts(0, step.Prompt)
	for i := range step.Loop.Body {
		m.addStep(0, &step.Loop.Body[i])
	}
	return m.firstMentionOf(name) != neverMentioned
}

// lintLoopNumbers checks the count and the maximum.
func (l *linter) lintLoopNumbers(at shape.Place, step *Step) {
	loop := step.Loop
	literal := loop.Type == LoopFor && loop.CountVar == ""
	switch {
	case literal && loop.Count == 0:
		l.Warnf(at.Key("count"), CodeLoopCountZero, "set the number of rounds", "Loop '%s' never runs: its count is 0.", step.ID)
	case literal && loop.MaxIterations < loop.Count:
		l.Warnf(at.Key("maxIterations"), CodeLoopCountBound, fmt.Sprintf("raise maxIterations to %d, or lower the count", loop.Count),
			"Loop '%s' counts to %d but ends after %s, by maxIterations.", step.ID, loop.Count, shape.Count(loop.MaxIterations, "round"))
	case loop.MaxIterations > longLoop && (!literal || loop.Count > longLoop):
		l.Warnf(at.Key("maxIterations"), CodeLoopLong, "choose a value slightly above what a normal run needs", "Loop '%s' may run %d rounds before maxIterations ends it.", step.ID, loop.MaxIterations)
	}
	for _, key := range []string{"count", "maxIterations"} {
		n := at.Key(key)
		if n.Node != nil && n.Node.Kind == doc.Number && n.Node.Num != math.Trunc(n.Node.Num) {
			l.Warnf(n, CodeLoopFraction, "write a whole number", "The %s of loop '%s' is %s; it is rounded up to %.0f.", key, step.ID, n.Node.Text, math.Ceil(n.Node.Num))
		}
	}
}

// lintLoopNames reports a loop variable that has the name of another one, or of the
// variable with the list or the count.
func (l *linter) lintLoopNames(at shape.Place, step *Step) {
	loop := step.Loop
	type named struct{ key, name string }
	names := []named{{"iterationVar", loop.IterationVar}, {"itemVar", loop.ItemVar}, {"indexVar", loop.IndexVar}}
	sources := []named{{"items", loop.Items}, {"count", loop.CountVar}}
	for i, own := range names {
		if loop.Type != LoopForEach && own.key != "iterationVar" && at.Node.Get(own.key) == nil {
			continue
		}
		for _, other := range append(sources, names[:i]...) {
			if own.name != other.name || loop.Type != LoopForEach && other.key == "itemVar" {
				continue
			}
			l.Warnf(at.Key(own.key), CodeLoopVariableClash, "choose another name",
				"In loop '%s' the name '%s' is both its %s and its %s.", step.ID, own.name, other.key, own.key)
		}
	}
}

// lintOutsideReads reports conditions outside a loop that read one of the variables that
// the loop sets, because outside the loop the name has a different meaning or no value.
func (l *linter) lintOutsideReads(steps shape.Place) {
	readers := l.findReaders(steps)
	for i := range l.w.Steps {
		loop := l.w.Steps[i].Loop
		if loop == nil {
			continue
		}
		for _, name := range loop.Variables() {
			for _, reader := range readers[name] {
				if reader != i && l.w.Steps[reader].ID != loop.BodyRef {
					l.reportOutsideRead(steps.Index(reader), &l.w.Steps[reader], name, l.w.Steps[i].ID)
					break
				}
			}
		}
	}
}

// reportOutsideRead reports a step that reads a variable of a loop that does not contain
// the step.
func (l *linter) reportOutsideRead(at shape.Place, step *Step, name, loop string) {
	if !l.Once(CodeLoopVariableReach + name) {
		return
	}
	l.Once(CodeVariableUnset + name)
	l.Once(CodeVariableLate + name)
	l.Warnf(at, CodeLoopVariableReach, "rename one of the two variables",
		"%s reads '%s', which is a variable of loop '%s': inside the loop, the name refers to the loop's variable.", shape.Capital(stepSubject(step)), name, loop)
}

// findReaders returns, for each name, the first three top-level steps with a condition that
// reads the variable. It omits the conditions inside a loop that read the loop's own
// variables. Three steps are enough, because at most two of them can be the loop that sets
// the variable and the step that is its body.
func (l *linter) findReaders(steps shape.Place) map[string][]int {
	const enough = 3
	found := map[string][]int{}
	add := func(i int, paths ...string) {
		for _, path := range paths {
			name := expr.Root(path)
			if have := found[name]; name != "" && len(have) < enough && !slices.Contains(have, i) {
				found[name] = append(have, i)
			}
		}
	}
	for i := range l.w.Steps {
		step := &l.w.Steps[i]
		add(i, step.RunCondition.Variables()...)
		add(i, step.Confirm.Variables()...)
		if step.Loop == nil {
			continue
		}
		inside := step.Loop.Condition.Variables()
		for j := range step.Loop.Body {
			inside = append(inside, step.Loop.Body[j].RunCondition.Variables()...)
			inside = append(inside, step.Loop.Body[j].Confirm.Variables()...)
		}
		own := step.Loop.Variables()
		add(i, slices.DeleteFunc(inside, func(path string) bool { return slices.Contains(own, expr.Root(path)) })...)
	}
	return found
}
