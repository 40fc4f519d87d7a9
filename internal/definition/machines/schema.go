package machines

import (
	"bytes"
	_ "embed"
)

//go:embed schema.json
var schema []byte

// Schema gives the published JSON Schema (draft-07) of configurations. It accepts
// what Parse accepts, but for the rules that no schema can say.
func Schema() []byte { return bytes.Clone(schema) }
