package bypasstest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"testing"
)

// The model stands alone: its files compile without the others of this package,
// and import the standard library only. It cannot share a defect with what it
// judges.
func TestTheModelKnowsNothingOfTheProduct(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range []string{"shape_test.go", "model_condition_test.go", "model_criterion_test.go", "model_test.go"} {
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err != nil || strings.Contains(path, ".") {
				t.Errorf("%s imports %s", name, path)
			}
		}
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	if _, err := config.Check("model", files, parsed, nil); err != nil {
		t.Errorf("the model needs more than itself: %v", err)
	}
}
