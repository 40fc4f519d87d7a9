package steps

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/definition/shape"
	"github.com/guideway-dev/guideway/internal/definition/template"
)

// templates looks at the placeholders in a step's texts.
func (l *linter) templates(at shape.Place, step *Step, s scope) {
	l.template(at.Key("title"), step.Title, step, s)
	l.template(at.Key("prompt"), step.Prompt, step, s)
	l.template(at.Key("agentRole"), step.AgentRole, step, s)
	for i, text := range step.Guidance {
		l.template(at.Key("guidance").Index(i), text, step, s)
	}
}

// template looks at the placeholders of one text.
func (l *linter) template(at shape.Place, text string, step *Step, s scope) {
	if !strings.Contains(text, "{{") {
		return
	}
	var kept []string
	for _, part := range template.Parse(text) {
		switch {
		case !part.Expr || isQuoted(part.Text):
		case part.Path == nil:
			kept = append(kept, short(part.Text))
		default:
			l.templateVariable(at, part, step, s)
		}
	}
	if len(kept) == 0 {
		return
	}
	const named = 3
	what, verb := strings.Join(kept[:min(len(kept), named)], ", "), "is no placeholder and stays"
	if len(kept) > 1 {
		verb = "are no placeholders and stay"
	}
	if len(kept) > named {
		what += fmt.Sprintf(" and %d more", len(kept)-named)
	}
	l.Warnf(at, CodeTemplateExpression, "write a variable: {{name}}, {{a.b[0]}} or {{n + 1}}; let a step compute the value and name it",
		"%s in %s %s as written: only variables are filled in, nothing is computed.", what, subject(step), verb)
}

// templateVariable checks that a placeholder's variable is set by then.
func (l *linter) templateVariable(at shape.Place, part template.Part, step *Step, s scope) {
	name := part.Path[0]
	if s.has(name) || strings.HasPrefix(name, "_") {
		return
	}
	switch order := l.mentions.order(name); {
	case order == never:
		if l.Once(CodeTemplateUnset + name) {
			l.Warnf(at, CodeTemplateUnset, l.templateFix(name), "%s in %s is not filled in: no text tells the agent to set '%s'.", short(part.Text), subject(step), name)
		}
	case order > s.order:
		if l.Once(CodeTemplateLate + name) {
			l.Warnf(at, CodeTemplateLate, fmt.Sprintf("say in an earlier step what '%s' is and when to set it", name),
				"%s in %s is not filled in: the first text that mentions '%s' is in %s, after it.", short(part.Text), subject(step), name, l.stepAt(order))
		}
	}
}

// templateFix says how to mend a placeholder of a variable that is never set.
func (l *linter) templateFix(name string) string {
	for i := range l.w.Steps {
		loop := l.w.Steps[i].Loop
		if loop == nil {
			continue
		}
		for _, own := range []string{loop.IterationVar, loop.ItemVar, loop.IndexVar} {
			if own == name {
				return fmt.Sprintf("'%s' is a variable of loop '%s': use it in that loop's body only", name, l.w.Steps[i].ID)
			}
		}
	}
	if guess := l.Closest(name, l.names()); guess != "" {
		return fmt.Sprintf("did you mean '%s'?", guess)
	}
	return fmt.Sprintf("say in an earlier step what '%s' is and when to set it", name)
}

// isQuoted tells braces around a quoted text, as diagrams have them, from a
// placeholder.
func isQuoted(text string) bool {
	inner := strings.Trim(text, "{} ")
	return inner == "" || inner[0] == '"' || inner[0] == '\''
}

// short cuts a placeholder for a message.
func short(text string) string {
	const limit = 50
	if runes(text) > limit {
		return string([]rune(text)[:limit]) + "..."
	}
	return text
}

// uses looks at the functions that a step calls and mentions.
func (l *linter) uses(at shape.Place, step *Step, s scope) {
	for i, reference := range step.References {
		name := strings.TrimSuffix(reference, "()")
		if lookup(s.functions, name) == nil && l.mentions.order(name) > s.order {
			l.Warnf(at.Key("functionReferences").Index(i), CodeReferenceUnknown, "define it in functionDefinitions, or remove the reference",
				"%s refers to %s, which nothing defines or explains.", shape.Capital(subject(step)), reference)
		}
	}
	for i, call := range step.Calls {
		f := lookup(s.functions, call.Name)
		if f == nil || len(f.Parameters) == 0 {
			continue
		}
		for name := range call.Args {
			if !hasParameter(f, name) {
				args := at.Key("functionCalls").Index(i).Key("args")
				l.Warnf(args.Key(name), CodeArgumentUnknown, l.argumentFix(f, name), "Function '%s' has no parameter '%s' (%s).", f.Name, name, subject(step))
			}
		}
	}
}

// hasParameter says whether a function has the parameter.
func hasParameter(f *Function, name string) bool {
	for i := range f.Parameters {
		if f.Parameters[i].Name == name {
			return true
		}
	}
	return false
}

// argumentFix says what a function takes.
func (l *linter) argumentFix(f *Function, name string) string {
	names := make([]string, len(f.Parameters))
	for i := range f.Parameters {
		names[i] = f.Parameters[i].Name
	}
	if guess := l.Closest(name, names); guess != "" {
		return fmt.Sprintf("did you mean '%s'?", guess)
	}
	return "use one of: " + strings.Join(names, ", ")
}

// definitions looks at the functions that one level defines.
func (l *linter) definitions(at shape.Place, functions []Function) {
	seen := map[string]bool{}
	for i := range functions {
		name := functions[i].Name
		if seen[name] {
			l.Warnf(at.Index(i).Key("name"), CodeFunctionTwice, "keep one of the two", "Function '%s' is defined twice here; the first counts.", name)
		}
		seen[name] = true
		if !l.used(name) {
			l.Warnf(at.Index(i).Key("name"), CodeFunctionUnused, fmt.Sprintf("refer to it with \"functionReferences\": [\"%s()\"], or remove it", name),
				"No step calls or mentions the function '%s'.", name)
		}
	}
}

// used says whether any step calls or mentions a function.
func (l *linter) used(name string) bool {
	if l.functions == nil {
		l.functions = map[string]bool{}
		for i := range l.w.Steps {
			l.use(&l.w.Steps[i])
			if loop := l.w.Steps[i].Loop; loop != nil {
				for j := range loop.Body {
					l.use(&loop.Body[j])
				}
			}
		}
	}
	return l.functions[name] || l.mentions.order(name) != never
}

// use notes the functions that a step calls and refers to.
func (l *linter) use(step *Step) {
	for _, reference := range step.References {
		l.functions[strings.TrimSuffix(reference, "()")] = true
	}
	for _, call := range step.Calls {
		l.functions[call.Name] = true
	}
}
