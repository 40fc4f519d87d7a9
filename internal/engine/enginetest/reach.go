package enginetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/engine"
)

// Explorer explores the states that a run can reach by legal calls, breadth first.
type Explorer struct {
	Flow engine.Flow
	// Starts are the contexts to start with.
	Starts []map[string]any
	// Outputs are the outputs to hand in at a step.
	Outputs []string
	// Values returns contexts that set the variable at a path.
	Values func(path string) []map[string]any
	// MaxStates limits the states whose calls are tried.
	MaxStates int
}

// Exploration is the result of an exploration.
type Exploration struct {
	// States counts the states, Ends the ends and DeadEnds the declared dead ends among
	// them; Open counts the states that were not explored.
	States, Ends, DeadEnds, Open int
	// Cycling counts the states from which the run can move but no end is reachable, as in
	// a workflow whose phases lead to each other.
	Cycling int
	// Unmet counts the states that wait at a step with checks of the caller's variables,
	// and from which no tried call leads on. The checks of a step can contradict each
	// other, which neither the linter nor the position reports.
	Unmet int
	// Stuck describes a state that no tried call moves on, that does not declare a dead
	// end, and that Unmet does not count. Escape describes a declared dead end from which
	// an end is reachable. Both are empty if none exists.
	Stuck, Escape string
}

// reachedState is a state with the call that led to it.
type reachedState struct {
	state engine.State
	pos   engine.Position
	// from is the index of the state from which this one was first reached, or -1. before
	// has the indexes of all states from which one call leads to this state.
	from   int
	before []int
	call   string
	open   bool
	// moves is set if some call succeeds at a step or a gate, or leads to another place.
	// Calls that only set variables do not count.
	moves bool
}

// Explore explores the states. From each, legal calls should lead to an end or to a
// position that declares a dead end.
func (x *Explorer) Explore() Exploration {
	var states []*reachedState
	known := map[string]int{}
	add := func(s engine.State, from int, call string) {
		key := stateKey(s)
		i, ok := known[key]
		if !ok {
			i = len(states)
			known[key] = i
			states = append(states, &reachedState{state: s, pos: x.Flow.PositionOf(s), from: from, call: call})
		}
		if from >= 0 {
			states[i].before = append(states[i].before, from)
			waits := states[from].pos.Kind == engine.PositionContext
			states[from].moves = states[from].moves || !waits || placeKey(states[from].state) != placeKey(s)
		}
	}
	for _, vars := range x.Starts {
		if s, ok := x.tryCommand(engine.State{}, engine.Command{Start: &engine.Start{Context: vars}}); ok {
			add(s, -1, "start "+toJSON(vars))
		}
	}
	for i := 0; i < len(states); i++ {
		at := states[i]
		if at.state.Ended != "" {
			continue
		}
		if at.open = i >= x.MaxStates; at.open {
			continue
		}
		for _, c := range x.listCalls(&at.pos) {
			if s, ok := x.tryCommand(at.state, engine.Command{Continue: &c}); ok {
				add(s, i, toJSON(c))
			}
		}
	}
	return judgeStates(states)
}

// tryCommand returns the state after a command; ok is false if it is refused.
func (x *Explorer) tryCommand(s engine.State, c engine.Command) (engine.State, bool) {
	events, refusal := x.Flow.Decide(s, c)
	if refusal != nil {
		return s, false
	}
	for _, e := range events {
		s = engine.Apply(s, e)
	}
	return s, true
}

// listCalls returns calls for a position; some may be refused.
func (x *Explorer) listCalls(pos *engine.Position) []engine.Continue {
	var calls []engine.Continue
	switch pos.Kind {
	case engine.PositionGate:
		for _, o := range pos.Options {
			calls = append(calls, engine.Continue{Answer: &engine.Answer{OptionID: o.ID}, Person: true})
		}
		return append(calls, engine.Continue{Answer: &engine.Answer{Decline: true}, Person: true})
	case engine.PositionStep:
		contexts := append([]map[string]any{nil}, x.combine(pos.Sets)...)
		for _, output := range x.Outputs {
			for _, vars := range contexts {
				calls = append(calls, engine.Continue{Output: output, Notes: "noted", Context: vars})
			}
		}
		return append(calls, engine.Continue{Skip: &engine.Skip{Reason: "not needed"}})
	default:
		for _, vars := range x.combine(pos.Needs) {
			calls = append(calls, engine.Continue{Context: vars})
		}
		return calls
	}
}

// maxContexts limits the contexts that are tried at a position.
const maxContexts = 100

// combine returns contexts that set the needed variables: each alone, and all together.
func (x *Explorer) combine(needs []engine.Need) []map[string]any {
	var contexts []map[string]any
	together := []map[string]any{{}}
	for _, n := range needs {
		values := x.Values(n.Variable)
		contexts = append(contexts, values...)
		var longer []map[string]any
		for _, vars := range together {
			for _, more := range values {
				if len(longer) < maxContexts {
					longer = append(longer, mergeContexts(vars, more))
				}
			}
		}
		together = longer
	}
	if len(needs) > 1 {
		contexts = append(contexts, together...)
	}
	return contexts
}

// mergeContexts returns the variables of both contexts, with the members of their objects.
func mergeContexts(a, b map[string]any) map[string]any {
	out := make(map[string]any, len(a)+len(b))
	for name, v := range a {
		out[name] = v
	}
	for name, v := range b {
		mine, isObject := out[name].(map[string]any)
		if theirs, ok := v.(map[string]any); ok && isObject {
			v = mergeContexts(mine, theirs)
		}
		out[name] = v
	}
	return out
}

// judgeStates finds states from which no end and no declared dead end is reachable.
func judgeStates(states []*reachedState) Exploration {
	result := Exploration{States: len(states)}
	var ends, fine []int
	for i, at := range states {
		switch {
		case at.state.Ended == engine.StatusCompleted:
			result.Ends++
			ends = append(ends, i)
		case at.open:
			result.Open++
			fine = append(fine, i)
		case at.pos.DeadEnd:
			result.DeadEnds++
			fine = append(fine, i)
		}
	}
	ended, good := markBefore(states, ends), markBefore(states, append(fine, ends...))
	for i, at := range states {
		if !good[i] && (at.moves || strings.HasPrefix(at.pos.Message, "The phases form a cycle")) {
			result.Cycling++
		} else if !good[i] && at.pos.Kind == engine.PositionStep && len(at.pos.Sets) > 0 {
			result.Unmet++
		} else if !good[i] && result.Stuck == "" {
			result.Stuck = describeState(states, i)
		}
		if at.pos.DeadEnd && ended[i] && result.Escape == "" {
			result.Escape = describeState(states, i)
		}
	}
	return result
}

// markBefore marks the states from which one of the targets is reachable.
func markBefore(states []*reachedState, targets []int) []bool {
	marked := make([]bool, len(states))
	queue := slices.Clone(targets)
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if !marked[i] {
			marked[i] = true
			queue = append(queue, states[i].before...)
		}
	}
	return marked
}

// describeState returns a position and the calls that led to it.
func describeState(states []*reachedState, i int) string {
	var calls []string
	for at := i; at >= 0; at = states[at].from {
		calls = append(calls, states[at].call)
	}
	slices.Reverse(calls)
	return fmt.Sprintf("%s\nwith %s\nafter\n%s", toJSON(states[i].pos), toJSON(states[i].state.Vars), strings.Join(calls, "\n"))
}

// stateKey returns a text that is equal for two states from which the same calls lead to
// the same states.
func stateKey(s engine.State) string {
	s.Seq, s.Steps, s.Rest = 0, 0, nil
	return toJSON(s)
}

// placeKey returns a text that is equal for states with the same place.
func placeKey(s engine.State) string {
	s.Vars = nil
	return stateKey(s)
}

func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
