package expr

import (
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// testStrict compares a value by the rules of phase workflows: equality without conversion,
// order between numbers only, and a missing value is not null. Lists and objects equal
// nothing.
func testStrict(e *Expr, value any, found bool) bool {
	switch e.Op {
	case Equals:
		return found && equalStrict(value, toJSONValue(e.Value))
	case NotEquals:
		return !found || !equalStrict(value, toJSONValue(e.Value))
	case Gt, Gte, Lt, Lte:
		x, ok := value.(float64)
		y, other := toJSONValue(e.Value).(float64)
		return found && ok && other && inOrder(e.Op, x, y)
	case Exists:
		return found && value != nil
	case NotExists:
		return !found || value == nil
	default:
		return false
	}
}

// equalStrict reports whether two nulls, booleans, numbers or texts are equal.
func equalStrict(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		other, ok := b.(bool)
		return ok && a == other
	case float64:
		other, ok := b.(float64)
		return ok && a == other
	case string:
		other, ok := b.(string)
		return ok && a == other
	default:
		return false
	}
}

// Mismatch describes why a Strict comparison cannot compare a value: an order needs two
// numbers, and equality two values of one type, or null. It returns "" if it can. A missing
// value equals nothing, which is no mismatch.
func (e *Expr) Mismatch(value any, found bool) string {
	literal := toJSONValue(e.Value)
	is, want := jsontext.DescribeType(value), jsontext.DescribeType(literal)
	if !found {
		is = "missing"
	}
	switch e.Op {
	case Gt, Gte, Lt, Lte:
		if _, isNumber := value.(float64); found && isNumber && is == want {
			return ""
		}
	case Equals, NotEquals:
		if is == want || !found || value == nil || literal == nil {
			return ""
		}
	default:
		return ""
	}
	return e.String() + ": the value is " + is
}

// Root returns the name of the variable that a dotted path begins with.
func Root(path string) string {
	root, _, _ := strings.Cut(path, ".")
	return root
}

// Path returns the value of the variable with exactly this name, or else the value at a
// dotted path: the name of a variable, then keys of objects and indices of lists; a list
// also has a length. set reports whether the variable was ever set, found whether the path
// leads to a value, which may be null. A member whose key contains a dot cannot be reached.
func (l Lookup) Path(path string) (value any, found, set bool) {
	if l == nil {
		return nil, false, false
	}
	if value, set = l(path); set {
		return toJSONValue(value), true, true
	}
	name, rest, more := strings.Cut(path, ".")
	if !more {
		return nil, false, false
	}
	if value, set = l(name); !set {
		return nil, false, false
	}
	value, found = toJSONValue(value), true
	for more && found {
		name, rest, more = strings.Cut(rest, ".")
		value, found = getMember(value, name)
	}
	return value, found, true
}

// getMember returns a member of a value. It finds only JSON members; the only special name
// is the length of a list.
func getMember(value any, name string) (any, bool) {
	switch value := value.(type) {
	case map[string]any:
		inner, ok := value[name]
		return toJSONValue(inner), ok
	case []any:
		if name == "length" {
			return float64(len(value)), true
		}
		i, err := strconv.Atoi(name)
		// Other spellings, such as 01 and +1, are not indices.
		if err != nil || i < 0 || i >= len(value) || strconv.Itoa(i) != name {
			return nil, false
		}
		return toJSONValue(value[i]), true
	default:
		return nil, false
	}
}

// strictOperators are the operators as phase workflows write them.
func strictOperators() map[string]Op {
	return map[string]Op{
		"==": Equals, "!=": NotEquals, ">": Gt, ">=": Gte, "<": Lt, "<=": Lte,
		"exists": Exists, "notExists": NotExists,
	}
}

// ParseStrict parses a condition of a phase workflow from decoded JSON that was checked
// against the dialect; nil stays nil. An invalid condition never holds, and neither does
// its negation.
func ParseStrict(v any) *Expr {
	if v == nil {
		return nil
	}
	e, ok := parseStrict(v)
	if !ok {
		return &Expr{Op: Never, Mode: Strict}
	}
	return e
}

// parseStrict is like ParseStrict; the bool reports whether the condition is valid.
func parseStrict(v any) (*Expr, bool) {
	object, _ := v.(map[string]any)
	kind, _ := object["type"].(string)
	switch kind {
	case "simple":
		name, _ := object["variable"].(string)
		operator, _ := object["operator"].(string)
		op, ok := strictOperators()[operator]
		e := &Expr{Op: op, Mode: Strict, Var: name, Value: object["value"]}
		if op == Exists || op == NotExists {
			e.Value = nil
		}
		return e, ok && name != ""
	case string(And), string(Or):
		list, ok := object["conditions"].([]any)
		e := &Expr{Op: Op(kind), Mode: Strict, Of: make([]*Expr, 0, len(list))}
		for _, operand := range list {
			part, understood := parseStrict(operand)
			e.Of, ok = append(e.Of, part), ok && understood
		}
		return e, ok
	case string(Not):
		operand, ok := parseStrict(object["condition"])
		return &Expr{Op: Not, Mode: Strict, Of: []*Expr{operand}}, ok
	default:
		return nil, false
	}
}
