package run

import (
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

const (
	runPrefix    = "r_"
	handlePrefix = "h_"
	// maxHandle is longer than any id or handle of this package.
	maxHandle = 64
)

func newRunID(now time.Time) string { return shortid.Timed(runPrefix, now) }

// newHandle returns a token of 23 characters.
func newHandle() string { return shortid.Token(handlePrefix) }

// isRunID and isHandle report whether a token has the format of a run id or a handle. They
// detect a run id that was sent in place of a handle, and a handle in place of a run id.
func isRunID(s string) bool  { return strings.HasPrefix(s, runPrefix) && len(s) <= maxHandle }
func isHandle(s string) bool { return strings.HasPrefix(s, handlePrefix) && len(s) <= maxHandle }
