//go:build unix

package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// TestCommandsRefusePipes checks that commands do not hang on named pipes. Opening one
// waits for a writer, and a downloaded directory can contain one without the user's
// knowledge.
func TestCommandsRefusePipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustSucceed(t, os.MkdirAll(filepath.Join(dir, ".guideway/workflows/machines/pipes"), 0o700))
	for _, pipe := range []string{
		"pipe.yaml", ".guideway/workflows/machines/pipe.json",
		".guideway/workflows/machines/pipes/machine.json", ".guideway/workflows/machines/pipes/recording.json",
	} {
		mustSucceed(t, syscall.Mkfifo(filepath.Join(dir, pipe), 0o600))
	}
	mustSucceed(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero.json")))
	for _, tt := range []struct{ args, want string }{
		{"validate .", "pipe.yaml: is a named pipe, not a regular file"},
		{"validate .", "zero.json is a link to a file outside ."},
		{"validate pipe.yaml", "pipe.yaml: is a named pipe"},
		{"show ./pipe.yaml", "pipe.yaml: is a named pipe"},
		{"run coding-task --answers zero.json", "zero.json: is a device"},
		{"runs import pipe.yaml", "pipe.yaml: is a named pipe"},
		{"checkpoint save pipe.yaml", "pipe.yaml: is a named pipe"},
		{"hooks validate ./pipe.yaml", "pipe.yaml: is a named pipe"},
		{"hooks test block-by-argument --request zero.json", "zero.json: is a device"},
		{"machine validate pipe", "not opened: a named pipe"},
		{"machine list", "not opened: a named pipe"},
		{"machine run support-desk --model scripted:pipe.yaml", "is a named pipe"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			host := app.Host{
				In: strings.NewReader(""), Out: &said, Err: &said, Dir: dir,
				Getenv: func(name string) string {
					return map[string]string{"HOME": filepath.Join(dir, "home"), "XDG_RUNTIME_DIR": filepath.Join(dir, "run")}[name]
				},
			}
			Run(t.Context(), strings.Fields(tt.args), host)
			if !strings.Contains(said.String(), tt.want) {
				t.Errorf("guideway %s does not print %q:\n%s", tt.args, tt.want, said.String())
			}
		})
	}
}

// TestInputIsCancellable checks that a signal ends commands that wait for standard input.
func TestInputIsCancellable(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"validate -", "validate --json -", "checkpoint save -", "runs import -", "hooks validate -"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			silent, other := io.Pipe()
			t.Cleanup(func() { _ = other.Close() })
			ctx, cancel := context.WithCancel(t.Context())
			var said bytes.Buffer
			host := app.Host{
				In: firstReadSignal{silent, cancel}, Out: &said, Err: &said, Dir: t.TempDir(),
				Getenv: func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] },
			}
			if code := Run(ctx, strings.Fields(args), host); code != app.ExitFailed || !strings.Contains(said.String(), "interrupted") {
				t.Errorf("guideway %s: exit code %d\n%s", args, code, said.String())
			}
		})
	}
}

// firstReadSignal is an input that calls waits before each read.
type firstReadSignal struct {
	io.Reader
	waits func()
}

func (r firstReadSignal) Read(p []byte) (int, error) {
	r.waits()
	return r.Reader.Read(p)
}

func mustSucceed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
