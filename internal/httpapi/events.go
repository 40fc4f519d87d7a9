package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// changeBatch is how many changes are read at once.
const changeBatch = 256

// follower carries the changes of the feed that concern one reader into its
// stream: each once and in order, from a place of the feed on. Every stream
// reads the feed by itself, so that a slow one keeps nobody waiting.
type follower struct {
	feed  Feed
	out   *stream
	after int64
	// wants chooses changes.
	wants func(run.Change) bool
	// tell adds a change to the stream.
	tell func(ctx context.Context, c run.Change) error
	// lost adds that changes before a place are gone for good.
	lost func(ctx context.Context, pos int64) error
	// news has a value when there are new requests in the record; nil never.
	news <-chan struct{}
	// defined has a value when other definitions are served than before; nil never.
	defined <-chan struct{}
	// may tells whether the reader still may read.
	may func() bool
}

// follow ends with the context, with the reader's right to read, or when the
// reader is gone. wake was taken before the place to begin at was read, so that
// no change falls between the two.
func (f *follower) follow(ctx context.Context, wake <-chan struct{}) error {
	tick := time.NewTicker(keepalive)
	defer tick.Stop()
	for {
		more, err := f.step(ctx)
		if err != nil {
			return err
		}
		if err := f.out.flush(); err != nil {
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
		case <-f.news:
			if err := f.out.event("requests", f.after, requestsEvent{"requests", f.after}); err != nil {
				return err
			}
		case <-f.defined:
			if err := f.out.event("definitions", f.after, definitionsEvent{"definitions", f.after}); err != nil {
				return err
			}
		case <-tick.C:
			if !f.may() {
				return nil
			}
			f.out.alive(f.after)
		}
	}
}

// step reads a batch; more says that there may be another one at once.
func (f *follower) step(ctx context.Context) (more bool, err error) {
	list, reset, err := f.feed.Changes(ctx, f.after, changeBatch)
	if err != nil {
		return false, err
	}
	if reset {
		if err := f.restart(ctx, list); err != nil {
			return false, err
		}
	}
	for _, c := range list {
		f.after = c.Pos
		if !f.wants(c) {
			continue
		}
		if err := f.tell(ctx, c); err != nil {
			return false, err
		}
	}
	return len(list) == changeBatch, nil
}

// restart goes on at the oldest change that there is.
func (f *follower) restart(ctx context.Context, list []run.Change) error {
	if len(list) > 0 {
		f.after = list[0].Pos - 1
	} else {
		latest, err := f.feed.Latest(ctx)
		if err != nil {
			return err
		}
		f.after = latest
	}
	return f.lost(ctx, f.after)
}

// place finds out where a stream begins: behind the header Last-Event-ID, which
// a browser sends when it connects again, or the parameter after, or now. ahead
// says that the place asked for is one that the feed never came to: the store
// was restored, or is another one.
func (a *api) place(c *call) (after int64, ahead bool, err error) {
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
		return 0, false, guideway.Errorf(guideway.CodeInvalid, "the %s is %q", name, clip(given)).
			WithFix("give the id of an event of this stream")
	}
	if after > latest {
		return latest, true, nil
	}
	return after, false, nil
}

// The events of /api/events.
type connectedEvent struct {
	Type string `json:"type"`
	// Pos is the place in the feed: what was read later than this event came
	// is told again or newer.
	Pos int64 `json:"pos"`
}

type changeEvent struct {
	Type string `json:"type"`
	run.Change
}

// definitionsEvent says that other workflows, hook graphs or machines are
// served than before, or that other things do not load.
type definitionsEvent struct {
	Type string `json:"type"`
	Pos  int64  `json:"pos"`
}

// redefined gives a value after every change of the catalog, until cancel is
// called; nil where there is no catalog. Changes that nobody took in between
// are one.
func (a *api) redefined() (news <-chan struct{}, cancel func()) {
	if a.Catalog == nil {
		return nil, func() {}
	}
	told := make(chan struct{}, 1)
	return told, a.Catalog.OnChange(func(catalog.Change) {
		select {
		case told <- struct{}{}:
		default: // it was not told yet
		}
	})
}

// streamFeed answers a call with a stream of the feed. prepare completes the follower, and
// first adds the first event; nothing is answered if prepare fails.
func (a *api) streamFeed(c *call, prepare func(ctx context.Context, f *follower) (first func() error, err error)) (any, error) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	release, err := a.streams.open(c.userName())
	if err != nil {
		return nil, err
	}
	defer release()
	wake := a.Feed.Watch(ctx) // before the place is read
	after, ahead, err := a.place(c)
	if err != nil {
		return nil, err
	}
	f := &follower{feed: a.Feed, after: after, may: a.still(c)}
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
		err = f.lost(ctx, after)
	}
	if err == nil {
		err = f.follow(ctx, wake)
	}
	if err != nil && c.Context().Err() == nil {
		a.Logger.Warn("a stream ended", "path", c.URL.Path, "error", err)
	}
	return responseWritten{}, nil
}

// events streams every change of the user's runs and sessions.
func (a *api) events(c *call) (any, error) {
	defined, cancel := a.redefined()
	defer cancel()
	return a.streamFeed(c, func(ctx context.Context, f *follower) (func() error, error) {
		me := c.userName()
		f.news, f.defined = a.requestNews(ctx), defined
		f.wants = func(change run.Change) bool { return change.User == me }
		f.tell = func(_ context.Context, change run.Change) error {
			return f.out.event("change", change.Pos, changeEvent{"change", change})
		}
		f.lost = func(_ context.Context, pos int64) error {
			return f.out.event("reset", pos, connectedEvent{"reset", pos})
		}
		return func() error { return f.out.event("connected", f.after, connectedEvent{"connected", f.after}) }, nil
	})
}

// still gives a check whether the credential of a request is still good.
func (a *api) still(c *call) func() bool {
	return func() bool {
		grant, err := a.access.Check(c.Request)
		return err == nil && grant.Principal.User == c.userName()
	}
}

// The events of a session's stream, which have no names, as in the seed.
type sessionEvent struct {
	Type       string `json:"type"`
	WorkflowID string `json:"workflowId"`
	SessionID  string `json:"sessionId"`
	// Session is the document; it is left out when it was deleted.
	Session *fullSession `json:"session,omitempty"`
}

// sessionStream streams a document: as it is, and again at every change of it.
func (a *api) sessionStream(c *call) (any, error) {
	return a.streamFeed(c, func(_ context.Context, f *follower) (func() error, error) {
		doc, err := a.wholeSession(c)
		if err != nil {
			return nil, err
		}
		ref := doc.Ref
		f.wants = func(change run.Change) bool {
			return change.Subject == run.SubjectSession && change.User == ref.User &&
				change.ID == ref.ID && change.Workflow == ref.Workflow && change.Project == ref.Project
		}
		f.tell = func(ctx context.Context, change run.Change) error { return a.tellSession(ctx, f.out, ref, change) }
		f.lost = func(ctx context.Context, pos int64) error {
			return f.tell(ctx, run.Change{Pos: pos, Op: run.OpChanged})
		}
		now := full(doc)
		return func() error {
			return f.out.event("", f.after, sessionEvent{"connected", doc.Workflow, doc.ID, &now})
		}, nil
	})
}

// tellSession adds a document to a stream as it is now: of several changes in a row all
// may show the last one.
func (a *api) tellSession(ctx context.Context, out *stream, ref session.Ref, change run.Change) error {
	gone := sessionEvent{Type: "deleted", WorkflowID: ref.Workflow, SessionID: ref.ID}
	if change.Op == run.OpDeleted {
		return out.event("", change.Pos, gone)
	}
	doc, err := a.read(ctx, ref)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return out.event("", change.Pos, gone)
	}
	if err != nil {
		return err
	}
	now := full(doc)
	return out.event("", change.Pos, sessionEvent{"update", doc.Workflow, doc.ID, &now})
}
