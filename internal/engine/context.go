package engine

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// The engine's keys of a context. All other keys are variables of the caller or of the
// current loop.
const (
	keyCurrentLoop = "_currentLoop"
	keyLoopState   = "_loopState"
	keyWarnings    = "_warnings"
	keyContextSize = "_contextSize"
)

// keyShadowed is the member of _currentLoop that stores the caller's values of variables
// that the loop's variables hide while the loop runs.
const keyShadowed = "shadowed"

func engineKeys() []string {
	return []string{keyCurrentLoop, keyLoopState, keyWarnings, keyContextSize}
}

// loopHint is the state of one loop as the caller sent it back. It is only a hint: invalid
// values count as absent.
type loopHint struct {
	iteration int
	before    int
	done      bool
	warnings  []string
}

// readLoopState decodes _loopState. It ignores invalid values, and all but the first 10
// warnings of a loop.
func readLoopState(context map[string]any) map[string]loopHint {
	states, _ := context[keyLoopState].(map[string]any)
	out := make(map[string]loopHint, len(states))
	for id, v := range states {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		var e loopHint
		e.iteration, _ = parseCount(m["iteration"])
		e.before, _ = parseCount(m["before"])
		e.done, _ = m["done"].(bool)
		if list, ok := m["warnings"].([]any); ok {
			for _, w := range list[:min(len(list), 10)] {
				if s, ok := w.(string); ok {
					e.warnings = append(e.warnings, s)
				}
			}
		}
		out[id] = e
	}
	return out
}

// callerVars returns the caller's part of a context: without the engine's keys and the
// variables of the current loop, and with the values that the loop shadows. Only this part
// counts against the size limit, so that the engine's keys never make the caller's next
// call too large.
func (p *Program) callerVars(context map[string]any) map[string]any {
	own := make(map[string]any, len(context))
	maps.Copy(own, context)
	for _, k := range engineKeys() {
		delete(own, k)
	}
	current, _ := context[keyCurrentLoop].(map[string]any)
	id, _ := current["loopId"].(string)
	step := p.byID[id]
	if step == nil || step.Loop == nil {
		return own
	}
	shadowed, _ := current[keyShadowed].(map[string]any)
	for _, name := range step.Loop.Variables() {
		delete(own, name)
		if v, ok := shadowed[name]; ok {
			own[name] = v
		}
	}
	return own
}

// buildContext returns the context for the caller: the caller's own variables, the
// variables of the current loop, and the engine's keys.
func (r *replay) buildContext(current *item) map[string]any {
	out := maps.Clone(r.callerVars)
	size := ContextSize(r.callerVars)
	if state := r.encodeLoopState(); len(state) > 0 {
		out[keyLoopState] = state
	}
	if current != nil {
		lp := r.loops[current.step.ID]
		loopVars := roundVars(current.step.Loop, lp.round, lp.list)
		out[keyCurrentLoop] = r.encodeCurrentLoop(current, lp.round, loopVars)
		maps.Copy(out, loopVars)
	}
	if w := r.collectWarnings(size); len(w) > 0 {
		out[keyWarnings] = w
	}
	out[keyContextSize] = float64(size)
	return out
}

// encodeLoopState returns _loopState. It omits a loop without a round, unless the caller
// has reported the loop as done; an omitted loop is evaluated again.
func (r *replay) encodeLoopState() map[string]any {
	states := make(map[string]any)
	for id, lp := range r.loops {
		said := lp.done && (r.done[id] || r.echoed[id].done)
		if lp.round <= 0 && !said {
			continue
		}
		s := map[string]any{"iteration": float64(max(lp.round, 0)), "before": float64(lp.before)}
		if lp.done {
			s["done"] = true
		}
		if len(lp.warnings) > 0 {
			s["warnings"] = compactList(lp.warnings)
		}
		states[id] = s
	}
	return states
}

func (r *replay) collectWarnings(size int) map[string]any {
	out := make(map[string]any)
	loops := make(map[string]any)
	for id, lp := range r.loops {
		if len(lp.warnings) > 0 {
			loops[id] = compactList(lp.warnings)
		}
	}
	if len(loops) > 0 {
		out["loops"] = loops
	}
	if size >= warnContextSize {
		out["contextSize"] = []any{contextNearlyFull(size)}
	}
	return out
}

// encodeCurrentLoop returns _currentLoop: the whole loop in its first round, and only a
// reference to it in later rounds, so that the context stays small.
func (r *replay) encodeCurrentLoop(it *item, round int, loopVars map[string]any) map[string]any {
	l := it.step.Loop
	out := map[string]any{
		"loopId":           it.step.ID,
		"loopType":         string(l.Type),
		"iteration":        float64(round),
		"isFirstIteration": round == 1,
	}
	shadowed := make(map[string]any)
	for name := range loopVars {
		if v, ok := r.callerVars[name]; ok {
			shadowed[name] = v
		}
	}
	if len(shadowed) > 0 {
		out[keyShadowed] = shadowed
	}
	if round == 1 {
		out["loopStep"] = json.RawMessage(it.step.Source.Loop)
		return out
	}
	out["phaseReference"] = map[string]any{
		"loopId":     it.step.ID,
		"phaseTitle": it.step.Title,
		"totalSteps": float64(len(it.body)),
	}
	return out
}

func compactList(list []string) []any {
	return lists.Map(slices.Compact(list), func(s string) any { return s })
}
