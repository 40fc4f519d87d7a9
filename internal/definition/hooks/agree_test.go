package hooks_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
	"github.com/guideway-dev/guideway/internal/definition/shape/shapetest"
)

// The parsers and the published schemas say the same, for valid documents and for
// thousands of damaged ones.
func TestAgreement(t *testing.T) {
	t.Parallel()
	for kind, pattern := range map[hooks.Kind]string{hooks.KindGraph: "../testdata/hooks-*", hooks.KindModule: "../testdata/hook-module-*"} {
		a := &shapetest.Agreement{
			Schema: shapetest.Compile(t, hooks.Schema(kind)),
			Parse: func(root *doc.Node) (found []guideway.Diagnostic) {
				if kind == hooks.KindModule {
					_, found = hooks.ParseModule("x.json", root)
				} else {
					_, found = hooks.Parse("x.json", root)
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

// beyondSchema are the codes of what no schema can say.
func beyondSchema() []string {
	return []string{
		hooks.CodeDuplicateID, hooks.CodeBindingTool, hooks.CodeAnswersAside, hooks.CodeStartCount, hooks.CodeEndMissing,
		hooks.CodeEdgeUnknown, hooks.CodeEdgeTwice, hooks.CodeStartInput, hooks.CodeEndOutput, hooks.CodeAsideOutput,
		hooks.CodeInputMany, hooks.CodeOutputMany, hooks.CodeBranch, hooks.CodeWayOpen, hooks.CodeCycle,
		hooks.CodeUnreachable, hooks.CodeCallTwice, hooks.CodeCallMissing,
	}
}

// Every property is explained to whoever writes a graph in an editor, and each
// kind has a schema.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, kind := range hooks.Kinds() {
		shapetest.Explained(t, hooks.Schema(kind))
	}
	if hooks.Schema("tea") != nil {
		t.Error("there is a schema of tea")
	}
}
