package install

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
)

// Env is what a plan knows of the machine. Every field can be faked, so that
// one test covers all platforms.
type Env struct {
	// GOOS is linux, darwin or windows; others are taken for linux.
	GOOS string
	// Home is the user's directory.
	Home string
	// Dir is the directory of the project.
	Dir string
	// Getenv looks up an environment variable.
	Getenv func(string) string
	// Glob gives the paths that match a pattern; nil means none.
	Glob func(pattern string) []string
	// Exists says whether there is something at a path; nil means nothing is.
	Exists func(path string) bool
}

// Scope is whose configuration is meant.
type Scope string

// The scopes.
const (
	// ScopeUser is the configuration for all projects of the user.
	ScopeUser Scope = "user"
	// ScopeProject is the file in the project's directory.
	ScopeProject Scope = "project"
)

// Client is an MCP client and where it keeps its configuration.
type Client struct {
	// ID is the name on the command line, Title the one that people know.
	ID, Title string
	// Aliases are other names for it.
	Aliases []string
	// Project is the path of the file in a project, with slashes; empty if
	// the client has none.
	Project string
	// Next says what makes the client see the change.
	Next string

	form format
	user func(Env) Location
}

// Location is a configuration file and the places that show that the client is
// on this machine.
type Location struct {
	Path    string
	Markers []string
}

func (c Client) format() format { return c.form }

// Clients gives the clients that Guideway knows, in the order of listings.
func Clients() []Client {
	servers := jsonFormat{key: "mcpServers", strict: true}
	return []Client{
		{
			ID: "claude-desktop", Title: "Claude Desktop", Aliases: []string{"claude"},
			Next: "quit Claude Desktop and open it again",
			form: servers, user: claudeDesktop,
		},
		{
			ID: "claude-code", Title: "Claude Code", Aliases: []string{"cc"},
			Project: ".mcp.json", Next: "start a new session of Claude Code",
			form: jsonFormat{key: "mcpServers", typed: true, strict: true}, user: claudeCode,
		},
		{
			ID: "cursor", Title: "Cursor", Project: ".cursor/mcp.json",
			Next: "restart Cursor, or switch the server on in its MCP settings",
			form: jsonFormat{key: "mcpServers"}, user: inHome(".cursor", "mcp.json"),
		},
		{
			ID: "vscode", Title: "VS Code", Aliases: []string{"code", "visualstudiocode"},
			Project: ".vscode/mcp.json", Next: `run "MCP: List Servers" in VS Code and start it`,
			form: jsonFormat{key: "servers", typed: true}, user: vscode,
		},
		{
			ID: "windsurf", Title: "Windsurf", Aliases: []string{"codeium"},
			Next: "refresh the MCP servers in Windsurf",
			form: servers, user: inHome(".codeium", "windsurf", "mcp_config.json"),
		},
		{
			ID: "codex", Title: "Codex", Aliases: []string{"openaicodex", "codexcli"},
			Project: ".codex/config.toml", Next: "start a new session of Codex",
			form: tomlFormat{key: "mcp_servers"}, user: codex,
		},
	}
}

// Find gives the client of a name or alias; case, spaces, dashes and
// underscores do not matter.
func Find(name string) (Client, error) {
	want := plain(name)
	var known []string
	for _, c := range Clients() {
		for _, n := range append([]string{c.ID, c.Title}, c.Aliases...) {
			if want == plain(n) {
				return c, nil
			}
		}
		known = append(known, c.ID)
	}
	return Client{}, guideway.Errorf(guideway.CodeNotFound, "unknown client %q (known: %s)",
		name, strings.Join(known, ", ")).WithFix("guideway install %s", nearest(want))
}

func plain(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// nearest guesses the client that a mistyped name means.
func nearest(want string) string {
	for _, c := range Clients() {
		id := plain(c.ID)
		if want != "" && (strings.Contains(id, want) || strings.Contains(want, id) || id[:3] == (want + "   ")[:3]) {
			return c.ID
		}
	}
	return "claude-desktop"
}

// Locate gives the file of a client in a scope.
func Locate(env Env, c Client, scope Scope) (Location, error) {
	if scope == ScopeProject {
		if c.Project == "" {
			return Location{}, guideway.Errorf(guideway.CodeInvalid, "%s has no configuration in a project", c.Title).
				WithFix("guideway install %s --scope user", c.ID)
		}
		parts := append([]string{env.Dir}, strings.Split(c.Project, "/")...)
		loc := Location{Path: env.join(parts...)}
		if len(parts) > 2 {
			loc.Markers = []string{env.join(parts[:2]...)}
		}
		return loc, nil
	}
	if env.Home == "" {
		return Location{}, guideway.Errorf(guideway.CodeInvalid, "the home directory is unknown (%s is not set)", env.homeVar()).
			WithFix("set %s", env.homeVar())
	}
	return c.user(env), nil
}

func (e Env) homeVar() string {
	if e.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

func (e Env) getenv(key string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(key)
}

func (e Env) exists(path string) bool { return e.Exists != nil && e.Exists(path) }

// join builds a path of the platform that Env describes, not of the one that
// the program runs on.
func (e Env) join(parts ...string) string {
	if e.GOOS != "windows" {
		return strings.Join(parts, "/")
	}
	return strings.ReplaceAll(strings.Join(parts, `\`), "/", `\`)
}

// samePath compares paths the way the platform does.
func (e Env) samePath(a, b string) bool {
	if e.GOOS == "windows" {
		return strings.EqualFold(strings.ReplaceAll(a, "/", `\`), strings.ReplaceAll(b, "/", `\`))
	}
	return a == b
}

// roaming is the directory in which desktop programs keep their settings.
func (e Env) roaming() string {
	switch e.GOOS {
	case "darwin":
		return e.join(e.Home, "Library", "Application Support")
	case "windows":
		if dir := e.getenv("APPDATA"); dir != "" {
			return dir
		}
		return e.join(e.Home, "AppData", "Roaming")
	default:
		if dir := e.getenv("XDG_CONFIG_HOME"); strings.HasPrefix(dir, "/") {
			return dir
		}
		return e.join(e.Home, ".config")
	}
}

func inHome(parts ...string) func(Env) Location {
	return func(e Env) Location {
		all := append([]string{e.Home}, parts...)
		return Location{Path: e.join(all...), Markers: []string{e.join(all[:len(all)-1]...)}}
	}
}

func claudeDesktop(e Env) Location {
	dir := e.join(e.roaming(), "Claude")
	if e.GOOS == "windows" {
		if packaged := claudePackage(e); packaged != "" {
			dir = packaged
		}
	}
	return Location{Path: e.join(dir, "claude_desktop_config.json"), Markers: []string{dir}}
}

// claudePackage is the directory of a Claude Desktop that came as an MSIX
// package: Windows shows such a program its own copy of %APPDATA%, so that it
// never reads a file in the real one.
func claudePackage(e Env) string {
	local := e.getenv("LOCALAPPDATA")
	if local == "" {
		local = e.join(e.Home, "AppData", "Local")
	}
	if e.Glob == nil {
		return ""
	}
	found := e.Glob(e.join(local, "Packages", "Claude_*", "LocalCache", "Roaming"))
	for i, dir := range found {
		found[i] = e.join(dir, "Claude")
		if e.exists(e.join(found[i], "claude_desktop_config.json")) {
			return found[i]
		}
	}
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

func claudeCode(e Env) Location {
	if dir := e.getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return Location{Path: e.join(dir, ".claude.json"), Markers: []string{dir}}
	}
	return Location{Path: e.join(e.Home, ".claude.json"), Markers: []string{e.join(e.Home, ".claude")}}
}

func vscode(e Env) Location {
	dir := e.join(e.roaming(), "Code")
	if portable := e.getenv("VSCODE_PORTABLE"); portable != "" {
		dir = e.join(portable, "user-data")
	}
	return Location{Path: e.join(dir, "User", "mcp.json"), Markers: []string{dir}}
}

func codex(e Env) Location {
	dir := e.getenv("CODEX_HOME")
	if dir == "" {
		dir = e.join(e.Home, ".codex")
	}
	return Location{Path: e.join(dir, "config.toml"), Markers: []string{dir}}
}

// syntaxError is a place in a file that cannot be read.
type syntaxError struct {
	line, column int
	message      string
}

func (s *syntaxError) Error() string { return s.message }

func (s *syntaxError) at(file string) string {
	if s.line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, s.line, s.column)
}
