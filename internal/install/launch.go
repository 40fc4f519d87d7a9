package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// Launch is a way in which a client starts Guideway.
type Launch string

// The ways to start.
const (
	// LaunchAuto is the way in which this process was started: the binary, or npx if the
	// binary is in the cache of npx.
	LaunchAuto   Launch = "auto"
	LaunchBinary Launch = "binary"
	LaunchNPX    Launch = "npx"
	LaunchDocker Launch = "docker"
)

// Launches returns the ways to start, the default first.
func Launches() []Launch { return []Launch{LaunchAuto, LaunchBinary, LaunchNPX, LaunchDocker} }

const (
	// Package is the npm package of the Guideway binary.
	Package = "@guideway-dev/guideway"
	// Image is the container image of Guideway.
	Image = "ghcr.io/guideway-dev/guideway"
)

// Start returns the command and the arguments for a client. A container gets only the
// environment variables of env.
func Start(way Launch, executable, pathList string, env map[string]string) (command string, args []string, err error) {
	if way == LaunchAuto || way == "" {
		way = LaunchBinary
		if inNPX(executable) {
			way = LaunchNPX
		}
	}
	switch way {
	case LaunchBinary:
		command, err = Binary(executable, pathList)
		return command, mcpArgs(), err
	case LaunchNPX:
		fix := "install Node.js, or use --launch binary"
		if inNPX(executable) {
			fix = "add the directory of npx to PATH as an absolute path, or install the binary and run guideway install from it"
		}
		command, err = findProgram("npx", pathList, fix)
		return command, append([]string{"-y", Package}, mcpArgs()...), err
	case LaunchDocker:
		command, err = findProgram("docker", pathList, "install Docker, or use --launch binary")
		args = []string{"run", "--rm", "-i", "-v", "guideway:/data"}
		for _, name := range slices.Sorted(maps.Keys(env)) {
			args = append(args, "-e", name)
		}
		return command, append(args, Image, "mcp"), err
	}
	return "", nil, guideway.Errorf(guideway.CodeInvalid, "unknown way to start Guideway: --launch %q (not auto, binary, npx or docker)", way).
		WithFix("use --launch auto")
}

func mcpArgs() []string { return []string{"mcp"} }

// findProgram returns the absolute path of a program, because desktop clients have a
// different search path than a shell.
func findProgram(program, pathList, fix string) (string, error) {
	for _, dir := range filepath.SplitList(pathList) {
		for _, suffix := range []string{"", ".cmd", ".exe"} {
			path := filepath.Join(dir, program+suffix)
			if info, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && isExecutable(path, info) {
				return path, nil
			}
		}
	}
	return "", guideway.Errorf(guideway.CodeNotFound, "%s is not on PATH", program).WithFix("%s", fix)
}

// isExecutable reports whether a file can be started: by its permissions, and on Windows by
// its name.
func isExecutable(path string, info os.FileInfo) bool {
	return info.Mode()&0o111 != 0 || strings.EqualFold(filepath.Ext(path), ".cmd") || strings.EqualFold(filepath.Ext(path), ".exe")
}

func inNPX(path string) bool {
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "_npx")
}

// startsPackage reports whether an entry starts Guideway by npx or in a container.
func startsPackage(e Entry) bool {
	if len(e.Args) == 0 || e.Args[len(e.Args)-1] != "mcp" && !slices.Contains(e.Args, connectCommand) {
		return false
	}
	base := strings.ToLower(filepath.Base(strings.ReplaceAll(e.Command, `\`, "/")))
	switch strings.TrimSuffix(strings.TrimSuffix(base, ".cmd"), ".exe") {
	case "npx":
		return slices.ContainsFunc(e.Args, func(a string) bool { return a == Package || strings.HasPrefix(a, Package+"@") })
	case "docker", "podman":
		return slices.ContainsFunc(e.Args, func(a string) bool {
			return a == Image || strings.HasPrefix(a, Image+":") || strings.HasPrefix(a, Image+"@")
		})
	}
	return false
}

// Binary returns the absolute path that a client should start: the path of the running
// executable, in a form that survives an upgrade. Package managers often put a symbolic
// link to a versioned file into the search path; the link is then the better path. pathList
// has the form of PATH.
func Binary(executable, pathList string) (string, error) {
	if executable == "" || !filepath.IsAbs(executable) {
		return "", guideway.Errorf(guideway.CodeInvalid, "the absolute path of this program is unknown (got %q)", executable).
			WithFix("start guideway by its absolute path")
	}
	if isTemporary(executable) {
		return "", guideway.Errorf(guideway.CodeInvalid,
			"cannot install %s (a temporary binary, such as the output of go run, does not exist when the client starts it)", executable).
			WithFix("run go install github.com/guideway-dev/guideway/cmd/guideway@latest, then guideway install")
	}
	own, err := os.Stat(executable)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInvalid, "cannot install %s (%w)", executable, safeopen.Cause(err)).
			WithFix("run guideway install again from the installed binary")
	}
	for _, dir := range filepath.SplitList(pathList) {
		if !filepath.IsAbs(dir) {
			continue
		}
		candidate := filepath.Join(dir, filepath.Base(executable))
		if info, err := os.Stat(candidate); err == nil && os.SameFile(own, info) && !isTemporary(candidate) {
			return candidate, nil
		}
	}
	return filepath.Clean(executable), nil
}

// isTemporary reports whether a binary is in a directory that go or npx cleans up.
func isTemporary(path string) bool {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.ContainsFunc(parts, func(p string) bool {
		return strings.HasPrefix(p, "go-build") || p == "_npx"
	})
}
