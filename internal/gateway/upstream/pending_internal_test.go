package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// silentServer is a connection whose server sends progress when called, and never answers.
type silentServer struct{ to *Session }

func (c silentServer) send(_ context.Context, m outgoing) error {
	if m.call != "" {
		c.to.receive(&jsonrpc.Message{Method: "notifications/progress", Params: json.RawMessage(`{"progressToken":` + m.call + `}`)}, "")
	}
	return nil
}
func (silentServer) negotiated(string) {}
func (silentServer) close()            {}

func newTalkingSession(spec Spec) (s *Session, again func()) {
	s = newSession(sessionOptions{spec: spec, logger: slog.New(slog.DiscardHandler)})
	s.conn = silentServer{s}
	return s, func() { _ = s.conn.send(context.Background(), outgoing{call: "1"}) }
}

// A caller gets all notifications before the outcome, and the first of several answers.
func TestPendingOrder(t *testing.T) {
	t.Parallel()
	p := newPending(Call{Notify: func(string, json.RawMessage) {}})
	first := &jsonrpc.Message{Result: json.RawMessage(`{}`)}
	p.fail(nil)
	p.fail(errors.New("first"))
	p.addNote(note{method: "one"})
	p.setAnswer(first)
	p.addNote(note{method: "two"})
	p.setAnswer(&jsonrpc.Message{})
	p.fail(errors.New("second"))
	for _, want := range []string{"one", "two"} {
		if n, found, _, _ := p.nextItem(); !found || n.method != want {
			t.Fatalf("got %q, want %q", n.method, want)
		}
	}
	if _, found, answer, err := p.nextItem(); found || answer != first || err != nil {
		t.Errorf("%v, %v, want the first answer", answer, err)
	}
	p.answer = nil
	if _, _, _, err := p.nextItem(); err == nil || err.Error() != "first" {
		t.Errorf("%v, want the first failure", err)
	}
}

// The waiting notifications of a slow caller are limited in number and size, and there is
// room again after it has read them.
func TestPendingIsBounded(t *testing.T) {
	t.Parallel()
	p := newPending(Call{Notify: func(string, json.RawMessage) {}})
	for range 2 * noteBuffer {
		p.addNote(note{})
	}
	if len(p.notes) != noteBuffer {
		t.Errorf("%d notifications wait", len(p.notes))
	}
	for range noteBuffer {
		_, _, _, _ = p.nextItem()
	}
	large := bytes.Repeat([]byte(" "), noteBytes/2)
	for range 3 {
		p.addNote(note{params: large})
	}
	if len(p.notes) != 2 {
		t.Errorf("%d large notifications wait", len(p.notes))
	}
	_, _, _, _ = p.nextItem()
	p.addNote(note{params: large})
	if len(p.notes) != 2 {
		t.Errorf("%d large notifications wait after one was read", len(p.notes))
	}
	deaf := newPending(Call{})
	deaf.addNote(note{})
	if len(deaf.notes) != 0 {
		t.Error("a notification without a listener is kept")
	}
}

// A server that sends progress all the time delays neither a cancellation nor the total
// timeout.
func TestProgressDoesNotDelayTimeout(t *testing.T) {
	t.Parallel()
	s, again := newTalkingSession(Spec{Name: "x"})
	ctx, cancel := context.WithCancel(t.Context())
	heard := 0
	_, err := s.Do(ctx, Call{Method: "tools/call", Progress: true, Notify: func(string, json.RawMessage) {
		if heard++; heard == 100 {
			cancel()
		}
		again()
		again()
	}, Endless: true})
	if !errors.Is(err, context.Canceled) || heard != 100 {
		t.Errorf("%v after %d notifications, want a cancellation after 100", err, heard)
	}
	synctest.Test(t, func(t *testing.T) {
		s, again := newTalkingSession(Spec{Name: "x", Timeout: config.UpstreamTime(10 * time.Second), MaxTime: config.UpstreamTime(time.Minute)})
		began := time.Now()
		_, err := s.Do(t.Context(), Call{Method: "tools/call", Progress: true, Notify: func(string, json.RawMessage) {
			<-time.After(9 * time.Second)
			again()
		}})
		var none *NoAnswer
		if !errors.As(err, &none) || !none.Late || !strings.Contains(err.Error(), "in total") {
			t.Errorf("%v, want a timeout", err)
		}
		if took := time.Since(began); took != 63*time.Second {
			t.Errorf("the timeout took %s; the last of seven notifications arrives after it", took)
		}
		synctest.Wait()
	})
}

// A call that requests no progress may be silent for longer, because its server cannot show
// that it works. A configured timeout applies to all calls.
func TestTimeoutOfSilentCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeout  time.Duration
		progress bool
		want     time.Duration
	}{
		{0, true, time.Minute}, {0, false, 5 * time.Minute}, {10 * time.Second, true, 10 * time.Second}, {10 * time.Second, false, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := newTalkingSession(Spec{Name: "x", Timeout: config.UpstreamTime(c.timeout)})
			began := time.Now()
			_, err := s.Do(t.Context(), Call{Method: "tools/call", Progress: c.progress})
			var none *NoAnswer
			if took := time.Since(began); !errors.As(err, &none) || !none.Late || took != c.want {
				t.Errorf("timeout %s, progress %v: %v after %s, want a timeout after %s", c.timeout, c.progress, err, took, c.want)
			}
			synctest.Wait()
		})
	}
}
