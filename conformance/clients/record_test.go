//go:build unix

package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/install"
)

// recordVariable makes TestHooksInClients write the events of the clients to the fixtures of
// internal/clienthook, instead of comparing their shapes.
const recordVariable = "RECORD"

// recorder is the command of the hooks: it stores the event, and passes it on to Guideway.
// The model writes the name of its step to the file step.
const recorder = `#!/bin/sh
tee "$HOME/events/$(date +%s%N) $3 $(cat "$HOME/requests/step")" | exec $GUIDEWAY "$@"
`

// recordHooks puts the recorder into the configuration of the hooks.
func (r *rig) recordHooks() {
	r.Helper()
	known, err := install.FindHookClient(r.client.name)
	if err != nil {
		r.Fatal(err)
	}
	file, err := known.Locate(install.Env{Home: r.home, Dir: r.project, GOOS: "linux", Getenv: func(string) string { return "" }}, install.ScopeUser)
	if err != nil {
		r.Fatal(err)
	}
	name, err := filepath.Rel(r.home, file)
	if err != nil {
		r.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		r.Fatal(err)
	}
	r.write("record", recorder)
	if err := os.Chmod(filepath.Join(r.home, "record"), 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(r.home, "events"), 0o700); err != nil {
		r.Fatal(err)
	}
	own := filepath.Join(r.home, "record")
	r.write(name, strings.NewReplacer(r.guideway+" client-hook", own+" client-hook", `"exec": "`+r.guideway, `"exec": "`+own).Replace(string(text)))
}

// recordedEvents returns the first event of each name, without details: EVENT.STEP for the
// call of a tool, EVENT.SOURCE for the start of a session, and EVENT for others.
func (r *rig) recordedEvents() map[string]string {
	r.Helper()
	files, err := filepath.Glob(filepath.Join(r.home, "events", "*"))
	if err != nil {
		r.Fatal(err)
	}
	slices.Sort(files)
	events := map[string]string{}
	for _, file := range files {
		words := strings.Fields(filepath.Base(file)) // the time, the event and the step
		data, err := os.ReadFile(file)
		if err != nil {
			r.Fatal(err)
		}
		text := r.withoutDetails(string(data))
		var payload struct {
			Source string
			Tool   string `json:"tool_name"`
			Agent  string `json:"agent_id"`
		}
		if err := json.Unmarshal([]byte(text), &payload); err != nil {
			r.Errorf("%s sends an event that is not JSON: %v: %s", r.client.name, err, text)
			continue
		}
		name := words[1]
		switch {
		case payload.Source != "":
			name += "." + payload.Source
		case payload.Tool == "ToolSearch":
			name += ".search"
		case payload.Tool != "":
			name += "." + words[2]
		case payload.Agent != "" && name == "Stop":
			name += ".subagent" // Copilot CLI
		}
		if isFixture(name) && events[name] == "" {
			events[name] = text
		}
	}
	return events
}

// isFixture reports whether an event is a fixture. The others repeat the form of these.
func isFixture(name string) bool {
	event, what, _ := strings.Cut(name, ".")
	switch event {
	case "PreToolUse", "BeforeTool":
		return slices.Contains([]string{"own", "edit", "shell", "read", "mcp", "plan", "search"}, what)
	case "PostToolUse", "AfterTool":
		return slices.Contains([]string{"start", "read", "subagent"}, what)
	default:
		return true
	}
}

// withoutDetails replaces the values that differ between two runs by placeholders. Each UUID has its
// own, because Copilot CLI distinguishes sessions and subagents by them.
func (r *rig) withoutDetails(text string) string {
	text = strings.NewReplacer(
		r.project, "/home/me/shop", strings.ReplaceAll(r.project, "/", "-"), "-work-shop", r.home, "/home/ada", r.guideway, "/usr/bin/guideway",
	).Replace(text)
	for _, d := range []struct{ pattern, placeholder string }{
		{`\br_[0-9a-z]{23}\b`, "RUN"},
		{`\bh_[0-9a-z]{21}\b`, "HANDLE"},
		{`\ba[0-9a-f]{16}\b`, "a0123456789abcdef"},
		{`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z`, "2026-11-01T09:00:00.000Z"},
		{`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}(-[0-9a-f]{2,8}\b)?`, "2026-11-01T09-00"},
		{`/20[0-9]{2}/[0-9]{2}/[0-9]{2}/`, "/2026/11/01/"},
		{`\b(call_[0-9]+_[0-9]+|search[0-9]+)\b`, "call_1"},
	} {
		text = regexp.MustCompile(d.pattern).ReplaceAllString(text, d.placeholder)
	}
	return regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`).ReplaceAllStringFunc(text, func(id string) string {
		if !slices.Contains(r.ids, id) {
			r.ids = append(r.ids, id)
		}
		return fmt.Sprintf("5a0f3d0e-26e8-49f7-93a1-%012d", slices.Index(r.ids, id)+1)
	})
}

// fixturesOf returns the directory of the events of a client.
func fixturesOf(c *client) string { return filepath.Join("../../internal/clienthook/testdata", c.name) }

// compareEvents checks that the client sends the members and types of the fixtures, or
// writes the fixtures if the user wants to record them. Fixtures of events that the script
// cannot cause have the form of the documentation.
func (r *rig) compareEvents() {
	r.Helper()
	dir := fixturesOf(r.client)
	events := r.recordedEvents()
	if os.Getenv(recordVariable) != "" {
		r.writeFixtures(dir, events)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		r.Fatal(err)
	}
	known := slices.Clone(r.client.documented)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		text, ok := events[name]
		if ok == slices.Contains(r.client.documented, name) {
			r.Errorf("%s: the program sends the event of the fixture %s: %t", r.client.name, name, ok)
		}
		if !ok {
			continue
		}
		known = append(known, name)
		fixture, err := os.ReadFile(file)
		if err != nil {
			r.Fatal(err)
		}
		if diff := cmp.Diff(shapeOf(r, string(fixture)), shapeOf(r, text)); diff != "" {
			r.Errorf("%s sends %s in another form than its fixture (-fixture +sent); %s=1 records it:\n%s", r.client.name, name, recordVariable, diff)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(events)) {
		if !slices.Contains(known, name) {
			r.Errorf("%s sends %s, which has no fixture; %s=1 records it: %s", r.client.name, name, recordVariable, events[name])
		}
	}
}

// writeFixtures writes the events, and the version of the program that sent them.
func (r *rig) writeFixtures(dir string, events map[string]string) {
	r.Helper()
	var pinned struct{ Dependencies map[string]string }
	readJSON(r.T, "package.json", &pinned)
	files := map[string]string{"version.txt": r.client.module + " " + pinned.Dependencies[r.client.module]}
	for name, text := range events {
		var out bytes.Buffer
		if err := json.Indent(&out, []byte(strings.TrimSpace(text)), "", "  "); err != nil {
			r.Fatal(err)
		}
		files[name+".json"] = out.String()
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600); err != nil {
			r.Fatal(err)
		}
	}
}

// shapeOf returns the JSON with the types of the values in place of the values. The elements
// of a list have one shape.
func shapeOf(r *rig, text string) any {
	r.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		r.Fatal(err)
	}
	return replaceValues(value)
}

func replaceValues(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = replaceValues(v[name])
		}
		return v
	case []any:
		var shapes []any
		for _, element := range v {
			shape := replaceValues(element)
			if !slices.ContainsFunc(shapes, func(s any) bool { return reflect.DeepEqual(s, shape) }) {
				shapes = append(shapes, shape)
			}
		}
		return shapes
	default:
		return fmt.Sprintf("%T", value)
	}
}
