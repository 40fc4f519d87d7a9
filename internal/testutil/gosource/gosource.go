// Package gosource finds the sources of Go's standard library, which tests use as real text.
package gosource

import (
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// Root returns the directory of the Go toolchain, or "" if none exists. A test binary
// that was built with -trimpath does not contain the directory, so Root calls the go
// command.
var Root = sync.OnceValue(func() string {
	if root := runtime.GOROOT(); root != "" { //nolint:staticcheck // the toolchain of the machine that runs the test is meant
		return root
	}
	out, _ := exec.Command("go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(out))
})

// Dir returns the directory of the standard library's sources.
func Dir() string { return filepath.Join(Root(), "src") }

var setRoot = sync.OnceFunc(func() {
	if build.Default.GOROOT == "" {
		build.Default.GOROOT = Root()
	}
})

// NewImporter returns an importer that type-checks the sources of packages.
func NewImporter(files *token.FileSet) types.Importer {
	setRoot()
	return importer.ForCompiler(files, "source", nil)
}
