package install

import (
	"cmp"
	"strings"

	"github.com/guideway-dev/guideway"
)

// manualClient is a client whose file guideway install does not edit, with its documented
// form.
type manualClient struct {
	title   string
	aliases []string
	// file is the file of the user, or of the project if the client has only that.
	file string
	// key is the member of the root that contains the entries.
	key string
	// shape is the form of an entry, unless text is set.
	shape shape
	// text returns the entry in another format.
	text func(name string, e Entry) string
}

func manualClients() []manualClient {
	plain := shape{url: "url", env: "env"}
	return []manualClient{
		{title: "Zed", aliases: []string{"zed"}, file: "~/.config/zed/settings.json", key: "context_servers", shape: plain},
		{title: "Goose", aliases: []string{"goose"}, file: "~/.config/goose/config.yaml", text: gooseEntry},
		{title: "Kiro", aliases: []string{"kiro", "kirocli"}, file: "~/.kiro/settings/mcp.json", key: "mcpServers", shape: plain},
		{title: "Amp", aliases: []string{"amp"}, file: "~/.config/amp/settings.json", key: "amp.mcpServers", shape: plain},
		{title: "Warp", aliases: []string{"warp"}, file: "~/.warp/.mcp.json", key: "mcpServers", shape: plain},
		{title: "Amazon Q", aliases: []string{"amazonq", "q", "amazonqcli"}, file: "~/.aws/amazonq/mcp.json", key: "mcpServers", shape: plain},
		{
			title: "Roo Code", aliases: []string{"roo", "roocode"}, file: ".roo/mcp.json in the project", key: "mcpServers",
			shape: shape{remote: "streamable-http", url: "url", env: "env"},
		},
	}
}

// gooseEntry returns an entry for Goose, which has other member names for the command and
// the variables.
func gooseEntry(name string, e Entry) string {
	f := []field{{"enabled", true}, {"name", name}}
	if e.URL != "" {
		f = append(f, field{"type", "streamable_http"}, field{"uri", e.URL})
		if e.Authorization != "" {
			f = append(f, field{"headers", []field{{authorizationHeader, e.Authorization}}})
		}
	} else {
		f = append(f, field{"type", "stdio"}, field{"cmd", e.Command}, field{"args", e.Args})
		if len(e.Env) > 0 {
			f = append(f, field{"envs", variableFields(e.Env)})
		}
	}
	return strings.TrimSpace(encodeYAML(newNode([]field{{"extensions", []field{{name, f}}}})))
}

// UnsupportedClient returns the error for a client that install cannot edit. Its fix
// contains the entry to paste: in the form of the client if it is known, and else in the
// form that most clients take.
func UnsupportedClient(name string, req Request) error {
	e := Entry{Command: cmp.Or(req.Command, "/path/to/guideway"), Args: req.Args, Env: req.Env}
	if len(e.Args) == 0 {
		e.Args = mcpArgs()
	}
	if req.URL != "" {
		e = Entry{URL: req.URL}
		if req.TokenEnv != "" {
			e.Authorization = "Bearer TOKEN"
		}
	}
	want := plainName(name)
	for _, c := range manualClients() {
		for _, alias := range c.aliases {
			if want == alias {
				return guideway.Errorf(guideway.CodeNotFound, "guideway install does not edit the configuration of %s", c.title).
					WithFix("add this entry to %s (see docs/clients.md):\n%s", c.file, c.entryText(nameOf(req), e))
			}
		}
	}
	_, err := Find(name)
	generic := manualClient{key: "mcpServers", shape: shape{remote: "http", url: "url", env: "env"}}
	return guideway.Errorf(guideway.CodeNotFound, "%w", err).
		WithFix("%s; or add this entry, which most clients take (see docs/clients.md):\n%s", guideway.ErrorFix(err), generic.entryText(nameOf(req), e))
}

func (c manualClient) entryText(name string, e Entry) string {
	if c.text != nil {
		return c.text(name, e)
	}
	return renderSnippet([]field{{c.key, []field{{name, c.shape.entryFields(e)}}}})
}
