package criteria

import (
	"fmt"
	"sync"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// Parse parses validationCriteria from decoded JSON: a list of rules, one rule, a
// composition, or a bare text, which is a regex (WorkRail's legacy form). It returns nil
// for null, an empty text or an empty list. It never fails: Check refuses invalid criteria
// and Diagnostics explains them.
func Parse(v any) *Criterion {
	switch value := v.(type) {
	case nil:
		return nil
	case string:
		if value == "" {
			return nil
		}
		c := &Criterion{Type: Regex, Pattern: value}
		c.prepareCompile()
		return c
	case []any:
		if len(value) == 0 {
			return nil
		}
		return &Criterion{Type: All, Of: parseParts(value)}
	case map[string]any:
		return parseObject(value)
	default:
		return newUnusable("", "criterion-not-understood",
			fmt.Sprintf("validation criteria must be a list, an object or a string, not %s", jsontext.DescribeType(v)),
			`write a list of rules, or one object with "and", "or" or "not"`)
	}
}

// parseParts parses the elements of a list. An empty element is unusable.
func parseParts(list []any) []*Criterion {
	return lists.Map(list, parsePart)
}

// parsePart parses a criterion that is part of another criterion.
func parsePart(v any) *Criterion {
	if c := Parse(v); c != nil {
		return c
	}
	return newUnusable("", "criterion-not-understood",
		fmt.Sprintf("%s is not a validation rule", jsontext.DescribeType(v)),
		`give an object with "type" and "message"`)
}

// parseObject parses a rule, which has a type, or a composition.
func parseObject(object map[string]any) *Criterion {
	if _, ok := object["type"]; ok {
		return parseRule(object)
	}
	for _, t := range []Type{And, Or} {
		value, ok := object[string(t)]
		if !ok {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			return newUnusable("/"+string(t), "criterion-not-understood",
				fmt.Sprintf("%q must be a list of criteria, not %s", t, jsontext.DescribeType(value)),
				"put the criteria into a list")
		}
		return &Criterion{Type: t, Of: parseParts(list)}
	}
	if value, ok := object[string(Not)]; ok {
		return &Criterion{Type: Not, Of: []*Criterion{parsePart(value)}}
	}
	return newUnusable("", "criterion-not-understood",
		"a validation criterion has neither a type nor and, or or not",
		`give a rule a "type": contains, regex, length or schema, or a check: `+joinTypes(CheckTypes()))
}

// parseRule parses a rule. Fields of the wrong type count as missing.
func parseRule(object map[string]any) *Criterion {
	c := &Criterion{Condition: parseCondition(object["condition"])}
	if name, ok := object["type"].(string); ok {
		c.Type = Type(name)
	} else {
		c.Type = Type(jsontext.DescribeType(object["type"]))
	}
	c.Message, _ = readField[string](c, object, "message")
	switch c.Type {
	case Contains:
		var ok bool
		if c.Value, ok = readField[string](c, object, "value"); !ok {
			c.addMissingField("value", "the text that the output must contain")
		}
	case Regex:
		var ok bool
		if c.Pattern, ok = readField[string](c, object, "pattern"); !ok {
			c.addMissingField("pattern", "the regular expression that the output must match")
		}
		c.Flags, _ = readField[string](c, object, "flags")
	case Length:
		c.Min, c.Max = readBound(c, object, "min"), readBound(c, object, "max")
	case Schema:
		var ok bool
		if c.Schema, ok = readField[map[string]any](c, object, "schema"); !ok {
			c.addMissingField("schema", "the JSON schema that the output must fit")
		}
	default:
		if c.Type.IsCheck() {
			parseCheck(c, object)
		}
	}
	c.prepareCompile()
	return c
}

// readField reads an optional field and records a wrong type.
func readField[T any](c *Criterion, object map[string]any, name string) (T, bool) {
	var none T
	value, ok := object[name]
	if !ok || value == nil {
		return none, false
	}
	typed, ok := value.(T)
	if !ok {
		c.diagnostics = append(c.diagnostics, Diagnostic{
			Path:    "/" + name,
			Code:    "criterion-field-type",
			Message: fmt.Sprintf("%q must be %s, not %s", name, jsontext.DescribeType(none), jsontext.DescribeType(value)),
			Fix:     fmt.Sprintf("write %q as %s", name, jsontext.DescribeType(none)),
		})
	}
	return typed, ok
}

// readBound reads a bound of a length rule. Go callers may give an int.
func readBound(c *Criterion, object map[string]any, name string) *float64 {
	if n, ok := object[name].(int); ok {
		f := float64(n)
		return &f
	}
	if f, ok := readField[float64](c, object, name); ok {
		return &f
	}
	return nil
}

// addMissingField records that a rule lacks a required field.
func (c *Criterion) addMissingField(name, what string) {
	c.unusable = fmt.Sprintf("a rule of type %s has no %s", c.Type, name)
	for _, p := range c.diagnostics {
		if p.Path == "/"+name {
			return
		}
	}
	c.diagnostics = append(c.diagnostics, Diagnostic{
		Code:    "criterion-field-missing",
		Message: c.unusable,
		Fix:     fmt.Sprintf("add %q: %s", name, what),
	})
}

// newUnusable returns a criterion that cannot be checked.
func newUnusable(path, code, message, fix string) *Criterion {
	return &Criterion{
		unusable:    message,
		diagnostics: []Diagnostic{{Path: path, Code: code, Message: message, Fix: fix}},
	}
}

// prepareCompile makes the pattern or schema compile once, on first use.
func (c *Criterion) prepareCompile() {
	switch c.Type {
	case Regex:
		source, flags := c.Pattern, c.Flags
		c.compiled = sync.OnceValues(func() (*pattern.Pattern, error) {
			return pattern.Compile(source, flags)
		})
	case Schema:
		document := c.Schema
		c.schema = sync.OnceValues(func() (*schema, error) {
			return compileSchema(document)
		})
	}
}
