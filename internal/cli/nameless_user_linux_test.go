package cli

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A user without an entry in /etc/passwd and without $USER, as in many containers, runs
// the server, and doctor reports the name under which it works.
func TestUserWithoutName(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	const uid = 54321
	program, home := copyProgram(t), t.TempDir()
	if err := os.Chown(home, uid, uid); err != nil {
		t.Fatal(err)
	}
	runAs := func(input string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env, cmd.Dir, cmd.Stdin = []string{"HOME=" + home, "NO_COLOR=1"}, home, strings.NewReader(input)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] != "doctor" {
			t.Errorf("guideway %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if got := runAs("", "doctor"); !strings.Contains(got, "uid-54321") {
		t.Errorf("doctor does not name the user:\n%s", got)
	}
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`
	if got := runAs(hello+"\n", "mcp"); !strings.Contains(got, `"result"`) {
		t.Errorf("mcp returned %s", got)
	}
	runAs("", "runs", "list")
}

// copyProgram copies this program to a directory where every user can start it.
func copyProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "guideway")
	to, err := os.OpenFile(program, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return program
}
