package gateway

import (
	"fmt"
	"strings"
	"unicode"
)

// maxDescription is the maximum length of a tool's description.
const maxDescription = 4 << 10

// isHidden reports whether a character is invisible to a person but readable for a model:
// zero-width characters, direction marks and tags.
func isHidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case r >= 0xFE00 && r <= 0xFE0F: // Variation selectors choose between two forms of a character.
		return r != 0xFE0E && r != 0xFE0F
	case r >= 0xE0100 && r <= 0xE01EF:
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Co, r)
}

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
		found = append(found, fmt.Sprintf("the description contains %d hidden characters, which were removed", count))
	}
	if len(shown) > maxDescription {
		found = append(found, fmt.Sprintf("the description was truncated to %d of %d bytes", maxDescription, len(shown)))
		shown = strings.ToValidUTF8(shown[:maxDescription-len("…")], "") + "…"
	}
	return shown, found
}
