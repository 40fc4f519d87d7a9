package phases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/rules"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/template"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// The codes of the linter. Most diagnostics with these codes are warnings.
const (
	CodeIDForm             = "id-form"
	CodeUnreachable        = "phase-unreachable"
	CodeEndless            = "phase-endless"
	CodeStuck              = "phase-stuck"
	CodeEmptyPhase         = "phase-empty"
	CodeSkipEnds           = "phase-skip-ends"
	CodeSkipsTarget        = "effect-skips-target"
	CodeDefaultTwice       = "default-twice"
	CodeBranchNever        = "branch-never"
	CodeShadowed           = "way-shadowed"
	CodeConditionAlways    = "condition-always"
	CodeConditionNever     = "condition-never"
	CodeConditionIgnored   = "condition-ignored"
	CodeVariableUndeclared = "variable-undeclared"
	CodeVariableUnset      = "variable-unset"
	CodeVariableLate       = "variable-late"
	CodeVariablePath       = "variable-path"
	CodeLoopVariableReach  = "loop-variable-outside"
	CodeLoopVariableClash  = "loop-variable-clash"
	CodeLoopVariableNone   = "loop-variable-missing"
	CodeLoopEmpty          = "loop-empty"
	CodeLoopEndless        = "loop-never-ends"
	CodeLoopNever          = "loop-never-repeats"
	CodeLoopLong           = "loop-long"
	CodeLoopPhases         = "loop-phases-ignored"
	CodeLoopIgnored        = "loop-field-ignored"
	CodeLoopOverType       = "loop-over-type"
	CodeActionIncomplete   = "action-incomplete"
	CodeValidateNever      = "validate-never"
	CodeGuideUnknown       = "guide-unknown"
	CodeValidateStops      = "validate-stops"
	CodeEmptyCycle         = "phase-cycle"
)

// Lint reports valid constructs that are probably mistakes, and as errors the points at
// which every run that reaches them stops. The workflow loads despite these errors, but no
// run of it starts. root provides the positions; without it the diagnostics have only
// pointers. layout lists the existing guides.
func Lint(w *Workflow, root *doc.Node, file string, layout Layout) []guideway.Diagnostic {
	at := shape.Root(root, "workflow")
	numbers := make(map[string]int, len(w.Phases))
	for i := range w.Phases {
		numbers[w.Phases[i].ID] = i
	}
	l := &linter{parser: newParser(file), w: w, layout: layout, graph: newGraph(w, numbers), vars: newVariables(w)}
	l.flow = newValueFlow(l)
	l.lintIDForm(at.Key("id"), w.ID)
	l.lintGraph(at.Key("phases"))
	l.lintSkips(at.Key("phases"))
	for i := range w.Phases {
		l.lintPhase(at.Key("phases").Index(i), &w.Phases[i])
	}
	l.lintEmptyCycles(at.Key("phases"))
	l.lintLateReads(at.Key("phases"))
	l.LintHidden(at)
	return l.Findings(guideway.SeverityWarning)
}

// linter collects warnings and errors.
type linter struct {
	parser
	w      *Workflow
	layout Layout
	graph  *phaseGraph
	vars   *variableIndex
	flow   *valueFlow
	// compared counts the compared pairs of conditions.
	compared int
}

// lintIDForm checks the form of the workflow's id.
func (l *linter) lintIDForm(at shape.Place, id string) {
	if strings.ContainsFunc(id, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}) || strings.HasPrefix(id, ".") {
		l.Warnf(at, CodeIDForm, "use the letters a to z and A to Z, digits, hyphens, underscores and dots, and do not start with a dot",
			"The workflow's id %s is not suitable as the name of a file or a resource.", shape.Quote(id))
	}
}

// lintPhase checks one phase.
func (l *linter) lintPhase(at shape.Place, p *Phase) {
	if len(p.Steps)+len(p.Checkpoints)+len(p.Decisions)+len(p.Loops)+len(p.EntryActions)+len(p.ExitActions) == 0 {
		l.Warnf(at, CodeEmptyPhase, "add a step, or remove the phase", "Phase '%s' is empty.", p.ID)
	}
	l.lintGuide(at.Key("guide"), p.Guide)
	toolpolicy.Lint(&l.Report, at.Key("tools"), p.Tools, "phase '"+p.ID+"'")
	l.lintActions(at.Key("entryActions"), p.EntryActions, "an entry action of phase '"+p.ID+"'", false)
	l.lintSteps(at.Key("steps"), p, p.Steps, "")
	for i := range p.Loops {
		l.lintLoop(at.Key("loops").Index(i), p, &p.Loops[i])
	}
	for i := range p.Checkpoints {
		l.lintCheckpoint(at.Key("checkpoints").Index(i), &p.Checkpoints[i])
	}
	l.lintExits(at, p)
	l.lintActions(at.Key("exitActions"), p.ExitActions, "an exit action of phase '"+p.ID+"'", false)
}

// lintSteps checks steps of a phase; loop is the name of the iteration variable of their
// loop, or "".
func (l *linter) lintSteps(at shape.Place, p *Phase, steps []Step, loop string) {
	for i := range steps {
		one := at.Index(i)
		l.lintCriteria(one.Key("validationCriteria"), &steps[i], loop)
		l.lintGuide(one.Key("guide"), steps[i].Guide)
		toolpolicy.Lint(&l.Report, one.Key("tools"), steps[i].Tools, "step '"+steps[i].ID+"'")
		l.lintActions(one.Key("actions"), steps[i].Actions, "an action of step '"+steps[i].ID+"'", !p.Required || !steps[i].Required)
	}
}

// lintCriteria checks the criteria of a step, and the variables in their conditions and
// checks.
func (l *linter) lintCriteria(at shape.Place, step *Step, loop string) {
	rules.Lint(&l.Report, at, step.Criteria, step.ID)
	rules.VisitConditions(at, func(at shape.Place) {
		if at.Name == "result" { // a condition on the result of a tool reads no variables of the run
			return
		}
		what := fmt.Sprintf("the condition of a rule of step '%s'", step.ID)
		e := expr.ParseStrict(at.Node.Any())
		l.visitComparisons(at, e, func(at shape.Place, leaf *expr.Expr) {
			l.lintRead(at.Key("variable"), leaf.Var, what, loop, false)
		})
		if _, constant := e.Constant(); !constant {
			l.lintConstant(at, e, what)
		}
	})
	rules.VisitTexts(at, func(at shape.Place, text string) {
		for _, part := range template.Parse(text) {
			if part.Path != nil {
				l.lintRead(at, part.Path[0], fmt.Sprintf("a check of step '%s'", step.ID), loop, true)
			}
		}
	})
}

// lintGuide checks that a referenced guide exists.
func (l *linter) lintGuide(at shape.Place, g *Guide) {
	if g == nil || l.layout.Guides == nil || isExternalGuide(g.Path) {
		return
	}
	if _, ok := l.layout.Guide(g.Path); !ok {
		fix := "write the name of a file in the directory 'guides' beside the workflow, or a URL"
		l.Warnf(at.Key("path"), CodeGuideUnknown, l.Guess(g.Path, func() []string { return l.layout.Guides }, fix),
			"There is no guide %s.", shape.Quote(g.Path))
	}
}

// lintCheckpoint checks a checkpoint and the effects of its options.
func (l *linter) lintCheckpoint(at shape.Place, c *Checkpoint) {
	l.lintGuide(at.Key("guide"), c.Guide)
	for i := range c.Options {
		effect := at.Key("options").Index(i).Key("effect")
		e := &c.Options[i].Effect
		what := fmt.Sprintf("option '%s' of checkpoint '%s'", c.Options[i].ID, c.ID)
		for _, set := range e.SetVariable {
			l.lintWrite(effect.Key("setVariable").Key(set.Name), set.Name, what)
		}
		for j, id := range e.SkipPhases {
			if id == e.TransitionTo {
				l.Warnf(effect.Key("skipPhases").Index(j), CodeSkipsTarget, "remove the phase from 'skipPhases', or change 'transitionTo'",
					"%s leads to phase '%s' but also skips it, so the run does not stop there and follows the default transition of the phase.", shape.Capital(what), id)
			}
		}
	}
}

// lintActions checks actions. what is the subject of the diagnostics; canSkip is set if a
// caller can skip the step of the actions.
func (l *linter) lintActions(at shape.Place, actions []Action, what string, canSkip bool) {
	for i := range actions {
		a, one := &actions[i], at.Index(i)
		missing := ""
		switch a.Action {
		case ActionSet:
			switch {
			case a.Target == "":
				missing = "target"
			case !a.HasValue:
				missing = "value"
			}
			if a.Target != "" {
				l.lintWrite(one.Key("target"), a.Target, what)
			}
		case ActionValidate:
			if a.Target == "" && a.Message == "" {
				missing = "target"
			}
			l.lintValidate(one, a, what, canSkip)
		case ActionLog, ActionEmit:
			if a.Message == "" && a.Target == "" && !a.HasValue {
				missing = "message"
			}
		}
		if missing != "" {
			l.Warnf(one, CodeActionIncomplete, fmt.Sprintf("add \"%s\", or remove the action", missing),
				"%s is incomplete: a '%s' action needs '%s'.", shape.Capital(what), a.Action, missing)
		}
	}
}

// The codes of warnings about activities and skills.
const (
	CodeFieldMisspelt   = "field-misspelt"
	CodePhraseTwice     = "recognition-twice"
	CodePhraseEmpty     = "recognition-empty"
	CodeSupportsPrimary = "skill-twice"
)

// LintActivity is like Lint, for an activity.
func LintActivity(a *Activity, root *doc.Node, file string) []guideway.Diagnostic {
	l, at := &linter{parser: newParser(file)}, shape.Root(root, "activity")
	l.lintMisspelled(at, "id", "version", "problem", "recognition", "skills", "outcome", "flow", "context_to_preserve", "usage", "notes", "mandatory_guide")
	seen := map[string]int{}
	for i, phrase := range a.Recognition {
		key := strings.ToLower(strings.Join(strings.Fields(phrase), " "))
		one := at.Key("recognition").Index(i)
		if key == "" {
			l.Warnf(one, CodePhraseEmpty, "write a phrase, or remove the entry", "A phrase of 'recognition' is empty and matches no goal.")
		} else if first, ok := seen[key]; ok {
			l.Warnf(one, CodePhraseTwice, "keep one of the two phrases", "The phrase %s repeats phrase %d.", shape.Quote(phrase), first+1)
		} else {
			seen[key] = i
		}
	}
	names := []string{a.Skills.Primary}
	for i, name := range a.Skills.Supporting {
		if len(names) < shape.MaxNames && slices.Contains(names, name) {
			l.Warnf(at.Key("skills").Key("supporting").Index(i), CodeSupportsPrimary, "remove one of the two entries", "The skill '%s' is listed twice.", name)
		}
		names = append(names, name)
	}
	l.LintHidden(at)
	return l.Findings(guideway.SeverityWarning)
}

// LintSkill is like Lint, for a skill.
func LintSkill(root *doc.Node, file string) []guideway.Diagnostic {
	l := &linter{parser: newParser(file)}
	known := []string{"id", "version", "capability", "description"}
	for _, m := range l.skillMembers() {
		known = append(known, m.key)
	}
	at := shape.Root(root, "skill")
	l.lintMisspelled(at, known...)
	l.LintHidden(at)
	return l.Findings(guideway.SeverityWarning)
}

// lintMisspelled reports members of an open object that resemble a missing known member.
func (l *linter) lintMisspelled(at shape.Place, known ...string) {
	missing := slices.DeleteFunc(slices.Clone(known), func(key string) bool { return at.Node.Get(key) != nil })
	for i := range min(len(at.Node.Members), shape.MaxNames) {
		key := at.Member(i)
		if slices.Contains(known, key.Name) {
			continue
		}
		if guess := spelling.Closest(key.Name, missing); guess != "" {
			l.Warnf(key, CodeFieldMisspelt, fmt.Sprintf("did you mean '%s'?", guess), "The property '%s' is preserved, but has no effect.", key.Name)
		}
	}
}
