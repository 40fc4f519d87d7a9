package install

import (
	"cmp"
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

// Locate returns the file of a client in a scope.
func Locate(env Env, c Client, scope Scope) (Location, error) {
	if scope == ScopeProject {
		if c.Project == "" {
			return Location{}, guideway.Errorf(guideway.CodeInvalid, "%s has no project configuration", c.Title).
				WithFix("guideway install %s --scope user", c.ID)
		}
		parts := append([]string{env.Dir}, strings.Split(c.Project, "/")...)
		loc := Location{Path: env.preferCommented(c, env.joinPath(parts...))}
		if len(parts) > 2 {
			loc.Markers = []string{env.joinPath(parts[:2]...)}
		}
		return loc, nil
	}
	if env.Home == "" {
		return Location{}, guideway.Errorf(guideway.CodeInvalid, "the home directory is unknown (%s is not set)", env.homeVar()).
			WithFix("set %s", env.homeVar())
	}
	loc := env.locateUser(c)
	loc.Path = env.preferCommented(c, loc.Path)
	return loc, nil
}

// preferCommented returns the path of the file with comments if only that one exists.
func (e Env) preferCommented(c Client, path string) string {
	if c.Commented && e.pathExists(path+"c") && !e.pathExists(path) {
		return path + "c"
	}
	return path
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

// locateUser returns the file of the user.
func (e Env) locateUser(c Client) Location {
	switch c.ID {
	case "claude-desktop":
		return claudeDesktop(e)
	case "claude-code":
		return claudeCode(e)
	case "vscode":
		return locateVSCode(e)
	case "cline":
		return locateCline(e)
	}
	dir := e.expandPath(c.Dir)
	if c.ID == "qwen" { // Qwen Code expands ~ in its variable
		dir = e.expandPath(dir)
	}
	return Location{Path: e.joinPath(dir, c.File), Markers: []string{dir}}
}

// expandPath returns the path of a declaration. A leading ${NAME:-OTHER} is the value of the
// variable or, if that is empty, OTHER, and another leading ~ is the directory of the user.
func (e Env) expandPath(text string) string {
	if expression, rest, ok := strings.Cut(strings.TrimPrefix(text, "${"), "}"); ok {
		name, other, _ := strings.Cut(expression, ":-")
		if value := e.lookupVariable(name); value != "" {
			return e.joinPath(value + rest)
		}
		text = other + rest
	}
	if rest, ok := strings.CutPrefix(text, "~"); ok && strings.TrimLeft(rest, `/\`) != rest || text == "~" {
		text = e.Home + rest
	}
	return e.joinPath(text)
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

func locateCline(e Env) Location {
	dir := cmp.Or(e.lookupVariable("CLINE_DIR"), e.joinPath(e.Home, ".cline"))
	data := cmp.Or(e.lookupVariable("CLINE_DATA_DIR"), e.joinPath(dir, "data"))
	path := cmp.Or(e.lookupVariable("CLINE_MCP_SETTINGS_PATH"), e.joinPath(data, "settings", "cline_mcp_settings.json"))
	return Location{Path: path, Markers: []string{dir, data}}
}
