package graph_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog/graph"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/guideway-dev/guideway/workflows"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func parseGraph(t testing.TB, file string, data []byte) *graph.Graph {
	t.Helper()
	def, found := workflow.Parse(file, data)
	if def == nil {
		t.Fatalf("%s does not load: %+v", file, found)
	}
	return graph.Of(def)
}

// Every definition in testdata has the drawing in its golden file.
func TestMermaidGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := parseGraph(t, file, data).Mermaid()
			golden := strings.TrimSuffix(file, ".yaml") + ".mmd"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got; run with -update to accept):\n%s", golden, diff)
			}
		})
	}
}

// checkComplete checks that an edge leads to each node except the start, that an edge
// leaves each node except the end, and that edges name existing nodes. Edges may lead to a
// phase's nodes in place of the phase.
func checkComplete(t testing.TB, g *graph.Graph) {
	t.Helper()
	known, reached, left := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range g.Nodes {
		if known[n.ID] {
			t.Errorf("two nodes are called %s", n.ID)
		}
		known[n.ID] = true
	}
	for _, f := range g.Frames {
		known[f.ID] = true
		reached[f.ID], left[f.ID] = f.ID[0] == 'p', f.ID[0] == 'p'
	}
	for _, e := range g.Edges {
		if !known[e.From] || !known[e.To] {
			t.Errorf("the edge from %q to %q names a missing node", e.From, e.To)
		}
		left[e.From], reached[e.To] = true, true
	}
	for id := range known {
		if id != "start" && !reached[id] {
			t.Errorf("no edge leads to %s", id)
		}
		if id != "done" && !left[id] {
			t.Errorf("no edge leaves %s", id)
		}
	}
}

func TestBundledWorkflowsAreComplete(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkComplete(t, parseGraph(t, file, data))
	}
	var bundled []string
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		found, err := fs.Glob(workflows.FS(), pattern)
		if err != nil {
			t.Fatal(err)
		}
		bundled = append(bundled, found...)
	}
	if len(bundled) < 10 {
		t.Errorf("only %v are bundled", bundled)
	}
	for _, file := range bundled {
		if dir, _, _ := strings.Cut(file, "/"); slices.Contains([]string{"meta", "testdata", "hooks", "machines"}, dir) {
			continue // no workflows
		}
		data, err := fs.ReadFile(workflows.FS(), file)
		if err != nil {
			t.Fatal(err)
		}
		checkComplete(t, parseGraph(t, file, data))
	}
}

// line matches every line of a drawing without its labels.
var line = regexp.MustCompile(`^ *(flowchart TB|direction TB|end|subgraph [lp]\d+\[""\]|` +
	`(start|done)\(\[""\]\)|s\d+\[""\]|g\d+\{\{""\}\}|c\d+\{""\}|` +
	`[a-z]+\d* (-->|-\.->)( \|""\|)? [a-z]+\d*)$`)

var label = regexp.MustCompile(`"[^"\n]*"`)

// Text cannot escape from its label, regardless of its characters.
func TestLabelsAreEscaped(t *testing.T) {
	t.Parallel()
	hostile := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching("[\"'`#;:<>&|\\[\\](){}%*_~\\\\\\-+=.$@ \nend]{1,40}"),
		rapid.SampledFrom([]string{
			"\"]\nend\nclick s1 \"javascript:alert(1)\"", "<script>alert(1)</script>", "end", "%%{init: {}}%%",
			"%% comment", "1. one", "- item", "# heading", "$$x^2$$", "`code`", "fa:fa-ban", "style x:#a;", "&quot;",
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		w := &steps.Workflow{Steps: []steps.Step{
			{ID: "a", Title: hostile.Draw(t, "title")},
			{ID: "l", Title: hostile.Draw(t, "loop"), Loop: &steps.Loop{
				Type: steps.LoopForEach, Items: hostile.Draw(t, "items"), MaxIterations: 3,
				Body: []steps.Step{{ID: "b", Title: hostile.Draw(t, "body")}},
			}},
		}}
		p := &phases.Workflow{InitialPhase: "a", Phases: []phases.Phase{{
			ID: "a", Name: hostile.Draw(t, "phase"), EstimatedTime: hostile.Draw(t, "time"),
			Steps: []phases.Step{{ID: "s", Name: hostile.Draw(t, "step")}},
			Loops: []phases.Loop{{
				ID: "l", Name: hostile.Draw(t, "loop"), Type: phases.LoopForEach, Over: hostile.Draw(t, "over"),
				Steps: []phases.Step{{ID: "b", Name: "b"}},
			}},
			Checkpoints: []phases.Checkpoint{{ID: "c", Name: hostile.Draw(t, "checkpoint"), Options: []phases.Option{{
				ID: "o", Label: hostile.Draw(t, "option"),
				Effect: phases.Effect{SetVariable: []phases.Assignment{{Name: hostile.Draw(t, "name"), Value: hostile.Draw(t, "value")}}},
			}}}},
			Decisions: []phases.Decision{{ID: "d", Name: hostile.Draw(t, "decision"), Branches: []phases.Branch{
				{ID: "b", Label: hostile.Draw(t, "branch"), TransitionTo: "a"},
			}}},
		}}}
		drawn := graph.Steps(w).Mermaid() + graph.Phases(p).Mermaid()
		for text := range strings.SplitSeq(strings.TrimSuffix(drawn, "\n"), "\n") {
			bare := label.ReplaceAllString(text, `""`)
			if !line.MatchString(bare) {
				t.Fatalf("invalid drawing line: %q", text)
			}
			for _, l := range label.FindAllString(text, -1) {
				rest := strings.ReplaceAll(regexp.MustCompile(`#\d+;`).ReplaceAllString(l, ""), "<br/>", "")
				if strings.ContainsAny(rest, "#<>&`%*$\\") {
					t.Fatalf("a label contains a special character: %q", l)
				}
			}
		}
	})
}

func TestExtentText(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]*steps.Loop{
		"1 time":                            {Type: steps.LoopFor, Count: 1, MaxIterations: 5},
		"3 times":                           {Type: steps.LoopFor, Count: 3, MaxIterations: 5},
		"3 times, at most 2 rounds":         {Type: steps.LoopFor, Count: 3, MaxIterations: 2},
		"for each of list, at most 1 round": {Type: steps.LoopForEach, Items: "list", MaxIterations: 1},
		"n times, at most 9 rounds":         {Type: steps.LoopFor, CountVar: "n", MaxIterations: 9},
	} {
		if got := graph.Extent(l); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
