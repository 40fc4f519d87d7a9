package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

const (
	// keepalive is how often a stream without news says that it is alive; then
	// it also looks whether its reader still may read.
	keepalive = 30 * time.Second
	// writeTime is how long a reader may take to read what it is sent. One that
	// is slower loses its connection, and goes on where it was with the next.
	writeTime = 10 * time.Second
	// retryTime is what browsers are told to wait for before they connect again.
	retryTime = time.Second
	// maxStreams bounds the streams of a process, maxUserStreams those of a
	// user.
	maxStreams     = 256
	maxUserStreams = 64
)

// streams counts the streams that are open.
type streams struct {
	mu     sync.Mutex
	total  int
	byUser map[string]int
}

func newStreams() *streams { return &streams{byUser: map[string]int{}} }

// open takes a place for a user's stream; release gives it back.
func (s *streams) open(user string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= maxStreams || s.byUser[user] >= maxUserStreams {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "too many streams are open").
			WithFix("close pages that you do not look at")
	}
	s.total++
	s.byUser[user]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total--
		if s.byUser[user]--; s.byUser[user] == 0 {
			delete(s.byUser, user)
		}
	}, nil
}

// stream writes server-sent events. Nothing is on its way before flush.
type stream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf bytes.Buffer
	// told is the last id that the reader knows.
	told int64
}

// newStream answers with the headers of a stream.
func newStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a proxy in front must not hold news back
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, rc: http.NewResponseController(w), told: -1}
	fmt.Fprintf(&s.buf, "retry: %d\n\n", retryTime.Milliseconds())
	return s
}

// event adds an event. Its id is the place in the feed behind it; its name may
// be empty.
func (s *stream) event(name string, id int64, data any) error {
	text, err := json.Marshal(data) // one line, as the format wants
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	if name != "" {
		fmt.Fprintf(&s.buf, "event: %s\n", name)
	}
	fmt.Fprintf(&s.buf, "id: %d\ndata: %s\n\n", id, text)
	s.told = id
	return nil
}

// alive adds a comment, and the place in the feed if it is not the one that the
// reader knows: what is not this reader's moves it on too.
func (s *stream) alive(id int64) {
	s.buf.WriteString(":keepalive\n")
	if id != s.told {
		fmt.Fprintf(&s.buf, "id: %d\n", id)
		s.told = id
	}
	s.buf.WriteString("\n")
}

// flush sends what was added.
func (s *stream) flush() error {
	if s.buf.Len() == 0 {
		return nil
	}
	// A writer without deadlines is a test's; it has no network either.
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := s.w.Write(s.buf.Bytes()); err != nil {
		return fmt.Errorf("write a stream: %w", err)
	}
	s.buf.Reset()
	if err := s.rc.Flush(); err != nil {
		return fmt.Errorf("write a stream: %w", err)
	}
	return nil
}
