//go:build unix

package clients

import "fmt"

// client is the program of a client.
type client struct {
	// name is the client's name for guideway install, module its npm package.
	name, module string
	// files are its settings below the home directory, env its environment. $MODEL is the URL
	// of the model.
	files map[string]string
	env   []string
	// command returns the program and its arguments.
	command func(r *rig) []string
	// shows is the part of a result that the model receives, if both are there.
	shows half
	// ignores reports that the client does not pass on the instructions of a server.
	ignores bool
	// adds is the number of bytes that the client adds to the answers of a run.
	adds int
	// reconnects reports whether the client starts a new session with a server over HTTP that
	// was started again.
	reconnects bool
	// edit returns a tool of the client and the arguments that make it write a file. It is nil
	// for a client without hooks.
	edit func(file string) (tool, arguments string)
	// contacts are the hosts that the program tries to reach in spite of its settings.
	contacts []string
}

// half is a part of the result of a tool.
type half string

const (
	showsText      half = "the text"
	showsStructure half = "the structured content"
	showsBoth      half = "both halves"
)

// goal is the prompt of the user.
const goal = "Follow the workflow upload."

// programs returns the clients.
func programs() []*client {
	return []*client{
		{
			name: "claude-code", module: "@anthropic-ai/claude-code", shows: showsStructure, reconnects: true,
			env: []string{
				"ANTHROPIC_BASE_URL=$MODEL", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
			},
			command: func(r *rig) []string {
				return []string{r.native("@anthropic-ai/claude-code-", "claude"), "-p", goal, "--allowedTools", "mcp__guideway", "Write"}
			},
			edit: writeFile("Write", "file_path", "content"),
		},
		{
			name: "codex", module: "@openai/codex", shows: showsStructure, adds: 200, reconnects: true,
			files: map[string]string{".codex/config.toml": `model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "$MODEL/v1"
wire_api = "responses"
env_key = "MODEL_KEY"
`},
			env: []string{"MODEL_KEY=none"},
			command: func(r *rig) []string {
				return []string{r.bin("codex"), "exec", "--sandbox", "danger-full-access", "--dangerously-bypass-hook-trust", goal}
			},
			edit:     runShell("exec_command", "cmd"),
			contacts: []string{"github.com", "api.github.com", "chatgpt.com"}, // lists of plugins and of models
		},
		{
			name: "gemini", module: "@google/gemini-cli", shows: showsText, adds: 600,
			files: map[string]string{".gemini/settings.json": `{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false}
}
`},
			env: []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=$MODEL"},
			command: func(r *rig) []string {
				return []string{r.bin("gemini"), "-p", goal, "-m", "gemini-2.5-pro", "--yolo", "--skip-trust"}
			},
			edit: writeFile("write_file", "file_path", "content"),
		},
		{
			name: "copilot", module: "@github/copilot", shows: showsBoth, ignores: true, adds: 30, reconnects: true,
			env: []string{
				"COPILOT_PROVIDER_BASE_URL=$MODEL/v1", "COPILOT_PROVIDER_WIRE_API=responses", "COPILOT_MODEL=scripted",
				"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
			},
			command: func(r *rig) []string {
				return []string{r.native("@github/copilot-", "copilot"), "-p", goal, "--allow-all-tools", "--allow-all-paths"}
			},
			edit: runShell("bash", "command"),
		},
		{
			name: "opencode", module: "opencode-ai", shows: showsText, reconnects: true,
			files: map[string]string{".config/opencode/opencode.json": openCodeSettings + "\n}\n"},
			env:   []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
			command: func(r *rig) []string {
				return []string{r.native("opencode-", "bin", "opencode"), "run", "-m", "scripted/scripted", goal}
			},
			contacts: []string{"registry.npmjs.org"}, // a package for plugins
		},
		{
			name: "qwen", module: "@qwen-code/qwen-code", shows: showsBoth, adds: 750,
			files: map[string]string{".qwen/settings.json": qwenSettings + "\n}\n"},
			env:   []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=$MODEL/v1", "OPENAI_MODEL=scripted"},
			command: func(r *rig) []string {
				return []string{r.bin("qwen"), "--yolo", goal}
			},
		},
		{
			name: "cline", module: "cline", shows: showsBoth, ignores: true, adds: 300,
			files: map[string]string{".cline/data/settings/providers.json": `{
  "version": 1,
  "lastUsedProvider": "openai-compatible",
  "modes": {},
  "providers": {
    "openai-compatible": {
      "settings": {"provider": "openai-compatible", "apiKey": "none", "model": "scripted", "baseUrl": "$MODEL/v1"},
      "updatedAt": "2026-01-01T00:00:00.000Z",
      "tokenSource": "manual"
    }
  }
}
`},
			command: func(r *rig) []string {
				return []string{r.native("@cline/cli-", "bin", "cline"), "-P", "openai-compatible", "-m", "scripted", "--json", goal}
			},
			contacts: []string{"data.cline.bot", "otel.cline.bot"}, // telemetry
		},
		{
			name: "continue", module: "@continuedev/cli", shows: showsText, ignores: true, adds: 250,
			files: map[string]string{".continue/config.yaml": continueSettings},
			env:   []string{"CONTINUE_TELEMETRY_ENABLED=0"},
			command: func(r *rig) []string {
				return []string{r.bin("cn"), "--config", r.home + "/.continue/config.yaml", "--auto", "-p", goal}
			},
		},
	}
}

const openCodeSettings = `{
  "autoupdate": false,
  "share": "disabled",
  "provider": {
    "scripted": {
      "npm": "@ai-sdk/openai-compatible",
      "options": {"baseURL": "$MODEL/v1", "apiKey": "none"},
      "models": {"scripted": {"tool_call": true, "limit": {"context": 200000, "output": 8000}}}
    }
  }`

const qwenSettings = `{
  "security": {"auth": {"selectedType": "openai"}},
  "model": {"name": "scripted"},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false}`

const continueSettings = `name: scripted
version: 1.0.0
schema: v1
models:
  - name: scripted
    provider: openai
    model: scripted
    apiBase: $MODEL/v1
    apiKey: none
    roles: [chat]
    capabilities: [tool_use]
`

// writeFile returns the arguments of a tool that writes a file, whose members have these
// names.
func writeFile(tool, path, content string) func(file string) (string, string) {
	return func(file string) (string, string) {
		return tool, fmt.Sprintf(`{%q: %q, %q: "words\n"}`, path, file, content)
	}
}

// runShell returns the arguments of a tool that executes a command, whose member has this
// name.
func runShell(tool, command string) func(file string) (string, string) {
	return func(file string) (string, string) {
		return tool, fmt.Sprintf(`{%q: "echo words > '%s'", "description": "write a file"}`, command, file)
	}
}
