// Package shapetest checks that a parser and its published schema agree on valid documents
// and on thousands of mutated ones.
package shapetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Agreement compares a parser with a schema.
type Agreement struct {
	// Schema is the schema.
	Schema *jsonschema.Schema
	// Parse returns the diagnostics of the parser.
	Parse func(root *doc.Node) []guideway.Diagnostic
	// Beyond reports whether a code belongs to a rule that a schema cannot express.
	Beyond func(code string) bool
	// Values are replacement values in addition to those of the function Values.
	Values []*doc.Node
	// Keys are the keys of members that mutations add to objects; Value is the value of
	// such a member.
	Keys  []string
	Value *doc.Node
}

// Check compares the verdict of the parser with the verdict of the schema on a document,
// and on about damages mutations of the document, drawn with a fixed seed.
func (a *Agreement) Check(t *testing.T, root *doc.Node, damages int) {
	t.Helper()
	a.checkAgreement(t, root, "unchanged")
	a.Each(root, damages, func(what string, mutate func() func()) {
		undo := mutate()
		a.checkAgreement(t, root, what)
		undo()
	})
}

// checkAgreement compares the verdicts of the parser and of the schema on a document.
func (a *Agreement) checkAgreement(t *testing.T, root *doc.Node, what string) {
	t.Helper()
	ours := slices.DeleteFunc(a.Parse(root), func(d guideway.Diagnostic) bool { return a.Beyond(d.Code) })
	theirs := a.Schema.Validate(root.Any())
	if (len(ours) > 0) != (theirs != nil) {
		t.Errorf("%s: the schema reports %v, the parser %v", what, theirs, ours)
	}
}

// Each calls try with about damages mutations, drawn from all mutations of all nodes with a
// fixed seed; short tests draw at most about 20. A mutation returns a function that undoes
// it.
func (a *Agreement) Each(root *doc.Node, damages int, try func(what string, mutate func() func())) {
	if testing.Short() {
		damages = min(damages, 20)
	}
	total := 0
	a.mutateDocument(root, func(string, func() func()) { total++ })
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the draw must repeat
	a.mutateDocument(root, func(what string, mutate func() func()) {
		if random.IntN(total) < damages {
			try(what, mutate)
		}
	})
}

// mutateDocument calls try with all mutations of a document.
func (a *Agreement) mutateDocument(root *doc.Node, try func(what string, mutate func() func())) {
	Walk(root, "", func(n *doc.Node, ptr doc.Pointer) {
		for i, other := range append(Values(), a.Values...) {
			try(fmt.Sprintf("%s = value %d, %s", ptr, i, other.Kind), func() func() {
				before := *n
				*n = *other
				return func() { *n = before }
			})
		}
		a.mutateStructure(n, ptr, try)
	})
}

// mutateStructure calls try with all mutations of the structure of an object or array.
func (a *Agreement) mutateStructure(n *doc.Node, ptr doc.Pointer, try func(string, func() func())) {
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
		for _, key := range a.Keys {
			if n.Get(key) == nil {
				change("with "+key, func(n *doc.Node) {
					value := *a.Value
					n.Members = append(n.Members, doc.Member{Key: key, Value: &value})
				})
			}
		}
	}
	if len(n.Items) > 0 {
		change("one twice", func(n *doc.Node) { n.Items = append(n.Items, n.Items[0]) })
		change("one less", func(n *doc.Node) { n.Items = n.Items[1:] })
	}
}

// Values returns the replacements for every value.
func Values() []*doc.Node {
	return append([]*doc.Node{
		{Kind: doc.Null},
		{Kind: doc.Bool, Flag: true},
		{Kind: doc.Bool},
		{Kind: doc.Array},
		{Kind: doc.Object},
		{Kind: doc.Array, Items: []*doc.Node{{Kind: doc.String, Text: "x"}}},
		{Kind: doc.Array, Items: []*doc.Node{{Kind: doc.Object}}},
	}, Numbers(-1, 0, 0.5, 1, 2.5)...)
}

// Texts returns string values.
func Texts(texts ...string) []*doc.Node {
	return lists.Map(texts, func(text string) *doc.Node { return &doc.Node{Kind: doc.String, Text: text} })
}

// Numbers returns number values.
func Numbers(numbers ...float64) []*doc.Node {
	return lists.Map(numbers, func(n float64) *doc.Node { return &doc.Node{Kind: doc.Number, Num: n, Text: fmt.Sprint(n)} })
}

// Walk visits every node.
func Walk(n *doc.Node, ptr doc.Pointer, visit func(*doc.Node, doc.Pointer)) {
	visit(n, ptr)
	for i, item := range n.Items {
		Walk(item, ptr.Index(i), visit)
	}
	for _, m := range n.Members {
		Walk(m.Value, ptr.Key(m.Key), visit)
	}
}

// Load parses a document; it returns nil if the document is neither JSON nor YAML.
func Load(t *testing.T, file string) *doc.Node {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root, _ := doc.Parse(file, data, doc.Limits{})
	return root
}

// Compile compiles a schema.
func Compile(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("tested.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("tested.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// Explained checks that the properties of a schema's root and definitions have a
// description for editors. Constants need none.
func Explained(t *testing.T, schema []byte) {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal(schema, &document); err != nil {
		t.Fatal(err)
	}
	definitions, _ := document["definitions"].(map[string]any)
	visit := func(where string, v any) {
		object, _ := v.(map[string]any)
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
	visit("root", document)
	for name, d := range definitions {
		visit(name, d)
	}
}
