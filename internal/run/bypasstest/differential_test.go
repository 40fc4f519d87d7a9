package bypasstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
)

// TestAStatelessWalkAndARunAgree checks that workflow_next and a run show the same steps
// with the same texts if every variable is set from the beginning (docs/adr/0003,
// docs/rough-edges.md): a run waits for variables and stops at gates, but a stateless walk
// does not. The test excludes loops that share a body, which a list of completed steps
// cannot distinguish, and conditions outside of a loop on its variables, which the caller
// of a stateless walk could set.
func TestAStatelessWalkAndARunAgree(t *testing.T) {
	t.Parallel()
	for name, seed := range testSeeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walks, steps := 0, 0
			for i := range uint64(1500 / raceSlowdown) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				by := reproduction{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, definition %d: ", seed, i)}
				def := drawWith(d, true)
				vars := completeVars(d, def)
				program := engine.Compile(parseDefinition(by, def.marshalDefinition()).Steps)
				shown, ok := walkRun(by, d, def, program, vars)
				if !ok {
					continue
				}
				walks++
				steps += len(shown)
				for _, echo := range []bool{true, false} {
					compareStateless(by, def, program, vars, shown, echo)
				}
			}
			if walks < 600/raceSlowdown || steps < 2400/raceSlowdown {
				t.Errorf("only %d walks with %d steps were compared", walks, steps)
			}
			t.Logf("seed %d: %d walks with %d steps", seed, walks, steps)
		})
	}
}

// completeVars sets every variable, so that loops can begin.
func completeVars(d randomSource, def *definition) map[string]any {
	vars := map[string]any{}
	for _, name := range scalarNames() {
		vars[name] = pickOne(d, scalarValues()...)
	}
	for _, name := range listNames() {
		vars[name] = pickOne(d, listValues()...)
	}
	for _, s := range def.items {
		if s.loop == nil {
			continue
		}
		if name, ok := s.loop.count.(string); ok {
			vars[name] = pickOne[any](d, 0.0, 1.0, 2.0, 3.0, "2")
		}
	}
	return withoutServerVars(vars, def)
}

// walkRun completes a run and returns the steps that it showed. ok is false if no output
// meets the criteria of a step.
func walkRun(t failer, d randomSource, def *definition, program *engine.Program, vars map[string]any) (shown []engine.Position, ok bool) {
	t.Helper()
	e := &flowEngine{program: program}
	if _, refused := e.start(vars); refused != nil {
		t.Fatalf("start: %s", refused.message)
	}
	accepted := []command{{kind: "start", context: vars}}
	for {
		p := positionAfter(def, accepted)
		c := command{kind: "continue", answer: &reply{option: "confirm"}, person: true}
		switch p.kind {
		case "end":
			return shown, true
		case "context":
			t.Fatalf("the run waits for %v at %s", p.needs, p)
		case "step":
			c = command{kind: "continue"}
			c.output, c.checks = validOutput(d, p, nil)
			if len(def.brokenRules(p, c)) > 0 {
				return nil, false
			}
			shown = append(shown, e.look().position)
		}
		if _, refused := e.send(c); refused != nil {
			t.Fatalf("%s is refused: %s", c, refused.message)
		}
		accepted = append(accepted, c)
	}
}

// compareStateless makes a stateless walk and compares its steps with those of the run.
func compareStateless(t failer, def *definition, program *engine.Program, vars map[string]any, shown []engine.Position, echo bool) {
	t.Helper()
	context := vars
	var completed []string
	for i := 0; ; i++ {
		res, err := program.Next(engine.NextRequest{Completed: completed, Context: context})
		if err != nil {
			t.Fatalf("next: %v", err)
		}
		if echo {
			context = res.Context
		}
		if i == len(shown) {
			if res.Step != nil || !res.IsComplete {
				t.Fatalf("the run has ended, but the walk is at %s\nafter %v with %s, echo %v\nof %s", asJSON(res), completed, asJSON(vars), echo, def.marshalDefinition())
			}
			return
		}
		want := shown[i]
		if res.Step == nil || res.Step.ID != want.ID {
			t.Fatalf("the run shows %s, the walk %s\nafter %v with %s, echo %v\nof %s", want.ID, asJSON(res), completed, asJSON(vars), echo, def.marshalDefinition())
		}
		if prompt := withoutCounting(res.Guidance.Prompt); prompt != want.Prompt || res.Step.Title != want.Title {
			t.Fatalf("the run shows %q, the walk %q\nof %s", want.Prompt, prompt, def.marshalDefinition())
		}
		completed = append(completed, want.ID)
	}
}

// withoutCounting removes what only a stateless walk shows: the line that explains how to
// keep the list of completed steps, and the reference to the first round, which the caller
// of a run may not have seen.
func withoutCounting(prompt string) string {
	prompt, _, _ = strings.Cut(prompt, "\n\n## Warnings\n")
	prompt = strings.TrimSuffix(prompt, "\n\n_Note: Refer to the phase overview provided in the first iteration for overall context._")
	lines := slices.DeleteFunc(strings.Split(prompt, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "- When done: append")
	})
	return strings.Join(lines, "\n")
}
