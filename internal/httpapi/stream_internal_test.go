package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
)

// idleFeed is a feed whose positions increase, but without changes for this user.
type idleFeed struct {
	mu     sync.Mutex
	latest int64
}

func (q *idleFeed) Changes(_ context.Context, after int64, _ int) ([]run.Change, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if after < q.latest {
		return []run.Change{{Pos: q.latest, User: "another"}}, false, nil
	}
	return nil, false, nil
}

func (q *idleFeed) Latest(context.Context) (int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.latest, nil
}

func (q *idleFeed) Watch(ctx context.Context) <-chan struct{} {
	c := make(chan struct{})
	context.AfterFunc(ctx, func() { close(c) })
	return c
}

// recordedResponse is a response that can be read while it is written.
type recordedResponse struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (w *recordedResponse) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ResponseRecorder.Write(p)
}

func (w *recordedResponse) bodyText() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Body.String()
}

// streamRig is a handler with streams and the credentials of its readers.
type streamRig struct {
	handler  http.Handler
	browsers *auth.BrowserSessions
	tokens   *auth.Tokens
}

func newStreamRig(t *testing.T, dir string, feed run.Feed) *streamRig {
	t.Helper()
	browsers, err := auth.NewBrowserSessions(auth.BrowserOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewTokens(auth.TokenOptions{Dir: filepath.Join(dir, "tokens")})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: strings.Repeat("t", 40), User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	guard, err := auth.NewGuard(auth.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := NewHandler(Options{Guard: guard, Bearer: bearer, Browsers: browsers, Tokens: tokens, Feed: feed, Machines: idleMachines{}})
	if err != nil {
		t.Fatal(err)
	}
	return &streamRig{handler, browsers, tokens}
}

// loginBrowser returns a function that adds the credential of a browser.
func (s *streamRig) loginBrowser(t *testing.T) func(*http.Request) {
	t.Helper()
	code, _, err := s.browsers.NewLink("ann")
	if err != nil {
		t.Fatal(err)
	}
	form := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", nil)
	form.Header.Set("Origin", "http://localhost")
	login, err := s.browsers.Redeem(form, code)
	if err != nil {
		t.Fatal(err)
	}
	return func(r *http.Request) {
		r.AddCookie(login.Cookie)
		r.Header.Set(auth.KeyHeader, login.Key)
	}
}

// openStream starts a request and waits until it is idle.
func (s *streamRig) openStream(t *testing.T, path string, who func(*http.Request)) (*http.Request, *recordedResponse, <-chan struct{}) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
	who(r)
	w := &recordedResponse{ResponseRecorder: httptest.NewRecorder()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.handler.ServeHTTP(w, r)
	}()
	synctest.Wait()
	return r, w, ended
}

// idleMachines has one run, in which nothing happens.
type idleMachines struct{ Machines }

func (idleMachines) Status(context.Context, run.Caller, string) (*driver.Status, error) {
	return &driver.Status{Seq: 1}, nil
}

func (idleMachines) Watch(string) (<-chan driver.Update, func()) { return nil, func() {} }

// A stream ends within two seconds after its token was revoked or has expired, or after
// its browser has logged out. It is open until then.
func TestStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/events", "/api/machine-runs/one/stream"} {
		for _, way := range []string{"revoked", "expired", "logged out"} {
			t.Run(way+path, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) { checkStreamEnds(t, dir, path, way) })
			})
		}
	}
}

func checkStreamEnds(t *testing.T, dir, path, way string) {
	rig := newStreamRig(t, dir, &idleFeed{latest: 3})
	expires := time.Now().Add(5*keepalive + time.Millisecond)
	token := auth.NamedToken{Name: "one", User: "ann", Scopes: []auth.Scope{auth.ScopeRead}}
	if way == "expired" {
		token.Expires = &expires
	}
	secret, err := rig.tokens.Create(token)
	if err != nil {
		t.Fatal(err)
	}
	who := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) }
	if way == "logged out" {
		who = rig.loginBrowser(t)
	}
	r, w, ended := rig.openStream(t, path, who)
	time.Sleep(5 * keepalive) //nolint:forbidigo // synctest's fake clock: the sleep takes no time
	synctest.Wait()
	select {
	case <-ended:
		t.Fatalf("the stream ended early: %d %s", w.Code, w.bodyText())
	default:
	}
	switch way {
	case "revoked":
		err = rig.tokens.Revoke("ann", "one")
	case "logged out":
		_, err = rig.browsers.Logout(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	<-ended
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the stream ended after %s", took)
	}
}

// An idle stream sends a comment every 30 seconds, reports new positions of the feed, and
// ends when the login ends.
func TestKeepalive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		feed := &idleFeed{latest: 3}
		rig := newStreamRig(t, dir, feed)
		r, w, ended := rig.openStream(t, "/api/events", rig.loginBrowser(t))
		if got := w.bodyText(); !strings.Contains(got, `id: 3`) || strings.Contains(got, "keepalive") {
			t.Fatalf("the first event is %q", got)
		}
		feed.mu.Lock()
		feed.latest = 8
		feed.mu.Unlock()
		time.Sleep(keepalive) //nolint:forbidigo // the bubble's clock: it takes no time
		synctest.Wait()
		time.Sleep(keepalive) //nolint:forbidigo // synctest's fake clock
		synctest.Wait()
		if got := w.bodyText(); strings.Count(got, ":keepalive\n") != 2 || !strings.HasSuffix(got, ":keepalive\nid: 8\n\n") || strings.Contains(got, "another") {
			t.Errorf("after a minute: %q", got)
		}
		if _, err := rig.browsers.Logout(r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(keepalive) //nolint:forbidigo // synctest's fake clock
		<-ended
	})
}
