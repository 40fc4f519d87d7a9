package bypasstest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/workflows"
)

// formFiller returns the value that an adversary puts into a field of the call suggested at
// a position, or nil to omit the field.
type formFiller func(pos engine.Position, f engine.Field) any

// adversaries returns the ways to fill in a form without doing the work.
func adversaries() map[string]formFiller {
	fillers := map[string]formFiller{
		"the call unchanged":  func(engine.Position, engine.Field) any { return nil },
		"the descriptions":    func(_ engine.Position, f engine.Field) any { return f.Description },
		"the criteria":        echoCriteria,
		"plausible sentences": fillPlausibly("I completed this step as requested. All tests pass and everything looks good to me."),
		"long filler":         fillPlausibly(strings.Repeat("The work for this step is complete, it was checked carefully, and there are no open questions. ", 12)),
	}
	for _, text := range []string{"...", "…", "<output>", "TODO", "`...`"} {
		fillers["the placeholder "+text] = func(engine.Position, engine.Field) any { return text }
	}
	return fillers
}

// echoCriteria fills in the first criterion of the position, and a placeholder where there
// is none.
func echoCriteria(pos engine.Position, _ engine.Field) any {
	if len(pos.Criteria) == 0 {
		return "..."
	}
	return pos.Criteria[0]
}

// fillPlausibly fills in the first choice, a value of the type, or the text.
func fillPlausibly(text string) formFiller {
	return func(_ engine.Position, f engine.Field) any {
		if len(f.Choices) > 0 {
			return f.Choices[0]
		}
		if v := map[string]any{"number": 1, "boolean": true, "array": []any{text}, "object": map[string]any{"about": text}}[f.Type]; v != nil {
			return v
		}
		return text
	}
}

// fillForm returns the request of a suggested call.
func fillForm(pos engine.Position, next *run.Call, fill formFiller) run.ContinueRequest {
	r := run.ContinueRequest{Handle: next.Arguments["handle"].(string)}
	for _, f := range next.Fields {
		v := fill(pos, f)
		if v == nil || f.Optional {
			continue
		}
		name, rest, _ := strings.Cut(f.Name, ".")
		switch name {
		case "output":
			r.Output = fmt.Sprint(v)
		case "notes":
			r.Notes = fmt.Sprint(v)
		case "answer":
			r.Answer = &engine.Answer{OptionID: fmt.Sprint(v)}
		case "context":
			if r.Context == nil {
				r.Context = map[string]any{}
			}
			r.Context[rest] = v
		}
	}
	return r
}

// followForms makes the suggested calls of a run, up to a number of them, filled in by an
// adversary. check is called with each position and the error of its call.
func followForms(t *testing.T, s *service, fill formFiller, check func(pos engine.Position, err error)) {
	t.Helper()
	for range 60 {
		pos, next := s.answer.Position, s.answer.Next
		switch {
		case pos.Kind == engine.PositionEnd, pos.Person:
			if next != nil {
				t.Fatalf("at %s %q, the suggested call is one that no agent can make: %+v", pos.Kind, pos.ID, next)
			}
			return
		case next == nil:
			t.Fatalf("at %s %q, no call is suggested", pos.Kind, pos.ID)
		case next.Tool == "workflow_fork":
			return // the run is at a dead end
		}
		if len(next.Arguments) != 1 || !slices.ContainsFunc(next.Fields, func(f engine.Field) bool { return !f.Optional }) {
			t.Fatalf("at %s %q, the suggested call has no fields to fill in: %+v", pos.Kind, pos.ID, next)
		}
		a, err := s.Continue(s.ctx, s.agentCaller(), fillForm(pos, next, fill))
		check(pos, err)
		if err != nil {
			r, ok := run.AsRefusal(err)
			if !ok || r.Next == nil || r.Next.Tool != "workflow_continue" || len(r.Next.Fields) == 0 {
				t.Fatalf("at %s %q, the refusal %v suggests no call with fields: %+v", pos.Kind, pos.ID, err, r)
			}
			return
		}
		s.answer = a
	}
}

// TestBundledWorkflowsResistForms lets each adversary follow the suggested calls of each
// bundled workflow. Only plausible text may advance a run, and no adversary passes the
// criteria of a step in a step workflow.
func TestBundledWorkflowsResistForms(t *testing.T) {
	t.Parallel()
	c := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS()}), catalog.Options{})
	if err := c.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	entries := c.Snapshot().List(catalog.Filter{})
	if len(entries) < 5 {
		t.Fatalf("%d bundled workflows, want at least 5", len(entries))
	}
	for _, e := range entries {
		for name, fill := range adversaries() {
			t.Run(e.ID+"/"+name, func(t *testing.T) {
				t.Parallel()
				entry, err := c.Get(e.ID)
				if err != nil {
					t.Fatal(err)
				}
				s := newService(t.Context(), t, seeded{rand.New(rand.NewPCG(fixedSeed, 0))}, entry.Definition, false)
				if s.answer, err = s.Start(s.ctx, s.agentCaller(), run.StartRequest{WorkflowID: e.ID}); err != nil {
					t.Fatal(err)
				}
				followForms(t, s, fill, func(pos engine.Position, err error) { checkFiller(t, name, pos, err) })
			})
		}
	}
}

// checkFiller fails the test if an adversary without plausible text advances the run, or if
// any adversary passes the criteria of a step in a step workflow.
func checkFiller(t *testing.T, name string, pos engine.Position, err error) {
	t.Helper()
	if err != nil {
		return
	}
	if !strings.Contains(name, "plausible") && !strings.Contains(name, "filler") {
		t.Errorf("%s advances the run at %s %q", name, pos.Kind, pos.ID)
	}
	if pos.Kind == engine.PositionStep && slices.ContainsFunc(pos.Criteria, func(text string) bool {
		return !strings.HasPrefix(text, "In context: ") && !strings.HasPrefix(text, "Describe in notes: ") && pos.Phase == nil
	}) {
		t.Errorf("%s passes the criteria of step %q: %q", name, pos.ID, pos.Criteria)
	}
}

// TestGeneratedWorkflowsResistForms lets a random adversary follow the suggested calls of
// each generated step workflow. Only plausible text may advance a run. Some of the
// workflows require human approval for all gates.
func TestGeneratedWorkflowsResistForms(t *testing.T) {
	t.Parallel()
	for seedName, seed := range testSeeds(t) {
		t.Run(seedName, func(t *testing.T) {
			t.Parallel()
			names := slices.Sorted(maps.Keys(adversaries()))
			for i := range uint64(1500 / raceSlowdown) {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				def := drawDefinition(d)
				s := newService(t.Context(), reproduction{t, fmt.Sprintf("GUIDEWAY_CHEAT_SEED=%d, definition %d: ", seed, i)}, d, parseDefinition(t, def.marshalDefinition()), oneIn(d, 3))
				if _, refused := s.start(nil); refused != nil {
					continue
				}
				name := names[d.below(len(names))]
				followForms(t, s, adversaries()[name], func(pos engine.Position, err error) {
					if err == nil && !strings.Contains(name, "plausible") && !strings.Contains(name, "filler") {
						t.Errorf("GUIDEWAY_CHEAT_SEED=%d, definition %d: %s advances the run at %s %q", seed, i, name, pos.Kind, pos.ID)
					}
				})
			}
		})
	}
}
