package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/config"
)

// TestAmountsRoundTrip checks that a size or duration that is written as text is parsed as
// the same value.
func TestAmountsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		// Up to 2^50 a number of bytes is exact in any unit.
		size := rapid.Int64Range(0, 1<<50).Draw(rt, "size")
		if rapid.Bool().Draw(rt, "round") {
			size = size >> 30 * rapid.SampledFrom([]int64{1e3, 1e6, 1e9, 1 << 10, 1 << 20, 1 << 30}).Draw(rt, "unit")
		}
		if got, err := config.ParseSize(config.SizeText(size)); err != nil || got != size {
			rt.Errorf("%d is written as %s and read as %d: %v", size, config.SizeText(size), got, err)
		}
		d := time.Duration(rapid.Int64Range(0, int64(36500*24*time.Hour)).Draw(rt, "duration")).Truncate(
			rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Hour, 24 * time.Hour}).Draw(rt, "to"))
		if got, err := config.ParseDuration(config.DurationText(d)); err != nil || got != d {
			rt.Errorf("%d is written as %s and read as %d: %v", d, config.DurationText(d), got, err)
		}
	})
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"10MB": 10_000_000, "10MiB": 10 << 20, "1.5 KiB": 1536, "1 tb": 1e12, "7": 7, "7b": 7} {
		if got, err := config.ParseSize(text); err != nil || got != want {
			t.Errorf("%q is %d, want %d: %v", text, got, want, err)
		}
	}
	for text, want := range map[string]time.Duration{"7d": 168 * time.Hour, "1w1d": 192 * time.Hour, ".5d": 12 * time.Hour, "1d1ns": 24*time.Hour + 1} {
		if got, err := config.ParseDuration(text); err != nil || got != want {
			t.Errorf("%q is %s, want %s: %v", text, got, want, err)
		}
	}
	for text, want := range map[string]string{"720h": "30d", "36h": "36h0m0s", "0": "0s"} {
		d, err := config.ParseDuration(text)
		if got := config.DurationText(d); err != nil || got != want {
			t.Errorf("%s is written as %s, want %s", text, got, want)
		}
	}
}

// TestContextSettingsInFile checks that the groups context, checkpoints and encryption of
// the file are loaded.
func TestContextSettingsInFile(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, `{
  "context": {"compression": "advanced", "tokenLimit": 16000, "threshold": 70,
    "embeddingsUrl": "http://127.0.0.1:11434/v1", "embeddingsModel": "nomic"},
  "checkpoints": {"autoSave": false, "readOnly": true, "retention": "2w", "dir": "shared", "max": 5,
    "maxContext": 1000, "maxSize": "1MB", "maxSession": "2MiB", "maxTotal": 0, "warnAt": 50, "cleanAt": 60},
  "encryption": {"mode": "passphrase", "keyFile": "k", "passphraseFile": "~/p"}
}`)
	c := loadConfig(t, config.Options{File: file, Getenv: environment("GUIDEWAY_EMBEDDINGS_KEY", "s3cret"), GOOS: "linux", Dir: "/work"})
	if diff := cmp.Diff(config.Context{
		Compression: "advanced", TokenLimit: 16000, Threshold: 70,
		EmbeddingsURL: "http://127.0.0.1:11434/v1", EmbeddingsModel: "nomic", EmbeddingsKey: "s3cret",
	}, c.Context); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(config.Checkpoints{
		ReadOnly: true, Retention: 14 * 24 * time.Hour, Dir: filepath.Join(filepath.Dir(file), "shared"), Max: 5,
		MaxContext: 1000, MaxSize: 1e6, MaxSession: 2 << 20, WarnAt: 50, CleanAt: 60,
	}, c.Checkpoints); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(config.Encryption{
		Mode: "passphrase", KeyFile: filepath.Join(filepath.Dir(file), "k"), PassphraseFile: "/home/ada/p",
	}, c.Encryption); diff != "" {
		t.Error(diff)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warned of %+v", c.Warnings)
	}
}

// TestRewrites checks that the error about a misnamed or wrongly typed setting suggests a
// correction.
func TestRewrites(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"WORKRAIL_MAX_CHECKPOINTS": "50"}`:         `:1:2: "WORKRAIL_MAX_CHECKPOINTS" is not a setting; write "checkpoints": {"max": 50}`,
		`{"maxCheckpoints": 50}`:                     `write "checkpoints": {"max": 50}`,
		`{"checkpoints": {"maxTotalSize": "10 GB"}}`: `"maxTotalSize" is not a setting; write "checkpoints": {"maxTotal": "10 GB"}`,
		`{"storagePath": "/d"}`:                      `write "dataDir": "/d"`,
		`{"context-compression": "advanced"}`:        `write "context": {"compression": "advanced"}`,
		`{"checkpoint_auto_save": "true"}`:           `write "checkpoints": {"autoSave": true}`,
		`{"CACHE_TTL": "90000"}`:                     `write "workflows": {"cacheTtl": "1m30s"}`,
		`{"WORKFLOW_STORAGE_PATH": ["a"]}`:           `write "workflows": {"paths": ["a"]}`,
		`{"encryption": "enabled"}`:                  `:1:16: "encryption" is a string; write "encryption": {"mode": "enabled"}`,
		`{"encryption": true}`:                       `"encryption" is a boolean; write "encryption": {"mode": "enabled"}`,
		`{"encryption": "off"}`:                      `write "encryption": {"mode": "disabled"}`,
		`{"encryption": "rot13"}`:                    `"encryption" is a string; write an object`,
		`{"maxCheckpoints": "lots"}`:                 `did you mean "checkpoints.max"?`,
		`{"context": {"compressin": "basic"}}`:       `did you mean "context.compression"?`,
		`{"context": {"tokenLimit": 1.5}}`:           `"context.tokenLimit" is a fraction; write a whole number`,
		`{"context": {"tokenLimit": "9"}}`:           `"context.tokenLimit" is a string; write a whole number`,
		`{"mcpServers": {}}`:                         `"mcpServers" belongs in the configuration of an MCP client; remove "mcpServers"`,
		`{"mcpServers": {"w": {"args": ["--encryption=enabled"], "env": {"WORKRAIL_MAX_CHECKPOINTS": "50", "PATH": "x"}}}}`: `replace "mcpServers" with "checkpoints": {"max": 50}, "encryption": {"mode": "enabled"}`,
	} {
		_, err := config.Load(config.Options{File: writeConfig(t, text), Getenv: environment(), GOOS: "linux", Dir: "/work"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
			continue
		}
		// Text that the error tells the user to write is accepted.
		_, instead, ok := strings.Cut(err.Error(), "write \"")
		if !ok {
			if _, instead, ok = strings.Cut(err.Error(), "in its place \""); !ok {
				continue
			}
		}
		loadConfig(t, config.Options{File: writeConfig(t, `{"`+instead+`}`), Getenv: environment(), GOOS: "linux", Dir: "/work"})
	}
}

// TestDataFile checks that config.json in the data directory is read as the configuration
// file. A config.json with other content is ignored with a warning.
func TestDataFile(t *testing.T) {
	t.Parallel()
	dir, home := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "config.json")
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts := config.Options{Getenv: environment("XDG_CONFIG_HOME", home, "WORKRAIL_DATA_DIR", dir), GOOS: "linux", Dir: "/work"}
	put(`{"checkpoints": {"max": 7}}`)
	if c := loadConfig(t, opts); c.Checkpoints.Max != 7 || c.File != path || c.Origin("checkpoints.max").String() != "file "+path+":1" {
		t.Errorf("max is %d of %q", c.Checkpoints.Max, c.File)
	}
	// A variable and a flag take precedence over config.json in the data directory, and the
	// flag selects the directory.
	over := opts
	over.Getenv = environment("XDG_CONFIG_HOME", home, "WORKRAIL_MAX_CHECKPOINTS", "8")
	over.Flags = map[string][]string{"dataDir": {"elsewhere", dir}}
	if c := loadConfig(t, over); c.Checkpoints.Max != 8 || c.File != path {
		t.Errorf("max is %d of %q", c.Checkpoints.Max, c.File)
	}
	put(`{"checkpoints": {"max": "many"}, "nonsense": 1}`)
	if _, err := config.Load(opts); err == nil || !strings.Contains(err.Error(), path+":1:25: ") || !strings.Contains(err.Error(), `"nonsense" is not a setting`) {
		t.Errorf("error is %v", err)
	}
	put(`{"compilerOptions": {}}`)
	if c := loadConfig(t, opts); c.File != "" || len(c.Warnings) != 1 || c.Warnings[0].Code != "config-not-ours" {
		t.Errorf("read %q, warned of %+v", c.File, c.Warnings)
	}
	// A file that contains only upstreams, models or sources is accepted.
	for _, text := range []string{
		`{"upstreams": {"files": {"command": "files"}}}`, `{"models": {"base": {"provider": "openai", "model": "m"}}}`,
		`{"sources": {"team": {"git": "https://github.com/acme/flows"}}}`,
	} {
		put(text)
		if c := loadConfig(t, opts); c.File != path {
			t.Errorf("%s is not read: %+v", text, c.Warnings)
		}
	}
	// guideway.json takes precedence over config.json in the data directory.
	put(`{"checkpoints": {"max": 7}}`)
	if err := os.MkdirAll(filepath.Join(home, "guideway"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "guideway", "guideway.json"), []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := loadConfig(t, opts); c.Checkpoints.Max != 100 {
		t.Errorf("max is %d", c.Checkpoints.Max)
	}
}

// TestConflictingSettings checks the warnings about settings that have no effect or
// contradict each other. No warning or value shows the passphrase.
func TestConflictingSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		env  []string
		want string
	}{
		{[]string{"GUIDEWAY_ENCRYPTION_PASSPHRASE_FILE", "/p"}, "config-unused GUIDEWAY_ENCRYPTION_PASSPHRASE_FILE"},
		{[]string{"GUIDEWAY_ENCRYPTION_PASSPHRASE", "four words in a row"}, "config-unused GUIDEWAY_ENCRYPTION_PASSPHRASE"},
		{[]string{"GUIDEWAY_ENCRYPTION", "passphrase", "GUIDEWAY_ENCRYPTION_PASSPHRASE", "four words in a row"}, ""},
		{[]string{
			"GUIDEWAY_ENCRYPTION", "passphrase", "GUIDEWAY_ENCRYPTION_PASSPHRASE_FILE", "/p", "GUIDEWAY_ENCRYPTION_PASSPHRASE", "four words",
		}, "config-shadowed GUIDEWAY_ENCRYPTION_PASSPHRASE_FILE"},
		{[]string{"GUIDEWAY_CHECKPOINTS_CLEAN_AT", "70"}, "config-order GUIDEWAY_CHECKPOINTS_CLEAN_AT"},
	} {
		c := loadConfig(t, config.Options{Getenv: environment(tt.env...), Environ: []string{"GUIDEWAY_ENCRYPTION_PASSPHRASE=x", "GUIDEWAY_EMBEDDINGS_KEY=x"}, GOOS: "linux", Dir: "/work"})
		got := ""
		for _, w := range c.Warnings {
			got += w.Code + " " + w.File
			if strings.Contains(w.Message+w.Fix, "four words") {
				t.Errorf("the passphrase is shown: %+v", w)
			}
		}
		if got != tt.want {
			t.Errorf("%v: warned of %q, want %q", tt.env, got, tt.want)
		}
		for _, v := range c.Values() {
			if strings.Contains(v.Text, "four words") {
				t.Errorf("the passphrase is shown in %s", v.Name)
			}
		}
	}
}

// The documented examples of WorkRail work unchanged: each is a client configuration, and
// its variables have the documented effect.
func TestSeedExamples(t *testing.T) {
	t.Parallel()
	seeds, err := filepath.Glob("../../../shared/seeds/003_*")
	if err != nil || len(seeds) == 0 {
		t.Skip("the seed documents are missing")
	}
	text, err := os.ReadFile(seeds[0])
	if err != nil {
		t.Fatal(err)
	}
	advanced := 0
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1) {
		var example struct {
			Servers map[string]struct {
				Args []string          `json:"args"`
				Env  map[string]string `json:"env"`
			} `json:"mcpServers"`
		}
		if err := json.Unmarshal(block[1], &example); err != nil || len(example.Servers) == 0 {
			t.Fatalf("not the configuration of a client: %s", block[1])
		}
		for _, server := range example.Servers {
			var pairs, environ []string
			for name, v := range server.Env {
				pairs, environ = append(pairs, name, v), append(environ, name+"="+v)
			}
			c := loadConfig(t, config.Options{Getenv: environment(pairs...), Environ: environ, GOOS: "linux", Dir: "/work"})
			if len(c.Warnings) > 0 {
				t.Errorf("%s warns of %+v", block[1], c.Warnings)
			}
			if len(server.Env) == 0 {
				if c.Context.Compression != "basic" || !c.Checkpoints.AutoSave || c.Checkpoints.Max != 100 || c.Encryption.Mode != "disabled" {
					t.Errorf("the minimal example results in %+v, %+v", c.Context, c.Checkpoints)
				}
				continue
			}
			advanced++
			if c.Context.Compression != "advanced" || !c.Checkpoints.AutoSave || c.Checkpoints.Max != 50 ||
				c.DataDir != "/custom/path/to/data" || c.Encryption.Mode != "enabled" {
				t.Errorf("the advanced example results in %+v, %+v, %q, %q", c.Context, c.Checkpoints, c.DataDir, c.Encryption.Mode)
			}
			// If the example is the configuration file of Guideway, it is refused, and the
			// error contains the equivalent settings.
			_, err := config.Load(config.Options{File: writeConfig(t, string(block[1])), Getenv: environment(), GOOS: "linux", Dir: "/work"})
			const want = `replace "mcpServers" with "checkpoints": {"autoSave": true, "max": 50}, "context": {"compression": "advanced"}, "dataDir": "/custom/path/to/data", "encryption": {"mode": "enabled"}`
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("in the file: %v", err)
			}
		}
	}
	if advanced != 1 {
		t.Errorf("%d advanced examples, want 1", advanced)
	}
}

// TestDocumentedConfiguration checks that each example in docs/configuration.md loads
// without warnings, and that each setting, variable and flag that the page mentions exists.
func TestDocumentedConfiguration(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Error("there is no example")
	}
	for _, block := range blocks {
		c := loadConfig(t, config.Options{File: writeConfig(t, string(block[1])), Getenv: environment(), GOOS: "linux", Dir: "/work"})
		if len(c.Warnings) > 0 {
			t.Errorf("%s warns of %+v", block[1], c.Warnings)
		}
	}
	known := map[string]bool{
		"GUIDEWAY_": true, config.EnvConfig: true, config.EnvPassphrase: true, config.EnvEmbeddingsKey: true, "--config": true,
	}
	for _, v := range documentedVariables(t) {
		known[v.Name] = true
		for _, alias := range v.Aliases {
			known[alias] = true
		}
	}
	for _, s := range config.Settings() {
		known[s.Name], known["--"+s.Flag], known["--"+s.FlagAlias], known[s.Env] = true, true, true, true
		for _, alias := range s.Aliases {
			known[alias] = true
		}
	}
	for _, name := range regexp.MustCompile(`(?:GUIDEWAY|WORKRAIL|WORKFLOW)_[A-Z_]*|--[a-z][a-z-]*|(?:context|checkpoints|encryption|workflows)\.[a-zA-Z]+|CACHE_TTL`).FindAllString(string(text), -1) {
		if !known[name] && name != "checkpoints.key" {
			t.Errorf("the documentation mentions %s, which does not exist", name)
		}
	}
}

type documentedVariable struct {
	Name    string
	Aliases []string
}

// documentedVariables returns the variables of the reference that are not settings.
func documentedVariables(t *testing.T) (list []documentedVariable) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "variables.json"))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list
}
