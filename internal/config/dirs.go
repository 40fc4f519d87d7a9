package config

import (
	"cmp"
	"strings"
)

// Dirs are the directories of this user for the program. An entry is empty if the
// environment does not define it.
type Dirs struct {
	// Config contains guideway.json and the user's workflows.
	Config string
	// Data stores data that must not be lost: the journal, blobs, the token.
	Data string
	// Cache stores data that can be fetched again.
	Cache string
	// State stores data that must not change when Data is restored from a copy.
	State string
}

// appName is the last element of each directory.
const appName = "guideway"

// userDirs returns the directories for a platform: XDG on Linux and other Unixes, Library
// on macOS, %APPDATA% and %LOCALAPPDATA% on Windows.
func userDirs(goos, home string, getenv func(string) string) Dirs {
	switch goos {
	case "windows":
		roaming := cmp.Or(getenv("APPDATA"), joinPath(goos, home, "AppData", "Roaming"))
		local := cmp.Or(getenv("LOCALAPPDATA"), joinPath(goos, home, "AppData", "Local"))
		return Dirs{
			Config: joinPath(goos, roaming, appName),
			Data:   joinPath(goos, local, appName),
			Cache:  joinPath(goos, local, appName, "cache"),
			State:  joinPath(goos, local, appName+"-state"),
		}
	case "darwin", "ios":
		support := joinPath(goos, home, "Library", "Application Support", appName)
		return Dirs{
			Config: support, Data: support,
			Cache: joinPath(goos, home, "Library", "Caches", appName),
			State: joinPath(goos, home, "Library", "Application Support", appName+"-state"),
		}
	default:
		xdg := func(name string, fallback ...string) string {
			// The XDG specification requires relative values to be ignored.
			if dir := getenv(name); strings.HasPrefix(dir, "/") {
				return joinPath(goos, dir, appName)
			}
			return joinPath(goos, home, append(fallback, appName)...)
		}
		return Dirs{
			Config: xdg("XDG_CONFIG_HOME", ".config"),
			Data:   xdg("XDG_DATA_HOME", ".local", "share"),
			Cache:  xdg("XDG_CACHE_HOME", ".cache"),
			State:  xdg("XDG_STATE_HOME", ".local", "state"),
		}
	}
}

// joinPath joins path elements like goos does, which in a test may be another platform. If
// dir is "", it returns "".
func joinPath(goos, dir string, elements ...string) string {
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

// isAbs reports whether path is absolute on goos.
func isAbs(goos, path string) bool {
	if goos != "windows" {
		return strings.HasPrefix(path, "/")
	}
	if strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, "//") {
		return true
	}
	return len(path) >= 3 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}

// splitList splits a list of paths like PATH.
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
