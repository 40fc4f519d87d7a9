package upstream

import (
	"encoding/base64"
	"strings"
)

// headerValue writes a name as the value of a header: as it is where a header
// can carry it, else by base64 in the form of 2026-07-28.
func headerValue(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, encodedPrefix)
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			plain = false
		}
	}
	if plain {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// HeaderText reads the text of a header's value, and tells whether it is one.
func HeaderText(value string) (string, bool) {
	encoded, encodes := strings.CutPrefix(value, encodedPrefix)
	encoded, ends := strings.CutSuffix(encoded, encodedSuffix)
	if !encodes || !ends {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	return string(text), err == nil
}
