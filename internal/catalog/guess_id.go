package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"path"
	"strings"
	"unicode/utf16"
)

// guessID guesses the id of a document that does not load, so that a diagnostic can name
// the definition that is served instead. If the text has no id, it returns the file name
// without its extension.
func guessID(data []byte, name string) string {
	data = decodeUTF16(data)
	if id := jsonID(data); id != "" {
		return id
	}
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line[:min(len(line), 200)]))
		rest, yes := strings.CutPrefix(text, `"id"`)
		if !yes && bytes.HasPrefix(line, []byte("id:")) {
			rest, yes = strings.CutPrefix(text, "id")
		}
		if !yes {
			continue
		}
		rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), ":"))
		rest, _, _ = strings.Cut(rest, " #")
		if id := strings.Trim(strings.TrimSuffix(rest, ","), ` "'`); id != "" {
			return id
		}
	}
	return stemOf(name)
}

// stemOf returns a file name without its extension.
func stemOf(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}

// decodeUTF16 converts a text that starts as UTF-16 to UTF-8, to find the id in it.
func decodeUTF16(data []byte) []byte {
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	case !bytes.HasPrefix(data, []byte("\xff\xfe")):
		return data
	}
	units := make([]uint16, 0, len(data)/2)
	for data = data[2:]; len(data) >= 2; data = data[2:] {
		units = append(units, order.Uint16(data))
	}
	return []byte(string(utf16.Decode(units)))
}

// jsonID finds the id at the top of a JSON document that may be incomplete.
func jsonID(data []byte) string {
	dec := json.NewDecoder(bytes.NewReader(data))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return ""
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return ""
		}
		if key == "id" {
			id, _ := dec.Token()
			text, _ := id.(string)
			return text
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return ""
		}
	}
	return ""
}
