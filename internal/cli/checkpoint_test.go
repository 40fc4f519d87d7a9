package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// At a terminal, commands prompt for the encryption passphrase: twice for a new one, and
// once later. A wrong passphrase changes nothing.
func TestCheckpointPassphrasePrompt(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1", "GUIDEWAY_ENCRYPTION": "passphrase"})
	if err := os.WriteFile(filepath.Join(host.Dir, "plan.json"), []byte(`{"plan":"b"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		command string
		typed   []string
		code    int
		want    string
	}{
		{"checkpoint save plan.json --session s", []string{"four words in a row", "five words in a row"}, app.ExitFailed, "passphrases do not match"},
		{"checkpoint save plan.json --session s", nil, app.ExitFailed, "cannot read the encryption passphrase"},
		{"checkpoint save plan.json --session s", []string{"four words in a row", "four words in a row"}, app.ExitOK, "New encryption passphrase: "},
		{"checkpoint load --session s", []string{"not that at all"}, app.ExitFailed, "is not the key that encrypted"},
		{"checkpoint load --session s", []string{"four words in a row"}, app.ExitOK, `{"plan":"b"}`},
	} {
		out.Reset()
		in := &fakeTerminal{lines: tt.typed, echo: out}
		host.In = in
		typeSecrets(&host, in)
		if code := Run(t.Context(), strings.Fields(tt.command), host); code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s, typing %q: %d, want %d and %q:\n%s", tt.command, tt.typed, code, tt.code, tt.want, out)
		}
		if strings.Contains(out.String(), "words in a row") {
			t.Errorf("the terminal shows the passphrase:\n%s", out)
		}
	}
}

// checkpointsOf opens the checkpoints of a host, like commands do.
func checkpointsOf(t *testing.T, host *app.Host) *app.CheckpointStore {
	t.Helper()
	root := &app.App{Host: host, Flags: &app.SettingFlags{}}
	cfg, err := root.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := root.NewStore(cfg, nil)
	c := root.NewCheckpointStore(s, app.MasterKey{Host: host})
	t.Cleanup(func() {
		c.Close()
		s.Close()
	})
	return c
}

// Cleanup asks the run store for the active runs: their last checkpoint is kept regardless
// of its age.
func TestCleanupKeepsActiveRuns(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1", "GUIDEWAY_CHECKPOINT_AUTO_SAVE": "false"})
	writeFile(t, filepath.Join(host.Dir, "workflows", "flow.json"), stepsFlow)
	active := agent(t, host, `start {"WorkflowID":"flow","Goal":"g"}`)
	ended := agent(t, host, `start {"WorkflowID":"flow","Goal":"g"}`)
	if code := Run(t.Context(), []string{"runs", "abort", ended}, host); code != app.ExitOK {
		t.Fatal(out)
	}
	stale := host
	stale.Now = func() time.Time { return time.Now().Add(-100 * 24 * time.Hour) }
	c := checkpointsOf(t, &stale)
	opened, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	user, err := auth.SystemUser()
	if err != nil {
		t.Fatal(err)
	}
	who := guideway.Principal{User: user, Client: app.ClientName}
	for _, id := range []string{active, active, ended, "unknown"} {
		if _, err := opened.Save(t.Context(), who, checkpoint.SaveRequest{Session: id, Run: id, Context: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	out.Reset()
	if code := Run(t.Context(), strings.Fields("cleanup --older-than 30d --json"), host); code != app.ExitOK || !strings.Contains(out.String(), `"kept": 1`) {
		t.Errorf("%d\n%s", code, out)
	}
	out.Reset()
	Run(t.Context(), []string{"checkpoint", "list"}, host)
	if text := out.String(); strings.Count(text, "c_") != 1 || !strings.Contains(text, active) {
		t.Errorf("left are\n%s", text)
	}
}

// Checkpoints do not need the journal key.
func TestCheckpointsWithoutJournalKey(t *testing.T) {
	t.Parallel()
	host, out := newTerminal(t, map[string]string{"NO_COLOR": "1"})
	writeFile(t, filepath.Join(host.Dir, "workflows", "flow.json"), stepsFlow)
	agent(t, host, `start {"WorkflowID":"flow","Goal":"g"}`)
	keys, err := filepath.Glob(filepath.Join(host.Dir, ".local/share/guideway/journal.key"))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	if err := os.Remove(keys[0]); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(host.Dir, "plan.json"), `{"plan":"b"}`)
	if code := Run(t.Context(), strings.Fields("checkpoint save plan.json"), host); code != app.ExitOK || strings.Contains(out.String(), "warning") {
		t.Errorf("%d\n%s", code, out)
	}
}

// A caller that waits while another call opens the checkpoints can give up.
func TestWaitingForCheckpointsIsCancellable(t *testing.T) {
	t.Parallel()
	host, _ := newTerminal(t, nil)
	c := checkpointsOf(t, &host)
	c.Lock <- struct{}{} // simulates another call that is opening the checkpoints
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := c.Open(ctx); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("Open with a cancelled context returned %v, want CodeUnavailable", err)
	}
	<-c.Lock
	if _, err := c.Open(t.Context()); err != nil {
		t.Error(err)
	}
}
