package cli

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// clientTools are the tools that a client sees by default.
const clientTools = "workflow_abort workflow_checkpoint_list workflow_checkpoint_load workflow_checkpoint_save " +
	"workflow_context_compress workflow_context_prioritize workflow_continue workflow_fork workflow_get workflow_get_schema " +
	"workflow_list workflow_mark_critical workflow_next workflow_resume workflow_start workflow_status workflow_validate " +
	"workflow_validate_json workrail_create_session workrail_open_dashboard workrail_read_session workrail_update_session"

// providerName is the form of a tool's name that all providers of models accept.
var providerName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// portableKeywords are the members of input schemas that all recorded clients pass on and
// all providers accept. References, alternatives and formats are not among them.
var portableKeywords = []string{"additionalProperties", "description", "enum", "items", "properties", "required", "type"}

// shakeHands sends the messages that the client sends before the first call, and checks the
// answers.
func (c *conversation) shakeHands() {
	c.Helper()
	frames := strings.Split(c.profile.parts["start"], "\n")
	hello := c.wire.exchange(frames[:1], c.answerForm)
	for _, result := range hello {
		c.checkHello(result)
	}
	results := c.wire.exchange(frames[1:], c.answerForm)
	for _, frame := range frames[1:] {
		var m message
		if err := json.Unmarshal([]byte(frame), &m); err != nil {
			c.Fatal(err)
		}
		switch result := results[string(m.ID)]; m.Method {
		case "tools/list":
			c.checkTools(result)
		case "prompts/list":
			if !strings.Contains(string(result), `"name":"upload"`) {
				c.Errorf("the prompts are %s", result)
			}
		case "resources/list":
			if !strings.Contains(string(result), `"uri":`) {
				c.Errorf("the resources are %s", result)
			}
		}
	}
}

// checkHello checks the first answer: the version of the protocol that the client wants, the
// capabilities, and the instructions.
func (c *conversation) checkHello(result json.RawMessage) {
	c.Helper()
	var hello struct {
		ProtocolVersion   string         `json:"protocolVersion"`
		SupportedVersions []string       `json:"supportedVersions"`
		Capabilities      map[string]any `json:"capabilities"`
		Instructions      string         `json:"instructions"`
	}
	if err := json.Unmarshal(result, &hello); err != nil {
		c.Fatal(err)
	}
	version := c.profile.settings["version"]
	if c.profile.modern() && !slices.Contains(hello.SupportedVersions, version) || !c.profile.modern() && hello.ProtocolVersion != version {
		c.Errorf("the versions are %q and %q, want %q", hello.ProtocolVersion, hello.SupportedVersions, version)
	}
	changes := map[string]any{"listChanged": true}
	want := map[string]any{
		"completions": map[string]any{}, "logging": map[string]any{}, "prompts": changes, "tools": changes,
		"resources": map[string]any{"listChanged": true, "subscribe": true},
	}
	if d := cmp.Diff(want, hello.Capabilities); d != "" {
		c.Errorf("the capabilities (-want +got):\n%s", d)
	}
	if !strings.Contains(hello.Instructions, "workflow_start") {
		c.Errorf("the instructions are %q", hello.Instructions)
	}
}

// checkTools checks the list of tools: the names and schemas, which the client and the
// provider of its model must accept, and the size, because the list is part of every
// conversation.
func (c *conversation) checkTools(result json.RawMessage) {
	c.Helper()
	const largest = 20_000
	if len(result) > largest {
		c.Errorf("the list of tools has %d bytes", len(result))
	}
	var list struct {
		Tools []struct {
			Name, Description string
			InputSchema       map[string]any
			OutputSchema      map[string]any
			Annotations       map[string]any
		}
	}
	if err := json.Unmarshal(result, &list); err != nil {
		c.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if shown := strings.Replace(c.profile.settings["tool"], "NAME", tool.Name, 1); !providerName.MatchString(shown) {
			c.Errorf("the model's provider refuses the name %s", shown)
		}
		if tool.Description == "" || tool.InputSchema["type"] != "object" {
			c.Errorf("%s has no description, or a schema that is not of an object", tool.Name)
		}
		if tool.OutputSchema != nil {
			c.Errorf("%s has an output schema, although its answers are text", tool.Name)
		}
		// Codex refuses tools that do not state whether they are destructive.
		if tool.Annotations["readOnlyHint"] != true && tool.Annotations["destructiveHint"] == nil {
			c.Errorf("%s: the annotations are %v", tool.Name, tool.Annotations)
		}
		c.checkSchema(tool.Name, tool.InputSchema)
	}
	slices.Sort(names)
	if d := cmp.Diff(strings.Fields(clientTools), names); d != "" {
		c.Errorf("the tools (-want +got):\n%s", d)
	}
}

// checkSchema checks that an input schema has only portable keywords at every level.
func (c *conversation) checkSchema(path string, schema map[string]any) {
	c.Helper()
	if _, text := schema["type"].(string); !text {
		c.Errorf("%s: the type is %v", path, schema["type"])
	}
	for _, key := range slices.Sorted(maps.Keys(schema)) {
		if !slices.Contains(portableKeywords, key) {
			c.Errorf("%s: not every client accepts %q", path, key)
		}
	}
	if items, ok := schema["items"].(map[string]any); ok {
		c.checkSchema(path+"[]", items)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		member, ok := property.(map[string]any)
		if !ok {
			c.Errorf("%s.%s: the schema is %v", path, name, property)
			continue
		}
		c.checkSchema(path+"."+name, member)
	}
}
