package backup_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli"
	"github.com/guideway-dev/guideway/internal/cli/app"
)

// envRun makes the test binary run the command line.
const envRun = "GUIDEWAY_BACKUPTEST"

func TestMain(m *testing.M) {
	if os.Getenv(envRun) != "" {
		os.Exit(cli.Main(os.Args[1:], app.NewSystemHost()))
	}
	os.Exit(m.Run())
}

func newCommand(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env, cmd.Dir = []string{"HOME=" + home, envRun + "=1", "GUIDEWAY_DATA_DIR=" + filepath.Join(home, "data"), "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "GUIDEWAY_ENCRYPTION=key-file"}, home
	return cmd
}

func mustRun(t *testing.T, home string, args ...string) {
	t.Helper()
	if out, err := newCommand(t, home, args...).CombinedOutput(); err != nil {
		t.Fatalf("guideway %q: %v\n%s", args, err, out)
	}
}

// restoreKilled starts a restore and kills it when the data directory has a number of entries, or
// does nothing if the restore ends earlier. It reports whether the restore was killed.
func restoreKilled(t *testing.T, home, archive string, entries int) (killed bool) {
	t.Helper()
	cmd := newCommand(t, home, "restore", archive)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("the restore: %v", err)
			}
			return false
		default:
		}
		list, _ := os.ReadDir(filepath.Join(home, "data")) // the directory does not exist at the beginning
		if len(list) >= entries {
			_ = cmd.Process.Kill() // it may have ended
			return (<-ended) != nil
		}
	}
}

// TestKilled kills restores at many points: no command opens a store that is incomplete, and the
// same restore completes it.
func TestKilled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "plan.json"), []byte(`{"plan": "the whole plan"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		mustRun(t, home, "checkpoint", "save", "plan.json", "--session", fmt.Sprint("s", i))
		mustRun(t, home, "token", "create", fmt.Sprint("t", i), "--all")
	}
	archive := filepath.Join(t.TempDir(), "backup.zip")
	mustRun(t, home, "backup", archive)
	killed, incomplete := 0, 0
	for _, entries := range []int{1, 2, 3, 4, 6, 8, 10} {
		target := t.TempDir()
		if restoreKilled(t, target, archive, entries) {
			killed++
		}
		out, err := newCommand(t, target, "checkpoint", "load", "--session", "s4").CombinedOutput()
		_, statErr := os.Stat(filepath.Join(target, "data", "restore-incomplete"))
		switch {
		case statErr == nil: // the kill came after the first move
			incomplete++
			if err == nil || !strings.Contains(string(out), "did not complete") {
				t.Fatalf("after a kill at %d entries, the store is opened: %v\n%s", entries, err, out)
			}
			mustRun(t, target, "restore", archive)
		case err == nil:
			if refused, err := newCommand(t, target, "restore", archive).CombinedOutput(); err == nil || !strings.Contains(string(refused), "would replace") {
				t.Fatalf("a second restore: %v\n%s", err, refused)
			}
		default: // nothing was restored, and the command has created nothing that the restore would replace
			mustRun(t, target, "restore", archive, "--replace")
		}
		out, err = newCommand(t, target, "checkpoint", "load", "--session", "s4").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "the whole plan") {
			t.Fatalf("after a kill at %d entries and another restore: %v\n%s", entries, err, out)
		}
	}
	if killed == 0 {
		t.Error("no restore was killed")
	}
	t.Logf("%d restores were killed, %d of them while files were moved", killed, incomplete)
}
