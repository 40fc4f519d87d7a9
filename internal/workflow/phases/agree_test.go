package phases_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// TestAgreement checks that the parsers and the published schemas agree on valid documents
// and on thousands of mutated ones.
func TestAgreement(t *testing.T) {
	t.Parallel()
	for kind, patterns := range map[phases.Kind][]string{
		phases.KindWorkflow:  {"../testdata/phases-*", corpusPath("work-package/*.json"), corpusPath("meta/meta.json")},
		phases.KindCondition: {"../testdata/condition-*"},
		phases.KindState:     {"../testdata/state-*"},
		phases.KindSkill:     {"../testdata/skill-*", corpusPath("meta/skills/*.json")},
		phases.KindActivity:  {"../testdata/activity-*", corpusPath("meta/activities/*.json")},
	} {
		a := kindAgreement(t, kind)
		for _, pattern := range patterns {
			files, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if filepath.Ext(file) == ".golden" {
					continue
				}
				t.Run(filepath.Base(file), func(t *testing.T) {
					t.Parallel()
					a.Check(t, shapetest.Load(t, file), mutationCount(file))
				})
			}
		}
	}
}

// mutationCount returns the number of mutations to try on a file; files with every
// construct get the most.
func mutationCount(file string) int {
	if strings.Contains(file, "-full.") {
		return 1500
	}
	return 150
}

// kindAgreement returns the comparison of parser and schema for one kind.
func kindAgreement(t *testing.T, kind phases.Kind) *shapetest.Agreement {
	t.Helper()
	return &shapetest.Agreement{
		Schema: shapetest.Compile(t, phases.Schema(kind)),
		Parse:  func(root *doc.Node) []guideway.Diagnostic { return parseKind(kind, root) },
		Beyond: func(code string) bool {
			return slices.Contains([]string{
				phases.CodePhaseUnknown, phases.CodeSkipsItself, phases.CodeSkipCycle, phases.CodeDuplicateID,
				phases.CodeVariableDuplicate, phases.CodeVariableType,
			}, code) || strings.HasPrefix(code, "criterion-")
		},
		Values: shapetest.Texts(
			"/a~2", "/a~1b", "", "x", "simple", "and", "or", "not", "==", "exists", "forEach", "while", "doWhile", "until", "log", "message", "number", "integer",
			"1.0", "1.0.0", "01.2.3", "1.0.0-rc1", "v1.0.0", "1.0.0\n", "10-15m", "90", "1 hour", "1\thours", "2H", "2 weeks", "1-2-3h", "-5m", "5-m", "hour", "1-2 d",
			"2026-01-22", "2026-01-22T10:00:00Z", "2026-01-22T10:00:00.5+01:00", "2026-01-22T10:00:00,5Z", "2026-1-22T10:00:00Z", "2026-02-30T10:00:00Z",
			"2026-01-22T25:00:00Z", "2026-01-22t10:00:00z", "2026-01-22T10:00:00", "2026-01-22T1:00:00Z", "human", "running", "workflow_started", "check", "command", "git", "protect", "contains",
		),
		Keys:  []string{"tools", "tool", "allow", "extra", "type", "condition", "over", "value", "approval", "blocking", "defaultValue", "argv", "validationCriteria", "0", "1", "1-1", "01-1", "1-1-1", "description"},
		Value: &doc.Node{Kind: doc.String, Text: "simple"},
	}
}

// corpusPath returns the path of the corpus, if it is available.
func corpusPath(pattern string) string {
	return filepath.Join("..", "..", "..", "..", "shared", "corpus", "phases", pattern)
}

// TestSchemas checks that every property has a description, that the schema of workflows and
// the schema of conditions define conditions in the same way, and that both dialects have the
// same rules.
func TestSchemas(t *testing.T) {
	t.Parallel()
	definitions := func(kind phases.Kind) map[string]any {
		var document struct {
			Schema      string         `json:"$schema"`
			ID          string         `json:"$id"`
			Definitions map[string]any `json:"definitions"`
		}
		if err := json.Unmarshal(phases.Schema(kind), &document); err != nil {
			t.Fatal(err)
		}
		if document.Schema != "http://json-schema.org/draft-07/schema#" || document.ID != "https://guideway.dev/schemas/phases/"+string(kind)+".schema.json" {
			t.Errorf("%s: is %s, %s", kind, document.Schema, document.ID)
		}
		return document.Definitions
	}
	for _, kind := range phases.Kinds() {
		shapetest.Explained(t, phases.Schema(kind))
		definitions(kind)
	}
	if phases.Schema("tea") != nil {
		t.Error("Schema returned a schema for an unknown kind")
	}
	workflow := definitions(phases.KindWorkflow)
	var other struct {
		Definitions map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(steps.Schema(), &other); err != nil {
		t.Fatal(err)
	}
	for name, definition := range other.Definitions {
		isRule := name == "criteria" || name == "criterion" || strings.HasPrefix(name, "rule") || strings.HasSuffix(name, "Rule") || strings.HasSuffix(name, "Check")
		if diff := cmp.Diff(definition, workflow[name]); isRule && diff != "" {
			t.Errorf("%s differs (-steps +phases):\n%s", name, diff)
		}
	}
	for name, definition := range definitions(phases.KindCondition) {
		if diff := cmp.Diff(definition, workflow[name]); diff != "" {
			t.Errorf("%s differs (-condition +workflow):\n%s", name, diff)
		}
	}
}
