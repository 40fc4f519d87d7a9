package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/walk"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"go.yaml.in/yaml/v3"
)

// corpusWorkflow is an unmodified phase workflow from the corpus.
const corpusWorkflow = "../../../shared/corpus/phases/work-package/work-package.json"

// corpusPath is one path through corpusWorkflow: the answers that differ from the default,
// the skips, the variables to set, and the texts that the output must and must not contain.
type corpusPath struct {
	name    string
	answers map[string]any
	skips   map[string]string
	sets    map[string]any
	want    []string
	not     []string
}

func corpusPaths() []corpusPath {
	passed := map[string]any{"step-7-3-lint": map[string]any{"validation_passed": true}, "step-8-1-review": map[string]any{"review_passed": true}}
	return []corpusPath{
		{
			name: "the shortest", sets: passed,
			answers: map[string]any{"checkpoint-1-8-pr-created": "no-skip", "checkpoint-3-1-research-decision": "no-skip", "checkpoint-6-5-adr": "decline"},
			want:    []string{"way      phase-1-issue-verification: to phase-3-", "gate     checkpoint-6-5-adr: declined"},
			not:     []string{"phase    phase-2-", "phase    phase-4-"},
		},
		{
			name: "with elicitation and research", sets: passed,
			answers: map[string]any{"checkpoint-1-8-pr-created": "yes-elicit", "checkpoint-3-1-research-decision": "yes-research"},
			want:    []string{"phase    phase-2-", "phase    phase-4-", "needs_research = true"},
		},
		{
			name: "optional phases, some skipped", sets: passed,
			answers: map[string]any{"checkpoint-1-8-pr-created": "yes-elicit", "checkpoint-3-1-research-decision": "yes-research"},
			skips:   map[string]string{"phase-2-requirements-elicitation": "known already", "step-4-1-kb-research": "nothing to find"},
			want:    []string{"skipped  phase-2-requirements-elicitation: known already", "skipped  phase-4-research: nothing to find"},
			not:     []string{"done     step-2-", "done     step-4-"},
		},
		{
			name: "back to an earlier phase twice, then to the end",
			sets: map[string]any{
				"step-7-3-lint":   []any{map[string]any{"validation_passed": false}, map[string]any{"validation_passed": true}},
				"step-8-1-review": []any{map[string]any{"review_passed": false}, map[string]any{"review_passed": true}},
			},
			want: []string{"to phase-6-implement", "to phase-5-plan-prepare"},
		},
		{
			name: "variables given on request",
			sets: map[string]any{
				"decision-7-2-validation": map[string]any{"validation_passed": true}, "decision-8-2-review": map[string]any{"review_passed": true},
			},
			want: []string{"way      decision-7-2-validation: pass, to phase-8-review", "way      decision-8-2-review: pass, to phase-9-finalize"},
		},
	}
}

// A real workflow is validated, shown, drawn and walked to its end on several paths, with
// answers from a file.
func TestWorkPackageOnCommandLine(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(corpusWorkflow)
	if err != nil {
		t.Skipf("the corpus is not available: %v", err)
	}
	def, found := workflow.Parse(corpusWorkflow, data)
	if def == nil {
		t.Fatalf("the workflow does not load: %+v", found)
	}
	command := func(t *testing.T, files map[string]string, line string) string {
		t.Helper()
		host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
		for name, text := range files {
			writeFile(t, filepath.Join(host.Dir, name), text)
		}
		if code := Run(t.Context(), strings.Fields(line), host); code != app.ExitOK {
			t.Fatalf("guideway %s: %d\n%s", line, code, out)
		}
		return out.String()
	}
	file := map[string]string{"flow.json": string(data)}
	if got := command(t, file, "validate flow.json"); !strings.Contains(got, "1 valid") {
		t.Error(got)
	}
	shown, drawn := command(t, file, "show ./flow.json"), command(t, file, "show ./flow.json --graph mermaid")
	for i, phase := range def.Phases.Phases {
		if !strings.Contains(shown, fmt.Sprintf("  %d. %s (%s)", i+1, phase.Name, phase.ID)) {
			t.Errorf("the output of show does not contain %s", phase.ID)
		}
		if !strings.Contains(drawn, fmt.Sprintf("subgraph p%d[", i+1)) {
			t.Errorf("the diagram does not contain %s", phase.ID)
		}
	}
	for _, w := range corpusPaths() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			got := command(t, map[string]string{"flow.json": string(data), "answers.yaml": recordedAnswers(t, def.Phases, w)}, "run ./flow.json --answers answers.yaml")
			for _, text := range append(w.want, "phase    phase-11-post-implementation", "\nCompleted: ") {
				if !strings.Contains(got, text) {
					t.Errorf("the output does not contain %q:\n%s", text, got)
				}
			}
			for _, text := range w.not {
				if strings.Contains(got, text) {
					t.Errorf("the output contains %q:\n%s", text, got)
				}
			}
		})
	}
}

// recordedAnswers answers everything that a path does not set: outputs for all steps, and the
// first option of each checkpoint.
func recordedAnswers(t *testing.T, flow *phases.Workflow, w corpusPath) string {
	t.Helper()
	outputs, answers := map[string]any{"phase-6-implement": "It is the right branch."}, map[string]any{}
	for i := range flow.Phases {
		for _, step := range walk.ListSteps(&flow.Phases[i]) {
			outputs[step.ID] = "Done: " + step.Name
		}
		for _, c := range flow.Phases[i].Checkpoints {
			answers[c.ID] = c.Options[0].ID
		}
	}
	maps.Copy(answers, w.answers)
	document := map[string]any{"context": map[string]any{"plan": map[string]any{"tasks": []any{"one", "two"}}}, "outputs": outputs, "answers": answers}
	if w.sets != nil {
		document["sets"] = w.sets
	}
	if w.skips != nil {
		document["skips"] = w.skips
	}
	text, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCorpusDocumentsValidate checks that validate accepts each phases document of the
// corpus.
func TestCorpusDocumentsValidate(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../../shared/corpus/phases")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, dir := range []string{"work-package/*.json", "meta/activities/*.json", "meta/skills/*.json", "meta/meta.json"} {
		list, err := filepath.Glob(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	if len(files) == 0 {
		t.Skip("the corpus is not available")
	}
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	if code := Run(t.Context(), slices.Concat([]string{"validate", "--dialect", "phases"}, files), host); code != app.ExitOK {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if want := fmt.Sprintf("%d files checked: %d valid; 0 errors", len(files), len(files)); !strings.Contains(out.String(), want) {
		t.Errorf("not %q:\n%s", want, out)
	}
}
