package workflows_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/workflows"
)

// loadBundled loads all bundled definitions.
func loadBundled(t *testing.T) *catalog.Snapshot {
	t.Helper()
	c := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS()}), catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.Snapshot()
}

// A start with an index must list and return the same definitions of both guided dialects
// as a start without one.
func TestBundledWithIndex(t *testing.T) {
	t.Parallel()
	index := t.TempDir()
	start := func() *catalog.Catalog {
		c := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS()}), catalog.Options{Index: index})
		if err := c.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	cold, warm := start(), start()
	list := cold.List(catalog.Filter{})
	if len(list) < 10 || len(warm.List(catalog.Filter{})) != len(list) {
		t.Fatalf("%d and %d workflows", len(list), len(warm.List(catalog.Filter{})))
	}
	for i, e := range warm.List(catalog.Filter{}) {
		if e.Head != list[i].Head || e.Path != list[i].Path || e.Steps == 0 || e.Size == 0 {
			t.Errorf("the entry is %+v, with an index %+v", list[i].Head, e.Head)
		}
		was, err := list[i].Open()
		if err != nil {
			t.Fatal(err)
		}
		is, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		if is.Definition == was.Definition || is.Definition.Canonical != was.Definition.Canonical || is.Definition.File != was.Definition.File {
			t.Errorf("%s is a different definition with an index", e.ID)
		}
	}
}

// All files are read, and neither the parsers nor the linter report a diagnostic.
func TestBundledIsClean(t *testing.T) {
	t.Parallel()
	snap := loadBundled(t)
	found, err := snap.Lint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range append(found, snap.Diagnostics()...) {
		t.Error(d)
	}
	files := 0
	err = fs.WalkDir(workflows.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		// A machine consists of several files. Its configuration is counted.
		if err == nil && !entry.IsDir() && (!strings.HasPrefix(name, "machines/") || path.Base(name) == "machine.json") {
			files++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lib := snap.Library()
	served := len(snap.List(catalog.Filter{})) + len(lib.Activities()) + len(lib.Skills("")) + 1 // 1 for the rules
	served += len(snap.Hooks()) + len(snap.HookModules()) + len(snap.Machines())
	for _, graph := range snap.Hooks() {
		for _, d := range graph.Lint() {
			t.Error(d)
		}
	}
	for _, owner := range lib.Owners() {
		served += len(lib.Skills(owner)) + len(lib.Texts(library.KindGuide, owner)) + len(lib.Texts(library.KindTemplate, owner))
	}
	if lib.Rules() == nil || served != files {
		t.Errorf("%d of %d files are served", served, files)
	}
}

// node is a position of a run. Several transitions may lead to it.
type node struct {
	key   string
	state engine.State
	to    []string
	done  bool
}

// exploreRuns returns all positions of a run, for these values of the agent's assertions.
func exploreRuns(t *testing.T, p *engine.PhaseProgram, context map[string]any) map[string]*node {
	t.Helper()
	nodes := map[string]*node{}
	var queue []*node
	visit := func(from *node, s engine.State, c engine.Command) {
		events, refusal := p.Decide(s, c)
		if refusal != nil && refusal.Rule == engine.RuleValidate && c.Continue.Output == "" {
			return // a value that the check does not accept
		}
		if refusal != nil {
			t.Fatalf("at %s: %s: %s (%v)", from.key, refusal.Rule, refusal.Message, refusal.Allowed)
		}
		next, err := p.FoldFrom(s, events)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{key: stateKey(t, p, next), state: next, done: p.Status(next) == engine.StatusCompleted}
		from.to = append(from.to, n.key)
		if nodes[n.key] == nil {
			nodes[n.key] = n
			queue = append(queue, n)
		}
		const most = 5_000
		if len(nodes) > most {
			t.Fatalf("more than %d positions", most)
		}
	}
	visit(&node{key: "start"}, engine.State{}, engine.Command{Start: &engine.Start{Context: context}})
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, c := range possibleMoves(t, p, n.state) {
			visit(n, n.state, engine.Command{Continue: &c})
		}
	}
	return nodes
}

// stateKey returns a key of everything in a state that decides the next position.
func stateKey(t *testing.T, p *engine.PhaseProgram, s engine.State) string {
	t.Helper()
	pos := p.PositionOf(s)
	vars, err := json.Marshal(s.Vars)
	if err != nil {
		t.Fatal(err)
	}
	key := fmt.Sprintf("%s %s %s", pos.Kind, pos.ID, vars)
	if pos.Phase != nil {
		key = pos.Phase.ID + " " + key
	}
	if pos.Loop != nil {
		key += fmt.Sprintf(" round %d", pos.Loop.Round)
	}
	if s.Phases != nil {
		key += fmt.Sprint(" skips ", s.Phases.Skips)
	}
	return key
}

// possibleMoves returns all answers at a gate, or at a step all values that it asks for.
func possibleMoves(t *testing.T, p *engine.PhaseProgram, s engine.State) []engine.Continue {
	t.Helper()
	pos := p.PositionOf(s)
	var list []engine.Continue
	switch pos.Kind {
	case engine.PositionEnd:
	case engine.PositionGate:
		for _, o := range pos.Options {
			list = append(list, engine.Continue{Answer: &engine.Answer{OptionID: o.ID}})
		}
	case engine.PositionContext:
		for _, n := range pos.Needs {
			if len(n.Allowed) == 0 {
				t.Fatalf("the position does not explain which values to set: %+v", pos)
			}
			for _, value := range n.Allowed {
				list = append(list, engine.Continue{Context: map[string]any{n.Variable: value}})
			}
		}
	default:
		for _, vars := range stepAssertions(p.Workflow, pos.ID) {
			list = append(list, engine.Continue{Output: "done", Notes: "checked", Context: vars})
		}
		if step := findStep(p.Workflow, pos.ID); step != nil && !step.Required {
			list = append(list, engine.Continue{Skip: &engine.Skip{Reason: "no need"}})
		}
	}
	return list
}

// stepAssertions returns values of each kind for the variables that the text of a step
// names.
func stepAssertions(w *phases.Workflow, stepID string) []map[string]any {
	sets := []map[string]any{{}}
	step := findStep(w, stepID)
	if step == nil {
		return sets
	}
	owned := w.Owned()
	said := strings.FieldsFunc(step.Description, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
	for _, v := range w.Variables {
		if slices.Contains(owned, v.Name) || v.Type == phases.TypeString || !slices.Contains(said, v.Name) {
			continue
		}
		values := []any{[]any{map[string]any{"what": "one"}, map[string]any{"what": "two"}}}
		if v.Type == phases.TypeBoolean {
			values = []any{true, false}
		}
		for _, a := range step.Actions {
			if a.Target == v.Name && a.HasValue {
				values = []any{a.Value}
			}
		}
		var more []map[string]any
		for _, set := range sets {
			for _, value := range values {
				larger := map[string]any{v.Name: value}
				for name, other := range set {
					larger[name] = other
				}
				more = append(more, larger)
			}
		}
		sets = more
	}
	return sets
}

func findStep(w *phases.Workflow, id string) *phases.Step {
	for i := range w.Phases {
		for j := range w.Phases[i].Steps {
			if w.Phases[i].Steps[j].ID == id {
				return &w.Phases[i].Steps[j]
			}
		}
		for _, loop := range w.Phases[i].Loops {
			for j := range loop.Steps {
				if loop.Steps[j].ID == id {
					return &loop.Steps[j]
				}
			}
		}
	}
	return nil
}

// eachPhased runs f for every bundled phase workflow with all positions of its runs.
func eachPhased(t *testing.T, f func(t *testing.T, p *engine.PhaseProgram, nodes map[string]*node)) {
	t.Helper()
	entries := loadBundled(t).List(catalog.Filter{Dialect: guideway.DialectPhases})
	if len(entries) < 2 {
		t.Fatalf("%d phase workflows, want at least 2", len(entries))
	}
	for _, e := range entries {
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			opened, err := e.Open()
			if err != nil {
				t.Fatal(err)
			}
			p := engine.CompilePhases(opened.Definition.Phases)
			context := map[string]any{}
			for _, v := range p.Workflow.Variables {
				if v.Required {
					context[v.Name] = "TICKET-1"
				}
			}
			f(t, p, exploreRuns(t, p, context))
		})
	}
}

// Every position can reach an end, and every phase, step and checkpoint is a position of
// some run.
func TestPhaseWorkflowsReachAnEnd(t *testing.T) {
	t.Parallel()
	eachPhased(t, func(t *testing.T, p *engine.PhaseProgram, nodes map[string]*node) {
		ends := map[string]bool{}
		for changed := true; changed; {
			changed = false
			for key, n := range nodes {
				if !ends[key] && (n.done || slices.ContainsFunc(n.to, func(next string) bool { return ends[next] })) {
					ends[key], changed = true, true
				}
			}
		}
		seen := map[string]bool{}
		for key, n := range nodes {
			if !ends[key] {
				t.Errorf("no end can be reached from %s", key)
			}
			pos := p.PositionOf(n.state)
			if pos.Phase != nil {
				seen[pos.Phase.ID], seen[pos.Phase.ID+" "+pos.ID] = true, true
			}
		}
		for i := range p.Workflow.Phases {
			phase := &p.Workflow.Phases[i]
			ids := []string{phase.ID}
			for _, step := range phase.Steps {
				ids = append(ids, phase.ID+" "+step.ID)
			}
			for _, loop := range phase.Loops {
				for _, step := range loop.Steps {
					ids = append(ids, phase.ID+" "+step.ID)
				}
			}
			for _, checkpoint := range phase.Checkpoints {
				ids = append(ids, phase.ID+" "+checkpoint.ID)
			}
			for _, id := range ids {
				if !seen[id] {
					t.Errorf("no run reaches %s", id)
				}
			}
		}
	})
}

// Prompts are short and explain every variable.
func TestPhasePromptsAreShort(t *testing.T) {
	t.Parallel()
	eachPhased(t, func(t *testing.T, p *engine.PhaseProgram, nodes map[string]*node) {
		for _, n := range nodes {
			pos := p.PositionOf(n.state)
			if len(pos.Prompt) > 1200 {
				t.Errorf("the prompt of %s has %d characters", pos.ID, len(pos.Prompt))
			}
			if pos.Kind == engine.PositionStep && len(pos.Prompt)+len(strings.Join(pos.Criteria, "")) < 80 || pos.Kind == engine.PositionGate && pos.Message == "" {
				t.Errorf("the prompt of %s is too short: %q", pos.ID, pos.Prompt)
			}
		}
	})
}

// Every guide and template that a text names exists, and each of them is named by a text.
func TestTextsAndReferencesMatch(t *testing.T) {
	t.Parallel()
	snap := loadBundled(t)
	for _, owner := range snap.Library().Owners() {
		entry, err := snap.Get(owner)
		if err != nil {
			t.Errorf("%s: %v", owner, err)
			continue
		}
		for _, kind := range []phases.EntryKind{library.KindGuide, library.KindTemplate} {
			for _, e := range snap.Library().Texts(kind, owner) {
				if !strings.Contains(entry.Definition.Canonical, e.ID) {
					t.Errorf("%s: no text refers to the %s %s", owner, kind, e.ID)
				}
			}
		}
		for _, phase := range entry.Definition.Phases.Phases {
			refs := []*phases.Guide{phase.Guide}
			for _, step := range phase.Steps {
				refs = append(refs, step.Guide)
			}
			for _, loop := range phase.Loops {
				for _, step := range loop.Steps {
					refs = append(refs, step.Guide)
				}
			}
			for _, ref := range refs {
				if ref == nil || ref.Section == "" {
					continue
				}
				e := snap.Library().Text(library.KindGuide, owner, strings.TrimSuffix(ref.Path, ".md"))
				if e == nil {
					t.Errorf("%s: there is no guide %s", owner, ref.Path)
				} else if _, ok := library.Section(e.Text, ref.Section); !ok {
					t.Errorf("%s: %s has no section %q", owner, ref.Path, ref.Section)
				}
			}
		}
	}
}

// Each goal matches the expected activity.
func TestGoalsMatchActivities(t *testing.T) {
	t.Parallel()
	lib := loadBundled(t).Library()
	for goal, want := range map[string]string{
		"start a workflow": "start-workflow",
		"Where were we?":   "resume-workflow",
		"let's continue where we left off on Friday": "resume-workflow",
		"we're done with the workflow":               "end-workflow",
		"please abort the workflow":                  "end-workflow",
		"how far are we?":                            "show-progress",
		"production is down!":                        "handle-incident",
		"users report errors since the deployment":   "handle-incident",
		"implement this ticket: ABC-12":              "deliver-ticket",
		"resume the workflow":                        "resume-workflow",
	} {
		status, matches := lib.Match(goal)
		if status != library.MatchFound || matches[0].Activity.ID != want {
			t.Errorf("%q: %s", goal, status)
			for _, m := range matches {
				t.Logf("  %s %v %q", m.Activity.ID, m.Score, m.Why)
			}
		}
	}
	if status, _ := lib.Match("what is the weather like in Paris"); status != library.MatchNone {
		t.Errorf("the weather is %s", status)
	}
}
