package steps_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// TestAgreement checks that the parser and the published schema agree on valid documents
// and on thousands of mutated ones.
func TestAgreement(t *testing.T) {
	t.Parallel()
	a := stepsAgreement(t)
	for _, file := range sampleDocuments(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			root := shapetest.Load(t, file)
			if root == nil {
				t.Skip("not readable")
			}
			a.Check(t, root, mutationCount(file))
		})
	}
}

// stepsAgreement returns the Agreement that compares the parser of the steps dialect with its
// schema.
func stepsAgreement(t *testing.T) *shapetest.Agreement {
	t.Helper()
	return &shapetest.Agreement{
		Schema: shapetest.Compile(t, steps.Schema()),
		Parse: func(root *doc.Node) []guideway.Diagnostic {
			_, found := steps.Parse("", root)
			return found
		},
		Beyond: beyondSchema,
		Values: append(shapetest.Numbers(99, 256, 600, 1000, 1000.5, 1001), shapetest.Texts(
			"/a~2", "/a~1b", "check", "command", "file", "git", "http", "tool", "protect",
			"", "x", "ab", "abc", "A b", "a_b", "loop", "while", "until", "for", "forEach", "1.0", "1.0.0", "01.0.0", "1.0.0-01", "1.0.0-a..b", "1.0.0+", "name()", "ends\n",
			strings.Repeat("é", 9), strings.Repeat("é", 10), strings.Repeat("a", 64), strings.Repeat("é", 128), strings.Repeat("é", 256), strings.Repeat("é", 257), strings.Repeat("😀", 8192), strings.Repeat("😀", 8193),
		)...),
		Keys:  []string{"tools", "tool", "allow", "extra", "type", "loop", "body", "and", "not", "prompt", "condition", "argv", "path", "clean", "result"},
		Value: &doc.Node{Kind: doc.String, Text: "loop"},
	}
}

// sampleDocuments returns the documents in testdata and in the corpus.
func sampleDocuments(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{
		"../testdata/*.json", "../testdata/*.yaml", corpusPath("workflows/*.json"), corpusPath("workflows/*/*/*.json"), corpusPath("spec/examples/*.json"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// corpusPath returns the path of the corpus, if it is available.
func corpusPath(pattern string) string {
	return filepath.Join("..", "..", "..", "..", "shared", "corpus", "steps", pattern)
}

// beyondSchema reports whether a code belongs to a rule that a schema cannot express.
func beyondSchema(code string) bool {
	return slices.Contains([]string{
		steps.CodeDuplicateID, steps.CodeBodyMissing, steps.CodeBodyIsLoop, steps.CodeBodyCondition, steps.CodeVariableEmpty,
		steps.CodeFunctionUnknown, steps.CodeArgumentMissing, steps.CodeArgumentType, steps.CodeArgumentValue,
	}, code) || strings.HasPrefix(code, "criterion-")
}

// mutationCount returns the number of mutations of a file; the complete document has the
// most.
func mutationCount(file string) int {
	if filepath.Base(file) == "full.json" {
		return 1500
	}
	return 40
}

// TestSeedSchemaAgrees checks that Guideway's schema and WorkRail's schema accept the same
// documents, if the corpus is available. It leaves out what only Guideway's schema accepts,
// and conditions, because WorkRail's schema does not check their parts.
func TestSeedSchemaAgrees(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(corpusPath("spec/workflow.schema.json"))
	if err != nil {
		t.Skip("the corpus is not available")
	}
	original := shapetest.Compile(t, text)
	a := stepsAgreement(t)
	for _, file := range sampleDocuments(t) {
		root := shapetest.Load(t, file)
		if root == nil {
			continue
		}
		withoutOurs(root)
		check := func(what string) {
			value := root.Any()
			theirs, ours := original.Validate(value), a.Schema.Validate(value)
			if (theirs == nil) != (ours == nil) {
				t.Errorf("%s, %s: WorkRail's schema reports %v, Guideway's %v", filepath.Base(file), what, theirs, ours)
			}
		}
		check("unchanged")
		a.Each(root, mutationCount(file), func(what string, mutate func() func()) {
			if strings.Contains(what, "/condition") || strings.Contains(what, "with prompt") || strings.Contains(what, "with tools") {
				return
			}
			undo := mutate()
			check(what)
			undo()
		})
	}
}

// withoutOurs removes what only Guideway's schema accepts from a document: approvals,
// context rules, tools, checks and four operators.
func withoutOurs(root *doc.Node) {
	shapetest.Walk(root, "", func(n *doc.Node, _ doc.Pointer) {
		n.Members = slices.DeleteFunc(n.Members, func(m doc.Member) bool { return m.Key == "approval" || m.Key == "contextRules" || m.Key == "tools" })
		n.Items = slices.DeleteFunc(n.Items, func(item *doc.Node) bool {
			if hasCheck(item) {
				return true
			}
			return item.Get("var") != nil && (item.Get("contains") != nil || item.Get("startsWith") != nil ||
				item.Get("endsWith") != nil || item.Get("matches") != nil)
		})
	})
}

// hasCheck reports whether a rule or a composition is or contains a check.
func hasCheck(n *doc.Node) bool {
	if kind := n.Get("type"); kind != nil && criteria.Type(kind.Text).IsCheck() {
		return true
	}
	for _, key := range []string{"and", "or"} {
		if list := n.Get(key); list != nil && slices.ContainsFunc(list.Items, hasCheck) {
			return true
		}
	}
	part := n.Get("not")
	return part != nil && hasCheck(part)
}

// TestSchemaIsWellFormed checks that every property has a description for editors.
func TestSchemaIsWellFormed(t *testing.T) {
	t.Parallel()
	shapetest.Explained(t, steps.Schema())
}
