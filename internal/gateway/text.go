package gateway

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/visible"
)

// maxDescription is the maximum length of a tool's description.
const maxDescription = 4 << 10

// isHidden reports whether a character is invisible to a person but readable for a model.
func isHidden(r rune) bool { return visible.IsHidden(r) }

// cleanDescription returns a description that is safe to show, and a warning if it was
// changed.
func cleanDescription(text string) (string, []string) {
	var found []string
	count := 0
	shown := strings.Map(func(r rune) rune {
		if isHidden(r) {
			count++
			return -1
		}
		return r
	}, text)
	if count > 0 {
		found = append(found, fmt.Sprintf("hidden characters removed from the description: %d", count))
	}
	if len(shown) > maxDescription {
		found = append(found, fmt.Sprintf("the description was truncated to %d of %d bytes", maxDescription, len(shown)))
		shown = strings.ToValidUTF8(shown[:maxDescription-len("…")], "") + "…"
	}
	return shown, found
}
