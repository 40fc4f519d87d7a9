package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/config"
)

// TestEntries checks that invalid sources, upstreams and models are reported in the same
// wording, and that a valid one is loaded.
func TestEntries(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"source": `{"git": "https://github.com/acme/flows"}`, "upstream": `{"command": "server"}`, "model": `{"provider": "openai", "model": "x"}`,
	}
	slip := map[string]string{"source": "brnch", "upstream": "comand", "model": "baseUri"}
	near := map[string]string{"source": "branch", "upstream": "command", "model": "baseUrl"}
	for one, fine := range good {
		for text, want := range map[string]string{
			`[]`:                                `"` + one + `s" is a list; write an object of ` + one + `s`,
			`{"a": null}`:                       `the ` + one + ` "a" is null; write an object`,
			`{"a": "b"}`:                        `the ` + one + ` "a" is a string; write an object`,
			`{"a": {"` + slip[one] + `": "x"}}`: `"` + slip[one] + `" of the ` + one + ` "a" is not a setting; did you mean "` + near[one] + `"?`,
			`{"a": {"qqqqqq": 1}}`:              `"qqqqqq" of the ` + one + ` "a" is not a setting; use one of: `,
			`{"a": {}, "a": {}}`:                `the ` + one + ` "a" is set twice; remove one of the two entries`,
		} {
			_, err := config.Load(config.Options{File: writeConfig(t, `{"`+one+`s": `+text+`}`), Getenv: environment(), GOOS: "linux", Dir: "/"})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %ss: error %v, want %q in it", text, one, err, want)
			}
		}
		c, err := config.Load(config.Options{File: writeConfig(t, `{"`+one+`s": {"good": `+fine+`}}`), Getenv: environment(), GOOS: "linux", Dir: "/"})
		if err != nil {
			t.Errorf("a valid %s has the error %v", one, err)
			continue
		}
		if diff := cmp.Diff(1, len(c.Sources)+len(c.Upstreams)+len(c.Models)); diff != "" {
			t.Errorf("%ss: %s", one, diff)
		}
	}
}

// TestEntriesWithin checks that the error about a misspelled or wrongly typed member of an
// upstream suggests the correct name or type.
func TestEntriesWithin(t *testing.T) {
	t.Parallel()
	for entry, want := range map[string]string{
		`"oauth": {"clientIdd": "x"}`: `:3:53: "clientIdd" of the upstream "a" is not a setting; did you mean "clientId"?`,
		`"oauth": {"qqqqqqqq": "x"}`:  `"qqqqqqqq" of the upstream "a" is not a setting; use one of: grant, tokenUrl, issuer, clientId, `,
		`"oauth": {"scopes": "x"}`:    `"oauth.scopes" of the upstream "a" is a string; write a list of strings`,
		`"dir": 1`:                    `"dir" of the upstream "a" is a number; write a string`,
		`"tools": {"x": {"readOnly": true, "destructive": true}}`: `the tool "x" of the upstream "a": a tool cannot be both readOnly and destructive; set one of the two to false`,
		`"tools": {"x": {"readOnly": "yes"}}`:                     `of the upstream "a" is a string; write true or false`,
		`"tools": {"x": {"readonl": true}}`:                       `"readonl" of the upstream "a" is not a setting; did you mean "readOnly"?`,
	} {
		text := "{\n  \"upstreams\": {\n    \"a\": {\"url\": \"https://a.example/mcp\", " + entry + "}}}"
		_, err := config.Load(config.Options{File: writeConfig(t, text), Getenv: environment(), GOOS: "linux", Dir: "/"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, without %q", err, want)
		}
	}
}

// TestToolPolicy checks the policy of all calls: names and objects are loaded, and an invalid
// rule is an error, because a rule that is ignored would let calls pass.
func TestToolPolicy(t *testing.T) {
	t.Parallel()
	load := func(tools string) (*config.Config, error) {
		return config.Load(config.Options{File: writeConfig(t, `{"gateway": {"tools": `+tools+`}}`), Getenv: environment(), GOOS: "linux", Dir: "/"})
	}
	c, err := load(`{"allow": [], "hold": ["git__push", {"tool": "*", "annotations": {"destructive": true}, "arguments": {"path": "/etc/*"}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &config.ToolPolicy{Allow: []config.ToolRule{}, Hold: []config.ToolRule{
		{Tool: "git__push"}, {Tool: "*", Annotations: map[string]bool{"destructive": true}, Arguments: map[string]string{"path": "/etc/*"}},
	}}
	if diff := cmp.Diff(want, c.Gateway.Tools); diff != "" {
		t.Error(diff)
	}
	for tools, want := range map[string]string{
		`["git__push"]`:            `"gateway.tools" is a list; write an object, such as`,
		`{"held": []}`:             `"gateway.tools.held" is not a setting; use one of: allow, deny, hold`,
		`{"hold": "git__push"}`:    `"gateway.tools.hold" is a string; write a list, such as`,
		`{"hold": [], "hold": []}`: `"gateway.tools.hold" is set twice`,
		`{"deny": [""]}`:           `rule 1 of "gateway.tools.deny" names no tool; write the name of a tool`,
		`{"hold": ["a", {}]}`:      `rule 2 of "gateway.tools.hold" names no tool`,
		`{"allow": [1]}`:           `rule 1 of "gateway.tools.allow" is a number`,
		`{"hold": [null]}`:         `rule 1 of "gateway.tools.hold" names no tool`,
		`{"hold": [{"tol": "a"}]}`: `"tol" of rule 1 of "gateway.tools.hold" is not a setting; did you mean "tool"?`,
		`{"hold": [{"tool": "a", "annotations": {"readOnlyHint": true}}]}`: `rule 1 of "gateway.tools.hold" has the unknown annotation "readOnlyHint"; use one of: readOnly,`,
		`{"hold": [{"tool": "a", "arguments": {"n": 1}}]}`:                 `"arguments" of rule 1 of "gateway.tools.hold" is a number`,
	} {
		if _, err := load(tools); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", tools, err, want)
		}
	}
}
