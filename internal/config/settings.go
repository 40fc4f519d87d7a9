package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Kind is the kind of a setting's value.
type Kind string

// The kinds.
const (
	KindText     Kind = "text"
	KindBool     Kind = "bool"
	KindDuration Kind = "duration"
	// KindPath is a file or directory. A relative path is resolved in the directory of the
	// configuration file, or for a variable or flag in the working directory.
	KindPath Kind = "path"
	// KindList is separated by commas in a variable or flag.
	KindList Kind = "list"
	// KindCount is a whole number.
	KindCount Kind = "count"
	// KindPercent is a whole number from 1 to 100, with or without a percent sign
	// in a variable or flag.
	KindPercent Kind = "percent"
	// KindSize is a number of bytes, or a text with a unit, such as "10MB".
	KindSize Kind = "size"
	// KindPaths is separated like PATH in a variable. A flag has one path and can be
	// repeated.
	KindPaths Kind = "paths"
)

// SettingNames are the kind of a setting, and its names outside of guideway.json.
type SettingNames struct {
	Kind Kind
	// Flag is the flag's name without dashes. FlagAlias is the flag's name in another
	// system, or empty.
	Flag      string
	FlagAlias string
	// Env is the variable. Aliases are variables of other systems with the same meaning.
	// Env overrides them.
	Env     string
	Aliases []string
}

// Setting describes a setting.
type Setting struct {
	SettingNames
	// Name is the position in guideway.json, such as "log.level".
	Name string
	// Usage is the description in --help and the JSON Schema, in one line.
	Usage string
	// Allowed are the values of a text or of a list's elements. If it is empty, other rules
	// apply.
	Allowed []string

	// nonEmpty refuses an empty list.
	nonEmpty bool
	// most is the maximum of a number; 0 means no bound.
	most int64
	// longest is the maximum of a duration; 0 means a day. A duration below least has the
	// effect of least.
	longest, least time.Duration
	// initial is the default as JSON; nil if it depends on the environment.
	initial any
}

// field returns a pointer to the field of a Config, which has the name of the setting.
func (s *Setting) field(c *Config) any {
	v := reflect.ValueOf(c).Elem()
	for name := range strings.SplitSeq(s.Name, ".") {
		v = v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
	}
	return v.Addr().Interface()
}

// value is a decoded value. The kind of the setting determines which field is set.
type value struct {
	text     string
	list     []string
	flag     bool
	number   int64
	duration time.Duration
}

// Description returns the usage, with the allowed values unless the usage names all of them.
func (s *Setting) Description() string {
	isMissing := func(value string) bool { return !strings.Contains(s.Usage, `"`+value+`"`) }
	if !slices.ContainsFunc(s.Allowed, isMissing) {
		return s.Usage
	}
	return strings.TrimSuffix(s.Usage, ".") + "; values: " + strings.Join(s.Allowed, ", ") + "."
}

// Default returns the default as text. It is empty if the default is empty or depends on
// the environment.
func (s *Setting) Default() string {
	l := newLoader(Options{Getenv: func(string) string { return "" }, Dir: "/"})
	l.applyDefaults()
	return s.formatValue(l.config)
}

// storeValue stores a validated value in its field.
func (s *Setting) storeValue(c *Config, v value) {
	switch field := s.field(c).(type) {
	case *string:
		*field = v.text
	case *bool:
		*field = v.flag
	case *int:
		*field = int(v.number)
	case *int64:
		*field = v.number
	case *time.Duration:
		*field = v.duration
		if v.duration > 0 || s.Name != "gateway.health" { // 0 turns the checks off
			*field = max(v.duration, s.least)
		}
	case *[]string:
		*field = v.list
	case *map[string]string:
		*field = map[string]string{}
		for _, text := range v.list {
			key, item, _ := strings.Cut(text, "=")
			(*field)[key] = item
		}
	}
}

// formatValue returns the effective value as a text.
func (s *Setting) formatValue(c *Config) string {
	switch field := s.field(c).(type) {
	case *string:
		if s.Name == "store" {
			return redactStore(*field)
		}
		return *field
	case *bool:
		return strconv.FormatBool(*field)
	case *int:
		return strconv.Itoa(*field)
	case *int64:
		return SizeText(*field)
	case *time.Duration:
		return DurationText(*field)
	case *[]string:
		if s.Kind == KindPaths {
			return strings.Join(*field, ", ")
		}
		return strings.Join(*field, ",")
	case *map[string]string:
		var items []string
		for key, item := range *field {
			items = append(items, key+"="+item)
		}
		slices.Sort(items)
		return strings.Join(items, ",")
	}
	return ""
}

// settingError is the error of a value, without its position.
type settingError struct{ message, fix string }

func newError(fix, format string, args ...any) *settingError {
	return &settingError{message: fmt.Sprintf(format, args...), fix: fix}
}

// Variables without a setting.
const (
	// EnvConfig names the configuration file.
	EnvConfig = "GUIDEWAY_CONFIG"
	// EnvPassphrase is the passphrase for the encryption of checkpoints. It has no setting
	// in the file and no flag, where others could read it.
	EnvPassphrase = "GUIDEWAY_ENCRYPTION_PASSPHRASE" //nolint:gosec // the name of a variable
	// EnvEmbeddingsKey is the key for the embeddings service.
	EnvEmbeddingsKey = "GUIDEWAY_EMBEDDINGS_KEY"
)

// ToolsetAuto is the default of the setting "toolsets": steps, runs, sessions and context,
// gateway as soon as an upstream is configured, and phases and machines as soon as a source
// other than the bundled one has such a definition.
const ToolsetAuto = "auto"

// Toolsets returns all toolsets, starting with the default toolsets.
func Toolsets() []string { return append(DefaultToolsets(), "phases", "gateway", "machines") }

// DefaultToolsets returns the toolsets that are always on by default.
func DefaultToolsets() []string { return []string{"steps", "runs", "sessions", "context"} }

// OffersUpstreams reports whether agents get the tools of configured upstreams.
func (c *Config) OffersUpstreams() bool {
	return slices.Contains(c.Toolsets, "gateway") || slices.Contains(c.Toolsets, ToolsetAuto)
}

// convertValue converts the value of a variable of another system to a value of the setting.
func convertValue(variable, text string) (string, *settingError) {
	switch variable {
	case "WORKFLOW_INCLUDE_BUNDLED", "WORKFLOW_INCLUDE_PLUGINS", "WORKFLOW_INCLUDE_USER", "WORKFLOW_INCLUDE_PROJECT":
		return convertSwitch(text)
	case "CACHE_TTL":
		return convertMilliseconds(text, "GUIDEWAY_CACHE_TTL=5m")
	case "WORKFLOW_REGISTRY_TIMEOUT":
		return convertMilliseconds(text, "GUIDEWAY_REGISTRY_TIMEOUT=10s")
	case "WORKFLOW_GIT_SYNC_INTERVAL":
		return convertMinutes(text)
	case "WORKRAIL_ENCRYPTION":
		return encryptionSwitch(text)
	case "WORKRAIL_LOG_LEVEL":
		return logLevel(text)
	case "WORKRAIL_LOG_FORMAT":
		return logFormat(text)
	}
	return text, nil
}

// convertSwitch converts a switch that is on for "true" and "1" and off for all other
// values.
func convertSwitch(text string) (string, *settingError) {
	return strconv.FormatBool(text == "true" || text == "1"), nil
}

// convertMilliseconds converts a duration in milliseconds. instead is the variable of
// Guideway with an example, for the suggestion.
func convertMilliseconds(text, instead string) (string, *settingError) {
	ms, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || ms < 0 || ms > int64(maxDuration/time.Millisecond) {
		return "", newError("set milliseconds, such as 10000, or use "+instead,
			"%q is not a number of milliseconds from 0 to %d", text, maxDuration/time.Millisecond)
	}
	return (time.Duration(ms) * time.Millisecond).String(), nil
}

// logLevel converts a level of WorkRail, such as DEBUG or SILENT, to one of Guideway.
func logLevel(text string) (string, *settingError) {
	level := strings.ToLower(strings.TrimSpace(text))
	if level == "silent" {
		level = "off"
	}
	return level, nil
}

// logFormat converts a format: "json" is JSON, and all other values mean text.
func logFormat(text string) (string, *settingError) {
	if strings.EqualFold(strings.TrimSpace(text), "json") {
		return "json", nil
	}
	return "text", nil
}

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
