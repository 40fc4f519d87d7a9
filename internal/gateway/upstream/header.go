package upstream

import (
	"encoding/base64"
	"strings"
)

// headerValue encodes a text as a header value: unchanged if possible, otherwise in base64
// as 2026-07-28 requires.
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

// HeaderText decodes a header value, and reports whether it is valid.
func HeaderText(value string) (string, bool) {
	encoded, encodes := strings.CutPrefix(value, encodedPrefix)
	encoded, ends := strings.CutSuffix(encoded, encodedSuffix)
	if !encodes || !ends {
		return value, true
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	return string(text), err == nil
}
