package config

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// durationPart matches a number with a unit at the start of a text.
var durationPart = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9]*\.?[0-9]*)(ns|us|µs|μs|ms|s|m|h|d|w)`) })

// ParseDuration parses a duration like time.ParseDuration, with d for days of 24 hours and
// w for weeks. It refuses negative durations.
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.TrimPrefix(text, "+")
	if rest == "0" {
		return 0, nil
	}
	total := time.Duration(0)
	for first := true; first || rest != ""; first = false {
		part := durationPart().FindStringSubmatch(rest)
		if part == nil {
			return 0, fmt.Errorf(`%q is not a duration such as "30s" or "7d"`, text)
		}
		rest = rest[len(part[0]):]
		number, unit := part[1], part[2]
		scale := time.Duration(1)
		switch unit {
		case "d":
			scale, unit = day/time.Hour, "h"
		case "w":
			scale, unit = week/time.Hour, "h"
		}
		d, err := time.ParseDuration(number + unit)
		if err != nil {
			return 0, fmt.Errorf(`%q is not a duration such as "30s" or "7d"`, text)
		}
		if d > (math.MaxInt64-total)/scale {
			return 0, fmt.Errorf("the duration %q is longer than 292 years", text)
		}
		total += d * scale
	}
	return total, nil
}

// DurationText formats a duration for ParseDuration: whole days as days, other durations
// like time.Duration.
func DurationText(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}

// sizeUnit is a unit of sizes.
type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits are the units of sizes, the largest first.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"TiB", 1 << 40},
		{"TB", 1e12},
		{"GiB", 1 << 30},
		{"GB", 1e9},
		{"MiB", 1 << 20},
		{"MB", 1e6},
		{"KiB", 1 << 10},
		{"KB", 1e3},
		{"B", 1},
	}
}

// ParseSize parses a number of bytes: "10MB", "1.5 GiB", "4096". Units with an i are powers
// of 1024, the others of 1000. Case does not matter.
func ParseSize(text string) (int64, error) {
	number, scale := strings.TrimSpace(text), int64(1)
	for _, unit := range sizeUnits() {
		if head := len(number) - len(unit.name); head > 0 && strings.EqualFold(number[head:], unit.name) {
			number, scale = strings.TrimSpace(number[:head]), unit.bytes
			break
		}
	}
	if number == "" || strings.Trim(number, "0123456789.") != "" {
		return 0, fmt.Errorf(`%q is not a size such as "10MB"`, text)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf(`%q is not a size such as "10MB"`, text)
	}
	if n*float64(scale) >= math.MaxInt64 {
		return 0, fmt.Errorf("the size %q must be less than 8 EiB", text)
	}
	return int64(n * float64(scale)), nil
}

// SizeText formats a size for ParseSize, in the largest unit that makes it a whole number.
func SizeText(n int64) string {
	for _, unit := range sizeUnits() {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

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
