package config_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
)

// environment returns a Getenv of alternating names and values.
func environment(pairs ...string) func(string) string {
	vars := map[string]string{"HOME": "/home/ada"}
	for i := 0; i+1 < len(pairs); i += 2 {
		vars[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return vars[name] }
}

// writeConfig writes a configuration file and returns its path.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guideway.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func loadConfig(t *testing.T, opts config.Options) *config.Config {
	t.Helper()
	c, err := config.Load(opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c := loadConfig(t, config.Options{Getenv: environment(), GOOS: "linux", Dir: "/work"})
	got := map[string]string{}
	for _, v := range c.Values() {
		got[v.Name] = v.Text
		if v.Origin.String() != "default" {
			t.Errorf("%s comes from %q", v.Name, v.Origin)
		}
	}
	want := map[string]string{
		"listen": "127.0.0.1:3000", "toolsets": "auto", "answers": "auto",
		"allowOrigins": "", "allowedHosts": "", "publicUrl": "", "user": "", "projects.members": "",
		"identity.issuer": "", "identity.clientId": "", "identity.clientSecretFile": "", "identity.scopes": "", "identity.userClaim": "sub",
		"identity.rolesClaim": "groups", "identity.roles": "", "identity.resource": "", "identity.resourceScope": "guideway",
		"dataDir":   "/home/ada/.local/share/guideway",
		"tokenFile": "/home/ada/.local/share/guideway/token",
		"store":     "sqlite", "gates.approval": "agent", "clientHooks.onError": "allow", "machines.workers": "200", "machines.requests": "100",
		"gateway.exposure": "all", "gateway.project": "", "gateway.approvalTime": "10m0s", "gateway.questionTime": "1d", "gateway.largeResult": "0B", "gateway.callsPerMinute": "0", "gateway.health": "30s",
		"gateway.clientMetadata": "",
		"requests.record":        "true", "requests.bodies": "false", "requests.maxBody": "16KiB", "requests.retention": "14d", "requests.maxSize": "256MiB",
		"journal.keyFile":  "/home/ada/.local/share/guideway/journal.key",
		"journal.headsDir": "/home/ada/.local/state/guideway/heads",
		"workflows.paths":  "", "workflows.bundled": "true", "workflows.user": "true", "workflows.project": "true",
		"workflows.plugins": "true", "workflows.hosts": "", "workflows.syncInterval": "1m0s", "workflows.registryTimeout": "10s",
		"workflows.cacheDir": "/home/ada/.cache/guideway/sources", "workflows.trust": "",
		"workflows.cacheTtl": "5m0s", "log.level": "warn", "log.format": "text",
		"context.compression": "basic", "context.tokenLimit": "32000", "context.threshold": "80", "context.personalData": "false",
		"context.embeddingsUrl": "", "context.embeddingsModel": "text-embedding-3-small",
		"checkpoints.autoSave": "true", "checkpoints.readOnly": "false", "checkpoints.retention": "30d", "checkpoints.dir": "",
		"checkpoints.max": "100", "checkpoints.maxContext": "64MiB", "checkpoints.maxSize": "10MiB",
		"checkpoints.maxSession": "1GiB", "checkpoints.maxTotal": "10GiB", "checkpoints.warnAt": "80", "checkpoints.cleanAt": "90",
		"encryption.mode": "disabled", "encryption.keyFile": "/home/ada/.config/guideway/checkpoints.key", "encryption.passphraseFile": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if want := "/home/ada/.config/guideway/workflows"; c.Workflows.UserDir != want {
		t.Errorf("user workflows in %q, want %q", c.Workflows.UserDir, want)
	}
}

func TestDirs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, goos string
		env        []string
		want       config.Dirs
	}{
		{"linux", "linux", nil, config.Dirs{
			Config: "/home/ada/.config/guideway", Data: "/home/ada/.local/share/guideway", Cache: "/home/ada/.cache/guideway",
			State: "/home/ada/.local/state/guideway",
		}},
		{"xdg", "linux", []string{"XDG_CONFIG_HOME", "/c/", "XDG_DATA_HOME", "/d", "XDG_CACHE_HOME", "/", "XDG_STATE_HOME", "/s"}, config.Dirs{
			Config: "/c/guideway", Data: "/d/guideway", Cache: "/guideway", State: "/s/guideway",
		}},
		{"relative xdg is ignored", "freebsd", []string{"XDG_CONFIG_HOME", "c"}, config.Dirs{
			Config: "/home/ada/.config/guideway", Data: "/home/ada/.local/share/guideway", Cache: "/home/ada/.cache/guideway",
			State: "/home/ada/.local/state/guideway",
		}},
		{"macOS", "darwin", []string{"XDG_CONFIG_HOME", "/c"}, config.Dirs{
			Config: "/home/ada/Library/Application Support/guideway",
			Data:   "/home/ada/Library/Application Support/guideway",
			Cache:  "/home/ada/Library/Caches/guideway",
			State:  "/home/ada/Library/Application Support/guideway-state",
		}},
		{"windows", "windows", []string{"APPDATA", `C:\Users\ada\AppData\Roaming`, "LOCALAPPDATA", `D:\Local\`}, config.Dirs{
			Config: `C:\Users\ada\AppData\Roaming\guideway`, Data: `D:\Local\guideway`, Cache: `D:\Local\guideway\cache`,
			State: `D:\Local\guideway-state`,
		}},
		{"windows by profile", "windows", []string{"USERPROFILE", `C:\Users\ada`}, config.Dirs{
			Config: `C:\Users\ada\AppData\Roaming\guideway`, Data: `C:\Users\ada\AppData\Local\guideway`,
			Cache: `C:\Users\ada\AppData\Local\guideway\cache`, State: `C:\Users\ada\AppData\Local\guideway-state`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := loadConfig(t, config.Options{Getenv: environment(tt.env...), GOOS: tt.goos, Dir: "/work"})
			if diff := cmp.Diff(tt.want, c.Dirs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLayersInOrder(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, `{
  "$schema": "x",
  "listen": "127.0.0.1:1",
  "log": {
    "level": "debug", "format": "json"
  },
  "toolsets": ["steps"]
}`)
	c := loadConfig(t, config.Options{
		File: file, Dir: "/work", GOOS: "linux",
		Getenv: environment("GUIDEWAY_LOG_LEVEL", "warn", "GUIDEWAY_LISTEN", "127.0.0.1:2"),
		Flags:  map[string][]string{"listen": {"127.0.0.1:3"}},
	})
	if c.Listen != "127.0.0.1:3" || c.Log.Level != "warn" || c.Log.Format != "json" || len(c.Toolsets) != 1 {
		t.Errorf("%+v", c)
	}
	for setting, want := range map[string]string{
		"listen":     "flag --listen",
		"log.level":  "env GUIDEWAY_LOG_LEVEL",
		"log.format": "file " + file + ":5",
		"toolsets":   "file " + file + ":7",
		"dataDir":    "default",
	} {
		if got := c.Origin(setting).String(); got != want {
			t.Errorf("%s comes from %q, want %q", setting, got, want)
		}
	}
	if c.File != file {
		t.Errorf("read %q", c.File)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, `{"workflows": {"paths": ["mine", "~/shared", "/abs/../x"]}, "dataDir": "~"}`)
	c := loadConfig(t, config.Options{File: file, Getenv: environment(), GOOS: "linux", Dir: "/work"})
	want := []string{filepath.Join(filepath.Dir(file), "mine"), "/home/ada/shared", "/x"}
	if diff := cmp.Diff(want, c.Workflows.Paths); diff != "" {
		t.Error(diff)
	}
	if c.DataDir != "/home/ada" || c.TokenFile != "/home/ada/token" {
		t.Errorf("data in %q, token in %q", c.DataDir, c.TokenFile)
	}

	c = loadConfig(t, config.Options{
		File: file, GOOS: "linux", Dir: "/work",
		Getenv: environment("WORKFLOW_STORAGE_PATH", "a: :~/b:/c"),
	})
	if diff := cmp.Diff([]string{"/work/a", "/home/ada/b", "/c"}, c.Workflows.Paths); diff != "" {
		t.Error(diff)
	}

	c = loadConfig(t, config.Options{
		GOOS: "linux", Dir: "/work", Getenv: environment(),
		Flags: map[string][]string{"workflows.paths": {"a:b", "c,d"}, "toolsets": {"steps", "steps"}},
	})
	if diff := cmp.Diff([]string{"/work/a:b", "/work/c,d"}, c.Workflows.Paths); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"steps", "steps"}, c.Toolsets); diff != "" {
		t.Error(diff)
	}

	c = loadConfig(t, config.Options{
		GOOS: "windows", Dir: `C:\work`,
		Getenv: environment("USERPROFILE", `C:\Users\ada`, "WORKFLOW_STORAGE_PATH", `D:\a;b;\\host\share;~\c`),
	})
	if diff := cmp.Diff([]string{`D:\a`, `C:\work\b`, `\\host\share`, `C:\Users\ada\c`}, c.Workflows.Paths); diff != "" {
		t.Error(diff)
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, value, setting, want string }{
		{"WORKFLOW_INCLUDE_BUNDLED", "true", "workflows.bundled", "true"},
		{"WORKFLOW_INCLUDE_BUNDLED", "1", "workflows.bundled", "true"},
		{"WORKFLOW_INCLUDE_BUNDLED", "no", "workflows.bundled", "false"},
		{"WORKFLOW_INCLUDE_USER", "TRUE", "workflows.user", "false"},
		{"WORKFLOW_INCLUDE_PROJECT", "0", "workflows.project", "false"},
		{"WORKFLOW_INCLUDE_PROJECT", "", "workflows.project", "true"},
		{"CACHE_TTL", "90000", "workflows.cacheTtl", "1m30s"},
		{"CACHE_TTL", "0", "workflows.cacheTtl", "1s"},
		{"WORKRAIL_CONTEXT_COMPRESSION", "advanced", "context.compression", "advanced"},
		{"WORKRAIL_CHECKPOINT_AUTO_SAVE", "false", "checkpoints.autoSave", "false"},
		{"WORKRAIL_MAX_CHECKPOINTS", "50", "checkpoints.max", "50"},
		{"WORKRAIL_ENCRYPTION", "enabled", "encryption.mode", "enabled"},
		{"WORKRAIL_ENCRYPTION", "true", "encryption.mode", "enabled"},
		{"WORKRAIL_ENCRYPTION", "off", "encryption.mode", "disabled"},
		{"WORKRAIL_ENCRYPTION", "key-file", "encryption.mode", "key-file"},
		{"WORKRAIL_DATA_DIR", "/d", "dataDir", "/d"},
		{"WORKRAIL_STORAGE_PATH", "/d", "dataDir", "/d"},
		{"WORKRAIL_LOG_LEVEL", "DEBUG", "log.level", "debug"},
		{"WORKRAIL_LOG_LEVEL", "SILENT", "log.level", "off"},
		{"WORKRAIL_LOG_FORMAT", "json", "log.format", "json"},
		{"WORKRAIL_LOG_FORMAT", "human", "log.format", "text"},
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			t.Parallel()
			c := loadConfig(t, config.Options{Getenv: environment(tt.name, tt.value), GOOS: "linux", Dir: "/work"})
			for _, v := range c.Values() {
				if v.Name == tt.setting && v.Text != tt.want {
					t.Errorf("%s is %q, want %q", v.Name, v.Text, tt.want)
				}
			}
			if origin := c.Origin(tt.setting); tt.value != "" && origin.Name != tt.name {
				t.Errorf("origin is %q", origin)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	c := loadConfig(t, config.Options{
		Getenv: environment("CACHE_TTL", "nonsense", "GUIDEWAY_CACHE_TTL", "1m",
			"WORKRAIL_DATA_DIR", "/one", "WORKRAIL_STORAGE_PATH", "/two"),
		Environ: []string{"GUIDEWAY_LISTN=x", "GUIDEWAY_CONFIG=y", "PATH=z", "GUIDEWAY_CACHE_TTL=1m"},
		GOOS:    "linux", Dir: "/work",
	})
	var got []string
	for _, w := range c.Warnings {
		got = append(got, w.Code+" "+w.File+" "+w.Fix)
	}
	want := []string{
		"config-shadowed WORKRAIL_STORAGE_PATH remove one of the two variables",
		"config-shadowed CACHE_TTL remove one of the two variables",
		"config-unknown-variable GUIDEWAY_LISTN did you mean GUIDEWAY_LISTEN?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if c.Workflows.CacheTTL != time.Minute || c.DataDir != "/one" {
		t.Errorf("ttl is %s, data in %s", c.Workflows.CacheTTL, c.DataDir)
	}
}

func TestAllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	file := writeConfig(t, `{
  "listne": "127.0.0.1:1",
  "listen": "everywhere",
  "toolsets": ["steps", "step"],
  "level": "info",
  "log": {"level": 3, "formt": "json", "format": "text", "format": "json"},
  "workflows": [],
  "allowOrigins": ["*"],
  "allowedHosts": ["https://x"],
  "log.level": "info",
  "a/b": 1,
  "dataDir": null,
  "tokenFile": ""
}`)
	c, err := config.Load(config.Options{
		File: file, GOOS: "linux", Dir: "/work",
		Getenv: environment("GUIDEWAY_CACHE_TTL", "5", "CACHE_TTL", "", "WORKRAIL_LOG_LEVEL", "loud", "GUIDEWAY_INCLUDE_USER", "maybe"),
		Flags:  map[string][]string{"log.format": {"xml"}},
	})
	if guideway.ErrorCode(err) != guideway.CodeInvalid {
		t.Fatalf("error is %v", err)
	}
	got := strings.Split(strings.ReplaceAll(err.Error(), file, "guideway.json"), "\n")
	want := []string{
		`the configuration has 18 errors:`,
		`  guideway.json:2:3: "listne" is not a setting; did you mean "listen"?`,
		`  guideway.json:3:13: "everywhere" is not a host and a port; write host:port, such as "127.0.0.1:3000"`,
		`  guideway.json:4:15: "step" is not one of the allowed values; did you mean "steps"? The values are: auto, steps, runs, sessions, context, phases, gateway, machines`,
		`  guideway.json:5:3: "level" is not a setting; did you mean "log.level"?`,
		`  guideway.json:6:20: "log.level" is a number; write a string`,
		`  guideway.json:6:23: "log.formt" is not a setting; did you mean "log.format"?`,
		`  guideway.json:6:58: "log.format" is set twice, first in line 6; remove one of the two entries`,
		`  guideway.json:7:16: "workflows" is a list; write an object`,
		`  guideway.json:8:19: "*" would allow every web page; write scheme://host or scheme://host:port, such as "https://app.example.com"`,
		`  guideway.json:9:19: "https://x" is not a host; write a host or host:port without a scheme, such as "guideway.local"`,
		`  guideway.json:10:3: "log.level" is not a setting; write "log": {"level": "info"}`,
		`  guideway.json:11:3: "a/b" is not a setting; use one of: listen, toolsets, answers, allowOrigins, allowedHosts, publicUrl, user, identity, projects, dataDir, tokenFile, store, journal, gates, clientHooks, context, checkpoints, encryption, workflows, gateway, requests, log, machines, upstreams, models, notices, sources`,
		`  guideway.json:12:14: "dataDir" is null; write a string`,
		`  guideway.json:13:16: the value is empty; set a value, or remove the setting`,
		`  GUIDEWAY_INCLUDE_USER: "maybe" is neither true nor false; write true or false`,
		`  GUIDEWAY_CACHE_TTL: "5" is not a duration from 0s to 1d; write a number with a unit, such as "30s" or "5m"`,
		`  WORKRAIL_LOG_LEVEL: "loud" is not one of the allowed values; use one of: debug, info, warn, error, off`,
		`  --log-format: "xml" is not one of the allowed values; use one of: text, json`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	diagnostics := config.DiagnosticsOf(err)
	if len(diagnostics) != len(want)-1 || diagnostics[4].Pointer != "/log/level" || diagnostics[11].Pointer != "/a~1b" {
		t.Errorf("pointers are wrong: %+v", diagnostics)
	}
	if c == nil || c.Listen != "127.0.0.1:3000" || c.Log.Format != "text" || c.DataDir == "" {
		t.Errorf("valid settings are not applied: %+v", c)
	}
}

func TestBrokenFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := []struct {
		name, path, text, want string
	}{
		{"syntax", "", "{\n  \"listen\": \"x\",\n}", ":3:1: the file is not valid JSON: invalid character '}' looking for beginning of object key string; fix the JSON"},
		{"cut off", "", `{"log": {`, ":1:9: the file is not valid JSON: unexpected end of JSON input"},
		{"comment", "", "// mine\n{}", ":1:1: the file is not valid JSON"},
		{"empty", "", " \n", ": the file is empty; write {}, or delete the file"},
		{"list", "", "[]", ":1:1: the file contains a list; write an object, such as {}"},
		{"null", "", "null", "the file contains null"},
		{"two documents", "", "{} {}", ":1:4: the file is not valid JSON"},
		{"too large", "", strings.Repeat(" ", 2<<20), "larger than 1048576 bytes"},
		{"missing", filepath.Join(dir, "absent.json"), "", "no such file or directory; create the file, or name another file with --config or GUIDEWAY_CONFIG"},
		{"directory", dir, "", "the path is a directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := tt.path
			if path == "" {
				path = writeConfig(t, tt.text)
			}
			_, err := config.Load(config.Options{Getenv: environment("GUIDEWAY_CONFIG", path), Dir: dir})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestImplicitFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, "guideway", "guideway.json")
	opts := config.Options{Getenv: environment("XDG_CONFIG_HOME", home), GOOS: "linux", Dir: home}
	if c := loadConfig(t, opts); c.File != "" {
		t.Errorf("read %q", c.File)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("\xef\xbb\xbf{\"log\":{\"level\":\"off\"}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := loadConfig(t, opts)
	if c.File != path || c.Log.Threshold() <= slog.LevelError {
		t.Errorf("read %q, threshold %d", c.File, c.Log.Threshold())
	}
	// A relative name is resolved in the working directory.
	c = loadConfig(t, config.Options{File: "guideway/guideway.json", Getenv: environment(), Dir: home})
	if c.File != path {
		t.Errorf("read %q", c.File)
	}
}

func TestNoHome(t *testing.T) {
	t.Parallel()
	_, err := config.Load(config.Options{Getenv: environment("HOME", ""), GOOS: "linux", Dir: "/work"})
	if err == nil || !strings.Contains(err.Error(), "set HOME (USERPROFILE on Windows) or GUIDEWAY_DATA_DIR") {
		t.Errorf("error is %v", err)
	}
	c := loadConfig(t, config.Options{Getenv: environment("HOME", "", "GUIDEWAY_DATA_DIR", "/d"), GOOS: "linux", Dir: "/work"})
	if c.TokenFile != "/d/token" || c.Journal.HeadsDir != "/d/heads" || c.Workflows.UserDir != "" {
		t.Errorf("token in %q, heads in %q, user workflows in %q", c.TokenFile, c.Journal.HeadsDir, c.Workflows.UserDir)
	}
	_, err = config.Load(config.Options{
		Getenv: environment("HOME", "", "GUIDEWAY_DATA_DIR", "~/d"), GOOS: "linux", Dir: "/work",
	})
	if err == nil || !strings.Contains(err.Error(), `GUIDEWAY_DATA_DIR: "~/d" cannot be resolved`) {
		t.Errorf("error is %v", err)
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		setting   string
		good, bad []string
	}{
		{
			"listen",
			[]string{"127.0.0.1:0", "[::1]:3000", ":3000", "localhost:65535"},
			[]string{"3000", "::1:3000", "localhost:65536", "localhost:http", "localhost:-1", "a b:1", "localhost:+1", "localhost:01"},
		},
		{
			"allowOrigins",
			[]string{"https://x", "http://localhost:5173", "vscode-webview://abc"},
			[]string{"x", "https://", "https://x/", "https://u@x", "https://x?y", "null", "https://:1"},
		},
		{
			"allowedHosts",
			[]string{"x", "x:1", "[::1]:1", "guideway.local"},
			[]string{"*", "http://x", "x:y", "x/y", "::1:", ":1"},
		},
		{
			"workflows.cacheTtl",
			[]string{"0", "0s", "1h30m", "24h", ".5s", "+5m", "1d"},
			[]string{"5", "-1s", "25h", "soon", "2d", ""},
		},
		{
			"checkpoints.retention",
			[]string{"0", "12h", "30d", "1w", "1w2d3h", "1.5d"},
			[]string{"30", "-1d", "d", "1y", "30 d", "36501d", "1d2"},
		},
		{
			"checkpoints.max",
			[]string{"0", "1", " 50 ", "1000000"},
			[]string{"-1", "1000001", "5.5", "many", "1e3", ""},
		},
		{
			"checkpoints.warnAt",
			[]string{"1", "80", "80%", "100"},
			[]string{"0", "101", "0.8", "%", "80%%"},
		},
		{
			"checkpoints.maxTotal",
			[]string{"0", "10GB", "1.5 gib", "4096", "1tb", ".5MiB"},
			[]string{"-1", "GB", "10 miles", "1e3", "10PB", "9999999TiB", "1.2.3MB"},
		},
		{"context.compression", []string{"basic", "advanced"}, []string{"Advanced", "off"}},
		{
			"context.embeddingsUrl",
			[]string{"https://api.example.com/v1", "http://127.0.0.1:11434/v1"},
			[]string{"api.example.com", "ftp://h/v1", "https://u:s3cret@h/v1", "https://h/v1?key=s3cret", "https://h/v1#x", "http:///v1"},
		},
		{
			"encryption.mode",
			[]string{"disabled", "enabled", "keychain", "key-file", "passphrase"},
			[]string{"true", "Enabled", "keyfile", "aes"},
		},
		{
			"store",
			[]string{"sqlite", "files", "postgres://h/db", "postgresql://u:p@h:5432/db?sslmode=require", "postgres:///db?host=/run"},
			[]string{"file", "/data.db", "postgres", "mysql://h/db", "postgres://h", "postgres://u:p%zz@h/db"},
		},
		{"gates.approval", []string{"agent", "human"}, []string{"Human", "both"}},
		{"clientHooks.onError", []string{"allow", "deny"}, []string{"open", "Deny"}},
		{"workflows.user", []string{"true", "FALSE", "1", "0"}, []string{"yes", "on"}},
	}
	for _, tt := range tests {
		for _, text := range tt.good {
			loadConfig(t, config.Options{Getenv: environment(), Dir: "/", Flags: map[string][]string{tt.setting: {text}}})
		}
		for _, text := range tt.bad {
			_, err := config.Load(config.Options{Getenv: environment(), Dir: "/", Flags: map[string][]string{tt.setting: {text}}})
			if err == nil {
				t.Errorf("%s takes %q", tt.setting, text)
			}
		}
	}
}

// The password of the store is never shown: not in the effective value, and not in an error
// about an invalid value.
func TestPasswordOfStoreIsHidden(t *testing.T) {
	t.Parallel()
	for i, tt := range []struct{ store, shown string }{
		{"sqlite", "sqlite"},
		{"postgres://ada:s3cret@db.example:5432/runs?sslmode=require", "postgres://ada@db.example:5432/runs?sslmode=require"},
		{"postgres://ada@db.example/runs?password=s3cret&sslpassword=s3cret", "postgres://ada@db.example/runs"},
		{"postgres://ada:s3cret%zz@db.example/runs", ""},
		{"mysql://ada:s3cret@db.example/runs", ""},
		{"postgres://ada:s3cret@db.example", ""},
		{"host=db password=s3cret", ""},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			file := writeConfig(t, `{"store": "`+tt.store+`"}`)
			c, err := config.Load(config.Options{File: file, Getenv: environment(), GOOS: "linux", Dir: "/work"})
			if tt.shown == "" {
				if err == nil || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || c.Store != tt.store {
				t.Fatalf("the store is %q: %v", c.Store, err)
			}
			for _, v := range c.Values() {
				if v.Name == "store" && v.Text != tt.shown {
					t.Errorf("shown is %q, want %q", v.Text, tt.shown)
				}
			}
		})
	}
}

// TestZeroOptions checks that the zero Options uses the environment of the process.
func TestZeroOptions(t *testing.T) {
	t.Setenv("GUIDEWAY_LISTEN", "127.0.0.1:7")
	t.Setenv("GUIDEWAY_CONFIG", writeConfig(t, "{}"))
	t.Setenv("GUIDEWAY_DATA_DIR", "data")
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	c := loadConfig(t, config.Options{})
	if c.Listen != "127.0.0.1:7" || c.DataDir != filepath.Join(wd, "data") {
		t.Errorf("listen %q, data in %q", c.Listen, c.DataDir)
	}
}
