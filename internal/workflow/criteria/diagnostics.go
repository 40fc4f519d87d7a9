package criteria

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// Diagnostic is an error or a warning in criteria for their author.
type Diagnostic struct {
	// Path is the JSON pointer of the error, relative to the criteria.
	Path string
	// Code identifies the rule; it is stable.
	Code string
	// Message describes the error, Fix its correction.
	Message string
	Fix     string
	// Warning is set if the criteria are usable nevertheless.
	Warning bool
}

// Errors returns the diagnostics that prevent a definition from loading, in document order.
// It does not compile patterns or schemas and ignores conditions, because it is called for
// every definition at each start. Diagnostics also reports errors in patterns and schemas,
// and Check returns them as its error.
func (c *Criterion) Errors() []Diagnostic {
	found := c.collectDiagnostics(func(c *Criterion) []Diagnostic {
		if c.unusable != "" {
			return nil
		}
		return slices.DeleteFunc(c.shapeDiagnostics(), func(p Diagnostic) bool { return p.Warning })
	})
	return append(found, c.changeDiagnostics()...)
}

// Diagnostics returns all errors and warnings in document order.
func (c *Criterion) Diagnostics() []Diagnostic {
	found := c.collectDiagnostics(func(c *Criterion) []Diagnostic {
		var found []Diagnostic
		if c.unusable == "" {
			found = append(c.shapeDiagnostics(), c.deepDiagnostics()...)
		}
		if c.Condition == nil {
			return found
		}
		if value, constant := c.Condition.Constant(); constant && !value {
			found = append(found, Diagnostic{
				Path: "/condition", Code: "criterion-never-applies", Warning: true,
				Message: "the condition is never true, so the rule is never checked",
				Fix:     "fix the condition or remove the rule",
			})
		}
		return found
	})
	return slices.Concat(found, c.changeDiagnostics(), c.avoidableDiagnostics("", false))
}

// collectDiagnostics returns, for the criterion and all its parts, the diagnostics that
// Parse found and those that the function own returns.
func (c *Criterion) collectDiagnostics(own func(*Criterion) []Diagnostic) []Diagnostic {
	if c == nil {
		return nil
	}
	found := append(slices.Clip(c.diagnostics), own(c)...)
	for i, part := range c.Of {
		for _, p := range part.collectDiagnostics(own) {
			p.Path = c.pathTo(i) + p.Path
			found = append(found, p)
		}
	}
	return found
}

// pathTo returns the JSON pointer from the criterion to one of its parts.
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

// shapeDiagnostics returns the diagnostics of the criterion's fields.
func (c *Criterion) shapeDiagnostics() []Diagnostic {
	switch c.Type {
	case Regex:
		return c.flagDiagnostics()
	case Length:
		return c.lengthDiagnostics()
	case And, Or:
		if len(c.Of) == 0 {
			return []Diagnostic{{
				Path: "/" + string(c.Type), Code: "criterion-empty",
				Message: fmt.Sprintf("%q is empty and %s", c.Type, map[Type]string{And: "accepts everything", Or: "accepts nothing"}[c.Type]),
				Fix:     "add a rule or remove the composition", Warning: c.Type == And,
			}}
		}
	case Contains, Schema, All, Not:
	default:
		if c.Type.IsCheck() {
			return nil // reported by Parse
		}
		return []Diagnostic{{
			Path: "/type", Code: "criterion-type-unknown",
			Message: fmt.Sprintf("Unsupported validation rule type: %s", c.Type),
			Fix:     "use contains, regex, length or schema, or a check: " + joinTypes(CheckTypes()),
		}}
	}
	return nil
}

// deepDiagnostics returns the diagnostics found by compiling the criterion.
func (c *Criterion) deepDiagnostics() []Diagnostic {
	switch c.Type {
	case Regex:
		return c.patternDiagnostics()
	case Schema:
		return c.schemaDiagnostics()
	default:
		if c.CheckRule != nil {
			return c.CheckRule.deepDiagnostics()
		}
		return nil
	}
}

// flagDiagnostics checks the flags of a pattern.
func (c *Criterion) flagDiagnostics() []Diagnostic {
	err := pattern.CheckFlags(c.Flags)
	if err == nil {
		return nil
	}
	return []Diagnostic{{
		Path: "/flags", Code: "criterion-flags-invalid",
		Message: fmt.Sprintf("invalid flags %q: %v", c.Flags, err),
		Fix:     "use each of i, m, s, u, g, y, d at most once",
	}}
}

// patternDiagnostics checks a pattern with valid flags.
func (c *Criterion) patternDiagnostics() []Diagnostic {
	if pattern.CheckFlags(c.Flags) != nil {
		return nil
	}
	if _, err := c.compiledPattern(); err != nil {
		return []Diagnostic{{
			Path: "/pattern", Code: "criterion-pattern-invalid",
			Message: fmt.Sprintf("Invalid regex pattern in validationCriteria: %s (%v)", c.Pattern, err),
			Fix:     "fix the pattern; it is a JavaScript regular expression",
		}}
	}
	group := inlineFlags(c.Pattern)
	if group == "" {
		return nil
	}
	p := Diagnostic{
		Path: "/pattern", Code: "criterion-inline-flags", Warning: true,
		Message: fmt.Sprintf("the inline flags %s are not JavaScript syntax; Guideway accepts them, but other tools may refuse them", group),
		Fix:     fmt.Sprintf("remove %s and use the rule's flags instead", group),
	}
	if letters := strings.Trim(group, "(?)"); strings.HasPrefix(c.Pattern, group) && strings.Trim(letters, "ims") == "" {
		p.Fix = fmt.Sprintf(`remove %s and set "flags": %q`, group, mergeFlags(c.Flags, letters))
	}
	return []Diagnostic{p}
}

// inlineFlags finds a group such as (?i) that sets flags for the rest of the pattern.
func inlineFlags(source string) string {
	for i := 0; i < len(source); i++ {
		if source[i] == '\\' {
			i++ // skip the escaped character: an escaped parenthesis does not open a group
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

// lengthDiagnostics checks the bounds.
func (c *Criterion) lengthDiagnostics() []Diagnostic {
	var found []Diagnostic
	if c.Min == nil && c.Max == nil && len(c.diagnostics) == 0 {
		found = append(found, Diagnostic{
			Code: "criterion-field-missing", Warning: true,
			Message: "a rule of type length has neither min nor max, so it accepts everything",
			Fix:     `add "min" or "max"`,
		})
	}
	if c.Min != nil && *c.Min < 0 {
		found = append(found, Diagnostic{
			Path: "/min", Code: "criterion-bound-negative", Warning: true,
			Message: fmt.Sprintf("min is %s; an output cannot be shorter than 0 characters", formatAmount(*c.Min)),
			Fix:     "remove min, or set it to 0 or more",
		})
	}
	if c.Max != nil && *c.Max < 0 {
		found = append(found, Diagnostic{
			Path: "/max", Code: "criterion-bound-negative",
			Message: fmt.Sprintf("max is %s, which no output can meet", formatAmount(*c.Max)),
			Fix:     "set max to 0 or more",
		})
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		found = append(found, Diagnostic{
			Path: "/min", Code: "criterion-bounds-crossed",
			Message: fmt.Sprintf("min %s is above max %s, which no output can meet", formatAmount(*c.Min), formatAmount(*c.Max)),
			Fix:     "swap min and max",
		})
	}
	return found
}

// schemaDiagnostics checks a schema.
func (c *Criterion) schemaDiagnostics() []Diagnostic {
	if _, err := c.compiledSchema(); err != nil {
		return []Diagnostic{{
			Path: "/schema", Code: "criterion-schema-invalid",
			Message: fmt.Sprintf("invalid JSON schema in validationCriteria: %v", err),
			Fix:     "fix the schema; draft-07 is assumed, and references outside the schema are not followed",
		}}
	}
	return nil
}
