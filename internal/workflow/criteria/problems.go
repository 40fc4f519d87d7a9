package criteria

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// Problem is an error or a warning in criteria for their author.
type Problem struct {
	// Path is the JSON pointer to it, relative to the criteria.
	Path string
	// Code names the rule; it is stable.
	Code string
	// Message describes the error, Fix its correction.
	Message string
	Fix     string
	// Warning reports whether the criteria work nevertheless.
	Warning bool
}

// Faults are those of the Problems that keep a definition from loading, in order
// of the document. To find them nothing is compiled and no condition is looked
// at, because every start pays for it: what they leave out is found by Problems,
// and a run that meets it is refused by Check.
func (c *Criterion) Faults() []Problem {
	return c.collectProblems(func(c *Criterion) []Problem {
		if c.unusable != "" {
			return nil
		}
		return slices.DeleteFunc(c.shapeProblems(), func(p Problem) bool { return p.Warning })
	})
}

// Problems are what the author must fix, in order of the document.
func (c *Criterion) Problems() []Problem {
	return c.collectProblems(func(c *Criterion) []Problem {
		var found []Problem
		if c.unusable == "" {
			found = append(c.shapeProblems(), c.deepProblems()...)
		}
		if c.Condition == nil {
			return found
		}
		if value, constant := c.Condition.Constant(); constant && !value {
			found = append(found, Problem{
				Path: "/condition", Code: "criterion-never-applies", Warning: true,
				Message: "the condition never holds, so the rule is never checked",
				Fix:     "mend the condition or remove the rule",
			})
		}
		return found
	})
}

// collectProblems are what Parse and own find wrong with the criterion and its parts.
func (c *Criterion) collectProblems(own func(*Criterion) []Problem) []Problem {
	if c == nil {
		return nil
	}
	found := append(slices.Clip(c.problems), own(c)...)
	for i, part := range c.Of {
		for _, p := range part.collectProblems(own) {
			p.Path = c.pathTo(i) + p.Path
			found = append(found, p)
		}
	}
	return found
}

// pathTo is the JSON pointer from the criterion to one of its parts.
func (c *Criterion) pathTo(part int) string {
	switch c.Type {
	case All:
		return "/" + strconv.Itoa(part)
	case Not:
		return "/" + string(c.Type)
	default:
		return "/" + string(c.Type) + "/" + strconv.Itoa(part)
	}
}

// shapeProblems are those of the criterion itself that its fields show.
func (c *Criterion) shapeProblems() []Problem {
	switch c.Type {
	case Regex:
		return c.flagProblems()
	case Length:
		return c.lengthProblems()
	case And, Or:
		if len(c.Of) == 0 {
			return []Problem{{
				Path: "/" + string(c.Type), Code: "criterion-empty",
				Message: fmt.Sprintf("%q is empty: it %s", c.Type, map[Type]string{And: "accepts everything", Or: "accepts nothing"}[c.Type]),
				Fix:     "add a rule or remove the composition", Warning: c.Type == And,
			}}
		}
	case Contains, Schema, All, Not:
	default:
		return []Problem{{
			Path: "/type", Code: "criterion-type-unknown",
			Message: fmt.Sprintf("Unsupported validation rule type: %s", c.Type),
			Fix:     "use contains, regex, length or schema",
		}}
	}
	return nil
}

// deepProblems are those of the criterion itself that compiling it shows.
func (c *Criterion) deepProblems() []Problem {
	switch c.Type {
	case Regex:
		return c.patternProblems()
	case Schema:
		return c.schemaProblems()
	default:
		return nil
	}
}

// flagProblems are those of a pattern's flags.
func (c *Criterion) flagProblems() []Problem {
	err := pattern.CheckFlags(c.Flags)
	if err == nil {
		return nil
	}
	return []Problem{{
		Path: "/flags", Code: "criterion-flags-invalid",
		Message: fmt.Sprintf("invalid flags %q: %v", c.Flags, err),
		Fix:     "use each of i, m, s, u, g, y at most once",
	}}
}

// patternProblems are those of a pattern whose flags are right.
func (c *Criterion) patternProblems() []Problem {
	if pattern.CheckFlags(c.Flags) != nil {
		return nil
	}
	if _, err := c.compiledPattern(); err != nil {
		return []Problem{{
			Path: "/pattern", Code: "criterion-pattern-invalid",
			Message: fmt.Sprintf("Invalid regex pattern in validationCriteria: %s (%v)", c.Pattern, err),
			Fix:     "mend the pattern; it is a JavaScript regular expression",
		}}
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
		p.Fix = fmt.Sprintf(`remove %s and set "flags": %q`, group, mergeFlags(c.Flags, letters))
	}
	return []Problem{p}
}

// inlineFlags finds a group such as (?i) that sets flags for what follows it.
func inlineFlags(source string) string {
	for i := 0; i < len(source); i++ {
		if source[i] == '\\' {
			i++ // an escaped parenthesis opens no group
			continue
		}
		rest, ok := strings.CutPrefix(source[i:], "(?")
		if !ok {
			continue
		}
		letters := strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz-")
		if len(letters) < len(rest) && strings.HasPrefix(letters, ")") {
			return source[i : len(source)-len(letters)+1]
		}
	}
	return ""
}

// mergeFlags adds letters to flags, each once.
func mergeFlags(flags, letters string) string {
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
			Message: fmt.Sprintf("min is %s; no output is shorter than 0", formatAmount(*c.Min)),
			Fix:     "remove min or make it positive",
		})
	}
	if c.Max != nil && *c.Max < 0 {
		found = append(found, Problem{
			Path: "/max", Code: "criterion-bound-negative",
			Message: fmt.Sprintf("max is %s, which no output can meet", formatAmount(*c.Max)),
			Fix:     "make max positive",
		})
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		found = append(found, Problem{
			Path: "/min", Code: "criterion-bounds-crossed",
			Message: fmt.Sprintf("min %s is above max %s, which no output can meet", formatAmount(*c.Min), formatAmount(*c.Max)),
			Fix:     "exchange min and max",
		})
	}
	return found
}

// schemaProblems are those of a schema.
func (c *Criterion) schemaProblems() []Problem {
	if _, err := c.compiledSchema(); err != nil {
		return []Problem{{
			Path: "/schema", Code: "criterion-schema-invalid",
			Message: fmt.Sprintf("invalid JSON schema in validationCriteria: %v", err),
			Fix:     "mend the schema; draft-07 is assumed, and references outside it are not followed",
		}}
	}
	return nil
}
