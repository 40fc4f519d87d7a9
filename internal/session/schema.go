package session

import (
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schemaText []byte

// Schema is the JSON Schema (2020-12) of what dashboards read of a session
// document. Documents need not fit it.
func Schema() json.RawMessage {
	return json.RawMessage(append([]byte(nil), schemaText...))
}
