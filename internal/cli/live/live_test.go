package live_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/live"
)

// envChild makes the test binary announce a server and wait to be killed.
const envChild = "GUIDEWAY_TEST_ANNOUNCE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envChild); dir != "" {
		_, err := live.Announce(dir, live.Server{PID: os.Getpid(), Address: "127.0.0.1:1", Since: time.Now()})

		slog.Info("announced", "error", err)
		select {}
	}
	os.Exit(m.Run())
}

func answerAlways(context.Context, string) bool { return true }

func newServer(pid int, age time.Duration) live.Server {
	return live.Server{PID: pid, Address: fmt.Sprintf("127.0.0.1:%d", pid), Since: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(-age)}
}

// Find returns the oldest server that answers.
func TestFind(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "servers")
	if s, ok := live.Find(t.Context(), dir, answerAlways); ok {
		t.Errorf("Find without a directory returned %v", s)
	}
	withdraw := map[int]func(){}
	for pid, age := range map[int]time.Duration{1: time.Minute, 2: time.Hour, 3: time.Second} {
		down, err := live.Announce(dir, newServer(pid, age))
		if err != nil {
			t.Fatal(err)
		}
		withdraw[pid] = down
	}
	find := func(want int, answers func(context.Context, string) bool) {
		t.Helper()
		if s, ok := live.Find(t.Context(), dir, answers); s.PID != want || ok != (want != 0) {
			t.Errorf("found %v %v, want %d", s, ok, want)
		}
	}
	find(2, answerAlways)
	find(1, func(_ context.Context, address string) bool { return address != "127.0.0.1:2" })
	find(0, func(context.Context, string) bool { return false })
	withdraw[2]()
	find(1, answerAlways)
	withdraw[1]()
	withdraw[3]()
	find(0, answerAlways)
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left over: %v (%v)", left, err)
	}
}

// A killed server cannot remove its file. Find ignores the server and removes the file.
func TestFindIgnoresKilledServers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "servers")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+dir)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, "announced error=<nil>") {
		t.Fatalf("the child printed %q, %v", line, err)
	}
	if s, ok := live.Find(t.Context(), dir, answerAlways); !ok || s.PID != cmd.Process.Pid {
		t.Errorf("Find returned %v, %v while the server is running", s, ok)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if s, ok := live.Find(t.Context(), dir, answerAlways); ok {
		t.Errorf("Find returned the killed server %v", s)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("files left over: %v", left)
	}
}

// Find ignores a file that is not locked or has no address.
func TestFindIgnoresForeignFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1.json"), []byte(`{"pid":1,"address":"192.0.2.1:80"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	down, err := live.Announce(dir, live.Server{PID: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer down()
	if s, ok := live.Find(t.Context(), dir, answerAlways); ok {
		t.Errorf("found %v", s)
	}
	if _, err := live.Announce(dir, live.Server{PID: 2}); err == nil {
		t.Error("Announce succeeded for a second server with the same process id")
	}
	if info, err := os.Stat(filepath.Join(dir, "2.json")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}
