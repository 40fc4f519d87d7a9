package expr

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// String describes the condition for people and for the edges of a graph:
//
//	taskComplexity is "Large" and attempts < 3
//
// Values are written as JSON, so that a text is distinct from a number or a keyword.
func (e *Expr) String() string {
	words, _ := e.describe()
	return words
}

// describe returns the description and whether it needs parentheses inside "and" and "or".
func (e *Expr) describe() (string, bool) {
	if e == nil {
		return string(Always), false
	}
	switch e.Op {
	case And:
		return e.describeOperands(Always)
	case Or:
		return e.describeOperands(Never)
	case Not:
		words, _ := e.negatedOperand().describe()
		return "not (" + words + ")", false
	default:
		if e.isComparison() {
			return e.describeComparison(), false
		}
		return string(e.Op), false
	}
}

// describeOperands describes the operands of "and" or "or"; without operands it returns the
// text of empty, which is the value of the condition.
func (e *Expr) describeOperands(empty Op) (string, bool) {
	switch len(e.Of) {
	case 0:
		return string(empty), false
	case 1:
		return e.Of[0].describe()
	}
	parts := make([]string, len(e.Of))
	for i, operand := range e.Of {
		words, compound := operand.describe()
		if compound {
			words = "(" + words + ")"
		}
		parts[i] = words
	}
	return strings.Join(parts, " "+string(e.Op)+" "), true
}

// describeComparison describes one comparison.
func (e *Expr) describeComparison() string {
	name, value := quoteName(e.Var), formatLiteral(e.Value)
	switch e.Op {
	case Truthy:
		return name + " is truthy"
	case Exists:
		return name + " exists"
	case NotExists:
		return name + " does not exist"
	default:
		return name + " " + cmp.Or(operatorWords()[e.Op], string(e.Op)) + " " + value
	}
}

// operatorWords returns the words for operators whose names are not words.
func operatorWords() map[Op]string {
	return map[Op]string{
		Equals: "is", NotEquals: "is not", Gt: ">", Gte: ">=", Lt: "<", Lte: "<=", StartsWith: "starts with", EndsWith: "ends with",
	}
}

// quoteName returns a variable's name, in backquotes unless it is one plain word.
func quoteName(name string) string {
	word := name != ""
	for _, r := range name {
		word = word && (r == '_' || r == '.' || r == '-' || r == '$' ||
			r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	switch name {
	case "and", "or", "not", "is", "exists", "does", "always", "never":
		word = false
	}
	if word {
		return name
	}
	return "`" + strings.ReplaceAll(name, "`", "``") + "`"
}

// formatLiteral writes a value as JSON.
func formatLiteral(v any) string {
	text, err := jsontext.Marshal(toJSONValue(v))
	if err != nil {
		// Only values from Go code, such as NaN, cannot be written as JSON.
		return fmt.Sprint(v)
	}
	return string(text)
}
