//go:build unix

package clients

// client is the program of a client.
type client struct {
	// name is the client's name for guideway install, module its npm package.
	name, module string
	// files are its settings below the home directory, env its environment. MODEL is the URL
	// of the model.
	files map[string]string
	env   []string
	// entry is the configuration of Guideway, for a client that guideway install does not
	// know. It replaces a file of files.
	entry map[string]string
	// command returns the program and its arguments.
	command func(r *rig) []string
	// contacts are the hosts that the program tries to reach in spite of its settings.
	contacts []string
}

// goal is the prompt of the user.
const goal = "Follow the workflow upload."

// programs returns the clients.
func programs() []*client {
	return []*client{
		{
			name: "claude-code", module: "@anthropic-ai/claude-code",
			env: []string{
				"ANTHROPIC_BASE_URL=MODEL", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
			},
			command: func(r *rig) []string {
				return []string{r.native("@anthropic-ai/claude-code-", "claude"), "-p", goal, "--allowedTools", "mcp__guideway"}
			},
		},
	}
}
