package mcp

import "testing"

// A path with a drive belongs to another machine, except on Windows, where all spellings of a
// directory are one project.
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
