package gateway

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/visible"
)

// maxDescription is the maximum length of a description or a title in bytes.
const maxDescription = 4 << 10

// countHiddenCharacters counts the characters of a text that are invisible to a person but
// readable for a model.
func countHiddenCharacters(text string) (n int) {
	for i := range text {
		if visible.IsHiddenInProse(text, i) {
			n++
		}
	}
	return n
}

// cleanDescription returns a description or a title that is safe to show, and a warning for
// each kind of change.
func cleanDescription(text string) (string, []string) {
	var found []string
	shown := text
	if count := countHiddenCharacters(text); count > 0 {
		shown = removeHidden(text)
		found = append(found, fmt.Sprintf("hidden characters removed: %d", count))
	}
	if len(shown) > maxDescription {
		found = append(found, fmt.Sprintf("the text was truncated to %d of %d bytes", maxDescription, len(shown)))
		shown = strings.ToValidUTF8(shown[:maxDescription-len("…")], "") + "…"
	}
	return shown, found
}

// removeHidden removes the hidden characters of a text.
func removeHidden(text string) string {
	var b strings.Builder
	for i, r := range text {
		if !visible.IsHiddenInProse(text, i) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
