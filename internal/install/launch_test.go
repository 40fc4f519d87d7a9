package install_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/install"
)

// newProgram creates an executable file in a temporary directory.
func newProgram(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{t.TempDir()}, elem...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLaunch checks the command of each way to start Guideway. A missing program and an
// unknown way are errors.
func TestLaunch(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("programs have other names on Windows")
	}
	own := newProgram(t, "guideway")
	cached := newProgram(t, "_npx", "1f", "node_modules", ".bin", "guideway")
	npx, docker := newProgram(t, "npx"), newProgram(t, "docker")
	all := filepath.Dir(own) + ":" + filepath.Dir(npx) + ":" + filepath.Dir(docker)
	env := map[string]string{"B": "2", "A": "1"}
	type start struct {
		Command string
		Args    []string
	}
	container := []string{"run", "--rm", "-i", "-v", "guideway:/data", "-e", "A", "-e", "B", install.Image, "mcp"}
	for name, c := range map[string]struct {
		way        install.Launch
		executable string
		path       string
		want       start
	}{
		"the binary":                        {install.LaunchAuto, own, all, start{own, []string{"mcp"}}},
		"started by npx":                    {install.LaunchAuto, cached, all, start{npx, []string{"-y", install.Package, "mcp"}}},
		"npx by choice":                     {install.LaunchNPX, own, all, start{npx, []string{"-y", install.Package, "mcp"}}},
		"a container":                       {install.LaunchDocker, own, all, start{docker, container}},
		"the binary in the npx cache":       {install.LaunchBinary, cached, all, start{}},
		"npx is missing":                    {install.LaunchNPX, own, filepath.Dir(own), start{}},
		"docker is missing":                 {install.LaunchDocker, own, filepath.Dir(own), start{}},
		"npx in a relative path is ignored": {install.LaunchNPX, own, ".", start{}},
		"unknown":                           {"snap", own, all, start{}},
	} {
		command, args, err := install.Start(c.way, c.executable, c.path, env)
		if (err != nil) != (c.want.Command == "") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(c.want, start{command, args}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	_, _, err := install.Start(install.LaunchAuto, cached, ".", env)
	if fix := guideway.ErrorFix(err); !strings.Contains(fix, "add the directory of npx to PATH") || strings.Contains(fix, "--launch binary") {
		t.Errorf("the fix for npx outside PATH is %q", fix)
	}
}

// TestLaunchEntriesAreRecognized checks that an entry that starts Guideway by npx or in a
// container is not imported as a server.
func TestLaunchEntriesAreRecognized(t *testing.T) {
	t.Parallel()
	client, err := install.Find("cursor")
	if err != nil {
		t.Fatal(err)
	}
	src := `{"mcpServers": {
	"a": {"command": "npx", "args": ["-y", "@guideway-dev/guideway@1.2.3", "mcp"]},
	"b": {"command": "/usr/bin/docker", "args": ["run", "-i", "ghcr.io/guideway-dev/guideway:1", "mcp"]},
	"c": {"command": "npx", "args": ["-y", "@other/guideway", "mcp"]},
	"d": {"command": "docker", "args": ["run", "-i", "ghcr.io/other/guideway-dev", "mcp"]}
}}`
	servers, err := install.Servers(install.Env{GOOS: "linux", Getenv: func(string) string { return "" }}, client, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"c", "d"}, names); diff != "" {
		t.Errorf("foreign servers (-want +got):\n%s", diff)
	}
}
