package gateway

import (
	"fmt"
	"strings"
	"unicode"
)

// maxDescription bounds what a tool may say of itself.
const maxDescription = 4 << 10

// hidden tells the characters that a person does not see and a model reads:
// zero-width ones, those that turn the direction of text, and tags.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r':
		return false
	case r >= 0xFE00 && r <= 0xFE0F: // they choose between two looks of a sign
		return r != 0xFE0E && r != 0xFE0F
	case r >= 0xE0100 && r <= 0xE01EF:
		return true
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Co, r)
}

// described is a description that is safe to show, and what was wrong with it.
func described(text string) (string, []string) {
	var found []string
	count := 0
	shown := strings.Map(func(r rune) rune {
		if hidden(r) {
			count++
			return -1
		}
		return r
	}, text)
	if count > 0 {
		found = append(found, fmt.Sprintf("its description hides %d characters, which are taken out", count))
	}
	if len(shown) > maxDescription {
		found = append(found, fmt.Sprintf("its description is cut to %d of %d bytes", maxDescription, len(shown)))
		shown = strings.ToValidUTF8(shown[:maxDescription-len("…")], "") + "…"
	}
	return shown, found
}
