package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
)

// idleFeed is a feed without changes for this user whose positions increase.
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

// An idle stream sends a comment every 30 seconds, reports new positions of the feed, and
// ends when the login ends.
func TestKeepalive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		browsers, err := auth.NewBrowserSessions(auth.BrowserOptions{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		code, _, err := browsers.NewLink("ann")
		if err != nil {
			t.Fatal(err)
		}
		form := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/", nil)
		form.Header.Set("Origin", "http://localhost")
		login, err := browsers.Redeem(form, code)
		if err != nil {
			t.Fatal(err)
		}
		feed := &idleFeed{latest: 3}
		bearer, err := auth.NewBearer(auth.BearerOptions{Token: strings.Repeat("t", 40), User: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		guard, err := auth.NewGuard(auth.GuardOptions{})
		if err != nil {
			t.Fatal(err)
		}
		handler, err := NewHandler(Options{Guard: guard, Bearer: bearer, Browsers: browsers, Feed: feed})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/events", nil)
		r.AddCookie(login.Cookie)
		w := &recordedResponse{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			handler.ServeHTTP(w, r)
		}()
		synctest.Wait()
		if got := w.bodyText(); !strings.Contains(got, `id: 3`) || strings.Contains(got, "keepalive") {
			t.Fatalf("at first: %q", got)
		}
		feed.mu.Lock()
		feed.latest = 8
		feed.mu.Unlock()
		time.Sleep(keepalive) //nolint:forbidigo // the bubble's clock: it takes no time
		synctest.Wait()
		time.Sleep(keepalive) //nolint:forbidigo // the same
		synctest.Wait()
		if got := w.bodyText(); strings.Count(got, ":keepalive\n") != 2 || !strings.HasSuffix(got, ":keepalive\nid: 8\n\n") || strings.Contains(got, "another") {
			t.Errorf("after a minute: %q", got)
		}
		if _, err := browsers.Logout(r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(keepalive) //nolint:forbidigo // the same
		<-ended
	})
}
