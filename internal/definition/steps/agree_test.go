package steps_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape/shapetest"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// TestAgreement holds the validator and the published schema together: for valid
// documents and for thousands of damaged ones, both say the same.
func TestAgreement(t *testing.T) {
	t.Parallel()
	a := agreement(t)
	for _, file := range documents(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			root := shapetest.Load(t, file)
			if root == nil {
				t.Skip("not readable")
			}
			a.Check(t, root, budget(file))
		})
	}
}

// agreement is about the steps dialect.
func agreement(t *testing.T) *shapetest.Agreement {
	t.Helper()
	return &shapetest.Agreement{
		Schema: shapetest.Compile(t, steps.Schema()),
		Parse: func(root *doc.Node) []guideway.Diagnostic {
			_, found := steps.Parse("", root)
			return found
		},
		Beyond: beyondSchema,
		Values: append(shapetest.Numbers(1000, 1000.5, 1001), shapetest.Texts(
			"", "x", "ab", "abc", "A b", "a_b", "loop", "while", "until", "for", "forEach", "1.0", "1.0.0", "01.0.0", "1.0.0-01", "1.0.0-a..b", "1.0.0+", "name()", "ends\n",
			strings.Repeat("é", 9), strings.Repeat("é", 10), strings.Repeat("a", 64), strings.Repeat("é", 128), strings.Repeat("é", 256), strings.Repeat("é", 257), strings.Repeat("😀", 8192), strings.Repeat("😀", 8193),
		)...),
		Keys:  []string{"extra", "type", "loop", "body", "and", "not", "prompt", "condition"},
		Value: &doc.Node{Kind: doc.String, Text: "loop"},
	}
}

// documents are the feature-complete document, the broken ones beside it, and
// the corpus.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{
		"../testdata/*.json", "../testdata/*.yaml", corpus("workflows/*.json"), corpus("workflows/*/*/*.json"), corpus("spec/examples/*.json"),
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// corpus is where real workflows lie, beside a checkout that has them.
func corpus(pattern string) string {
	return filepath.Join("..", "..", "..", "..", "shared", "corpus", "steps", pattern)
}

// beyondSchema says whether a code is of a rule that no schema can say.
func beyondSchema(code string) bool {
	return slices.Contains([]string{
		steps.CodeDuplicateID, steps.CodeBodyMissing, steps.CodeBodyIsLoop, steps.CodeBodyCondition, steps.CodeVariableEmpty,
		steps.CodeFunctionUnknown, steps.CodeArgumentMissing, steps.CodeArgumentType, steps.CodeArgumentValue,
	}, code) || strings.HasPrefix(code, "criterion-")
}

// budget is how many damages to try on a file: most on the one that has every
// construct.
func budget(file string) int {
	if filepath.Base(file) == "full.json" {
		return 1500
	}
	return 40
}

// TestOriginalAgrees compares our schema with the one that the dialect comes
// from, where the corpus is at hand. We accept four more operators; it does not
// look into the parts of a rule's condition.
func TestOriginalAgrees(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(corpus("spec/workflow.schema.json"))
	if err != nil {
		t.Skip("no corpus beside this checkout")
	}
	original := shapetest.Compile(t, text)
	a := agreement(t)
	for _, file := range documents(t) {
		root := shapetest.Load(t, file)
		if root == nil {
			continue
		}
		withoutOurs(root)
		check := func(what string) {
			value := root.Any()
			theirs, ours := original.Validate(value), a.Schema.Validate(value)
			if (theirs == nil) != (ours == nil) {
				t.Errorf("%s, %s: the original says %v, ours %v", filepath.Base(file), what, theirs, ours)
			}
		}
		check("as it is")
		a.Each(root, budget(file), func(what string, mutate func() func()) {
			if strings.Contains(what, "/condition") {
				return
			}
			undo := mutate()
			check(what)
			undo()
		})
	}
}

// withoutOurs takes out what only we accept: four operators and a member.
func withoutOurs(root *doc.Node) {
	shapetest.Walk(root, "", func(n *doc.Node, _ doc.Pointer) {
		n.Members = slices.DeleteFunc(n.Members, func(m doc.Member) bool { return m.Key == "approval" || m.Key == "contextRules" })
		n.Items = slices.DeleteFunc(n.Items, func(item *doc.Node) bool {
			return item.Get("var") != nil && (item.Get("contains") != nil || item.Get("startsWith") != nil ||
				item.Get("endsWith") != nil || item.Get("matches") != nil)
		})
	})
}

// TestSchemaIsWellFormed checks that every property is explained to whoever
// writes a workflow in an editor.
func TestSchemaIsWellFormed(t *testing.T) {
	t.Parallel()
	shapetest.Explained(t, steps.Schema())
}
