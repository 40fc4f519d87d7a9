package install

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
)

// Env describes the machine for a plan. Every field can be replaced, so that one test
// covers all platforms.
type Env struct {
	// GOOS is linux, darwin or windows. Others are treated like linux.
	GOOS string
	// Home is the user's directory.
	Home string
	// Dir is the directory of the project.
	Dir string
	// Getenv returns the value of an environment variable.
	Getenv func(string) string
	// Glob returns the paths that match a pattern. It may be nil.
	Glob func(pattern string) []string
	// Exists reports whether a path exists. It may be nil.
	Exists func(path string) bool
}

// Scope is the scope of a configuration.
type Scope string

// The scopes.
const (
	// ScopeUser is the configuration for all projects of the user.
	ScopeUser Scope = "user"
	// ScopeProject is the file in the project's directory.
	ScopeProject Scope = "project"
)

// Client is an MCP client and the location of its configuration.
type Client struct {
	// ID is the name on the command line, Title the name for people.
	ID, Title string
	// Aliases are other names of the client.
	Aliases []string
	// Project is the path of the file in a project, with slashes. It is empty if the client
	// has no project configuration.
	Project string
	// Next is the action after which the client uses the change.
	Next string

	form format
	user func(Env) Location
}

// Location is a configuration file and the paths that exist if the client is installed.
type Location struct {
	Path    string
	Markers []string
}

// Clients returns the supported clients in the order of lists.
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
			Next: "restart Cursor, or enable the server in its MCP settings",
			form: jsonFormat{key: "mcpServers"}, user: inHome(".cursor", "mcp.json"),
		},
		{
			ID: "vscode", Title: "VS Code", Aliases: []string{"code", "visualstudiocode"},
			Project: ".vscode/mcp.json", Next: `run "MCP: List Servers" in VS Code and start the server`,
			form: jsonFormat{key: "servers", typed: true}, user: locateVSCode,
		},
		{
			ID: "windsurf", Title: "Windsurf", Aliases: []string{"codeium"},
			Next: "refresh the MCP servers in Windsurf",
			form: servers, user: inHome(".codeium", "windsurf", "mcp_config.json"),
		},
		{
			ID: "codex", Title: "Codex", Aliases: []string{"openaicodex", "codexcli"},
			Project: ".codex/config.toml", Next: "start a new session of Codex",
			form: tomlFormat{key: "mcp_servers"}, user: locateCodex,
		},
	}
}

// Find returns the client with a name or alias. Case, spaces, dashes and underscores are
// ignored.
func Find(name string) (Client, error) {
	want := plainName(name)
	var known []string
	for _, c := range Clients() {
		for _, n := range append([]string{c.ID, c.Title}, c.Aliases...) {
			if want == plainName(n) {
				return c, nil
			}
		}
		known = append(known, c.ID)
	}
	return Client{}, guideway.Errorf(guideway.CodeNotFound, "unknown client %q (known: %s)",
		name, strings.Join(known, ", ")).WithFix("guideway install %s", nearestName(want))
}

func plainName(name string) string {
	return strings.NewReplacer(" ", "", "-", "", "_", "").Replace(strings.ToLower(name))
}

// nearestName returns the client name closest to a mistyped one.
func nearestName(want string) string {
	for _, c := range Clients() {
		id := plainName(c.ID)
		if want != "" && (strings.Contains(id, want) || strings.Contains(want, id) || id[:3] == (want + "   ")[:3]) {
			return c.ID
		}
	}
	return "claude-desktop"
}

// Locate returns the file of a client in a scope.
func Locate(env Env, c Client, scope Scope) (Location, error) {
	if scope == ScopeProject {
		if c.Project == "" {
			return Location{}, guideway.Errorf(guideway.CodeInvalid, "%s has no project configuration", c.Title).
				WithFix("guideway install %s --scope user", c.ID)
		}
		parts := append([]string{env.Dir}, strings.Split(c.Project, "/")...)
		loc := Location{Path: env.joinPath(parts...)}
		if len(parts) > 2 {
			loc.Markers = []string{env.joinPath(parts[:2]...)}
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

func (e Env) lookupVariable(key string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(key)
}

func (e Env) pathExists(path string) bool { return e.Exists != nil && e.Exists(path) }

// joinPath builds a path of Env's platform, not of the platform that the program runs on.
func (e Env) joinPath(parts ...string) string {
	if e.GOOS != "windows" {
		return strings.Join(parts, "/")
	}
	return strings.ReplaceAll(strings.Join(parts, `\`), "/", `\`)
}

// samePath reports whether two paths are equal on Env's platform.
func (e Env) samePath(a, b string) bool {
	if e.GOOS == "windows" {
		return strings.EqualFold(strings.ReplaceAll(a, "/", `\`), strings.ReplaceAll(b, "/", `\`))
	}
	return a == b
}

// settingsDir returns the directory of the settings of desktop programs.
func (e Env) settingsDir() string {
	switch e.GOOS {
	case "darwin":
		return e.joinPath(e.Home, "Library", "Application Support")
	case "windows":
		return cmp.Or(e.lookupVariable("APPDATA"), e.joinPath(e.Home, "AppData", "Roaming"))
	default:
		if dir := e.lookupVariable("XDG_CONFIG_HOME"); strings.HasPrefix(dir, "/") {
			return dir
		}
		return e.joinPath(e.Home, ".config")
	}
}

func inHome(parts ...string) func(Env) Location {
	return func(e Env) Location {
		all := append([]string{e.Home}, parts...)
		return Location{Path: e.joinPath(all...), Markers: []string{e.joinPath(all[:len(all)-1]...)}}
	}
}

func claudeDesktop(e Env) Location {
	dir := e.joinPath(e.settingsDir(), "Claude")
	if e.GOOS == "windows" {
		if packaged := claudePackage(e); packaged != "" {
			dir = packaged
		}
	}
	return Location{Path: e.joinPath(dir, "claude_desktop_config.json"), Markers: []string{dir}}
}

// claudePackage returns the directory of a Claude Desktop that was installed as an MSIX
// package. Windows redirects %APPDATA% for such a program, so it never reads a file in the
// real %APPDATA%.
func claudePackage(e Env) string {
	local := cmp.Or(e.lookupVariable("LOCALAPPDATA"), e.joinPath(e.Home, "AppData", "Local"))
	if e.Glob == nil {
		return ""
	}
	found := e.Glob(e.joinPath(local, "Packages", "Claude_*", "LocalCache", "Roaming"))
	for i, dir := range found {
		found[i] = e.joinPath(dir, "Claude")
		if e.pathExists(e.joinPath(found[i], "claude_desktop_config.json")) {
			return found[i]
		}
	}
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

func claudeCode(e Env) Location {
	if dir := e.lookupVariable("CLAUDE_CONFIG_DIR"); dir != "" {
		return Location{Path: e.joinPath(dir, ".claude.json"), Markers: []string{dir}}
	}
	return Location{Path: e.joinPath(e.Home, ".claude.json"), Markers: []string{e.joinPath(e.Home, ".claude")}}
}

func locateVSCode(e Env) Location {
	dir := e.joinPath(e.settingsDir(), "Code")
	if portable := e.lookupVariable("VSCODE_PORTABLE"); portable != "" {
		dir = e.joinPath(portable, "user-data")
	}
	return Location{Path: e.joinPath(dir, "User", "mcp.json"), Markers: []string{dir}}
}

func locateCodex(e Env) Location {
	dir := cmp.Or(e.lookupVariable("CODEX_HOME"), e.joinPath(e.Home, ".codex"))
	return Location{Path: e.joinPath(dir, "config.toml"), Markers: []string{dir}}
}

// syntaxError is an error in a file and its position. The line is 0 if the position is
// unknown.
type syntaxError struct {
	line, column int
	message      string
}

func (s *syntaxError) Error() string { return s.message }

func (s *syntaxError) positionIn(file string) string {
	if s.line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, s.line, s.column)
}
