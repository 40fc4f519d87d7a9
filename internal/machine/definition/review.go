package definition

import (
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"go.yaml.in/yaml/v3"
)

// ReviewText returns all that the hash covers, except for the script, as YAML for a person:
// the configuration and the roles of the agents.
func (d *Definition) ReviewText() (string, error) {
	var parts map[string]json.RawMessage
	err := json.Unmarshal([]byte(d.Canonical), &parts)
	if err == nil {
		delete(parts, "script")
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(parts)
	}
	var root yaml.Node
	if err == nil {
		err = yaml.Unmarshal(text, &root) // YAML includes JSON
	}
	if err == nil {
		clearStyle(&root)
		text, err = yaml.Marshal(&root)
	}
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "show the machine %s: %w", d.Name, err)
	}
	return string(text), nil
}

// clearStyle replaces the notation of JSON by that of YAML: lines instead of brackets, and
// long texts with their line breaks.
func clearStyle(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		clearStyle(child)
	}
}
