package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
	"pgregory.net/rapid"
)

// variables that random conditions read
var names = []string{"alpha", "beta", "gamma"}

func drawCondition(t *rapid.T, more ...string) any {
	name := rapid.SampledFrom(append(slices.Clone(names), more...)).Draw(t, "var")
	leaf := map[string]any{"var": name}
	switch rapid.IntRange(0, 4).Draw(t, "op") {
	case 0:
		leaf["equals"] = rapid.SampledFrom([]any{"x", 1, true, nil}).Draw(t, "value")
	case 1:
		leaf["not_equals"] = rapid.SampledFrom([]any{"x", 1, true, nil}).Draw(t, "value")
	case 2:
		leaf["lt"] = rapid.IntRange(0, 4).Draw(t, "bound")
	case 3:
		leaf["gte"] = rapid.IntRange(0, 4).Draw(t, "bound")
	}
	switch rapid.IntRange(0, 5).Draw(t, "wrap") {
	case 0:
		return map[string]any{"not": leaf}
	case 1:
		return map[string]any{"or": []any{leaf, map[string]any{"var": rapid.SampledFrom(names).Draw(t, "other")}}}
	default:
		return leaf
	}
}

func drawStep(t *rapid.T, id string, more ...string) map[string]any {
	s := map[string]any{"id": id, "title": id, "prompt": "Do {{alpha}}."}
	if rapid.IntRange(0, 2).Draw(t, "conditional") == 0 {
		s["runCondition"] = drawCondition(t, more...)
	}
	switch rapid.IntRange(0, 5).Draw(t, "confirm") {
	case 0:
		s["requireConfirmation"] = true
	case 1:
		s["requireConfirmation"] = drawCondition(t, more...)
	}
	return s
}

func drawLoop(t *rapid.T, id string) map[string]any {
	config := map[string]any{"maxIterations": rapid.IntRange(1, 4).Draw(t, "max"), "iterationVar": "round"}
	switch kind := rapid.SampledFrom([]string{"for", "forEach", "while", "until"}).Draw(t, "type"); kind {
	case "for":
		config["type"], config["count"] = kind, rapid.SampledFrom([]any{0, 1, 3, "alpha"}).Draw(t, "count")
	case "forEach":
		config["type"], config["items"] = kind, rapid.SampledFrom([]string{"list", "beta"}).Draw(t, "items")
	default:
		config["type"], config["condition"] = kind, drawCondition(t, "round")
	}
	var body []any
	for i := range rapid.IntRange(1, 3).Draw(t, "body") {
		body = append(body, drawStep(t, fmt.Sprintf("%s-b%d", id, i), "round"))
	}
	loop := map[string]any{"id": id, "type": "loop", "title": id, "loop": config, "body": body}
	if rapid.IntRange(0, 3).Draw(t, "confirm") == 0 {
		loop["requireConfirmation"] = true
	}
	return loop
}

func drawProgram(t *rapid.T) *engine.Program {
	var list []any
	for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
		id := fmt.Sprintf("s-%d", i)
		if rapid.Bool().Draw(t, "loop") {
			list = append(list, drawLoop(t, id))
		} else {
			list = append(list, drawStep(t, id))
		}
	}
	text, err := json.Marshal(map[string]any{"id": "random", "name": "R", "description": "r", "version": "1.0.0", "steps": list})
	if err != nil {
		t.Fatal(err)
	}
	def, found := workflow.Parse("random.json", text)
	if def == nil {
		t.Fatalf("%s does not parse: %+v", text, found)
	}
	return engine.Compile(def.Steps)
}

func drawVars(t *rapid.T) map[string]any {
	vars := map[string]any{"list": []any{"a", "b"}[:rapid.IntRange(0, 2).Draw(t, "items")]}
	for _, n := range names {
		if rapid.IntRange(0, 3).Draw(t, "set "+n) > 0 {
			vars[n] = rapid.SampledFrom([]any{"x", "y", 1.0, 3.0, true, nil, []any{"p"}}).Draw(t, n)
		}
	}
	return vars
}

// maxWalkLength exceeds the length of any random program: 5 loops of 4 rounds of 3 steps.
const maxWalkLength = 61

// Every walk ends, for a client that echoes the context and for one that sends only its own
// variables, even if the variables change. Both clients see the same steps as long as the
// variables do not change.
func TestRandomWalksEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		vars := drawVars(t)
		changes := rapid.Bool().Draw(t, "variables change")
		var walks [][]string
		for _, c := range allClients() {
			walks = append(walks, randomWalk(t, p, c, vars, changes))
		}
		if !changes && !slices.Equal(walks[0], walks[1]) {
			t.Fatalf("the walks of the clients differ: %v and %v", walks[0], walks[1])
		}
	})
}

func randomWalk(t *rapid.T, p *engine.Program, c client, vars map[string]any, changes bool) []string {
	own := map[string]any{}
	for k, v := range vars {
		own[k] = v
	}
	context := own
	var ids []string
	for range maxWalkLength {
		res, err := p.Next(engine.NextRequest{Completed: ids, Context: context})
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		if res.Step == nil {
			if res.IsComplete != strings.HasPrefix(res.Guidance.Prompt, "Workflow complete.") {
				t.Fatalf("isComplete %v with %q", res.IsComplete, res.Guidance.Prompt)
			}
			return ids
		}
		ids = append(ids, res.Step.ID)
		context = own
		if c == echo {
			context = res.Context
		}
		if changes {
			for k, v := range drawVars(t) {
				context[k] = v
			}
		}
	}
	t.Fatalf("%s: the walk did not end: %v", c, ids)
	return nil
}

// TestFinishedLoopNeverRepeats checks that, whatever steps a client reports as completed,
// the engine does not panic, never asks for a step of a finished loop again, and keeps the
// loop marked as done.
func TestFinishedLoopNeverRepeats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		all := append(p.StepIDs(), "s-0", "s-1", "s-2", "nope")
		context := drawVars(t)
		finished := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			completed := rapid.SliceOfN(rapid.SampledFrom(all), 1, 12).Draw(t, "completed")
			res, err := p.Next(engine.NextRequest{Completed: completed, Context: context})
			if err != nil {
				t.Fatalf("Next: %v", err)
			}
			states, _ := res.Context["_loopState"].(map[string]any)
			if current, ok := res.Context["_currentLoop"].(map[string]any); ok && finished[current["loopId"].(string)] {
				t.Fatalf("the loop %v runs again", current["loopId"])
			}
			for id := range finished {
				if s, ok := states[id].(map[string]any); !ok || s["done"] != true {
					t.Fatalf("the loop %s is no longer finished: %v", id, states[id])
				}
			}
			for id, s := range states {
				if s.(map[string]any)["done"] == true {
					finished[id] = true
				}
			}
			context = res.Context
		}
	})
}
