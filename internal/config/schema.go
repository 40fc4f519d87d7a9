package config

import (
	_ "embed"
	"slices"
)

//go:embed guideway.schema.json
var schemaJSON string

// Schema returns the JSON Schema of guideway.json. The schema accepts everything that Load
// accepts. Load also checks rules that a schema cannot express, such as ports.
func Schema() []byte { return slices.Clone([]byte(schemaJSON)) }
