package steps_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// TestAgreement holds the validator and the published schema together: for valid
// documents and for thousands of damaged ones, both say the same.
func TestAgreement(t *testing.T) {
	t.Parallel()
	schema := compile(t, steps.Schema())
	for _, file := range documents(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			root := load(t, file)
			if root == nil {
				t.Skip("not readable")
			}
			agree(t, schema, root, "as it is")
			each(root, budget(file), func(what string, mutate func() func()) {
				undo := mutate()
				agree(t, schema, root, what)
				undo()
			})
		})
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

// compile compiles a schema.
func compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("steps.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("steps.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// load reads a document; nil if it is no JSON or YAML.
func load(t *testing.T, file string) *doc.Node {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root, _ := doc.Parse(file, data, doc.Limits{})
	return root
}

// agree compares the two verdicts.
func agree(t *testing.T, schema *jsonschema.Schema, root *doc.Node, what string) {
	t.Helper()
	_, found := steps.Parse("", root)
	ours := slices.DeleteFunc(found, func(d guideway.Diagnostic) bool { return beyondSchema(d.Code) })
	theirs := schema.Validate(root.Any())
	if (len(ours) > 0) != (theirs != nil) {
		t.Errorf("%s: the schema says %v, the validator %v", what, theirs, ours)
	}
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

// each calls try with damages of every kind at every node, of all that there are
// so many, drawn by a fixed seed.
func each(root *doc.Node, budget int, try func(what string, mutate func() func())) {
	total := 0
	damage(root, func(string, func() func()) { total++ })
	random := rand.New(rand.NewPCG(1, 2))
	damage(root, func(what string, mutate func() func()) {
		if random.IntN(total) < budget {
			try(what, mutate)
		}
	})
}

// damage calls try with all damages.
func damage(root *doc.Node, try func(what string, mutate func() func())) {
	walk(root, "", func(n *doc.Node, ptr doc.Pointer) {
		for i, other := range values() {
			try(fmt.Sprintf("%s = value %d, %s", ptr, i, other.Kind), func() func() {
				before := *n
				*n = *other
				return func() { *n = before }
			})
		}
		structural(n, ptr, try)
	})
}

// structural damages an object or array.
func structural(n *doc.Node, ptr doc.Pointer, try func(string, func() func())) {
	change := func(what string, edit func(n *doc.Node)) {
		try(fmt.Sprintf("%s: %s", ptr, what), func() func() {
			before := *n
			n.Members, n.Items = slices.Clone(n.Members), slices.Clone(n.Items)
			edit(n)
			return func() { *n = before }
		})
	}
	for i := range n.Members {
		change("without "+n.Members[i].Key, func(n *doc.Node) { n.Members = slices.Delete(n.Members, i, i+1) })
		change("renamed "+n.Members[i].Key, func(n *doc.Node) { n.Members[i].Key += "x" })
	}
	if n.Kind == doc.Object {
		for _, key := range []string{"extra", "type", "loop", "body", "and", "not", "prompt", "condition"} {
			if n.Get(key) == nil {
				change("with "+key, func(n *doc.Node) {
					n.Members = append(n.Members, doc.Member{Key: key, Value: &doc.Node{Kind: doc.String, Text: "loop"}})
				})
			}
		}
	}
	if len(n.Items) > 0 {
		change("one twice", func(n *doc.Node) { n.Items = append(n.Items, n.Items[0]) })
	}
}

// values are what a node is replaced with.
func values() []*doc.Node {
	out := []*doc.Node{
		{Kind: doc.Null},
		{Kind: doc.Bool, Flag: true},
		{Kind: doc.Array},
		{Kind: doc.Object},
		{Kind: doc.Array, Items: []*doc.Node{{Kind: doc.String, Text: "x"}}},
	}
	for _, n := range []float64{-1, 0, 0.5, 1, 2.5, 1000, 1000.5, 1001} {
		out = append(out, &doc.Node{Kind: doc.Number, Num: n, Text: fmt.Sprint(n)})
	}
	for _, text := range []string{
		"", "x", "ab", "abc", "A b", "a_b", "loop", "while", "until", "for", "forEach", "1.0", "1.0.0", "01.0.0", "1.0.0-01", "1.0.0-a..b", "1.0.0+", "name()", "ends\n",
		strings.Repeat("é", 9), strings.Repeat("é", 10), strings.Repeat("a", 64), strings.Repeat("é", 128), strings.Repeat("é", 256), strings.Repeat("é", 257), strings.Repeat("😀", 8192), strings.Repeat("😀", 8193),
	} {
		out = append(out, &doc.Node{Kind: doc.String, Text: text})
	}
	return out
}

// walk visits every node.
func walk(n *doc.Node, ptr doc.Pointer, visit func(*doc.Node, doc.Pointer)) {
	visit(n, ptr)
	for i, item := range n.Items {
		walk(item, ptr.Index(i), visit)
	}
	for _, m := range n.Members {
		walk(m.Value, ptr.Key(m.Key), visit)
	}
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
	original := compile(t, text)
	ours := compile(t, steps.Schema())
	for _, file := range documents(t) {
		root := load(t, file)
		if root == nil {
			continue
		}
		withoutOurs(root)
		check := func(what string) {
			value := root.Any()
			a, b := original.Validate(value), ours.Validate(value)
			if (a == nil) != (b == nil) {
				t.Errorf("%s, %s: the original says %v, ours %v", filepath.Base(file), what, a, b)
			}
		}
		check("as it is")
		each(root, budget(file), func(what string, mutate func() func()) {
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
	walk(root, "", func(n *doc.Node, _ doc.Pointer) {
		n.Members = slices.DeleteFunc(n.Members, func(m doc.Member) bool { return m.Key == "approval" })
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
	var document map[string]any
	if err := json.Unmarshal(steps.Schema(), &document); err != nil {
		t.Fatal(err)
	}
	definitions, _ := document["definitions"].(map[string]any)
	visit := func(where string, v any) {
		object, ok := v.(map[string]any)
		if !ok {
			return
		}
		properties, _ := object["properties"].(map[string]any)
		for name, p := range properties {
			property, _ := p.(map[string]any)
			if ref, ok := property["$ref"].(string); ok {
				property, _ = definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
			}
			if _, ok := property["const"]; !ok && property["description"] == nil {
				t.Errorf("%s.%s has no description", where, name)
			}
		}
	}
	visit("workflow", document)
	for name, d := range definitions {
		visit(name, d)
	}
}
