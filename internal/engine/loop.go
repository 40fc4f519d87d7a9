package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// loopBounds are the number of rounds and the list of a loop.
type loopBounds struct {
	// rounds is the number of rounds that the count or the list allows, or -1 for while and
	// until.
	rounds int
	// list is the list of a forEach loop.
	list []any
	// reason explains why the loop cannot start, or is empty.
	reason string
}

// resolveBounds reads the count or the list of a loop.
func resolveBounds(l *steps.Loop, vars expr.Lookup) loopBounds {
	switch l.Type {
	case steps.LoopFor:
		if l.CountVar == "" {
			return loopBounds{rounds: l.Count}
		}
		v, _, _ := vars.Path(l.CountVar)
		n, ok := parseCount(v)
		if !ok {
			return loopBounds{reason: "Invalid count value for 'for' loop: " + l.CountVar}
		}
		return loopBounds{rounds: n}
	case steps.LoopForEach:
		v, _, _ := vars.Path(l.Items)
		list, ok := v.([]any)
		if !ok {
			return loopBounds{reason: fmt.Sprintf("Expected array for forEach items '%s', got %s", l.Items, typeName(v))}
		}
		return loopBounds{rounds: len(list), list: list}
	default:
		return loopBounds{rounds: -1}
	}
}

// boundsVar returns the name of the variable that contains the count or the list of a loop,
// or "".
func boundsVar(l *steps.Loop) string {
	switch l.Type {
	case steps.LoopFor:
		return l.CountVar
	case steps.LoopForEach:
		return l.Items
	default:
		return ""
	}
}

// parseCount accepts a whole number of rounds, also as a string.
func parseCount(v any) (int, bool) {
	var f float64
	switch n := v.(type) {
	case float64:
		f = n
	case int:
		f = float64(n)
	case json.Number:
		return parseCount(n.String())
	case string:
		parsed, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
		if err != nil {
			return 0, false
		}
		f = parsed
	default:
		return 0, false
	}
	// NaN does not equal itself.
	if f < 0 || f != math.Trunc(f) || f > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}

// typeName returns the type name that WorkRail's messages use: that of JavaScript's typeof,
// but "undefined" for null.
func typeName(v any) string {
	switch name := jsontext.TypeName(v); name {
	case "null":
		return "undefined"
	case "array":
		return "object"
	default:
		return name
	}
}

// roundVars returns the variables that a loop provides in a round. round is 1-based.
func roundVars(l *steps.Loop, round int, list []any) map[string]any {
	vars := map[string]any{l.IterationVar: float64(round), l.IndexVar: float64(round - 1)}
	if l.Type == steps.LoopForEach && round >= 1 && round <= len(list) {
		vars[l.ItemVar] = list[round-1]
	}
	return vars
}

// overlayVars looks a variable up in top first, then in base.
func overlayVars(top map[string]any, base expr.Lookup) expr.Lookup {
	return func(name string) (any, bool) {
		if v, ok := top[name]; ok {
			return v, true
		}
		return base(name)
	}
}

func maxReachedText(l *steps.Loop) string {
	return fmt.Sprintf("Maximum iterations (%d) reached", l.MaxIterations)
}
