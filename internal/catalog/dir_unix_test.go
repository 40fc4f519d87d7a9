//go:build unix

package catalog_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
)

// TestDirSpecialFiles would hang if a pipe were opened.
func TestDirSpecialFiles(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "catalog") // a socket's path must be short
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	write(t, filepath.Join(dir, "good.json"), text("good", "1"))
	check(t, syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o600))
	check(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	check(t, os.Symlink("pipe", filepath.Join(dir, "to-pipe.yaml")))
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "socket.yml"))
	check(t, err)
	defer socket.Close()
	c := loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"good@1 dir"}, served(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	want := []string{"file-special pipe.json", "file-special socket.yml", "file-special to-pipe.yaml"}
	if diff := cmp.Diff(want, codes(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

// TestDirPipeTakesThePlace is about a file that is a pipe by the time that it
// is opened.
func TestDirPipeTakesThePlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	write(t, path, text("a", "1"))
	documents, _, err := newDir(dir).Documents(context.Background())
	check(t, err)
	check(t, os.Remove(path))
	check(t, syscall.Mkfifo(path, 0o600))
	if file, err := documents[0].Open(context.Background()); err == nil {
		file.Close()
		t.Error("a pipe was opened")
	}
	check(t, os.Remove(path))
	check(t, os.Symlink("/etc/passwd", path))
	if file, err := documents[0].Open(context.Background()); err == nil {
		file.Close()
		t.Error("a link that leads out was followed")
	}
}

func TestDirPipeAsDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "workflows")
	check(t, syscall.Mkfifo(path, 0o600))
	c := loadAll(t, catalog.Options{}, newDir(path))
	if diff := cmp.Diff([]string{"source-unreadable workflows"}, codes(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

func TestDirNamesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "darwin" {
		t.Skip("the file system refuses such names")
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "bad\xff.json"), text("bad", "1"))
	write(t, filepath.Join(dir, "bad\xff.txt"), "")
	write(t, filepath.Join(dir, "dir\xff", "x.json"), text("x", "1"))
	write(t, filepath.Join(dir, "good.json"), text("good", "1"))
	c := loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"good@1 dir"}, served(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"file-name bad\uFFFD.json"}, codes(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}
