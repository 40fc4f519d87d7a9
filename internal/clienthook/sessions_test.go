package clienthook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/clienthook"
)

// errStore is the error of a store that cannot be opened.
func errStore(context.Context) (clienthook.Runs, error) {
	return nil, guideway.Errorf(guideway.CodeUnavailable, "the store is damaged").WithFix("guideway doctor")
}

// TestErrorsAreAnsweredAsConfigured checks that an event of a session with a run that cannot
// be checked is allowed or denied as configured, that the error is reported on standard
// error and, where the client can show it, to the person, and that a stop is refused only
// once.
func TestErrorsAreAnsweredAsConfigured(t *testing.T) {
	t.Parallel()
	for _, deny := range []bool{false, true} {
		for _, c := range clienthook.Clients() {
			for _, name := range fixtures(t, c.ID) {
				want := wantEffect(c.ID, name)
				if want == "allow" || strings.HasSuffix(name, ".start") {
					continue
				}
				r := newRig(t, c.ID)
				r.bind(t)
				r.Deny, r.Open = deny, errStore
				out := r.answer(t, name)
				got := effect(t, c.ID, name, out)
				switch {
				case !deny || want == "notice" || want == "context":
					want = "notice"
				case want == "ask":
					want = "deny"
				}
				report := "allowed, because clientHooks.onError is allow"
				if deny {
					report = map[string]string{"deny": "denied, because clientHooks.onError is deny", "refuse": "refused once", "notice": "cannot be denied"}[want]
				}
				if got != want || !strings.Contains(string(out.Err), report) || !strings.Contains(string(out.Err), "guideway doctor") {
					t.Errorf("deny %v: %s: %s is answered %q, want %q with %q: %s%s", deny, c.ID, name, got, want, report, out.Out, out.Err)
				}
			}
		}
	}
}

// TestStopIsRefusedOnceAfterAnError checks that a stop which follows a refused one is allowed
// if the store cannot be read.
func TestStopIsRefusedOnceAfterAnError(t *testing.T) {
	t.Parallel()
	for client, member := range map[string]string{"claude-code": `"stop_hook_active":true`, "cursor": `"loop_count":1,"status":"completed"`} {
		r := newRig(t, client)
		r.bind(t)
		r.Deny, r.Open = true, errStore
		event := map[string]string{"cursor": "stop"}[client]
		if event == "" {
			event = "Stop"
		}
		out := r.Answer(t.Context(), event, strings.NewReader(fmt.Sprintf(`{"session_id":%q,%s}`, sessionOf(t, r), member)))
		if effect(t, client, event, out) != "notice" {
			t.Errorf("%s: the second stop is answered %s%s", client, out.Out, out.Err)
		}
	}
}

// endless returns an endless JSON text.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestBrokenEvents checks that an event which cannot be read is reported, and blocks only a
// session with a run, as configured.
func TestBrokenEvents(t *testing.T) {
	t.Parallel()
	bound := newRig(t, "claude-code")
	session := sessionOf(t, bound)
	for name, in := range map[string]func() io.Reader{
		"empty":      func() io.Reader { return strings.NewReader("") },
		"no object":  func() io.Reader { return strings.NewReader("[]") },
		"no JSON":    func() io.Reader { return strings.NewReader("session_id") },
		"no session": func() io.Reader { return strings.NewReader(`{"tool_name":"Edit"}`) },
		"cut": func() io.Reader {
			return strings.NewReader(`{"session_id":"` + session + `","tool_name":"Edit","tool_input":{"x`)
		},
		"huge": func() io.Reader {
			return io.MultiReader(strings.NewReader(`{"session_id":"`+session+`","tool_name":"Edit","tool_input":{"x":"`), endless{})
		},
	} {
		for _, isBound := range []bool{false, true} {
			r := newRig(t, "claude-code")
			r.Deny = true
			if isBound {
				r.bind(t)
			}
			want := "notice"
			if isBound && (name == "cut" || name == "huge") {
				want = "deny"
			}
			out := r.Answer(t.Context(), "PreToolUse", in())
			if got := effect(t, "claude-code", "PreToolUse", out); got != want || len(out.Err) == 0 {
				t.Errorf("%s, bound %v: the answer is %q, want %q: %s%s", name, isBound, got, want, out.Out, out.Err)
			}
		}
	}
}

// TestUnknownEventIsAllowed checks that an event that a later version of a client has is
// reported and allowed.
func TestUnknownEventIsAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range clienthook.Clients() {
		r := newRig(t, c.ID)
		r.Deny = true
		r.bind(t)
		out := r.Answer(t.Context(), "Levitate", strings.NewReader(`{"session_id":"`+sessionOf(t, r)+`"}`))
		if effect(t, c.ID, "Levitate", out) != "notice" || !strings.Contains(string(out.Err), "Levitate") {
			t.Errorf("%s: the answer is %s%s", c.ID, out.Out, out.Err)
		}
	}
	if _, err := clienthook.FindClient("emacs"); guideway.ErrorCode(err) != guideway.CodeNotFound || !strings.Contains(err.Error(), "claude-code, codex") {
		t.Errorf("an unknown client: %v", err)
	}
}

// TestDamagedSessionFile checks that a session whose file cannot be read is treated as one
// with a run.
func TestDamagedSessionFile(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"no JSON": "{", "large": strings.Repeat("x", 70<<10)} {
		r := newRig(t, "claude-code")
		r.Deny = true
		r.bind(t)
		files, err := filepath.Glob(filepath.Join(r.dir, "*.json"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.WriteFile(files[0], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		out := r.answer(t, "PreToolUse.edit")
		if effect(t, "claude-code", "PreToolUse", out) != "deny" || !strings.Contains(string(out.Err), "remove "+files[0]) {
			t.Errorf("%s: the answer is %s%s", name, out.Out, out.Err)
		}
	}
}

// TestRunOfAnotherStore checks that a run which the store does not contain is reported and
// not bound.
func TestRunOfAnotherStore(t *testing.T) {
	t.Parallel()
	r := newRig(t, "claude-code")
	r.runs.run.ID, r.runs.run.Handle = "r_00000000000000000000000", "h_000000000000000000000"
	out := r.answer(t, "PostToolUse.start")
	if !strings.Contains(string(out.Err), "is not in the store of /data") || !strings.Contains(string(out.Out), "GUIDEWAY_DATA_DIR") {
		t.Errorf("the answer is %s%s", out.Out, out.Err)
	}
	if out := r.answer(t, "Stop"); !isEmpty(out) {
		t.Errorf("the stop is answered %s%s", out.Out, out.Err)
	}
}

// TestLockedSessions checks that a process which holds the lock, or has left temporary files
// when it was killed, delays an answer up to its time limit and does not prevent later ones.
func TestLockedSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t, "claude-code")
	r.bind(t)
	lock := flock.New(filepath.Join(r.dir, "lock"))
	if locked, err := lock.TryLock(); err != nil || !locked {
		t.Fatal(locked, err)
	}
	r.Timeout, r.Deny = 20*time.Millisecond, true
	if out := r.answer(t, "Stop"); effect(t, "claude-code", "Stop", out) != "refuse" || !strings.Contains(string(out.Err), "cannot store") {
		t.Errorf("the stop is answered %s%s", out.Out, out.Err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, ".claude-code-1.json-123"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Timeout = 0
	if out := r.answer(t, "Stop"); effect(t, "claude-code", "Stop", out) != "refuse" || len(out.Err) > 0 {
		t.Errorf("the next stop is answered %s%s", out.Out, out.Err)
	}
}

// TestConcurrentUpdates checks that concurrent updates of a session lose nothing.
func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	s := &clienthook.Sessions{Dir: filepath.Join(t.TempDir(), "sessions"), Now: time.Now}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			err := s.Update(t.Context(), "codex", "s", func(session *clienthook.Session) {
				session.Runs = append(session.Runs, clienthook.BoundRun{ID: fmt.Sprint(i)})
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	session, err := s.Load("codex", "s")
	if err != nil || len(session.Runs) != 8 {
		t.Errorf("the session is %+v, %v", session, err)
	}
	if other, err := s.Load("cursor", "s"); other != nil || err != nil {
		t.Errorf("the same session id of another client has %+v, %v", other, err)
	}
}

// TestStoredSessionsAreBounded checks that at most 500
// sessions are kept, and that those of more than 30 days are removed.
func TestStoredSessionsAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	s := &clienthook.Sessions{Dir: dir, Now: func() time.Time { return now }}
	for i := range 520 {
		path := filepath.Join(dir, fmt.Sprintf("codex-%04d.json", i))
		if err := errors.Join(os.WriteFile(path, []byte("{}"), 0o600), os.Chtimes(path, now, now.Add(-time.Duration(i)*2*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	addRuns := func(session *clienthook.Session) {
		for i := range 20 {
			session.Runs = append(session.Runs, clienthook.BoundRun{ID: fmt.Sprintf("r_%02d", i)})
		}
	}
	if err := s.Update(t.Context(), "codex", "new", addRuns); err != nil {
		t.Fatal(err)
	}
	session, err := s.Load("codex", "new")
	if err != nil || len(session.Runs) != 20 {
		t.Errorf("the session is %+v, %v", session, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "codex-*.json"))
	if err != nil || len(files) != 362 { // the sessions of 30 days, which are two hours apart, and the new one
		t.Errorf("%d sessions are left, %v; want 362", len(files), err)
	}
	now = now.Add(-30 * 24 * time.Hour)
	if err := s.Update(t.Context(), "codex", "newer", addRuns); err != nil {
		t.Fatal(err)
	}
}

// TestUnwatchedClient checks which runs are marked as unwatched: those of a client with
// hooks, by the name that it gives a server, for which no hook has reported.
func TestUnwatchedClient(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"claude-code": "claude-code", "codex-mcp-client": "codex", "gemini-cli-mcp-client": "gemini", "copilot-cli": "copilot", "cursor-vscode": "cursor", "Cursor": "cursor",
		"opencode": "", "guideway": "", "": "", "claude-ai": "",
	} {
		c, unwatched := clienthook.UnwatchedClient(name, false)
		if c.ID != want || unwatched != (want != "") {
			t.Errorf("%q: %q, %v; want %q", name, c.ID, unwatched, want)
		}
		if _, unwatched := clienthook.UnwatchedClient(name, true); unwatched {
			t.Errorf("%q: a run that a hook has reported for is unwatched", name)
		}
	}
}
