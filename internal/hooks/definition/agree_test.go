package definition_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
)

// The parsers and the published schemas accept the same documents: valid ones and thousands
// of damaged ones.
func TestAgreement(t *testing.T) {
	t.Parallel()
	for kind, pattern := range map[hookdef.Kind]string{hookdef.KindGraph: "../../workflow/testdata/hooks-*", hookdef.KindModule: "../../workflow/testdata/hook-module-*"} {
		a := &shapetest.Agreement{
			Schema: shapetest.Compile(t, hookdef.Schema(kind)),
			Parse: func(root *doc.Node) (found []guideway.Diagnostic) {
				if kind == hookdef.KindModule {
					_, found = hookdef.ParseModule("x.json", root)
				} else {
					_, found = hookdef.Parse("x.json", root)
				}
				return found
			},
			Beyond: func(code string) bool { return slices.Contains(beyondSchema(), code) },
			Values: shapetest.Texts("", "x", "start", "hook", "condition", "tools/list", "true", "maybe", "a b", ".x", "simple", "and", "exists"),
			Keys:   []string{"extra", "type", "condition", "hook", "script", "hookModuleId", "data", "label", "tool", "sourceHandle", "position"},
			Value:  &doc.Node{Kind: doc.String, Text: "start"},
		}
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if filepath.Ext(file) == ".golden" {
				continue
			}
			t.Run(filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				budget := 200
				if filepath.Base(file) == "hooks-full.json" {
					budget = 2500
				}
				a.Check(t, shapetest.Load(t, file), budget)
			})
		}
	}
}

// beyondSchema returns the codes of rules that a schema cannot express.
func beyondSchema() []string {
	return []string{
		hookdef.CodeDuplicateID, hookdef.CodeBindingTool, hookdef.CodeAlsoTwice, hookdef.CodeHandles, hookdef.CodeFireAndForgetAnswers, hookdef.CodeStartCount, hookdef.CodeEndMissing,
		hookdef.CodeEdgeUnknown, hookdef.CodeEdgeTwice, hookdef.CodeStartInput, hookdef.CodeEndOutput, hookdef.CodeFireAndForgetOutput,
		hookdef.CodeInputMany, hookdef.CodeOutputMany, hookdef.CodeBranch, hookdef.CodeWayOpen, hookdef.CodeCycle,
		hookdef.CodeUnreachable, hookdef.CodeCallTwice, hookdef.CodeCallMissing,
	}
}

// Every property has a description for authors who write a graph in an editor, and each
// kind has a schema.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range hookdef.Kinds() {
		shapetest.Explained(t, hookdef.Schema(kind))
	}
	if hookdef.Schema("tea") != nil {
		t.Error("Schema returned a schema for an unknown kind")
	}
}
