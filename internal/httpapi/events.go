package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// changeBatch is the maximum number of changes in one read.
const changeBatch = 256

// follower copies the changes of the feed that concern one reader into its stream, each
// once and in order. Each stream reads the feed separately, so that a slow reader does not
// delay the others.
type follower struct {
	feed  run.Feed
	out   *stream
	after int64
	// include selects changes.
	include func(run.Change) bool
	// send adds a change to the stream.
	send func(ctx context.Context, c run.Change) error
	// sendReset reports that changes before a position are missing in the stream.
	sendReset func(ctx context.Context, pos int64) error
	// newRequests receives a value after new requests were recorded. It may be nil.
	newRequests <-chan struct{}
	// redefined receives a value after the catalog has changed. It may be nil.
	redefined <-chan struct{}
}

// followFeed copies changes until the context is done or the reader disconnects. wake must
// have been taken before the start position was read, so that no change in between is
// missed.
func (f *follower) followFeed(ctx context.Context, wake <-chan struct{}) error {
	tick := time.NewTicker(keepalive)
	defer tick.Stop()
	for ctx.Err() == nil {
		more, err := f.sendBatch(ctx)
		if err != nil {
			return err
		}
		if err := f.out.flushEvents(); err != nil {
			return err
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-wake:
			if !open {
				return nil
			}
		case <-f.newRequests:
			if err := f.out.addEvent("requests", f.after, feedEvent{"requests", f.after}); err != nil {
				return err
			}
		case <-f.redefined:
			if err := f.out.addEvent("definitions", f.after, feedEvent{"definitions", f.after}); err != nil {
				return err
			}
		case <-tick.C:
			f.out.addKeepalive(f.after)
		}
	}
	return nil
}

// sendBatch sends a batch of changes. more is true if the feed may have more changes.
func (f *follower) sendBatch(ctx context.Context) (more bool, err error) {
	list, reset, err := f.feed.Changes(ctx, f.after, changeBatch)
	if err != nil {
		return false, err
	}
	if reset {
		if err := f.restartFeed(ctx, list); err != nil {
			return false, err
		}
	}
	for _, c := range list {
		f.after = c.Pos
		if !f.include(c) {
			continue
		}
		if err := f.send(ctx, c); err != nil {
			return false, err
		}
	}
	return len(list) == changeBatch, nil
}

// restartFeed continues at the oldest change of the feed.
func (f *follower) restartFeed(ctx context.Context, list []run.Change) error {
	if len(list) > 0 {
		f.after = list[0].Pos - 1
	} else {
		latest, err := f.feed.Latest(ctx)
		if err != nil {
			return err
		}
		f.after = latest
	}
	return f.sendReset(ctx, f.after)
}

// startPosition returns the position at which a stream starts: that of the header
// Last-Event-ID, which a browser sends when it reconnects, that of the parameter after, or
// else the end of the feed. ahead is true if the requested position is past the end of the
// feed, because the store was restored or replaced.
func (a *api) startPosition(c *call) (after int64, ahead bool, err error) {
	latest, err := a.Feed.Latest(c.Context())
	if err != nil {
		return 0, false, err
	}
	given, name := c.Header.Get("Last-Event-ID"), "header Last-Event-ID"
	if given == "" {
		given, name = c.URL.Query().Get("after"), "parameter after"
	}
	if given == "" {
		return latest, false, nil
	}
	after, err = strconv.ParseInt(given, 10, 64)
	if err != nil || after < 0 {
		return 0, false, guideway.Errorf(guideway.CodeInvalid, "the %s has the invalid value %q", name, clipText(given)).
			WithFix("pass the id of an event of this stream")
	}
	if after > latest {
		return latest, true, nil
	}
	return after, false, nil
}

// feedEvent is an event of /api/events without data of its own: "connected", which is the
// first one, "reset", "requests" after new entries in the log of requests, or "definitions"
// after the definitions served, or their diagnostics, have changed.
type feedEvent struct {
	Type string `json:"type"`
	// Pos is the position in the feed. Data that was read after the event "connected" is at
	// least as new; changes may be repeated.
	Pos int64 `json:"pos"`
}

type changeEvent struct {
	Type string `json:"type"`
	run.Change
}

// watchCatalog returns a channel that receives a value after the catalog has changed, until
// cancel is called. Several changes may be reported once. The channel is nil without a
// catalog.
func (a *api) watchCatalog() (news <-chan struct{}, cancel func()) {
	if a.Catalog == nil {
		return nil, func() {}
	}
	told := make(chan struct{}, 1)
	return told, a.Catalog.OnChange(func(catalog.Change) {
		select {
		case told <- struct{}{}:
		default: // A value is pending.
		}
	})
}

// streamFeed answers a call with a stream of the feed. prepare sets the callbacks of the
// follower and returns a function that adds the first event. If prepare fails, the error is
// the answer.
func (a *api) streamFeed(c *call, prepare func(ctx context.Context, f *follower) (first func() error, err error)) (any, error) {
	ctx, cancel := a.streamContext(c)
	defer cancel()
	release, err := a.streams.reserveStream(c.userName())
	if err != nil {
		return nil, err
	}
	defer release()
	wake := a.Feed.Watch(ctx) // The watch must start before the position is read.
	after, ahead, err := a.startPosition(c)
	if err != nil {
		return nil, err
	}
	f := &follower{feed: a.Feed, after: after}
	first, err := prepare(ctx, f)
	if err != nil {
		return nil, err
	}
	f.out = newStream(c.w)
	if c.Method == http.MethodHead {
		return responseWritten{}, nil
	}
	err = first()
	if err == nil && ahead {
		err = f.sendReset(ctx, after)
	}
	if err == nil {
		err = f.followFeed(ctx, wake)
	}
	if err != nil && ctx.Err() == nil {
		a.Logger.Warn("an event stream ended with an error", "path", c.URL.Path, "error", err)
	}
	return responseWritten{}, nil
}

// streamEvents streams every change of the user's runs and session documents, and reports
// new entries in the log of requests and changes of the catalog.
func (a *api) streamEvents(c *call) (any, error) {
	defined, cancel := a.watchCatalog()
	defer cancel()
	return a.streamFeed(c, func(ctx context.Context, f *follower) (func() error, error) {
		me := c.userName()
		f.newRequests, f.redefined = a.watchRequests(ctx), defined
		f.include = func(change run.Change) bool {
			return change.User == me || change.Subject == run.SubjectRun && a.Runs != nil && a.Runs.MayUse(me, change.User, change.Project)
		}
		f.send = func(_ context.Context, change run.Change) error {
			return f.out.addEvent("change", change.Pos, changeEvent{"change", change})
		}
		f.sendReset = func(_ context.Context, pos int64) error {
			return f.out.addEvent("reset", pos, feedEvent{"reset", pos})
		}
		return func() error { return f.out.addEvent("connected", f.after, feedEvent{"connected", f.after}) }, nil
	})
}

// streamContext returns a context that ends soon after the credential of a stream was
// revoked, has expired or was logged out. A write in progress then also ends.
func (a *api) streamContext(c *call) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancel(c.Context())
	mayRead := func() bool {
		grant, err := a.access.Check(c.Request)
		return err == nil && grant.Principal.User == c.userName() && grant.May(auth.RightRead)
	}
	stop := auth.WatchCredential(mayRead, func() {
		end()
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Unix(1, 0)) // Not every connection supports deadlines.
	})
	return ctx, func() { stop(); end() }
}

// sessionEvent is an event of a session document's stream. The events have no names, as
// WorkRail clients expect.
type sessionEvent struct {
	Type       string `json:"type"`
	WorkflowID string `json:"workflowId"`
	SessionID  string `json:"sessionId"`
	// Session is the document. It is omitted if the document was deleted.
	Session *fullSession `json:"session,omitempty"`
}

// sessionStream streams a session document: its current state, then each change.
func (a *api) sessionStream(c *call) (any, error) {
	return a.streamFeed(c, func(_ context.Context, f *follower) (func() error, error) {
		doc, err := a.wholeSession(c)
		if err != nil {
			return nil, err
		}
		ref := doc.Ref
		f.include = func(change run.Change) bool {
			return change.Subject == run.SubjectSession && change.User == ref.User &&
				change.ID == ref.ID && change.Workflow == ref.Workflow && change.Project == ref.Project
		}
		f.send = func(ctx context.Context, change run.Change) error { return a.sendSession(ctx, f.out, ref, change) }
		f.sendReset = func(ctx context.Context, pos int64) error {
			return f.send(ctx, run.Change{Pos: pos, Op: run.OpChanged})
		}
		now := newFullSession(doc)
		return func() error {
			return f.out.addEvent("", f.after, sessionEvent{"connected", doc.Workflow, doc.ID, &now})
		}, nil
	})
}

// sendSession adds the current state of a document to a stream. After several consecutive
// changes, each event may show the latest state.
func (a *api) sendSession(ctx context.Context, out *stream, ref session.Ref, change run.Change) error {
	gone := sessionEvent{Type: "deleted", WorkflowID: ref.Workflow, SessionID: ref.ID}
	if change.Op == run.OpDeleted {
		return out.addEvent("", change.Pos, gone)
	}
	doc, err := a.readSession(ctx, ref)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return out.addEvent("", change.Pos, gone)
	}
	if err != nil {
		return err
	}
	now := newFullSession(doc)
	return out.addEvent("", change.Pos, sessionEvent{"update", doc.Workflow, doc.ID, &now})
}

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
