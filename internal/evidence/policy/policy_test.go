package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/policy"
)

const sample = `
keys:
  - file: .guideway/keys/ann.pub
  - { file: .guideway/keys/builder.pub, host: builder-1 }
prepare: [install]
rules:
  - paths: ["docs/**", "*.md"]
  - paths: [/.guideway/**, Makefile]
    workflow: change-checks
    approvals: [review=confirm]
    changedChecks: true
  - paths: ["{cmd,internal}/**/*.go"]
    workflow: coding-task
    definition: .guideway/workflows/coding-task.yaml
    evidence: [test, lint]
`

func parse(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, found := policy.Parse("policy.yaml", []byte(text))
	if p == nil || len(found) > 0 {
		t.Fatalf("the policy has the diagnostics %v", found)
	}
	return p
}

func TestParse(t *testing.T) {
	t.Parallel()
	want := &policy.Policy{
		Prepare: []string{"install"},
		Keys:    []policy.Key{{File: ".guideway/keys/ann.pub"}, {File: ".guideway/keys/builder.pub", Host: "builder-1"}},
		Rules: []policy.Rule{
			{Paths: []string{"docs/**", "*.md"}},
			{Paths: []string{"/.guideway/**", "Makefile"}, Workflow: "change-checks", Approvals: []string{"review=confirm"}, ChangedChecks: true},
			{Paths: []string{"{cmd,internal}/**/*.go"}, Workflow: "coding-task", Definition: ".guideway/workflows/coding-task.yaml", Evidence: []string{"test", "lint"}},
		},
	}
	if diff := cmp.Diff(want, parse(t, sample)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestParseErrors checks that a policy with an error is not used, because an ignored member
// could be a requirement.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	hash := "sha256:" + strings.Repeat("0", 64)
	for text, want := range map[string]string{
		"":                               "file-empty",
		"[]":                             "definition-object",
		"keys: []":                       "field-missing",
		"rules: []":                      "list-empty",
		"rules: all":                     "field-type",
		"rules: [{paths: [a], flow: x}]": "field-unknown",
		"rules: [{workflow: x}]":         "field-missing",
		"rules: [{paths: []}]":           "list-empty",
		"rules: [{paths: [\"\"]}]":       "text-length",
		"rules: [{paths: ['a[']}]":       policy.CodeGlob,
		"rules: [{paths: [a], workflow: x, definition: ../x}]":     policy.CodeDefinition,
		"rules: [{paths: [a], definition: '" + hash + "'}]":        policy.CodeUnneeded,
		"rules: [{paths: [a], evidence: [test]}]":                  policy.CodeUnneeded,
		"rules: [{paths: [a], approvals: [x]}]":                    policy.CodeUnneeded,
		"rules: [{paths: [a], workflow: x, evidence: test}]":       "field-type",
		"rules: [{paths: [a], workflow: x, changedChecks: maybe}]": "field-type",
		"rules: [{paths: [a]}]\nkeys: [{host: x}]":                 "field-missing",
		"rules: [{paths: [a]}]\nkeys: [{file: /etc/key}]":          policy.CodePath,
		"rules: [{paths: [a]}]\nrules: [{paths: [b]}]":             "key-duplicate",
		"rules: [{paths: [" + strings.Repeat("a,", 300) + "a]}]":   "number-bounds",
	} {
		p, found := policy.Parse("policy.yaml", []byte(text))
		if p != nil || len(found) == 0 || found[0].Code != want || found[0].Severity != guideway.SeverityError || found[0].Fix == "" {
			t.Errorf("%.80s: %v, want %s", text, found, want)
		}
	}
	if p, found := policy.Parse("policy.yaml", []byte("rules: [{paths: [a], workflow: x, definition: '"+hash+"'}]")); p == nil || !p.Rules[0].HasDefinitionHash() {
		t.Errorf("a hash: %v", found)
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	p := parse(t, sample)
	needs, unmatched := p.Apply([]string{".guideway/checks.yaml", "docs/a/b.txt", "internal/a/b.go", "internal/a/b.md", "main.go", "README.md"})
	want := []policy.Need{
		{Rule: &p.Rules[0], Paths: []string{"docs/a/b.txt", "README.md"}},
		{Rule: &p.Rules[1], Paths: []string{".guideway/checks.yaml"}},
		{Rule: &p.Rules[2], Paths: []string{"internal/a/b.go"}},
	}
	if diff := cmp.Diff(want, needs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"internal/a/b.md", "main.go"}, unmatched); diff != "" {
		t.Errorf("unmatched (-want +got):\n%s", diff)
	}
	needs, unmatched = p.Apply(nil)
	if diff := cmp.Diff([]policy.Need{}, needs, cmpopts.EquateEmpty()); diff != "" || len(unmatched) > 0 {
		t.Errorf("no change: %v, %v", needs, unmatched)
	}
}
