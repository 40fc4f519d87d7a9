package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestServersReleaseStartMemory checks that a server releases memory that only its start
// needed: within a minute after its first answer it has a tenth less private memory, and it
// still answers.
func TestServersReleaseStartMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for more than a second")
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "guideway", "mcp")
	cmd.Env, cmd.Dir = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, home
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	ask := func(id int, method, params string) string {
		if _, err := io.WriteString(in, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	ask(1, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	most := ownMemory(t, cmd.Process.Pid)
	for began := time.Now(); ; <-time.After(20 * time.Millisecond) {
		if ownMemory(t, cmd.Process.Pid) < most*9/10 {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("a second after its answer, the server has %d kB of private memory, before %d", ownMemory(t, cmd.Process.Pid), most)
		}
	}
	if got := ask(2, "tools/call", `{"name":"workflow_list","arguments":{}}`); !strings.Contains(got, "coding-task") {
		t.Errorf("the server returned %.300s", got)
	}
}

// ownMemory returns the private memory of a process in kilobytes.
func ownMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the system does not report private memory")
	return 0
}
