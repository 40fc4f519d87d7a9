package bypasstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
)

// workflow_next and a run lead through the same steps in the same words, as long
// as every variable is set from the beginning and stays (docs/adr/0003,
// docs/rough-edges.md): a run waits for variables and holds at gates, the
// stateless walk does neither. Left out are loops with one body, which a list of
// completed steps cannot tell apart, and conditions on the variables of a loop
// outside of it, which in a stateless walk are the caller's to set.
func TestAStatelessWalkAndARunAgree(t *testing.T) {
	t.Parallel()
	for name, seed := range seeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walks, steps := 0, 0
			for i := range uint64(1500 / slow) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				by := told{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, definition %d: ", seed, i)}
				def := draw(d, true)
				vars := settled(d, def)
				program := engine.Compile(parse(by, def.document()).Steps)
				shown, ok := led(by, d, def, program, vars)
				if !ok {
					continue
				}
				walks++
				steps += len(shown)
				for _, echo := range []bool{true, false} {
					agree(by, def, program, vars, shown, echo)
				}
			}
			if walks < 600/slow || steps < 2400/slow {
				t.Errorf("only %d walks with %d steps were compared", walks, steps)
			}
			t.Logf("seed %d: %d walks with %d steps", seed, walks, steps)
		})
	}
}

// settled sets every variable so that loops can begin.
func settled(d dice, def *definition) map[string]any {
	vars := map[string]any{}
	for _, name := range scalarNames() {
		vars[name] = pick(d, scalars()...)
	}
	for _, name := range listNames() {
		vars[name] = pick(d, lists()...)
	}
	for _, s := range def.items {
		if s.loop == nil {
			continue
		}
		if name, ok := s.loop.count.(string); ok {
			vars[name] = pick[any](d, 0.0, 1.0, 2.0, 3.0, "2")
		}
	}
	return without(vars, def)
}

// led walks a run and gives the steps that it has shown; ok is false where no
// output fits a step's criteria.
func led(t failer, d dice, def *definition, program *engine.Program, vars map[string]any) (shown []engine.Position, ok bool) {
	t.Helper()
	e := &flowEngine{program: program}
	if _, refused := e.start(vars); refused != nil {
		t.Fatalf("start: %s", refused.message)
	}
	accepted := []command{{kind: "start", context: vars}}
	for {
		p := whereIs(def, accepted)
		c := command{kind: "continue", answer: &reply{option: "confirm"}, person: true}
		switch p.kind {
		case "end":
			return shown, true
		case "context":
			t.Fatalf("the run waits for %v at %s", p.needs, p)
		case "step":
			c = command{kind: "continue", output: output(d, p, nil)}
			if c.output == "" {
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

// agree walks without a state and compares.
func agree(t failer, def *definition, program *engine.Program, vars map[string]any, shown []engine.Position, echo bool) {
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
				t.Fatalf("the run is over, and the walk is at %s\nafter %v with %s, echo %v\nof %s", asJSON(res), completed, asJSON(vars), echo, def.document())
			}
			return
		}
		want := shown[i]
		if res.Step == nil || res.Step.ID != want.ID {
			t.Fatalf("the run shows %s, the walk %s\nafter %v with %s, echo %v\nof %s", want.ID, asJSON(res), completed, asJSON(vars), echo, def.document())
		}
		if prompt := withoutCounting(res.Guidance.Prompt); prompt != want.Prompt || res.Step.Title != want.Title {
			t.Fatalf("the run says %q, the walk %q\nof %s", want.Prompt, prompt, def.document())
		}
		completed = append(completed, want.ID)
	}
}

// withoutCounting takes out the line that tells a stateless caller how to keep
// its list.
func withoutCounting(prompt string) string {
	lines := slices.DeleteFunc(strings.Split(prompt, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "- When done: append")
	})
	return strings.Join(lines, "\n")
}
