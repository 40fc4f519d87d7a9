package config

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

//go:embed guideway.schema.json
var schemaJSON string

// Schema returns the JSON Schema of guideway.json. The schema accepts everything that Load
// accepts. Load also checks rules that a schema cannot express, such as ports.
func Schema() []byte { return slices.Clone([]byte(schemaJSON)) }

// Settings returns all settings that the schema describes, in its order. The keyword
// x-guideway of a property has the kind, the flag and the variables of the setting.
func Settings() []Setting { return slices.Clone(settingTable()) }

var settingTable = sync.OnceValue(func() []Setting {
	var root property
	_ = json.Unmarshal([]byte(schemaJSON), &root) // A test decodes the schema, which is a part of the program.
	list := appendSettings(nil, "", root.Properties)
	position := func(s Setting) int { return strings.Index(schemaJSON, `"`+s.Env+`"`) }
	slices.SortFunc(list, func(a, b Setting) int { return position(a) - position(b) })
	return list
})

// property is the part of a property of the schema that concerns settings.
type property struct {
	Description string
	Enum        []string
	Items       struct{ Enum []string }
	Default     any
	MinItems    int
	Maximum     int64
	Properties  map[string]property
	Names       *struct {
		SettingNames
		// Longest is the maximum of a duration, and Least the shortest effective one.
		Longest, Least string
	} `json:"x-guideway"`
}

// appendSettings appends the settings of an object, whose names begin with a prefix, in any
// order.
func appendSettings(list []Setting, prefix string, in map[string]property) []Setting {
	for key, p := range in {
		name := prefix + key
		if p.Names == nil {
			list = appendSettings(list, name+".", p.Properties)
			continue
		}
		s := Setting{
			SettingNames: p.Names.SettingNames, Name: name, Usage: p.Description, Allowed: append(p.Enum, p.Items.Enum...),
			nonEmpty: p.MinItems > 0, most: p.Maximum, initial: p.Default,
		}
		s.longest, _ = ParseDuration(p.Names.Longest) // without a bound it is 0
		s.least, _ = ParseDuration(p.Names.Least)
		list = append(list, s)
	}
	return list
}
