package guide

import (
	"encoding/json"
	"maps"
	"slices"
)

// The keys that the engine writes into a context. Everything else in it is the
// caller's and comes back as it was.
const (
	keyCurrentLoop = "_currentLoop"
	keyLoopState   = "_loopState"
	keyWarnings    = "_warnings"
	keyContextSize = "_contextSize"
)

// keyShadowed, in _currentLoop, keeps the caller's values of variables that the
// loop's hide while it is under way.
const keyShadowed = "shadowed"

func engineKeys() []string {
	return []string{keyCurrentLoop, keyLoopState, keyWarnings, keyContextSize}
}

// echoedLoop is the state of one loop as the caller sent it back. It is only
// ever a hint: whatever is odd about it counts as absent.
type echoedLoop struct {
	iteration int
	before    int
	done      bool
	warnings  []string
}

// readLoopState reads _loopState defensively.
func readLoopState(context map[string]any) map[string]echoedLoop {
	states, _ := context[keyLoopState].(map[string]any)
	out := make(map[string]echoedLoop, len(states))
	for id, v := range states {
		m, ok := v.(map[string]any)
		if !ok {
			continue
		}
		var e echoedLoop
		e.iteration, _ = asCount(m["iteration"])
		e.before, _ = asCount(m["before"])
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

// ownVariables is the caller's own part of a context: without the engine's keys
// and without what the loop that the context is in has put there, and with what
// the loop has hidden. Only this counts against the size limit, so what the
// engine adds can never make the caller's next call too large.
func (p *Program) ownVariables(context map[string]any) map[string]any {
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
	for _, name := range loopVarNames(step.Loop) {
		delete(own, name)
		if v, ok := shadowed[name]; ok {
			own[name] = v
		}
	}
	return own
}

// answerContext is the context that goes back to the caller: its own variables,
// those of the loop that it is in, and the engine's keys.
func (r *replay) answerContext(current *item) map[string]any {
	out := maps.Clone(r.own)
	size := ContextSize(r.own)
	if state := r.loopState(); len(state) > 0 {
		out[keyLoopState] = state
	}
	if current != nil {
		lp := r.loops[current.step.ID]
		loopVars := roundVars(current.step.Loop, lp.round, lp.list)
		out[keyCurrentLoop] = r.currentLoop(current, lp.round, loopVars)
		maps.Copy(out, loopVars)
	}
	if w := r.warnings(size); len(w) > 0 {
		out[keyWarnings] = w
	}
	out[keyContextSize] = float64(size)
	return out
}

// loopState is _loopState: what the engine needs to go on, and no more. A loop
// that was passed over without a round is not in it: it is looked at anew.
func (r *replay) loopState() map[string]any {
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
			s["warnings"] = anyList(lp.warnings)
		}
		states[id] = s
	}
	return states
}

func (r *replay) warnings(size int) map[string]any {
	out := make(map[string]any)
	loops := make(map[string]any)
	for id, lp := range r.loops {
		if len(lp.warnings) > 0 {
			loops[id] = anyList(lp.warnings)
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

// currentLoop is _currentLoop: the whole loop in its first round, and a
// reference to it from the second on (seed 000, "Loop Optimization Flow").
func (r *replay) currentLoop(it *item, round int, loopVars map[string]any) map[string]any {
	l := it.step.Loop
	out := map[string]any{
		"loopId":           it.step.ID,
		"loopType":         string(l.Type),
		"iteration":        float64(round),
		"isFirstIteration": round == 1,
	}
	shadowed := make(map[string]any)
	for name := range loopVars {
		if v, ok := r.own[name]; ok {
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

func anyList(list []string) []any {
	out := make([]any, 0, len(list))
	for _, s := range slices.Compact(list) {
		out = append(out, s)
	}
	return out
}
