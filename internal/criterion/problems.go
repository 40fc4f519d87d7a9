package criterion

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Problem is what cannot work in criteria, for their author.
type Problem struct {
	// Path is the JSON pointer to it, relative to the criteria.
	Path string
	// Code names the rule; it is stable.
	Code string
	// Message says what is wrong, Fix how to mend it.
	Message string
	Fix     string
	// Warning says that the criteria work nevertheless.
	Warning bool
}

// Problems are what the author must mend, in order of the document.
func (c *Criterion) Problems() []Problem {
	if c == nil {
		return nil
	}
	found := append([]Problem(nil), c.problems...)
	found = append(found, c.ruleProblems()...)
	if value, constant := c.Condition.Constant(); c.Condition != nil && constant && !value {
		found = append(found, Problem{
			Path: "/condition", Code: "criterion-never-applies", Warning: true,
			Message: "the condition never holds, so the rule is never checked",
			Fix:     "mend the condition or remove the rule",
		})
	}
	for i, part := range c.Of {
		prefix := "/" + string(c.Type)
		switch c.Type {
		case All:
			prefix = "/" + strconv.Itoa(i)
		case Not:
		default:
			prefix += "/" + strconv.Itoa(i)
		}
		for _, p := range part.Problems() {
			p.Path = prefix + p.Path
			found = append(found, p)
		}
	}
	return found
}

// ruleProblems are those of the criterion itself.
func (c *Criterion) ruleProblems() []Problem {
	if c.unusable != "" {
		return nil
	}
	switch c.Type {
	case Regex:
		return c.regexProblems()
	case Length:
		return c.lengthProblems()
	case Schema:
		return c.schemaProblems()
	case And, Or:
		if len(c.Of) == 0 {
			return []Problem{{
				Path: "/" + string(c.Type), Code: "criterion-empty",
				Message: fmt.Sprintf("%q is empty: it %s", c.Type, map[Type]string{And: "accepts everything", Or: "accepts nothing"}[c.Type]),
				Fix:     "add a rule or remove the composition", Warning: c.Type == And,
			}}
		}
	case Contains, All, Not:
	default:
		return []Problem{{
			Path: "/type", Code: "criterion-type-unknown",
			Message: fmt.Sprintf("Unsupported validation rule type: %s", c.Type),
			Fix:     "use contains, regex, length or schema",
		}}
	}
	return nil
}

// regexProblems are those of a pattern and its flags.
func (c *Criterion) regexProblems() []Problem {
	if _, err := c.pattern(); err != nil {
		path, code := "/pattern", "criterion-pattern-invalid"
		message := fmt.Sprintf("Invalid regex pattern in validationCriteria: %s (%v)", c.Pattern, err)
		fix := "mend the pattern; it is a JavaScript regular expression"
		if strings.Contains(err.Error(), "flag") && c.Flags != "" {
			path, code = "/flags", "criterion-flags-invalid"
			message = fmt.Sprintf("invalid flags %q: %v", c.Flags, err)
			fix = "use each of i, m, s, u, g, y at most once"
		}
		return []Problem{{Path: path, Code: code, Message: message, Fix: fix}}
	}
	group := inlineFlags(c.Pattern)
	if group == "" {
		return nil
	}
	p := Problem{
		Path: "/pattern", Code: "criterion-inline-flags", Warning: true,
		Message: fmt.Sprintf("the inline flags %s are no JavaScript; they are accepted here, but other tools may refuse them", group),
		Fix:     fmt.Sprintf("remove %s and use the rule's flags instead", group),
	}
	if letters := strings.Trim(group, "(?)"); strings.HasPrefix(c.Pattern, group) && strings.Trim(letters, "ims") == "" {
		p.Fix = fmt.Sprintf(`remove %s and set "flags": %q`, group, merge(c.Flags, letters))
	}
	return []Problem{p}
}

// inlineFlags finds a group such as (?i) that sets flags for what follows it.
func inlineFlags(source string) string {
	// An escaped parenthesis opens no group, so escapes are taken out first.
	escapes := regexp.MustCompile(`\\.`)
	return regexp.MustCompile(`\(\?[a-z-]+\)`).FindString(escapes.ReplaceAllString(source, "  "))
}

// merge adds letters to flags, each once.
func merge(flags, letters string) string {
	for _, r := range letters {
		if !strings.ContainsRune(flags, r) {
			flags += string(r)
		}
	}
	return flags
}

// lengthProblems are those of the bounds.
func (c *Criterion) lengthProblems() []Problem {
	var found []Problem
	if c.Min == nil && c.Max == nil && len(c.problems) == 0 {
		found = append(found, Problem{
			Code: "criterion-field-missing", Warning: true,
			Message: "validation rule of type length has neither min nor max, so it accepts everything",
			Fix:     `add "min" or "max"`,
		})
	}
	if c.Min != nil && *c.Min < 0 {
		found = append(found, Problem{
			Path: "/min", Code: "criterion-bound-negative", Warning: true,
			Message: fmt.Sprintf("min is %s; no output is shorter than 0", amount(*c.Min)),
			Fix:     "remove min or make it positive",
		})
	}
	if c.Max != nil && *c.Max < 0 {
		found = append(found, Problem{
			Path: "/max", Code: "criterion-bound-negative",
			Message: fmt.Sprintf("max is %s, which no output can meet", amount(*c.Max)),
			Fix:     "make max positive",
		})
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		found = append(found, Problem{
			Path: "/min", Code: "criterion-bounds-crossed",
			Message: fmt.Sprintf("min %s is above max %s, which no output can meet", amount(*c.Min), amount(*c.Max)),
			Fix:     "exchange min and max",
		})
	}
	return found
}

// schemaProblems are those of a schema.
func (c *Criterion) schemaProblems() []Problem {
	if _, err := c.validator(); err != nil {
		return []Problem{{
			Path: "/schema", Code: "criterion-schema-invalid",
			Message: fmt.Sprintf("invalid JSON schema in validationCriteria: %v", err),
			Fix:     "mend the schema; draft-07 is assumed, and references outside it are not followed",
		}}
	}
	return nil
}
