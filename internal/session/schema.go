package session

import (
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the JSON Schema (2020-12) of the members that dashboards read. Documents
// need not match it.
func Schema() json.RawMessage {
	return json.RawMessage(append([]byte(nil), schemaText...))
}
