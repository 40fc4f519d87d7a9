package mcp

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
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

// TestPeopleReadNoRepository checks that a client of another user than the local one learns
// neither branch nor commit of a directory that it names.
func TestPeopleReadNoRepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".git", "objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git", "refs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for branch, p := range map[string]guideway.Principal{"secret": {User: "ann"}, "": {User: "bob", Roles: []guideway.Role{guideway.RoleOperator}}} {
		c := call{tool: &tool{declaration: declaration{Name: "workflow_start", Params: []param{{Name: "project", Kind: kindString}}}}, arguments: arguments{"project": dir}}
		if found, err := (projects{}).findProject(auth.WithPrincipal(context.Background(), p), c); err != nil || found.Branch != branch || found.Path != dir {
			t.Errorf("%s: %+v, %v", p.User, found, err)
		}
	}
}
