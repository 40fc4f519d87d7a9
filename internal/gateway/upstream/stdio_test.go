package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
)

// Each kind of server is used in its own protocol version.
func TestVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		modes []string
		want  string
	}{
		{nil, "2025-11-25"},
		{[]string{upstreamtest.Modern}, "2026-07-28"},
		{[]string{upstreamtest.Old}, "2024-11-05"},
		{[]string{upstreamtest.ExitsOnUnknown}, "2025-11-25"},
		{[]string{upstreamtest.Talkative}, "2025-11-25"},
	} {
		t.Run(fmt.Sprint(c.modes), func(t *testing.T) {
			t.Parallel()
			s := openSession(t, openUpstream(t, ownSpec(t, c.modes...), upstream.Options{}), upstream.Want{})
			if got := s.Info().Version; got != c.want {
				t.Errorf("the version is %s, want %s", got, c.want)
			}
			if got := callText(t, s, toolCall("echo", args{"text": "hi é \u2028"})); got != "hi é \u2028" {
				t.Errorf("echo: %q", got)
			}
		})
	}
}

// A server gets the variables of its configuration, and inherits only those that programs
// cannot work without.
func TestEnvironmentIsAllowListed(t *testing.T) {
	t.Parallel()
	spec := ownSpec(t)
	spec.Env["TOKEN"] = "bearer ${env:MY_SECRET}"
	getenv := func(name string) string {
		return map[string]string{"MY_SECRET": "s3cret", "OTHER_SECRET": "never", "PATH": "/bin", "HOME": "/home/x"}[name]
	}
	u := openUpstream(t, spec, upstream.Options{Secrets: upstream.Secrets{Getenv: getenv}})
	got := callText(t, openSession(t, u, upstream.Want{}), toolCall("env", args{}))
	for _, want := range []string{"TOKEN=bearer s3cret", "PATH=/bin", "HOME=/home/x"} {
		if !strings.Contains(got, want) {
			t.Errorf("the environment lacks %s: %s", want, got)
		}
	}
	if strings.Contains(got, "OTHER_SECRET") || strings.Contains(got, "never") {
		t.Errorf("the environment has leaked: %s", got)
	}
}

func TestMissingSecret(t *testing.T) {
	t.Parallel()
	spec := ownSpec(t)
	spec.Env["TOKEN"] = "${env:NOT_SET}"
	_, _, err := openUpstream(t, spec, upstream.Options{Secrets: upstream.Secrets{Getenv: func(string) string { return "" }}}).
		Session(t.Context(), upstream.Want{})
	if err == nil || !strings.Contains(err.Error(), "NOT_SET") || guideway.ErrorFix(err) == "" {
		t.Errorf("the error is %v, want one that names the variable and the fix", err)
	}
}

// TestSecretInURLStaysHidden checks that an error about a URL does not contain the secret in
// it, and that a line break at the end of a secret is dropped.
func TestSecretInURLStaysHidden(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"hunter2\n": "", "hun\nter2": "is not an http or https URL", "hun\x00ter2": "is not an http or https URL"} {
		secrets := upstream.Secrets{Getenv: func(string) string { return value }}
		err := secrets.Check(upstream.Spec{Name: "one", URL: "https://example.invalid/mcp?key=${env:KEY}"})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", value, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ter2")):
			t.Errorf("%q: the error is %v", value, err)
		}
	}
}

// An invalid answer to one call does not affect other calls.
func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, want string
		arguments  any
	}{
		{"broken", "invalid", nil},
		{"case", "letter case", nil},
		{"big", "larger than", args{"size": 3 << 20}},
		{"refuse", "not today", nil},
	} {
		t.Run(c.tool, func(t *testing.T) {
			t.Parallel()
			u := openUpstream(t, ownSpec(t), upstream.Options{MaxMessageBytes: 1 << 20})
			s := openSession(t, u, upstream.Want{})
			other := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, err := s.Do(ctx, toolCall("sleep", args{"ms": 600000}))
				other <- err
			}()
			_, err := s.Do(t.Context(), toolCall(c.tool, c.arguments))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
			if got := callText(t, s, toolCall("echo", args{"text": "still here"})); got != "still here" {
				t.Errorf("echo: %q", got)
			}
			cancel()
			if err := <-other; !errors.Is(err, context.Canceled) {
				t.Errorf("the other call ended with %v", err)
			}
		})
	}
}

// An answer with an unknown id is ignored, and the first of two answers counts.
func TestWrongIDs(t *testing.T) {
	t.Parallel()
	spec := ownSpec(t)
	spec.Timeout = config.UpstreamTime(300 * time.Millisecond)
	s := openSession(t, openUpstream(t, spec, upstream.Options{}), upstream.Want{})
	if _, err := s.Do(t.Context(), toolCall("wrongid", nil)); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("an answer with a wrong id was accepted: %v", err)
	}
	if got := callText(t, s, toolCall("twice", nil)); got != "first" {
		t.Errorf("twice: %q", got)
	}
	if got := callText(t, s, toolCall("echo", args{"text": "x"})); got != "x" {
		t.Errorf("the next call returned %q", got)
	}
}

// The timeout restarts with each progress notification.
func TestProgressExtendsTheTime(t *testing.T) {
	t.Parallel()
	spec := ownSpec(t)
	spec.Timeout = config.UpstreamTime(2 * time.Second)
	s := openSession(t, openUpstream(t, spec, upstream.Options{}), upstream.Want{})
	slow := toolCall("slow", args{"ms": 600, "text": "m"})
	var progress []string
	slow.Progress = true
	slow.Notify = func(method string, params json.RawMessage) {
		var p struct{ Message string }
		_ = json.Unmarshal(params, &p)
		progress = append(progress, method+" "+p.Message)
	}
	if got := callText(t, s, slow); got != "done m" {
		t.Errorf("slow: %q", got)
	}
	want := strings.Split(strings.Repeat("notifications/progress m,", 4), ",")[:4]
	if diff := cmp.Diff(want, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if _, err := s.Do(t.Context(), toolCall("sleep", args{"ms": 60000})); err == nil || !strings.Contains(err.Error(), "did not answer within") {
		t.Errorf("a call without progress ended with %v", err)
	}
}

// If the caller gives up a call, the call is cancelled at the server.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", upstreamtest.Modern} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			spec := ownSpec(t, mode)
			u := openUpstream(t, spec, upstream.Options{})
			s := openSession(t, u, upstream.Want{})
			ctx, cancel := context.WithCancel(t.Context())
			started := toolCall("sleep", args{"ms": 60000})
			there := make(chan struct{})
			started.Progress = true
			started.Notify = func(string, json.RawMessage) { close(there) }
			done := make(chan error, 1)
			go func() { _, err := s.Do(ctx, started); done <- err }()
			<-there // the call has reached the server
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("the call ended with %v", err)
			}
			for { // the server writes a cancellation as a line to its file
				if text, err := os.ReadFile(spec.Env[upstreamtest.CountFile]); err == nil && string(text) == "once\n" {
					break
				}
				callText(t, s, toolCall("echo", args{"text": "wait"}))
			}
		})
	}
}

// A crash during a call is an error that reports the crash. The call is not sent again, and
// the next call restarts the server.
func TestCrash(t *testing.T) {
	t.Parallel()
	u := openUpstream(t, ownSpec(t), upstream.Options{})
	s := openSession(t, u, upstream.Want{})
	_, err := s.Do(t.Context(), toolCall("crash", nil))
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the error of the crash is %v", err)
	}
	again := openSession(t, u, upstream.Want{})
	if got := callText(t, again, toolCall("echo", args{"text": "back"})); got != "back" || again == s {
		t.Errorf("echo: %q", got)
	}
	if h := u.Health(); h.Condition != upstream.ConditionRunning || h.Restarts != 1 {
		t.Errorf("the health is %+v", h)
	}
}

// TestBackOff checks that the start of a server that exits repeatedly is refused after at
// most five restarts, with the time until the next attempt.
func TestBackOff(t *testing.T) {
	t.Parallel()
	u := openUpstream(t, ownSpec(t, upstreamtest.ExitsAfterInit), upstream.Options{})
	for range 100 {
		s, done, err := u.Session(t.Context(), upstream.Want{})
		if err != nil {
			if !strings.Contains(err.Error(), "next attempt in") {
				t.Errorf("the error is %v", err)
			}
			if h := u.Health(); h.Restarts > 5 || h.Condition != upstream.ConditionFailed {
				t.Errorf("the health is %+v", h)
			}
			return
		}
		<-s.Done()
		done()
	}
	t.Error("the server was started a hundred times")
}

func TestMissingCommand(t *testing.T) {
	t.Parallel()
	u := openUpstream(t, upstream.Spec{Name: "x", Command: "no-such-program-anywhere"}, upstream.Options{})
	if _, _, err := u.Session(t.Context(), upstream.Want{}); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("the error is %v", err)
	}
}

// The start of a server that never answers times out.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	u := openUpstream(t, ownSpec(t, upstreamtest.NeverAnswers), upstream.Options{StartTime: 300 * time.Millisecond})
	if _, _, err := u.Session(t.Context(), upstream.Want{}); err == nil || !strings.Contains(err.Error(), "handshake") {
		t.Errorf("the error is %v", err)
	}
}

// Child processes of a server are killed with it.
func TestGroupIsKilled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no shell")
	}
	pid := t.TempDir() + "/pid"
	spec := ownSpec(t)
	spec.Args = []string{"-c", `sleep 1000 & echo $! > "` + pid + `"; "` + spec.Command + `"; sleep 1000`}
	spec.Command = "/bin/sh"
	u := upstream.New(spec, upstream.Options{})
	s, done, err := u.Session(t.Context(), upstream.Want{})
	if err != nil {
		t.Fatal(err)
	}
	callText(t, s, toolCall("echo", nil))
	done()
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	u.Close(t.Context())
	// The signal was sent; the system needs a moment to deliver it.
	for limit := time.Now().Add(10 * time.Second); ; {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the grandchild still runs: %s", stat)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// A question in a session reaches only the client of the session.
func TestQuestions(t *testing.T) {
	t.Parallel()
	u := openUpstream(t, ownSpec(t), upstream.Options{})
	var wg sync.WaitGroup
	for _, client := range []string{"ann", "bob"} {
		ask := func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
			if method != "elicitation/create" || !strings.Contains(string(params), "for "+client) {
				t.Errorf("%s was asked %s %s", client, method, params)
			}
			return json.RawMessage(`{"action":"accept","content":{"ok":"` + client + `"}}`), nil
		}
		s := openSession(t, u, upstream.Want{Client: client, Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: ask})
		for range 20 {
			wg.Go(func() {
				result, err := s.Do(t.Context(), toolCall("ask", args{"text": "for " + client}))
				if err != nil || !strings.Contains(string(result), `\"ok\":\"`+client) {
					t.Errorf("%s got %s %v", client, result, err)
				}
			})
		}
	}
	wg.Wait()
	shared := openSession(t, u, upstream.Want{})
	if got := callText(t, shared, toolCall("ask", args{"text": "nobody"})); !strings.Contains(got, "-32601") {
		t.Errorf("the shared session returned %s", got)
	}
}

// Calls that exclude others from their session never share one.
func TestAloneSessions(t *testing.T) {
	t.Parallel()
	u := openUpstream(t, ownSpec(t), upstream.Options{MaxSessions: 2})
	want := upstream.Want{Client: "pool", Alone: true}
	first, done, err := u.Session(t.Context(), want)
	if err != nil {
		t.Fatal(err)
	}
	second := openSession(t, u, want)
	if first == second {
		t.Error("two calls share a session")
	}
	waiting := make(chan *upstream.Session)
	go func() {
		s, done, err := u.Session(t.Context(), want)
		if err == nil {
			done()
		}
		waiting <- s
	}()
	done()
	if third := <-waiting; third != first {
		t.Error("the third call did not get the released session")
	}
}

// TestLog checks that the stderr of a server is kept without terminal control characters.
func TestLog(t *testing.T) {
	t.Parallel()
	u := openUpstream(t, ownSpec(t, upstreamtest.Talkative), upstream.Options{})
	callText(t, openSession(t, u, upstream.Want{}), toolCall("echo", nil))
	log := strings.Join(u.Log(10), "\n")
	if !strings.Contains(log, "hello from the server") || !strings.Contains(log, "starting up [31mred") || strings.Contains(log, "\x1b") {
		t.Errorf("the log is %q", log)
	}
}
