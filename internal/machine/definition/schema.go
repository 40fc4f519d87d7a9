package definition

import (
	"bytes"
	_ "embed"
	"encoding/json"
)

//go:embed schema.json
var schemaText []byte

// Schema returns the published JSON Schema (draft-07) of a kind of document, or nil for an
// unknown kind. It accepts the same documents as Parse, except for rules that a schema
// cannot express.
func Schema(kind Kind) []byte {
	switch kind {
	case KindMachine:
		return bytes.Clone(schemaText)
	case KindRoles:
		return rolesSchema()
	default:
		return nil
	}
}

// rolesSchema returns the schema of a role file, which is the schema of the member 'roles'
// of a configuration.
func rolesSchema() []byte {
	var whole struct {
		Properties struct {
			Roles map[string]json.RawMessage `json:"roles"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schemaText, &whole); err != nil { // impossible: a test covers the embedded schema
		panic(err)
	}
	roles := whole.Properties.Roles
	roles["$schema"], roles["title"] = json.RawMessage(`"http://json-schema.org/draft-07/schema#"`), json.RawMessage(`"Guideway agent roles"`)
	roles["properties"] = json.RawMessage(`{"$schema": {"type": "string", "description": "The address of this schema, for editors."}}`)
	out, err := json.MarshalIndent(roles, "", "  ")
	if err != nil {
		panic(err)
	}
	return out
}
