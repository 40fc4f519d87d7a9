package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// event is a server-sent event.
type event struct {
	name string
	id   int64
	data struct {
		Type, Subject, Op, ID, SessionID string
		Pos, Seq                         int64
		Session                          *struct {
			Revision int64
			Data     map[string]any
		}
	}
	text string
}

// reader reads a stream like a browser.
type reader struct {
	resp *http.Response
	in   *bufio.Reader
	// last is the id that a browser would send when it reconnects.
	last string
	stop context.CancelFunc
}

func (s *rig) openStream(t *testing.T, who credential, path string, header ...string) *reader {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	who(r)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = resp.Body.Close()
	})
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		text, _ := io.ReadAll(resp.Body)
		t.Fatalf("%s: %d, %q, %s", path, resp.StatusCode, got, text)
	}
	return &reader{resp: resp, in: bufio.NewReader(resp.Body), stop: stop}
}

// nextEvent returns the next event. It waits until an event arrives or the stream ends.
func (r *reader) nextEvent() (event, error) {
	var e event
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && e.text != "":
			return e, json.Unmarshal([]byte(e.text), &e.data)
		case field == "event":
			e.name = value
		case field == "id":
			r.last = value
			if e.id, err = strconv.ParseInt(value, 10, 64); err != nil {
				return e, err
			}
		case field == "data":
			e.text += value
		case line != "" && field != "retry" && !strings.HasPrefix(line, ":"):
			return e, fmt.Errorf("invalid line %q", line)
		}
	}
}

// wantEvent returns the next event. The event must have the type kind and match the schema.
func (r *reader) wantEvent(t *testing.T, s *rig, schema, kind string) event {
	t.Helper()
	e, err := r.nextEvent()
	if err != nil {
		t.Fatal(err)
	}
	s.contract.checkSchema(t, s.contract.componentSchema(t, schema), []byte(e.text), kind)
	if e.data.Type != kind {
		t.Fatalf("the event is %+v, want %s", e, kind)
	}
	return e
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, page := s.loginBrowser(t, "ann")
	s.createDocument(t, "ann", projectA, "bug", "before")
	r := s.openStream(t, page, "/api/events")
	first := r.wantEvent(t, s, "FeedEvent", "connected")
	if first.name != "connected" || first.id != first.data.Pos || first.id == 0 {
		t.Errorf("the first event is %+v", first)
	}
	s.createDocument(t, "bob", projectA, "bug", "secret")
	s.createDocument(t, "ann", projectA, "bug", "one")
	s.updateDocument(t, "ann", projectA, "bug", "one", map[string]any{"dashboard.progress": 50})
	a := s.startAtGate(t, callerAnn(), "plain", "")
	s.wantStatus(t, 200, asAgent, "DELETE", "/api/sessions/bug/one", "")
	want := []string{"session created one", "session changed one", "run created " + a.RunID, "run changed " + a.RunID, "session deleted one"}
	last := first.id
	for _, w := range want {
		e := r.wantEvent(t, s, "FeedEvent", "change")
		if got := e.data.Subject + " " + e.data.Op + " " + e.data.ID; got != w || e.name != "change" || e.id <= last || e.id != e.data.Pos {
			t.Errorf("%s (%+v), want %s", got, e, w)
		}
		last = e.id
	}
	// A new stream continues after the position in the header or the query parameter.
	for _, again := range []*reader{
		s.openStream(t, page, "/api/events", "Last-Event-ID", strconv.FormatInt(last-1, 10)),
		s.openStream(t, page, "/api/events?after="+strconv.FormatInt(last-1, 10)),
	} {
		again.wantEvent(t, s, "FeedEvent", "connected")
		if e := again.wantEvent(t, s, "FeedEvent", "change"); e.id != last || e.data.Op != "deleted" {
			t.Errorf("the first event after reconnecting is %+v", e)
		}
	}
	for _, id := range []string{"x", "-1", "1.5", "99999999999999999999"} {
		s.wantCode(t, 400, guideway.CodeInvalid, page, "GET", "/api/events", "", "Last-Event-ID", id)
	}
}

// A reader whose position is past the end of the feed receives a reset and then the new
// changes. The position is too high if the store was restored from an old copy.
func TestEventsAheadOfTheFeed(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.createDocument(t, "ann", projectA, "bug", "one")
	r := s.openStream(t, asAgent, "/api/events", "Last-Event-ID", "1000")
	r.wantEvent(t, s, "FeedEvent", "connected")
	if e := r.wantEvent(t, s, "FeedEvent", "reset"); e.name != "reset" || e.id != e.data.Pos || e.id > 10 {
		t.Errorf("%+v, want a reset", e)
	}
	s.createDocument(t, "ann", projectA, "bug", "two")
	if e := r.wantEvent(t, s, "FeedEvent", "change"); e.data.ID != "two" {
		t.Errorf("the event is %+v, want the change after the reset", e)
	}
}

// Eight writers write to one database through two stores, and one of the readers keeps
// reconnecting. Each reader must receive every change of its user once and in order.
func TestEventsExactlyOnce(t *testing.T) {
	t.Parallel()
	const writers, each, readers = 8, 25, 3
	s := newRig(t)
	other := openStore(t, s.storePath)
	begin := s.openStream(t, asAgent, "/api/events").wantEvent(t, s, "FeedEvent", "connected").id
	var wg sync.WaitGroup
	for w := range writers {
		documents := session.New(session.Options{Store: s.store})
		if w%2 == 1 {
			documents = session.New(session.Options{Store: other})
		}
		wg.Go(func() {
			name := session.Name{Project: projectA, Workflow: "w", ID: fmt.Sprintf("d%d", w)}
			user := guideway.Principal{User: "ann"}
			if w == 0 {
				user.User = "bob"
			}
			_, err := documents.Create(t.Context(), user, session.CreateRequest{Project: name.Project, Workflow: name.Workflow, ID: name.ID})
			for i := range each - 1 {
				if err == nil {
					_, err = documents.Update(t.Context(), user, name, map[string]any{"i": i})
				}
			}
			if err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	for n := range readers {
		wg.Go(func() { s.readAll(t, begin, (writers-1)*each, n == 0) })
	}
	wg.Wait()
}

// readAll reads count changes from a position and checks that none is missing, repeated or
// out of order.
func (s *rig) readAll(t *testing.T, begin int64, count int, reconnects bool) {
	r := s.openStream(t, asAgent, fmt.Sprintf("/api/events?after=%d", begin))
	last, next := begin, map[string]int64{}
	for seen := 0; seen < count; {
		e, err := r.nextEvent()
		if err != nil {
			t.Errorf("after %d changes: %v", seen, err)
			return
		}
		if e.data.Type != "change" {
			continue
		}
		seen++
		if e.id <= last || e.data.Seq != next[e.data.ID]+1 || e.data.ID == "d0" {
			t.Errorf("the change %s is missing, repeated or out of order after position %d and revision %d", e.text, last, next[e.data.ID])
			return
		}
		last, next[e.data.ID] = e.id, e.data.Seq
		if reconnects && seen%20 == 0 {
			r.stop()
			r = s.openStream(t, asAgent, "/api/events", "Last-Event-ID", r.last)
		}
	}
}

// The stream of a session document starts with its current state, and then has one event
// per change of the document and none for other documents.
func TestSessionStream(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	s.createDocument(t, "ann", projectA, "bug", "one")
	s.createDocument(t, "ann", projectA, "bug", "other")
	s.createDocument(t, "ann", projectB, "review", "one")
	s.createDocument(t, "bob", projectA, "bug", "one")
	r := s.openStream(t, asAgent, "/api/sessions/bug/one/stream")
	first := r.wantEvent(t, s, "SessionEvent", "connected")
	if first.name != "" || first.data.SessionID != "one" || first.data.Session.Revision != 1 {
		t.Errorf("the first event is %+v", first)
	}
	last := first.id
	for i := range 5 {
		s.updateDocument(t, "ann", projectA, "bug", "other", map[string]any{"i": i})
		s.updateDocument(t, "bob", projectA, "bug", "one", map[string]any{"i": i})
		s.updateDocument(t, "ann", projectB, "review", "one", map[string]any{"i": i})
		s.updateDocument(t, "ann", projectA, "bug", "one", map[string]any{"i": i})
		e := r.wantEvent(t, s, "SessionEvent", "update")
		if e.id <= last || e.data.Session.Revision != int64(i)+2 || e.data.Session.Data["i"] != float64(i) {
			t.Errorf("update %d: %+v", i, e.text)
		}
		last = e.id
	}
	ref := session.Name{Project: projectA, Workflow: "bug", ID: "one"}
	if _, err := s.sessions.Delete(t.Context(), guideway.Principal{User: "ann"}, ref); err != nil {
		t.Fatal(err)
	}
	if e := r.wantEvent(t, s, "SessionEvent", "deleted"); e.data.Session != nil {
		t.Errorf("deleted: %+v", e)
	}
	if _, err := s.sessions.Restore(t.Context(), guideway.Principal{User: "ann"}, ref); err != nil {
		t.Fatal(err)
	}
	r.wantEvent(t, s, "SessionEvent", "update")
	s.createDocument(t, "ann", projectB, "bug", "one")
	s.wantCode(t, 409, guideway.CodeConflict, asAgent, "GET", "/api/sessions/bug/one/stream", "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/sessions/bug/none/stream", "")
	s.openStream(t, asAgent, "/api/sessions/bug/one/stream?project="+projectB).wantEvent(t, s, "SessionEvent", "connected")
}

// A client that does not read its stream delays neither another reader nor the shutdown.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	const changes = 20_000 // The socket buffers hold fewer changes.
	feed := newFeed()
	s := newRig(t, func(o *httpapi.Options) { o.Feed = feed })
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /api/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", token)
	feed.waitForWatchers(t, 1)
	r := s.openStream(t, asAgent, "/api/events")
	for range changes {
		feed.addChange(run.Change{User: "ann", Subject: run.SubjectRun, Op: run.OpChanged, ID: "r_" + strings.Repeat("x", 400)})
	}
	for seen := 0; seen < changes; {
		e, err := r.nextEvent()
		if err != nil {
			t.Fatalf("after %d changes: %v", seen, err)
		}
		if e.data.Type == "change" {
			seen++
		}
	}
	s.stop()
	s.wantShutdown(t)
}

// A stream that is opened at a position before the oldest change starts with a reset and
// continues at the oldest change.
func TestPrunedFeed(t *testing.T) {
	t.Parallel()
	feed := newFeed()
	s := newRig(t, func(o *httpapi.Options) { o.Feed = feed })
	for range 10 {
		feed.addChange(run.Change{User: "ann", Subject: run.SubjectRun, Op: run.OpChanged, ID: "r"})
	}
	feed.pruneChanges(7)
	r := s.openStream(t, asAgent, "/api/events?after=2")
	r.wantEvent(t, s, "FeedEvent", "connected")
	if e := r.wantEvent(t, s, "FeedEvent", "reset"); e.id != 7 {
		t.Errorf("the event is %+v, want a reset to 7", e)
	}
	for want := int64(8); want <= 10; want++ {
		if e := r.wantEvent(t, s, "FeedEvent", "change"); e.id != want {
			t.Errorf("the event is %+v, want the change %d", e, want)
		}
	}
	feed.pruneChanges(10)
	r = s.openStream(t, asAgent, "/api/events?after=3")
	r.wantEvent(t, s, "FeedEvent", "connected")
	if e := r.wantEvent(t, s, "FeedEvent", "reset"); e.id != 10 {
		t.Errorf("the event is %+v, want a reset to 10", e)
	}
}

// If the feed cannot be read, the answer is an error, not a silent stream.
func TestFeedUnavailable(t *testing.T) {
	t.Parallel()
	feed := newFeed()
	feed.err = guideway.Errorf(guideway.CodeUnavailable, "the disk is missing").WithFix("mount it again")
	s := newRig(t, func(o *httpapi.Options) { o.Feed = feed })
	got := s.wantStatus(t, 503, asAgent, "GET", "/api/events", "")
	if got.Header.Get("Retry-After") == "" || !strings.Contains(string(got.body), "mount it again") {
		t.Errorf("%v %s", got.Header, got.body)
	}
}

func TestTooManyStreams(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	var open []*reader
	for range 64 {
		open = append(open, s.openStream(t, asAgent, "/api/events"))
	}
	s.wantCode(t, 503, guideway.CodeUnavailable, asAgent, "GET", "/api/events", "")
	bob, err := s.tokens.Create(auth.NamedToken{Name: "bob", User: "bob", Scopes: []auth.Scope{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	s.openStream(t, withBearer(bob), "/api/events")
	for _, r := range open {
		r.wantEvent(t, s, "FeedEvent", "connected")
	}
	s.stop()
	s.wantShutdown(t)
}

// A run waits for a person, the stream reports it, the person answers in the browser, and
// the agent continues.
func TestGateLive(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, browser := s.loginBrowser(t, "ann")
	r := s.openStream(t, browser, "/api/events")
	r.wantEvent(t, s, "FeedEvent", "connected")
	a := s.startAtGate(t, callerAnn(), "person", "")
	for seq := int64(0); seq < 2; seq++ {
		if e := r.wantEvent(t, s, "FeedEvent", "change"); e.data.ID != a.RunID {
			t.Fatalf("the event is %+v, want a change of %s", e, a.RunID)
		}
	}
	s.wantCode(t, 403, guideway.CodeRefused, asAgent, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"confirm"}`)
	s.wantStatus(t, 200, browser, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"confirm","note":"go","handle":"`+a.Handle+`"}`)
	for {
		e := r.wantEvent(t, s, "FeedEvent", "change")
		var d details
		s.wantStatus(t, 200, browser, "GET", "/api/runs/"+e.data.ID, "").decodeInto(t, &d)
		if d.Position.ID == "build" {
			break
		}
	}
	status, err := s.runs.Status(t.Context(), callerAnn(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.Kind != engine.PositionStep || status.Position.ID != "build" {
		t.Errorf("the run is at %+v, %v", status, err)
	}
}

// feed is a feed in memory that can be pruned.
type feed struct {
	mu       sync.Mutex
	changes  []run.Change
	pruned   int64
	watchers map[chan struct{}]bool
	arrived  chan struct{}
	err      error
}

func newFeed() *feed {
	return &feed{watchers: map[chan struct{}]bool{}, arrived: make(chan struct{}, 100)}
}

func (f *feed) addChange(c run.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Pos = int64(len(f.changes)) + 1
	f.changes = append(f.changes, c)
	for w := range f.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (f *feed) pruneChanges(upTo int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pruned = upTo
}

// waitForWatchers waits until n streams watch the feed.
func (f *feed) waitForWatchers(t *testing.T, n int) {
	t.Helper()
	for range n {
		<-f.arrived
	}
}

func (f *feed) Changes(_ context.Context, after int64, limit int) ([]run.Change, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reset := after < f.pruned
	after = max(after, f.pruned)
	rest := f.changes[after:]
	return append([]run.Change{}, rest[:min(limit, len(rest))]...), reset, f.err
}

func (f *feed) Latest(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.changes)), f.err
}

func (f *feed) Watch(ctx context.Context) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := make(chan struct{}, 1)
	f.watchers[w] = true
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, w)
		close(w)
	})
	f.arrived <- struct{}{}
	return w
}

var _ run.Feed = (*feed)(nil)
