package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// Binary returns the absolute path that a client should start: the path of the running
// executable, in a form that survives an upgrade. Package managers often put a symbolic
// link to a versioned file into the search path; the link is then the better path. pathList
// has the form of PATH.
func Binary(executable, pathList string) (string, error) {
	if executable == "" || !filepath.IsAbs(executable) {
		return "", guideway.Errorf(guideway.CodeInvalid, "the absolute path of this program is unknown (got %q)", executable).
			WithFix("start guideway by its absolute path")
	}
	if isTemporary(executable) {
		return "", guideway.Errorf(guideway.CodeInvalid,
			"cannot install %s (a temporary binary, such as the output of go run, does not exist when the client starts it)", executable).
			WithFix("run go install github.com/guideway-dev/guideway/cmd/guideway@latest, then guideway install")
	}
	own, err := os.Stat(executable)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInvalid, "cannot install %s (%w)", executable, safeopen.Cause(err)).
			WithFix("run guideway install again from the installed binary")
	}
	for _, dir := range filepath.SplitList(pathList) {
		if !filepath.IsAbs(dir) {
			continue
		}
		candidate := filepath.Join(dir, filepath.Base(executable))
		if info, err := os.Stat(candidate); err == nil && os.SameFile(own, info) && !isTemporary(candidate) {
			return candidate, nil
		}
	}
	return filepath.Clean(executable), nil
}

// isTemporary reports whether a binary is in a directory that go or npx cleans up.
func isTemporary(path string) bool {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.ContainsFunc(parts, func(p string) bool {
		return strings.HasPrefix(p, "go-build") || p == "_npx"
	})
}
