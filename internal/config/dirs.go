package config

import "strings"

// Dirs are the directories that belong to this user and program. An entry is
// empty where the environment does not say where it would be.
type Dirs struct {
	// Config holds guideway.json and the user's workflows.
	Config string
	// Data holds what must not be lost: the journal, blobs, the token.
	Data string
	// Cache holds what can be fetched again.
	Cache string
	// State holds what must stay where it is when Data is put back from a copy.
	State string
}

// appName is the last element of each directory.
const appName = "guideway"

// userDirs finds the directories for a platform: XDG on Linux and the other
// Unixes, Library on macOS, %APPDATA% and %LOCALAPPDATA% on Windows.
func userDirs(goos, home string, getenv func(string) string) Dirs {
	switch goos {
	case "windows":
		roaming := firstNonEmpty(getenv("APPDATA"), below(goos, home, "AppData", "Roaming"))
		local := firstNonEmpty(getenv("LOCALAPPDATA"), below(goos, home, "AppData", "Local"))
		return Dirs{
			Config: below(goos, roaming, appName),
			Data:   below(goos, local, appName),
			Cache:  below(goos, local, appName, "cache"),
			State:  below(goos, local, appName+"-state"),
		}
	case "darwin", "ios":
		support := below(goos, home, "Library", "Application Support", appName)
		return Dirs{
			Config: support, Data: support,
			Cache: below(goos, home, "Library", "Caches", appName),
			State: below(goos, home, "Library", "Application Support", appName+"-state"),
		}
	default:
		xdg := func(name string, fallback ...string) string {
			// The XDG specification has relative values ignored.
			if dir := getenv(name); strings.HasPrefix(dir, "/") {
				return below(goos, dir, appName)
			}
			return below(goos, home, append(fallback, appName)...)
		}
		return Dirs{
			Config: xdg("XDG_CONFIG_HOME", ".config"),
			Data:   xdg("XDG_DATA_HOME", ".local", "share"),
			Cache:  xdg("XDG_CACHE_HOME", ".cache"),
			State:  xdg("XDG_STATE_HOME", ".local", "state"),
		}
	}
}

// below joins in the manner of goos, which in a test is not the one that the
// test runs on. Below "" is "".
func below(goos, dir string, elements ...string) string {
	if dir == "" {
		return ""
	}
	separator := "/"
	if goos == "windows" {
		separator = `\`
		dir = strings.TrimRight(dir, `/\`)
	} else if dir != "/" {
		dir = strings.TrimRight(dir, "/")
	} else {
		dir = ""
	}
	return dir + separator + strings.Join(elements, separator)
}

// isAbs says whether path is absolute in the manner of goos.
func isAbs(goos, path string) bool {
	if goos != "windows" {
		return strings.HasPrefix(path, "/")
	}
	if strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, "//") {
		return true
	}
	return len(path) >= 3 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

// splitList splits a list of paths as PATH is split.
func splitList(goos, text string) []string {
	separator := ":"
	if goos == "windows" {
		separator = ";"
	}
	var paths []string
	for path := range strings.SplitSeq(text, separator) {
		if path = strings.TrimSpace(path); path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

func firstNonEmpty(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}
