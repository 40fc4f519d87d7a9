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

// engineKeys are left out of what counts against the size limit, so that what
// the engine adds can never make the caller's next call too large.
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
		e.before, _ = asCount(m["completedBefore"])
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

// withoutEngineKeys is the caller's own part of a context.
func withoutEngineKeys(context map[string]any) map[string]any {
	own := maps.Clone(context)
	for _, k := range engineKeys() {
		delete(own, k)
	}
	return own
}

// answerContext is the context that goes back to the caller: what came, with
// the loop's variables and the engine's own keys brought up to date.
func (r *replay) answerContext(context map[string]any, current *item) map[string]any {
	out := withoutEngineKeys(context)
	if out == nil {
		out = make(map[string]any)
	}
	size := ContextSize(out)
	if state := r.loopState(); len(state) > 0 {
		out[keyLoopState] = state
	}
	if current != nil {
		lp := r.loops[current.step.ID]
		maps.Copy(out, roundVars(current.step.Loop, lp.round, lp.list))
		out[keyCurrentLoop] = currentLoop(current, lp.round)
	}
	if w := r.warnings(size); len(w) > 0 {
		out[keyWarnings] = w
	}
	out[keyContextSize] = float64(size)
	return out
}

// loopState is _loopState: what the engine needs to go on, and no more.
func (r *replay) loopState() map[string]any {
	states := make(map[string]any)
	for id, lp := range r.loops {
		if lp.round <= 0 && !lp.done {
			continue
		}
		s := map[string]any{"iteration": float64(max(lp.round, 0)), "completedBefore": float64(lp.before)}
		if lp.done {
			s["done"] = true
		} else if lp.list != nil {
			s["index"] = float64(lp.round - 1)
			s["total"] = float64(len(lp.list))
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
func currentLoop(it *item, round int) map[string]any {
	l := it.step.Loop
	out := map[string]any{
		"loopId":           it.step.ID,
		"loopType":         string(l.Type),
		"iteration":        float64(round),
		"isFirstIteration": round == 1,
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
