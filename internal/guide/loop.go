package guide

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// extent is how far a counting loop goes, read from its variables.
type extent struct {
	// rounds is how many rounds the count or the list allows; while and until
	// have no such bound (-1).
	rounds int
	// list is the list of a forEach loop.
	list []any
	// problem says why the loop cannot begin.
	problem string
}

// extentOf reads the count or the list of a loop.
func extentOf(l *steps.Loop, vars condition.Lookup) extent {
	switch l.Type {
	case steps.LoopFor:
		if l.CountVar == "" {
			return extent{rounds: l.Count}
		}
		v, _ := vars(l.CountVar)
		n, ok := asCount(v)
		if !ok {
			return extent{problem: "Invalid count value for 'for' loop: " + l.CountVar}
		}
		return extent{rounds: n}
	case steps.LoopForEach:
		v, _ := vars(l.Items)
		list, ok := v.([]any)
		if !ok {
			return extent{problem: fmt.Sprintf("Expected array for forEach items '%s', got %s", l.Items, typeName(v))}
		}
		return extent{rounds: len(list), list: list}
	default:
		return extent{rounds: -1}
	}
}

// extentVar names the variable that the extent of a loop is read from, or "".
func extentVar(l *steps.Loop) string {
	switch l.Type {
	case steps.LoopFor:
		return l.CountVar
	case steps.LoopForEach:
		return l.Items
	default:
		return ""
	}
}

// asCount accepts a whole number of rounds, also written as a string.
func asCount(v any) (int, bool) {
	var f float64
	switch n := v.(type) {
	case float64:
		f = n
	case int:
		f = float64(n)
	case json.Number:
		return asCount(n.String())
	case string:
		parsed, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
		if err != nil {
			return 0, false
		}
		f = parsed
	default:
		return 0, false
	}
	if math.IsNaN(f) || f < 0 || f != math.Trunc(f) || f > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}

// typeName names a JSON value the way JavaScript's typeof does, because the
// seed's messages do.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "undefined"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64, int, json.Number:
		return "number"
	default:
		return "object"
	}
}

// roundVars are the variables that a loop provides in a round. round is
// 1-based.
func roundVars(l *steps.Loop, round int, list []any) map[string]any {
	vars := map[string]any{l.IterationVar: float64(round), l.IndexVar: float64(round - 1)}
	if l.Type == steps.LoopForEach && round >= 1 && round <= len(list) {
		vars[l.ItemVar] = list[round-1]
	}
	return vars
}

// loopVarNames are the names that a loop writes.
func loopVarNames(l *steps.Loop) []string {
	if l.Type == steps.LoopForEach {
		return []string{l.IterationVar, l.ItemVar, l.IndexVar}
	}
	return []string{l.IterationVar, l.IndexVar}
}

// over puts the variables of top before those of base.
func over(top map[string]any, base condition.Lookup) condition.Lookup {
	return func(name string) (any, bool) {
		if v, ok := top[name]; ok {
			return v, true
		}
		return base(name)
	}
}

func maximumReached(l *steps.Loop) string {
	return fmt.Sprintf("Maximum iterations (%d) reached", l.MaxIterations)
}
