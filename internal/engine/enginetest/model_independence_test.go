package enginetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strconv"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/testutil/gosource"
)

// The files of the model compile without the others of this package, and import only the
// standard library, so that the model cannot share a defect with the product.
func TestModelIsIndependent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute with the race detector and has one goroutine")
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range []string{"model_definition_test.go", "model_condition_test.go", "model_criteria_test.go", "model_test.go", "model_flow_test.go", "model_rules_test.go"} {
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
	config := types.Config{Importer: gosource.NewImporter(files)}
	if _, err := config.Check("model", files, parsed, nil); err != nil {
		t.Errorf("the model does not compile alone: %v", err)
	}
}
