package criteria

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// maxSchemaWords is the maximum length of a schema in a description, in bytes. It is large
// enough for most schemas, because the agent needs the complete schema.
const maxSchemaWords = 2000

// Describe describes the criteria for an agent, with one line for each rule of a list: the
// author's message and the requirement.
func (c *Criterion) Describe() []string {
	if c == nil {
		return nil
	}
	if c.Type != All {
		return []string{c.describe()}
	}
	return lists.Map(c.Of, func(part *Criterion) string { return part.describe() })
}

// CheckedLines returns the indexes of the lines of Describe that are about rules with checks.
func (c *Criterion) CheckedLines() (lines []int) {
	if c == nil {
		return nil
	}
	if c.Type != All {
		if len(c.CheckRules()) > 0 {
			lines = []int{0}
		}
		return lines
	}
	for i, part := range c.Of {
		if len(part.CheckRules()) > 0 {
			lines = append(lines, i)
		}
	}
	return lines
}

// String describes the criteria in one line.
func (c *Criterion) String() string {
	if c == nil {
		return "not blank"
	}
	return strings.Join(c.Describe(), "; ")
}

// describe describes a criterion with its message and its condition.
func (c *Criterion) describe() string {
	if c == nil {
		return "anything"
	}
	words := c.describeRule()
	if c.Message != "" {
		words = c.Message + " (" + words + ")"
	}
	if c.Condition != nil {
		words += ", if " + c.Condition.String()
	}
	return words
}

// describeRule describes a rule without its message and condition.
func (c *Criterion) describeRule() string {
	if c.unusable != "" {
		return "unusable: " + c.unusable
	}
	switch c.Type {
	case Contains:
		return fmt.Sprintf("contains %q", c.Value)
	case Regex:
		return "matches /" + c.Pattern + "/" + c.Flags
	case Length:
		return c.describeBounds()
	case Schema:
		return "JSON that fits the schema " + c.schemaWords()
	case All, And:
		return c.joinParts("all of")
	case Or:
		return c.joinParts("at least one of")
	case Not:
		return c.joinParts("not")
	default:
		if c.CheckRule != nil {
			return c.CheckRule.Describe()
		}
		return "unknown rule " + string(c.Type)
	}
}

// joinParts describes the parts of a composition.
func (c *Criterion) joinParts(what string) string {
	parts := lists.Map(c.Of, func(part *Criterion) string { return part.describe() })
	return what + " (" + strings.Join(parts, "; ") + ")"
}

// describeBounds describes the bounds of a length.
func (c *Criterion) describeBounds() string {
	switch {
	case c.Min != nil && c.Max != nil && *c.Min == *c.Max:
		return "exactly " + formatCharacters(*c.Min)
	case c.Min != nil && c.Max != nil:
		return formatAmount(*c.Min) + " to " + formatCharacters(*c.Max)
	case c.Min != nil:
		return "at least " + formatCharacters(*c.Min)
	case c.Max != nil:
		return "at most " + formatCharacters(*c.Max)
	default:
		return "any length"
	}
}

// schemaWords returns the schema as JSON, shortened if necessary.
func (c *Criterion) schemaWords() string {
	text, err := jsontext.Marshal(c.Schema)
	if err != nil {
		return "of the rule"
	}
	words := string(text)
	if len(words) > maxSchemaWords {
		words = strings.ToValidUTF8(words[:maxSchemaWords], "") + "…"
	}
	return words
}

// formatAmount writes a number without an exponent.
func formatAmount(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// formatCharacters formats a number of characters.
func formatCharacters(f float64) string {
	if f == 1 {
		return "1 character"
	}
	return formatAmount(f) + " characters"
}
