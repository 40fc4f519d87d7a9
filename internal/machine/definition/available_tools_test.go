package definition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLintAvailableTools checks that a pattern that matches no tool is reported with a fix,
// and that a pattern that may match a tool of an unasked server is not reported.
func TestLintAvailableTools(t *testing.T) {
	t.Parallel()
	offers := AvailableTools{
		Tools:   []string{"workflow_start", "workflow_list", "github__get_issue", "github__search_issues"},
		Servers: []string{"github__", "late__"}, Unasked: []string{"late__"},
	}
	const server, nothing = "The upstream 'github' had no tool", "No configured upstream offers a tool"
	for _, tt := range []struct {
		pattern, says, fix string
	}{
		{"workflow_start", "", ""},
		{"workflow_*", "", ""},
		{"*", "", ""},
		{"*_issue", "", ""},
		{"github__get_*", "", ""},
		{"late__anything", "", ""},
		{"la*", "", ""},
		{"*thing", "", ""}, // the tools of the server "late" are unknown
		{"workflow_stort", nothing, "workflow_start"},
		{"githb__get_issue", nothing, "github__get_issue"},
		{"githb__get_*", nothing, "github__get_*"},
		{"gitlab*", nothing, "guideway upstream list"},
		{"github__get_isue", server, "github__get_issue"},
		{"github__put_*", server, "guideway upstream show"},
	} {
		for _, key := range []string{"includedTools", "excludedTools"} {
			config := strings.Replace(offersConfig, `"tools": {}`, fmt.Sprintf(`"tools": {%q: {"retry": "safe"}}`, tt.pattern), 1)
			f := Files{
				Config: File{Path: "a.json", Data: []byte(config)},
				Roles: []File{
					{Path: "a/roles.json", Data: fmt.Appendf(nil, `{"worker": {"systemMessage": "s", %q: [%q]}, "unplayed": {"systemMessage": "s", "includedTools": ["none"]}}`, key, tt.pattern)},
					{Path: "roles.json", Data: []byte(`{"worker": {"systemMessage": "s", "includedTools": ["none"]}}`)},
				},
			}
			found := LintAvailableTools(f, offers)
			if tt.says == "" {
				if len(found) > 0 {
					t.Errorf("%s %q: %v", key, tt.pattern, found)
				}
				continue
			}
			var at []string
			for _, d := range found {
				at = append(at, fmt.Sprintf("%s %s %s", d.File, d.Severity, d.Code))
				if !strings.HasPrefix(d.Message, tt.says) || !strings.Contains(d.Message, tt.pattern) || !strings.Contains(d.Fix, tt.fix) || d.Line == 0 {
					t.Errorf("%s %q: %+v", key, tt.pattern, d)
				}
			}
			if diff := cmp.Diff([]string{"a.json warning " + CodeToolUnknown, "a/roles.json warning " + CodeToolUnknown}, at); diff != "" {
				t.Errorf("%s %q: %s", key, tt.pattern, diff)
			}
		}
	}
}

// TestLintAvailableToolsEmpty checks that an unknown tool is reported if no tool is
// available, but not if an unasked server without a prefix may have it. For an invalid
// machine, nothing is reported.
func TestLintAvailableToolsEmpty(t *testing.T) {
	t.Parallel()
	f := Files{
		Config: File{Path: "a.json", Data: []byte(strings.Replace(offersConfig, `"tools": {}`, `"roles": {"worker": {"systemMessage": "s", "includedTools": ["read"]}}`, 1))},
	}
	if found := LintAvailableTools(f, AvailableTools{}); len(found) != 1 || found[0].File != "a.json" || found[0].Fix == "" {
		t.Errorf("LintAvailableTools without available tools returns %v", found)
	}
	if found := LintAvailableTools(f, AvailableTools{Servers: []string{""}, Unasked: []string{""}}); len(found) != 0 {
		t.Errorf("LintAvailableTools with a server without a prefix returns %v", found)
	}
	if found := LintAvailableTools(Files{Config: File{Path: "a.json", Data: []byte("{}")}}, AvailableTools{}); found != nil {
		t.Errorf("LintAvailableTools of an invalid machine returns %v", found)
	}
}

const offersConfig = `{
  "workflow_name": "a", "description": "d", "input": {"name": "i", "type": "string", "description": "d"},
  "output": {"name": "o", "type": "string", "description": "d"}, "contexts": [{"name": "c"}],
  "agents": [{"agent_role": "worker", "context": "c", "role": "assistant"}], "tools": {},
  "states": [{"name": "start", "agent": "worker"}]
}`
