package machines

import (
	"bytes"
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schema []byte

// Schema gives the published JSON Schema (draft-07) of a kind of document; nil where
// there is none. It accepts what Parse accepts, but for the rules that no schema can
// say.
func Schema(kind Kind) []byte {
	switch kind {
	case KindMachine:
		return bytes.Clone(schema)
	case KindRoles:
		return rolesSchema()
	default:
		return nil
	}
}

// rolesSchema is the schema of a file of roles: that of the member of a
// configuration.
func rolesSchema() []byte {
	var whole struct {
		Properties struct {
			Roles map[string]json.RawMessage `json:"roles"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &whole); err != nil { // a test reads it, too
		panic(err)
	}
	roles := whole.Properties.Roles
	roles["$schema"], roles["title"] = json.RawMessage(`"http://json-schema.org/draft-07/schema#"`), json.RawMessage(`"Guideway roles of agents"`)
	roles["properties"] = json.RawMessage(`{"$schema": {"type": "string", "description": "The address of this schema, for editors."}}`)
	out, err := json.MarshalIndent(roles, "", "  ")
	if err != nil {
		panic(err)
	}
	return out
}
