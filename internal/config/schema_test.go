package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/config"
)

// property is the part of a schema that the test reads.
type property struct {
	Type        any                 `json:"type"`
	Description string              `json:"description"`
	Enum        []string            `json:"enum"`
	Default     any                 `json:"default"`
	Items       *property           `json:"items"`
	Properties  map[string]property `json:"properties"`
}

// TestSchemaDescribesEverySetting checks that each property of the schema is a setting that
// can be read.
func TestSchemaDescribesEverySetting(t *testing.T) {
	t.Parallel()
	var root property
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	described := map[string]property{}
	for name, p := range root.Properties {
		if p.Type == "object" {
			for inner, q := range p.Properties {
				if q.Type != "object" {
					described[name+"."+inner] = q
				}
			}
		} else if name != "$schema" {
			described[name] = p
		}
	}
	types := map[config.Kind]string{
		config.KindBool: "boolean", config.KindList: "array", config.KindPaths: "array",
		config.KindDuration: "string", config.KindPath: "string", config.KindText: "string",
		config.KindCount: "integer", config.KindPercent: "integer", config.KindSize: "[string integer]",
	}
	for _, s := range config.Settings() {
		p, ok := described[s.Name]
		delete(described, s.Name)
		if !ok {
			t.Errorf("%s is not in the schema", s.Name)
			continue
		}
		if p.Enum == nil && fmt.Sprint(p.Type) != types[s.Kind] {
			t.Errorf("%s has the type %v and the kind %s", s.Name, p.Type, s.Kind)
		}
		if s.Usage == "" || s.Flag == "" || s.Env == "" {
			t.Errorf("%s has no description, flag or variable: %+v", s.Name, s)
		}
		if (p.Default == nil) != (s.Default() == "") && fmt.Sprint(p.Default) != "" && fmt.Sprint(p.Default) != "[]" {
			t.Errorf("%s: the default is %v in the schema, and %q after it was read", s.Name, p.Default, s.Default())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		t.Errorf("the schema has %s, which is not a setting", name)
	}
	if diff := cmp.Diff(append([]string{config.ToolsetAuto}, config.Toolsets()...), root.Properties["toolsets"].Items.Enum); diff != "" {
		t.Errorf("toolsets: %s", diff)
	}
}

// Schema and decoder agree on random documents: the schema may be more lenient about the
// text of a value but never stricter, and they agree on the form of a document.
func TestSchemaAndDecoderAgree(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(config.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("guideway.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("guideway.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	path := writeConfig(t, "{}")
	rapid.Check(t, func(rt *rapid.T) {
		drawn := map[string]any{}
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(randomKeys("")), 0, 4, rapid.ID).Draw(rt, "keys") {
			if slices.Contains([]string{"workflows", "log", "journal", "gates", "clientHooks", "context", "checkpoints", "encryption"}, key) {
				if rapid.Bool().Draw(rt, "group") {
					inner := map[string]any{}
					for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom(randomKeys(key+".")), 0, 3, rapid.ID).Draw(rt, "inner") {
						inner[k] = drawValue(rt, k)
					}
					drawn[key] = inner
					continue
				}
			}
			drawn[key] = drawValue(rt, key)
		}
		data, err := json.Marshal(drawn)
		if err != nil {
			rt.Fatal(err)
		}
		writeFile(rt, path, data)
		_, decoderErr := config.Load(config.Options{File: path, Getenv: environment(), GOOS: "linux", Dir: "/"})
		schemaErr := schema.Validate(roundTrip(rt, data))
		if decoderErr == nil && schemaErr != nil {
			rt.Fatalf("%s: the decoder accepts the document, the schema does not: %v", data, schemaErr)
		}
		structural := false
		for _, d := range config.DiagnosticsOf(decoderErr) {
			structural = structural || d.Code == "config-type" || d.Code == "config-unknown-key"
		}
		if structural && schemaErr == nil {
			rt.Fatalf("%s: the schema accepts the document, the decoder does not: %v", data, decoderErr)
		}
	})
}

// randomKeys returns valid and invalid keys of one level.
func randomKeys(prefix string) []string {
	if prefix == "workflows." {
		return []string{"paths", "bundled", "user", "project", "cacheTtl", "ttl"}
	}
	if prefix == "log." {
		return []string{"level", "format", "file"}
	}
	if prefix == "journal." {
		return []string{"keyFile", "headsDir", "key"}
	}
	if prefix == "gates." {
		return []string{"approval", "approve"}
	}
	if prefix == "clientHooks." {
		return []string{"onError", "onerror"}
	}
	if prefix == "context." {
		return []string{"compression", "tokenLimit", "threshold", "embeddingsUrl", "embeddingsModel", "limit"}
	}
	if prefix == "checkpoints." {
		return []string{"autoSave", "readOnly", "retention", "dir", "max", "maxContext", "maxTotal", "warnAt", "cleanAt", "maximum"}
	}
	if prefix == "encryption." {
		return []string{"mode", "keyFile", "passphraseFile", "passphrase"}
	}
	return []string{
		"context", "checkpoints", "encryption", "WORKRAIL_ENCRYPTION", "maxCheckpoints", "mcpServers",
		"store", "journal", "gates", "clientHooks",
		"$schema", "listen", "toolsets", "workflows", "log", "allowOrigins", "allowedHosts",
		"dataDir", "tokenFile", "", "Listen", "log.level",
	}
}

func drawValue(rt *rapid.T, key string) any {
	texts := []string{
		"", " ", "x", "*", "127.0.0.1:3000", ":0", "[::1]:1", "host:99999", "steps", "info", "off", "text", "json",
		"5m", "1.5h", "-1s", "0", ".5s", "+1ns", "https://x", "https://x/", "http://a:1", "a:1", "~/x", "/abs", "µ", "1µs",
		"https://[::1]:1", "vscode-webview://x", "x y",
		"10MB", "1.5 GiB", "4096", "1e3", ".", "10 m", "30d", "1w2d", "d", "basic", "advanced", "enabled", "key-file",
		"http://localhost:1/v1", "https://u:p@h/v1", "https://h/v1?x",
		"sqlite", "files", "postgres://h/db", "postgresql://h/db", "postgres:", "mysql://h/db", "agent", "human",
	}
	text := rapid.SampledFrom(texts)
	return rapid.OneOf(
		text.AsAny(),
		rapid.Map(rapid.SliceOfN(text, 0, 2), func(list []string) any { return list }),
		rapid.SampledFrom([]any{true, false, nil, 3.5, 0, 50, -1, 101, 5.0, 1e30, map[string]any{"x": 1}, []any{1}, []any{"steps", nil}}),
	).Draw(rt, key)
}

func roundTrip(rt *rapid.T, data []byte) any {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		rt.Fatal(err)
	}
	return v
}

func TestSettingsAreDistinct(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range config.Settings() {
		names := []string{"setting " + s.Name, "flag " + s.Flag, s.Env}
		if s.FlagAlias != "" {
			names = append(names, "flag "+s.FlagAlias)
		}
		names = append(names, s.Aliases...)
		for _, name := range names {
			if seen[name] || name == config.EnvConfig || name == "flag config" {
				t.Errorf("%s is defined twice", name)
			}
			seen[name] = true
		}
	}
}

func writeFile(rt *rapid.T, path string, data []byte) {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		rt.Fatal(err)
	}
}
