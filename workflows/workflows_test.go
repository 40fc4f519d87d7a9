package workflows_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/guideway-dev/guideway/workflows"
	"go.yaml.in/yaml/v3"
)

// fixture has the paths through a bundled workflow and the outputs that its steps accept.
type fixture struct {
	Context map[string]any `yaml:"context"`
	Paths   []struct {
		Name    string                            `yaml:"name"`
		Context map[string]any                    `yaml:"context"`
		Sets    map[string]map[string]any         `yaml:"sets"`
		SetsAt  map[string]map[int]map[string]any `yaml:"setsAt"`
		Steps   []string                          `yaml:"steps"`
	} `yaml:"paths"`
	Outputs map[string]struct {
		Good string `yaml:"good"`
		Lazy string `yaml:"lazy"`
	} `yaml:"outputs"`
}

// eachWorkflow runs f for every bundled workflow with its fixture.
func eachWorkflow(t *testing.T, f func(t *testing.T, def *workflow.Definition, fix fixture)) {
	t.Helper()
	files, err := fs.Glob(workflows.FS(), "*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d bundled workflows, want at least 8 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			text, err := fs.ReadFile(workflows.FS(), file)
			if err != nil {
				t.Fatal(err)
			}
			def, found := workflow.Check(file, text)
			if def == nil {
				t.Fatalf("does not load: %+v", found)
			}
			for _, d := range found {
				t.Errorf("%s", d)
			}
			fixtureText, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			var fix fixture
			if err := yaml.Unmarshal(fixtureText, &fix); err != nil {
				t.Fatal(err)
			}
			f(t, def, fix)
		})
	}
}

// TestIDIsName checks that the id of each bundled workflow is the name of its file.
func TestIDIsName(t *testing.T) {
	t.Parallel()
	eachWorkflow(t, func(t *testing.T, def *workflow.Definition, _ fixture) {
		if want := strings.TrimSuffix(path.Base(def.File), ".yaml"); def.ID != want {
			t.Errorf("id = %q in the file of %q", def.ID, want)
		}
	})
}

// Every criterion passes the good answer and fails the lazy one.
func TestCriteriaDistinguishGoodFromLazy(t *testing.T) {
	t.Parallel()
	eachWorkflow(t, func(t *testing.T, def *workflow.Definition, fix fixture) {
		p := engine.Compile(def.Steps)
		for _, id := range p.StepIDs() {
			step, _ := p.Step(id)
			answers, ok := fix.Outputs[id]
			if step.Criteria == nil {
				continue
			}
			if !ok {
				t.Errorf("%s has criteria but no sample answers", id)
				continue
			}
			good, err := step.Criteria.Check(answers.Good, expr.Map(fix.Context))
			if err != nil || !good.Valid {
				t.Errorf("the criteria of %s refuse the good answer: %v %v", id, good.Issues, err)
			}
			lazy, err := step.Criteria.Check(answers.Lazy, expr.Map(fix.Context))
			if err != nil || lazy.Valid {
				t.Errorf("the criteria of %s accept the lazy answer (%v):\n%s", id, err, answers.Lazy)
			}
		}
	})
}

// TestNamedChecks checks the named checks of the bundled workflows: each must have its
// outcome for a good output to be accepted, and a project without checks is not stopped.
func TestNamedChecks(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"coding-task change-small":            {"build", "test", "lint", "protected-tests"},
		"coding-task hand-over":               {"build", "test", "lint", "protected-tests"},
		"bug-investigation write-red-test":    {"not one-test"},
		"bug-investigation fix-bug":           {"one-test", "test", "protected-tests"},
		"test-case-generation break-source":   {"not test"},
		"test-case-generation restore-source": {"test"},
	}
	var mu sync.Mutex
	got := map[string][]string{}
	t.Run("all", func(t *testing.T) {
		eachWorkflow(t, func(t *testing.T, def *workflow.Definition, fix fixture) {
			p := engine.Compile(def.Steps)
			for _, id := range p.StepIDs() {
				step, _ := p.Step(id)
				names := checkStep(t, step, fix)
				mu.Lock()
				if len(names) > 0 {
					got[def.ID+" "+id] = names
				}
				mu.Unlock()
			}
		})
	})
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// checkStep returns the named checks of a step, after it checked that each of them decides.
func checkStep(t *testing.T, step *steps.Step, fix fixture) []string {
	t.Helper()
	in := criteria.Input{Output: fix.Outputs[step.ID].Good, Vars: expr.Map(fix.Context), Checks: map[string]criteria.CheckOutcome{}}
	first, err := step.Criteria.Judge(in)
	if err != nil || len(first.Pending) == 0 {
		return nil
	}
	var names []string
	undefined := criteria.Input{Output: in.Output, Vars: in.Vars, Checks: map[string]criteria.CheckOutcome{}}
	for _, p := range first.Pending {
		passed, name := !strings.HasSuffix(p.Key, "/not"), p.Template.Check
		if !passed {
			name = "not " + name
		}
		names = append(names, name)
		in.Checks[p.Key] = criteria.CheckOutcome{Passed: passed}
		undefined.Checks[p.Key] = criteria.CheckOutcome{Undefined: true}
	}
	for _, all := range []criteria.Input{in, undefined} {
		if res, err := step.Criteria.Judge(all); err != nil || !res.Valid {
			t.Errorf("%s: %+v is refused: %v %v", step.ID, all.Checks, res.Issues, err)
		}
	}
	for key, outcome := range in.Checks {
		for _, other := range []criteria.CheckOutcome{{Passed: !outcome.Passed}, {Inconclusive: true}} {
			flipped := maps.Clone(in.Checks)
			flipped[key] = other
			if res, err := step.Criteria.Judge(criteria.Input{Output: in.Output, Vars: in.Vars, Checks: flipped}); err != nil || res.Valid {
				t.Errorf("%s: a good output is accepted although the check %s is %+v (%v)", step.ID, key, other, err)
			}
		}
	}
	return names
}

// Both kinds of stateless clients can complete every path.
func TestPathsStateless(t *testing.T) {
	t.Parallel()
	eachWorkflow(t, func(t *testing.T, def *workflow.Definition, fix fixture) {
		p := engine.Compile(def.Steps)
		reached := map[string]bool{}
		for i, way := range fix.Paths {
			for _, echo := range []bool{true, false} {
				vars := mergeNumbers(fix.Context, way.Context)
				context := vars
				var ids []string
				counts := map[string]int{}
				for range len(way.Steps) + 1 {
					res, err := p.Next(engine.NextRequest{Completed: ids, Context: context})
					if err != nil {
						t.Fatal(err)
					}
					if res.Step == nil {
						if !res.IsComplete {
							t.Errorf("%s: %s", way.Name, res.Guidance.Prompt)
						}
						break
					}
					if strings.Contains(res.Guidance.Prompt, "{{") {
						t.Errorf("%s: %s keeps a placeholder:\n%s", way.Name, res.Step.ID, res.Guidance.Prompt)
					}
					ids = append(ids, res.Step.ID)
					reached[res.Step.ID] = true
					counts[res.Step.ID]++
					if echo {
						context = res.Context
					}
					maps.Copy(context, stepChanges(fix, i, res.Step.ID, counts[res.Step.ID]))
				}
				if d := cmp.Diff(way.Steps, ids); d != "" {
					t.Errorf("%s, echo %v (-want +got):\n%s", way.Name, echo, d)
				}
			}
		}
		for _, id := range p.StepIDs() {
			if !reached[id] {
				t.Errorf("no path reaches %s", id)
			}
		}
	})
}

// A run can complete every path with the good answers and confirmed gates.
func TestPathsAsRuns(t *testing.T) {
	t.Parallel()
	eachWorkflow(t, func(t *testing.T, def *workflow.Definition, fix fixture) {
		p := engine.Compile(def.Steps)
		for i, way := range fix.Paths {
			var s engine.State
			var ids []string
			counts := map[string]int{}
			command := engine.Command{Start: &engine.Start{Context: mergeNumbers(fix.Context, way.Context)}}
			for range 3*len(way.Steps) + 3 {
				events, refusal := p.Decide(s, command)
				if refusal != nil {
					t.Fatalf("%s, after %v: %s: %s %v", way.Name, ids, refusal.Rule, refusal.Message, refusal.Issues)
				}
				for _, e := range events {
					s = engine.Apply(s, e)
				}
				pos := p.PositionOf(s)
				if pos.Kind == engine.PositionEnd {
					break
				}
				if pos.Kind == engine.PositionContext {
					t.Fatalf("%s, after %v: the run waits for %+v", way.Name, ids, pos.Needs)
				}
				command = engine.Command{Continue: &engine.Continue{}}
				if pos.Kind == engine.PositionGate {
					command.Continue.Answer = &engine.Answer{OptionID: engine.OptionConfirm}
					continue
				}
				ids = append(ids, pos.ID)
				counts[pos.ID]++
				command.Continue.Output = fix.Outputs[pos.ID].Good
				command.Continue.Context = stepChanges(fix, i, pos.ID, counts[pos.ID])
			}
			if d := cmp.Diff(way.Steps, ids); d != "" {
				t.Errorf("%s (-want +got):\n%s", way.Name, d)
			}
		}
	})
}

// stepChanges returns the variables that completing a step sets.
func stepChanges(fix fixture, path int, id string, nth int) map[string]any {
	return mergeNumbers(fix.Paths[path].Sets[id], fix.Paths[path].SetsAt[id][nth])
}

// mergeNumbers merges variables and converts YAML's integers to JSON's numbers.
func mergeNumbers(layers ...map[string]any) map[string]any {
	out := map[string]any{}
	for _, layer := range layers {
		for k, v := range layer {
			out[k] = jsonNumber(v)
		}
	}
	return out
}

func jsonNumber(v any) any {
	switch x := v.(type) {
	case int:
		return float64(x)
	case []any:
		list := slices.Clone(x)
		for i := range list {
			list[i] = jsonNumber(list[i])
		}
		return list
	case map[string]any:
		return mergeNumbers(x)
	default:
		return v
	}
}
