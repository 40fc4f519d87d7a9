//go:build unix

package clients

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
	// tools are calls of the client's own tools by what they do: edit writes $FILE, push
	// executes "git push", read reads notes.md, plan plans, and agent starts a subagent for
	// $TASK. A client without hooks has none.
	tools map[string]ownTool
	// again are the arguments of the program for further turns of the session, by what happens
	// in them.
	again []turn
	// documented are the fixtures of events that the scripted model cannot cause.
	documented []string
	// slash is the slash command of the workflow upload with the goal "count all files". It is
	// empty for a client of which none is known that works without a terminal.
	slash string
	// trust lets the client use the server of the project, which is installed. It is nil for
	// a client that reads no file of the project.
	trust func(r *rig)
	// contacts are the hosts that the program tries to reach in spite of its settings.
	contacts []string
}

// ownTool is a call of a client's own tool.
type ownTool struct{ name, arguments string }

// turn is a further turn of a session.
type turn struct {
	arguments []string
	// settings are files that are written before.
	settings map[string]string
}

// half is a part of the result of a tool.
type half string

const (
	showsText      half = "the text"
	showsStructure half = "the structured content"
	showsBoth      half = "both halves"
)

// usualGoal is the prompt of the user.
const usualGoal = "Follow the workflow upload."

// programs returns the clients.
func programs() []*client {
	return []*client{
		{
			name: "claude-code", module: "@anthropic-ai/claude-code", shows: showsStructure, reconnects: true,
			env: []string{
				"ANTHROPIC_BASE_URL=$MODEL", "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
			},
			command: func(r *rig) []string {
				return []string{r.native("@anthropic-ai/claude-code-", "claude"), "-p", r.goal, "--allowedTools", "mcp__guideway", "Write"}
			},
			tools: map[string]ownTool{
				"edit":  {"Write", `{"file_path": "$FILE", "content": "words\n"}`},
				"push":  {"Bash", `{"command": "git push", "description": "Push"}`},
				"read":  {"Read", `{"file_path": "$PROJECT/notes.md"}`},
				"agent": {"Agent", `{"description": "a part", "prompt": "$TASK", "subagent_type": "general-purpose", "run_in_background": false}`},
			},
			slash: "/mcp__guideway__upload count all files",
			trust: func(r *rig) { r.write(".claude/settings.json", `{"enableAllProjectMcpServers": true}`) },
			again: []turn{{arguments: []string{"-p", "--continue", "/compact"}}, {arguments: []string{"-p", "--continue", "Go on."}}},
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
				return []string{r.bin("codex"), "exec", "--sandbox", "danger-full-access", "--dangerously-bypass-hook-trust", r.goal}
			},
			tools: map[string]ownTool{
				"edit": {"exec_command", `{"cmd": "echo words > '$FILE'"}`},
				"push": {"exec_command", `{"cmd": "git push"}`},
				"read": {"exec_command", `{"cmd": "cat notes.md"}`},
			},
			trust: func(r *rig) {
				r.write(".codex/config.toml", r.client.files[".codex/config.toml"]+"[projects.\""+r.project+"\"]\ntrust_level = \"trusted\"\n")
			},
			documented: []string{"PostToolUse.subagent", "PreToolUse.plan", "SubagentStop"},
			again:      []turn{{arguments: []string{"exec", "resume", "--last", "--dangerously-bypass-hook-trust", "-c", "model_auto_compact_token_limit=15", "Go on."}}},
			contacts:   []string{"github.com", "api.github.com", "chatgpt.com"}, // lists of plugins and of models
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
				return []string{r.bin("gemini"), "-p", r.goal, "-m", "gemini-2.5-pro", "--yolo", "--skip-trust"}
			},
			tools: map[string]ownTool{
				"edit": {"write_file", `{"file_path": "$FILE", "content": "words\n"}`},
				"push": {"run_shell_command", `{"command": "git push"}`},
				"read": {"read_file", `{"file_path": "$PROJECT/notes.md"}`},
			},
			slash:      `/upload --goal="count all files"`,
			trust:      func(r *rig) { r.env = append(r.env, "GEMINI_CLI_TRUST_WORKSPACE=true") },
			documented: []string{"BeforeTool.plan", "PreCompress"},
			again:      []turn{{arguments: []string{"--resume", "latest", "-p", "Go on.", "-m", "gemini-2.5-pro", "--yolo", "--skip-trust"}}},
		},
		{
			name: "copilot", module: "@github/copilot", shows: showsBoth, ignores: true, adds: 30, reconnects: true,
			env: []string{
				"COPILOT_PROVIDER_BASE_URL=$MODEL/v1", "COPILOT_PROVIDER_WIRE_API=responses", "COPILOT_MODEL=scripted",
				"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false",
			},
			command: func(r *rig) []string {
				return []string{r.native("@github/copilot-", "copilot"), "-p", r.goal, "--allow-all-tools", "--allow-all-paths"}
			},
			tools: map[string]ownTool{
				"edit":  {"bash", `{"command": "echo words > '$FILE'", "description": "write a file"}`},
				"push":  {"bash", `{"command": "git push", "description": "Push"}`},
				"read":  {"view", `{"path": "$PROJECT/notes.md"}`},
				"agent": {"task", `{"description": "a part", "prompt": "$TASK", "agent_type": "general-purpose", "name": "part", "mode": "sync"}`},
			},
			trust:      func(r *rig) { r.env = append(r.env, "GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP=true") },
			documented: []string{"PreToolUse.ask", "PreCompact"},
			again:      []turn{{arguments: []string{"--continue", "-p", "Go on.", "--allow-all-tools", "--allow-all-paths"}}},
		},
		{
			name: "opencode", module: "opencode-ai", shows: showsText, reconnects: true,
			files: map[string]string{".config/opencode/opencode.json": openCodeSettings + "\n}\n"},
			env:   []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
			command: func(r *rig) []string {
				return []string{r.native("opencode-", "bin", "opencode"), "run", "-m", "scripted/scripted", r.goal}
			},
			trust:    func(*rig) {},                  // opencode asks no one
			contacts: []string{"registry.npmjs.org"}, // a package for plugins
		},
		{
			name: "qwen", module: "@qwen-code/qwen-code", shows: showsBoth, adds: 750,
			files: map[string]string{".qwen/settings.json": qwenSettings + "\n}\n"},
			env:   []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=$MODEL/v1", "OPENAI_MODEL=scripted"},
			command: func(r *rig) []string {
				return []string{r.bin("qwen"), "--yolo", r.goal}
			},
			slash: "/upload count all files",
			trust: func(r *rig) { r.runCommand(r.bin("qwen"), "mcp", "approve", "guideway") },
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
				return []string{r.native("@cline/cli-", "bin", "cline"), "-P", "openai-compatible", "-m", "scripted", "--json", r.goal}
			},
			contacts: []string{"data.cline.bot", "otel.cline.bot"}, // telemetry
		},
		{
			name: "continue", module: "@continuedev/cli", shows: showsText, ignores: true, adds: 250,
			files: map[string]string{".continue/config.yaml": continueSettings},
			env:   []string{"CONTINUE_TELEMETRY_ENABLED=0"},
			command: func(r *rig) []string {
				return []string{r.bin("cn"), "--config", r.home + "/.continue/config.yaml", "--auto", "-p", r.goal}
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
