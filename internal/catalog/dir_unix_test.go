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

// Pipes, sockets and links to pipes are reported and not opened. Opening a pipe would block
// the test.
func TestDirSpecialFiles(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "catalog") // a socket's path must be short
	checkError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	writeFile(t, filepath.Join(dir, "good.json"), definitionText("good", "1"))
	checkError(t, syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o600))
	checkError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	checkError(t, os.Symlink("pipe", filepath.Join(dir, "to-pipe.yaml")))
	socket, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "socket.yml"))
	checkError(t, err)
	defer socket.Close()
	c := loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"good@1 dir"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	want := []string{"file-special pipe.json", "file-special socket.yml", "file-special to-pipe.yaml"}
	if diff := cmp.Diff(want, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

// A file that was replaced by a pipe or by a link out of the directory is not opened.
func TestDirFileReplacedByPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	writeFile(t, path, definitionText("a", "1"))
	documents, _, err := newDir(dir).Documents(context.Background())
	checkError(t, err)
	checkError(t, os.Remove(path))
	checkError(t, syscall.Mkfifo(path, 0o600))
	if file, err := documents[0].Open(context.Background()); err == nil {
		file.Close()
		t.Error("a pipe was opened")
	}
	checkError(t, os.Remove(path))
	checkError(t, os.Symlink("/etc/passwd", path))
	if file, err := documents[0].Open(context.Background()); err == nil {
		file.Close()
		t.Error("a link that leads out was followed")
	}
}

func TestDirPipeAsDirectory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "workflows")
	checkError(t, syscall.Mkfifo(path, 0o600))
	c := loadAll(t, catalog.Options{}, newDir(path))
	if diff := cmp.Diff([]string{"source-unreadable workflows"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}

func TestDirInvalidUTF8Names(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "darwin" {
		t.Skip("the file system rejects such names")
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "bad\xff.json"), definitionText("bad", "1"))
	writeFile(t, filepath.Join(dir, "bad\xff.txt"), "")
	writeFile(t, filepath.Join(dir, "dir\xff", "x.json"), definitionText("x", "1"))
	writeFile(t, filepath.Join(dir, "good.json"), definitionText("good", "1"))
	c := loadAll(t, catalog.Options{}, newDir(dir))
	if diff := cmp.Diff([]string{"good@1 dir"}, servedList(c.Snapshot())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"file-name bad\uFFFD.json"}, codeList(c.Diagnostics())); diff != "" {
		t.Error(diff)
	}
}
