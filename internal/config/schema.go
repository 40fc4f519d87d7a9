package config

import (
	_ "embed"
	"slices"
)

//go:embed guideway.schema.json
var schemaJSON string

// Schema is the JSON Schema of guideway.json. Whatever Load accepts, the
// schema accepts; Load also judges what a schema cannot, such as ports.
func Schema() []byte { return slices.Clone([]byte(schemaJSON)) }
