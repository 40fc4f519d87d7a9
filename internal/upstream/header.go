package upstream

import (
	"encoding/base64"
	"strings"
)

// headerValue writes a name as the value of a header: as it is where a header
// can carry it, else by base64 in the form of 2026-07-28.
func headerValue(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, "=?base64?")
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			plain = false
		}
	}
	if plain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}
