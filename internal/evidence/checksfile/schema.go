package checksfile

import (
	"bytes"
	_ "embed"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the published JSON Schema (draft-07) of the checks file. It accepts the same
// files as Parse, except for rules that a schema cannot express.
func Schema() []byte { return bytes.Clone(schemaText) }
