package workflow_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// minimal is a workflow without optional members.
const minimal = `{"id":"a-flow","name":"A flow","description":"Does it.","version":"1.0.0","steps":[{"id":"only-step","title":"Only","prompt":"Do it."}]}`

func TestParse(t *testing.T) {
	t.Parallel()
	d, found := workflow.Parse("a-flow.json", []byte(minimal))
	if len(found) > 0 {
		t.Fatal(found)
	}
	if d.Dialect != guideway.DialectSteps || d.ID != "a-flow" || d.Name != "A flow" || d.Description != "Does it." || d.Version != "1.0.0" ||
		d.File != "a-flow.json" || d.Canonical == "" || len(d.Steps.Steps) != 1 {
		t.Errorf("got %+v", d)
	}
}

func TestHashIsOfTheMeaning(t *testing.T) {
	t.Parallel()
	hash := func(file, text string) string {
		d, found := workflow.Parse(file, []byte(text))
		if len(found) > 0 {
			t.Fatalf("%s: %v", text, found)
		}
		return d.Hash
	}
	want := hash("a.json", minimal)
	if !strings.HasPrefix(want, "sha256:") || len(want) != len("sha256:")+64 {
		t.Errorf("the hash is %s", want)
	}
	for file, text := range map[string]string{
		"spaces.json": strings.ReplaceAll(minimal, ",", " ,\n "),
		"order.json":  `{"steps":[{"prompt":"Do it.","title":"Only","id":"only-step"}],"version":"1.0.0","description":"Does it.","name":"A flow","id":"a-flow"}`,
		"a.yaml":      "id: a-flow\nname: A flow\ndescription: Does it.\nversion: 1.0.0\nsteps:\n- {id: only-step, title: Only, prompt: Do it.}\n",
		"escape.json": strings.ReplaceAll(minimal, "Only", `\u004fnly`),
	} {
		if got := hash(file, text); got != want {
			t.Errorf("%s has a different hash", file)
		}
	}
	if hash("b.json", strings.ReplaceAll(minimal, "Do it.", "Do it!")) == want {
		t.Error("a different prompt has the same hash")
	}
}

func TestFindingsOfReaderAndDialectTogether(t *testing.T) {
	t.Parallel()
	d, found := workflow.Parse("x.json", []byte("{\n\"id\":\"a-flow\",\n\"id\":\"b-flow\",\n\"name\":\"n\",\"description\":\"d\",\"version\":\"1.0.0\",\n\"steps\":[]}"))
	if d != nil || len(found) != 2 || found[0].Line != 3 || found[1].Line != 5 {
		t.Errorf("got %v, %v", d, found)
	}
}

// TestCorpus parses the workflows of the corpus, if it is available: each loads, or is
// rejected with actionable diagnostics.
func TestCorpus(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..", "shared", "corpus", "steps")
	if _, err := os.Stat(root); err != nil {
		t.Skip("the corpus is not available")
	}
	loaded := 0
	for _, pattern := range []string{"workflows/*.json", "workflows/*/*/*.json", "spec/examples/*.json"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, found := workflow.Check(filepath.Base(file), data)
			if d != nil {
				loaded++
				for _, f := range found {
					if f.Severity != guideway.SeverityWarning || f.Line == 0 || f.Fix == "" {
						t.Errorf("%s", f)
					}
				}
				continue
			}
			if len(found) == 0 {
				t.Errorf("%s does not load, but has no diagnostics", file)
			}
			for _, f := range found {
				if f.Fix == "" || f.Line == 0 && f.Code != "file-empty" {
					t.Errorf("%s", f)
				}
			}
		}
	}
	// In the corpus one file is empty, and four violate the schema.
	if loaded < 20 {
		t.Errorf("only %d files load, want at least 20", loaded)
	}
}

// FuzzParse checks that no input makes the parser panic, that every document loads or has
// diagnostics, and that the canonical form loads with the same hash.
func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	for _, pattern := range []string{"testdata/*.json", "testdata/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, found := workflow.Parse("", data)
		if (d == nil) != (len(found) > 0) {
			t.Fatalf("got %v and %v", d, found)
		}
		for _, finding := range found {
			if finding.Severity != guideway.SeverityError || finding.Code == "" || finding.Message == "" || finding.Fix == "" {
				t.Fatalf("incomplete diagnostic %+v", finding)
			}
		}
		if d == nil {
			return
		}
		for _, finding := range workflow.Lint(d, data, phases.Layout{}) {
			if isLateError(finding) != (finding.Severity == guideway.SeverityError) || finding.Code == "" || finding.Message == "" || finding.Fix == "" {
				t.Fatalf("incomplete diagnostic or wrong severity %+v", finding)
			}
		}
		again, found := workflow.Parse("x.json", []byte(d.Canonical))
		if again == nil || again.Hash != d.Hash {
			t.Fatalf("the canonical form does not load as the same definition: %v", found)
		}
	})
}

// TestLintHasLines checks that diagnostics have lines only if the linter gets the document
// that was parsed.
func TestLintHasLines(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/lint-compile.json")
	if err != nil {
		t.Fatal(err)
	}
	d, found := workflow.Parse("lint-compile.json", data)
	if d == nil {
		t.Fatal(found)
	}
	want := workflow.Lint(d, data, phases.Layout{})
	for i := range want {
		if want[i].Line == 0 {
			t.Errorf("the diagnostic has no line: %s", want[i])
		}
		want[i].Line, want[i].Column = 0, 0
	}
	for name, other := range map[string][]byte{"none": nil, "another": []byte(minimal), "broken": data[:99]} {
		if diff := cmp.Diff(want, workflow.Lint(d, other, phases.Layout{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// sampleWorkflow returns a workflow of about 60 kB with conditions, criteria and loops.
func sampleWorkflow() []byte {
	var b strings.Builder
	b.WriteString(`{"id":"a-flow","name":"A flow","description":"Does it.","version":"1.0.0","steps":[`)
	prompt := strings.Repeat(`Read the file, then **say** what it does.\n- name the size\n`, 25)
	for i := range 30 {
		id := string(rune('a'+i%26)) + strings.Repeat("x", 3+i/26)
		b.WriteString(`{"id":"` + id + `","title":"Step","prompt":"` + prompt + `","guidance":["Be brief.","Set size."],
			"runCondition":{"or":[{"var":"size","equals":"large"},{"and":[{"var":"size","equals":"medium"},{"var":"deep","equals":true}]}]},
			"validationCriteria":[{"type":"contains","value":"size","message":"Name the size."},{"type":"regex","pattern":"(?=.*size)[a-z]+","flags":"i","message":"Name it."}]},`)
	}
	b.WriteString(`{"id":"a-loop","type":"loop","title":"Loop","loop":{"type":"while","condition":{"var":"done","not_equals":true},"maxIterations":9},
		"body":[{"id":"a-body","title":"Body","prompt":"Set done."}]}]}`)
	return []byte(b.String())
}

func BenchmarkParse(b *testing.B) {
	text := sampleWorkflow()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, found := workflow.Parse("a.json", text); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

func BenchmarkLint(b *testing.B) {
	text := sampleWorkflow()
	d, found := workflow.Parse("a.json", text)
	if len(found) > 0 {
		b.Fatal(found)
	}
	for b.Loop() {
		workflow.Lint(d, text, phases.Layout{})
	}
}
