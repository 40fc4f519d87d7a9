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
	// keepalive is how often an idle stream sends a comment.
	keepalive = 30 * time.Second
	// writeTime is the time limit for sending an event to a reader. A slower reader is
	// disconnected and can continue with a new connection.
	writeTime = 10 * time.Second
	// retryTime is the time that browsers wait before they reconnect.
	retryTime = time.Second
	// maxStreams is the maximum number of streams of a process, and maxUserStreams the
	// maximum of one user.
	maxStreams     = 256
	maxUserStreams = 64
)

// streams counts the open streams.
type streams struct {
	mu     sync.Mutex
	total  int
	byUser map[string]int
}

func newStreams() *streams { return &streams{byUser: map[string]int{}} }

// reserveStream counts a new stream of a user. release must be called after it has ended.
func (s *streams) reserveStream(user string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= maxStreams || s.byUser[user] >= maxUserStreams {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "too many event streams are open: at most %d, and %d for each user", maxStreams, maxUserStreams).
			WithFix("close pages of the dashboard that you do not use, or try again later")
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

// stream writes server-sent events. They are sent by flushEvents.
type stream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf bytes.Buffer
	// lastID is the last id that was sent.
	lastID int64
}

// newStream answers with the headers of a stream.
func newStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // Proxies must not buffer the stream.
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, rc: http.NewResponseController(w), lastID: -1}
	fmt.Fprintf(&s.buf, "retry: %d\n\n", retryTime.Milliseconds())
	return s
}

// addEvent adds an event; its name may be empty.
func (s *stream) addEvent(name string, id int64, data any) error {
	text, err := json.Marshal(data) // The format requires JSON on one line.
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	if name != "" {
		fmt.Fprintf(&s.buf, "event: %s\n", name)
	}
	fmt.Fprintf(&s.buf, "id: %d\ndata: %s\n\n", id, text)
	s.lastID = id
	return nil
}

// addKeepalive adds a comment, and the feed position if it has changed: events for other
// readers change it, too.
func (s *stream) addKeepalive(id int64) {
	s.buf.WriteString(":keepalive\n")
	if id != s.lastID {
		fmt.Fprintf(&s.buf, "id: %d\n", id)
		s.lastID = id
	}
	s.buf.WriteString("\n")
}

// flushEvents sends the added events.
func (s *stream) flushEvents() error {
	if s.buf.Len() == 0 {
		return nil
	}
	// Only response writers in tests do not support deadlines.
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
