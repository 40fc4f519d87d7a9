//go:build unix

package safeopen_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// TestRefusesSpecialFiles checks that named pipes, sockets and devices are refused. Opening
// a named pipe waits for its other end, and reading a device may never end.
func TestRefusesSpecialFiles(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "gw") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	socket, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	refused := func(what, kind string, err error) {
		t.Helper()
		var path *fs.PathError
		if !errors.Is(err, safeopen.ErrSpecial) || !errors.As(err, &path) || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for name, kind := range map[string]string{"pipe": "a named pipe", "link": "a named pipe", "socket": "a socket"} {
		_, err := safeopen.Open(filepath.Join(dir, name))
		refused(name, kind, err)
		_, err = safeopen.OpenIn(root, name)
		refused(name+" below a root", kind, err)
		_, err = fs.ReadFile(safeopen.In(root), name)
		refused(name+" in a system", kind, err)
	}
	_, err = safeopen.Open("/dev/zero")
	refused("/dev/zero", "a device", err)
}
