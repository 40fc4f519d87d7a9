package holds_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/gateway/holds"
)

// The environment of a process that claims a call, sends it and is killed at a point.
const (
	envFile  = "HOLDS_TEST_FILE"
	envPoint = "HOLDS_TEST_POINT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(envFile); path != "" {
		sendOnce(path, os.Getenv(envPoint))
		return
	}
	goleak.VerifyTestMain(m)
}

// sendOnce claims the call of TestKilledProcess and sends it, which appends a line to a file.
func sendOnce(path, point string) {
	killAt := func(here string) {
		if here == point {
			p, err := os.FindProcess(os.Getpid())
			if err != nil || p.Kill() != nil {
				os.Exit(2)
			}
			select {} // The signal ends the process.
		}
	}
	killAt("before the claim")
	s := holds.New(holds.Options{Path: path, Key: func() ([]byte, error) { return []byte("key"), nil }})
	_, hash, err := holds.EncodeArguments(json.RawMessage(`{}`))
	if err != nil {
		os.Exit(3)
	}
	c, err := s.Claim(context.Background(), holds.Request{Binding: holds.Binding{User: "ann", Hash: hash}})
	if err != nil || c.Status != holds.Used {
		os.Exit(4)
	}
	killAt("before the send")
	f, err := os.OpenFile(path+".sent", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(5)
	}
	_, _ = f.WriteString("sent\n")
	_ = f.Close()
	killAt("after the send")
}

// A process that is killed before the claim leaves the approval. Killed later, the approval
// is used, and the call is never sent twice.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	for point, want := range map[string]struct {
		sent   int
		status holds.Status
	}{
		"before the claim": {0, holds.Used}, "before the send": {0, holds.Waiting}, "after the send": {1, holds.Waiting},
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "held-calls.json")
			s := holds.New(holds.Options{Path: path, Key: func() ([]byte, error) { return []byte("key"), nil }})
			_, hash, err := holds.EncodeArguments(json.RawMessage(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			r := holds.Request{Binding: holds.Binding{User: "ann", Hash: hash}}
			answer(t, s, claim(t, s, r, holds.Waiting), true)
			child := exec.CommandContext(t.Context(), os.Args[0])
			child.Env = append(os.Environ(), envFile+"="+path, envPoint+"="+point)
			if err := child.Run(); err == nil || child.ProcessState.ExitCode() > 0 {
				t.Fatalf("the process was not killed: %v", err)
			}
			text, err := os.ReadFile(path + ".sent")
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if sent := strings.Count(string(text), "sent"); sent != want.sent {
				t.Errorf("the call was sent %d times, want %d", sent, want.sent)
			}
			claim(t, s, r, want.status)
		})
	}
}
