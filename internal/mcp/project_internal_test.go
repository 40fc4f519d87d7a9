package mcp

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// TestForeignPaths checks that a path with a drive belongs to another machine, except on
// Windows.
func TestForeignPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{`C:\work\app`, `c:/work/app`, `Z:\`} {
		if !isForeignPath(path, "linux") || !isForeignPath(path, "darwin") || isForeignPath(path, "windows") {
			t.Errorf("%s: wrong", path)
		}
	}
	for _, path := range []string{"/work/app", `C:work`, `\\server\share`, "work"} {
		if isForeignPath(path, "linux") || isForeignPath(path, "windows") {
			t.Errorf("%s: a path of this machine", path)
		}
	}
}

// TestNetworkPathsAreRefused checks that a call cannot make the server access a path on a
// network. Windows would send the user's name and a hash of the password to the host in the
// path.
func TestNetworkPathsAreRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{`\\attacker\share`, `\\?\UNC\attacker\share`, `\??\UNC\attacker\share`} {
		c := call{tool: &tool{declaration: declaration{Name: "workflow_start", Params: []param{{Name: "project", Kind: kindString}}}}, arguments: arguments{"project": path}}
		_, err := projects{}.findProject(t.Context(), c)
		var bad *callError
		if !errors.As(err, &bad) || bad.Field != "project" || bad.Given != path || bad.Fix == "" || bad.Next.Arguments["project"] != nil {
			t.Errorf("%s: %v", path, err)
		} else if runtime.GOOS == "windows" && !strings.Contains(bad.Message, "network") {
			t.Errorf("%s: %s", path, bad.Message)
		}
	}
}
