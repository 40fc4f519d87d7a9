package install

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff returns the unified diff of a change, or "" if nothing changes.
func Diff(c Change) string {
	if !c.Changes() {
		return ""
	}
	from, to := c.Path, c.Path
	if !c.Existed {
		from = "/dev/null"
	}
	if c.Delete {
		to = "/dev/null"
	}
	_, text, _ := bytes.Cut(diff.Diff(from, c.Before, to, c.After), []byte("\n")) // without the line "diff FROM TO"
	return string(text)
}
