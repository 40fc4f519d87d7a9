package steps

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// lintTemplates checks the placeholders in a step's texts.
func (l *linter) lintTemplates(at shape.Place, step *Step, s scope) {
	l.lintTemplate(at.Key("title"), step.Title, step, s)
	if step.Loop == nil {
		l.lintTemplate(at.Key("prompt"), step.Prompt, step, s)
	}
	l.lintTemplate(at.Key("agentRole"), step.AgentRole, step, s)
	for i, text := range step.Guidance {
		l.lintTemplate(at.Key("guidance").Index(i), text, step, s)
	}
}

// lintTemplate checks the placeholders of one text.
func (l *linter) lintTemplate(at shape.Place, text string, step *Step, s scope) {
	if !strings.Contains(text, "{{") {
		return
	}
	var kept []string
	for _, part := range template.Parse(text) {
		switch {
		case !part.Expr || isQuoted(part.Text):
		case part.Path == nil:
			kept = append(kept, truncateText(part.Text))
		default:
			l.lintTemplateVariable(at, part, step, s)
		}
	}
	if len(kept) == 0 {
		return
	}
	const named = 3
	what, verb := strings.Join(kept[:min(len(kept), named)], ", "), "is not a placeholder and stays"
	if len(kept) > 1 {
		verb = "are not placeholders and stay"
	}
	if len(kept) > named {
		what += fmt.Sprintf(" and %d more", len(kept)-named)
	}
	l.Warnf(at, CodeTemplateExpression, "write a variable: {{name}}, {{a.b[0]}} or {{n + 1}}; have a step compute the value and store it in a variable",
		"%s in %s %s as written: only variables and sums with an integer are filled in.", what, stepSubject(step), verb)
}

// lintTemplateVariable checks that a placeholder's variable is set before the step.
func (l *linter) lintTemplateVariable(at shape.Place, part template.Part, step *Step, s scope) {
	name := part.Path[0]
	if s.hasLoopVariable(name) || strings.HasPrefix(name, "_") {
		return
	}
	switch order := l.mentions.firstMention(name); {
	case order == neverMentioned:
		if l.Once(CodeTemplateUnset + name) {
			l.Warnf(at, CodeTemplateUnset, l.templateFix(name), "%s in %s is not filled in: no text instructs the agent to set '%s'.", truncateText(part.Text), stepSubject(step), name)
		}
	case order > s.order:
		if l.Once(CodeTemplateLate + name) {
			l.Warnf(at, CodeTemplateLate, fmt.Sprintf("explain in an earlier step what '%s' is and when to set it", name),
				"%s in %s is not filled in: the first text that mentions '%s' is in %s, which comes later.", truncateText(part.Text), stepSubject(step), name, l.stepAt(order))
		}
	}
}

// templateFix returns the fix for a placeholder whose variable is never set.
func (l *linter) templateFix(name string) string {
	for i := range l.w.Steps {
		loop := l.w.Steps[i].Loop
		if loop == nil {
			continue
		}
		if slices.Contains([]string{loop.IterationVar, loop.ItemVar, loop.IndexVar}, name) {
			return fmt.Sprintf("use '%s' only in the body of loop '%s', which sets it", name, l.w.Steps[i].ID)
		}
	}
	return l.Suggest(name, l.knownNames(), fmt.Sprintf("explain in an earlier step what '%s' is and when to set it", name))
}

// isQuoted reports whether the braces surround a quoted text, as in diagrams, and not a
// placeholder.
func isQuoted(text string) bool {
	inner := strings.Trim(text, "{} ")
	return inner == "" || inner[0] == '"' || inner[0] == '\''
}

// truncateText truncates a placeholder for a message.
func truncateText(text string) string {
	const limit = 50
	if runeCount(text) > limit {
		return string([]rune(text)[:limit]) + "..."
	}
	return text
}

// lintFunctionUses checks the functions that a step calls and mentions.
func (l *linter) lintFunctionUses(at shape.Place, step *Step, s scope) {
	for i, reference := range step.References {
		name := strings.TrimSuffix(reference, "()")
		if findFunction(s.functions, name) == nil && l.mentions.firstMention(name) > s.order {
			l.Warnf(at.Key("functionReferences").Index(i), CodeReferenceUnknown, "define the function in functionDefinitions, explain it in this or an earlier step, or remove the reference",
				"%s refers to %s, which is not defined, and which no text up to this step explains.", shape.Capital(stepSubject(step)), reference)
		}
	}
	for i, call := range step.Calls {
		f := findFunction(s.functions, call.Name)
		if f == nil || len(f.Parameters) == 0 {
			continue
		}
		for name := range call.Args {
			if !slices.ContainsFunc(f.Parameters, func(p Parameter) bool { return p.Name == name }) {
				args := at.Key("functionCalls").Index(i).Key("args")
				l.Warnf(args.Key(name), CodeArgumentUnknown, l.argumentFix(f, name), "Function '%s' has no parameter '%s' (%s).", f.Name, name, stepSubject(step))
			}
		}
	}
}

// argumentFix returns the fix for an unknown argument.
func (l *linter) argumentFix(f *Function, name string) string {
	names := lists.Map(f.Parameters, func(p Parameter) string { return p.Name })
	return l.Suggest(name, names, "use one of: "+strings.Join(names, ", "))
}

// lintDefinitions checks the function definitions of one level.
func (l *linter) lintDefinitions(at shape.Place, functions []Function) {
	seen := map[string]bool{}
	for i := range functions {
		name := functions[i].Name
		if seen[name] {
			l.Warnf(at.Index(i).Key("name"), CodeFunctionTwice, "keep one of the two definitions", "Function '%s' is defined twice in this list; only the first definition is used.", name)
		}
		seen[name] = true
		if !l.isUsed(name) {
			l.Warnf(at.Index(i).Key("name"), CodeFunctionUnused, fmt.Sprintf("refer to the function with \"functionReferences\": [\"%s()\"], or remove it", name),
				"No step calls or mentions the function '%s'.", name)
		}
	}
}

// isUsed reports whether any step calls or mentions a function.
func (l *linter) isUsed(name string) bool {
	if l.usedFunctions == nil {
		l.usedFunctions = map[string]bool{}
		for i := range l.w.Steps {
			l.markUsed(&l.w.Steps[i])
			if loop := l.w.Steps[i].Loop; loop != nil {
				for j := range loop.Body {
					l.markUsed(&loop.Body[j])
				}
			}
		}
	}
	return l.usedFunctions[name] || l.mentions.firstMention(name) != neverMentioned
}

// markUsed records the functions that a step calls and refers to.
func (l *linter) markUsed(step *Step) {
	for _, reference := range step.References {
		l.usedFunctions[strings.TrimSuffix(reference, "()")] = true
	}
	for _, call := range step.Calls {
		l.usedFunctions[call.Name] = true
	}
}

// isID reports whether the text consists of lower-case letters, digits and hyphens.
func isID(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// toID converts a text to an ID: "My Step_1" becomes "my-step-1".
func toID(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String()[:min(b.Len(), 64)], "-")
}

// semanticVersion is the pattern of https://semver.org.
var semanticVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?` +
		`(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`)
})

// isVersion reports whether the text is a semantic version.
func isVersion(text string) bool { return semanticVersion().MatchString(text) }

// otherNames returns the dialect's names for a synonym.
func otherNames(name string) []string {
	if other := otherName(name); other != "" {
		return []string{other}
	}
	return nil
}

// otherName returns the dialect's name for a synonym, or "".
func otherName(name string) string {
	switch strings.ToLower(name) {
	case "condition", "when", "if":
		return "runCondition"
	case "role", "persona":
		return "agentRole"
	case "validation", "criteria":
		return "validationCriteria"
	case "approver", "approvedby":
		return "approval"
	case "confirm", "requiresconfirmation":
		return "requireConfirmation"
	case "functions":
		return "functionDefinitions"
	case "max", "maxiteration":
		return "maxIterations"
	case "instructions", "text":
		return "prompt"
	case "ne", "neq", "notequals":
		return "not_equals"
	case "eq", "is":
		return "equals"
	case "variable":
		return "var"
	default:
		return ""
	}
}
