package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
	"github.com/guideway-dev/guideway/internal/catalog/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func checkError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func workflowText(id, version string) string {
	return fmt.Sprintf(`{"id": %q, "name": "N", "description": "D", "version": %q, "steps": [{"id": "step", "title": "T", "prompt": "P"}]}`, id, version)
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	checkError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	checkError(t, os.WriteFile(path, []byte(text), 0o644))
}

// pauseRecorder records the pauses of a client.
type pauseRecorder struct {
	mu   sync.Mutex
	list []time.Duration
}

func (p *pauseRecorder) recordPause(ctx context.Context, d time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, d)
	return ctx.Err()
}

// newSource makes a source of a registry.
func newSource(t testing.TB, opts registry.Options) *mirror.Source {
	t.Helper()
	c, err := registry.New(opts)
	checkError(t, err)
	return mirror.New(catalog.SourceInfo{Name: "central", Kind: "registry", Location: c.Location(), Trust: catalog.TrustRemote},
		mirror.Options{Dir: t.TempDir(), Origin: c.Origin(), Fetcher: c, Poll: 20 * time.Millisecond})
}

// localOptions are options for a test server.
func localOptions(server *httptest.Server, p *pauseRecorder) registry.Options {
	return registry.Options{URL: server.URL, AllowPrivate: true, Timeout: 2 * time.Second, Pause: p.recordPause}
}

func servedNames(t testing.TB, s catalog.Source) []string {
	t.Helper()
	c := catalog.New([]catalog.Source{s}, catalog.Options{})
	checkError(t, c.Load(t.Context()))
	ids := []string{}
	for _, e := range c.List(catalog.Filter{}) {
		ids = append(ids, e.ID+"@"+e.Version)
	}
	return ids
}

// requestCounter counts requests by path.
type requestCounter struct {
	next http.Handler
	mu   sync.Mutex
	seen map[string]int
}

func (c *requestCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	path := r.URL.Path
	if strings.HasPrefix(path, "/documents/") {
		path = "/documents"
	}
	c.seen[path]++
	c.mu.Unlock()
	c.next.ServeHTTP(w, r)
}

func (c *requestCounter) takeCounts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

// Between Guideway's server and client, an unchanged registry costs one request of the
// index. Each new or changed document costs one more request.
func TestGuidewayRegistry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 50 {
		writeFile(t, filepath.Join(dir, fmt.Sprintf("w%02d.json", i)), workflowText(fmt.Sprintf("flow-%02d", i), "1.0.0"))
	}
	writeFile(t, filepath.Join(dir, "broken.json"), `{"id": "broken"`)
	writeFile(t, filepath.Join(dir, "machines", "m", "machine.json"), `{}`)
	writeFile(t, filepath.Join(dir, "machines", "m", "script.js"), `export {}`)
	from := catalog.New([]catalog.Source{
		catalog.NewDir(catalog.SourceInfo{Name: "user", Location: dir, Trust: catalog.TrustUser, Rank: 1}, catalog.DirOptions{}),
	}, catalog.Options{})
	checkError(t, from.Load(t.Context()))
	server := &requestCounter{next: registry.Handler(from)}
	web := httptest.NewServer(server)
	defer web.Close()

	s := newSource(t, localOptions(web, &pauseRecorder{}))
	first, err := s.Sync(t.Context())
	checkError(t, err)
	if got := servedNames(t, s); len(got) != 50 || got[7] != "flow-07@1.0.0" {
		t.Errorf("%v", got)
	}
	if seen := server.takeCounts(); seen["/documents"] != 52 {
		t.Errorf("50 workflows and 2 machine files were requested by %v", seen)
	}
	again, err := s.Sync(t.Context())
	checkError(t, err)
	if diff := cmp.Diff(map[string]int{"/index": 1}, server.takeCounts()); diff != "" || again.Changed || again.After != first.After {
		t.Errorf("%+v, %s", again, diff)
	}
	writeFile(t, filepath.Join(dir, "w07.json"), workflowText("flow-07", "2.0.0"))
	checkError(t, os.Remove(filepath.Join(dir, "w08.json")))
	checkError(t, from.Load(t.Context()))
	changed, err := s.Sync(t.Context())
	checkError(t, err)
	if diff := cmp.Diff(map[string]int{"/index": 1, "/documents": 1}, server.takeCounts()); diff != "" || !changed.Changed {
		t.Errorf("%+v, %s", changed, diff)
	}
	if got := servedNames(t, s); len(got) != 49 || got[7] != "flow-07@2.0.0" {
		t.Errorf("%v", got)
	}
}

// A registry of another system is read with a key. Its list contains complete workflows,
// summaries that need one request each, and invalid items, which are reported.
func TestOtherRegistry(t *testing.T) {
	t.Parallel()
	asked := 0
	mux := http.NewServeMux()
	mux.HandleFunc("GET /workflows", func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		items := []string{workflowText("whole", "1.0.0"), `7`, `{"id": "../../evil", "steps": []}`, `{"name": "no id"}`}
		for i := range 50 {
			items = append(items, fmt.Sprintf(`{"id": "flow-%02d", "name": "N"}`, i))
		}
		fmt.Fprintf(w, `{"data": [%s]}`, strings.Join(items, ","))
	})
	mux.HandleFunc("GET /workflows/{id}", func(w http.ResponseWriter, r *http.Request) {
		switch id := r.PathValue("id"); id {
		case "flow-07":
			fmt.Fprint(w, `{"id": "flow-07", `)
		case "flow-08":
			http.NotFound(w, r)
		case "flow-09":
			fmt.Fprint(w, workflowText("another", "1.0.0"))
		default:
			fmt.Fprint(w, workflowText(id, "1.0.0"))
		}
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	defer web.Close()

	opts := localOptions(web, &pauseRecorder{})
	if _, err := newSource(t, opts).Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeForbidden || guideway.ErrorFix(err) == "" {
		t.Errorf("error without a key is %v", err)
	}
	opts.Key = func() string { return "the-key" }
	s := newSource(t, opts)
	_, err := s.Sync(t.Context())
	checkError(t, err)
	if got := servedNames(t, s); len(got) != 48 {
		t.Errorf("%d workflows: %v", len(got), got)
	}
	_, found, err := s.Documents(t.Context())
	checkError(t, err)
	if len(found) != 6 {
		t.Errorf("want 6 diagnostics, got %v", found)
	}
	if done, err := s.Sync(t.Context()); err != nil || done.Changed || asked != 2 {
		t.Errorf("%+v, %v after %d lists", done, err, asked)
	}
}

// Only transient errors are retried.
func TestRetries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		answers []int // the last status is repeated
		asked   int
		ok      bool
		least   time.Duration // minimum of the first pause
	}{
		{"good", []int{200}, 1, true, 0},
		{"failing once", []int{500, 200}, 2, true, 500 * time.Millisecond},
		{"busy with Retry-After", []int{429, 503, 200}, 3, true, 7 * time.Second},
		{"failing always", []int{502}, 3, false, 500 * time.Millisecond},
		{"refusing", []int{403}, 1, false, 0},
		{"wrong", []int{400}, 1, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				status := tt.answers[min(int(asked.Add(1))-1, len(tt.answers)-1)]
				if status == 429 {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(status)
				if status == 200 {
					fmt.Fprintf(w, `{"format": %q, "revision": "r-1", "documents": []}`, registry.Format)
				}
			}))
			defer web.Close()
			p := &pauseRecorder{}
			_, err := newSource(t, localOptions(web, p)).Sync(t.Context())
			if (err == nil) != tt.ok || int(asked.Load()) != tt.asked {
				t.Errorf("error %v after %d requests", err, asked.Load())
			}
			if tt.least > 0 && (p.list[0] < tt.least || p.list[0] > tt.least*3/2) {
				t.Errorf("the pauses are %v", p.list)
			}
		})
	}
}

// Each hostile answer is an error, and the previous documents stay served.
func TestHostileRegistry(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("a", 64)
	index := func(documents string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/index" {
				fmt.Fprint(w, workflowText("x", "1.0.0"))
				return
			}
			fmt.Fprintf(w, `{"format": %q, "revision": "r-2", "documents": [%s]}`, registry.Format, documents)
		}
	}
	var inner atomic.Int64
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		inner.Add(1)
		fmt.Fprint(w, `{"workflows": []}`)
	}))
	defer private.Close()
	tests := []struct {
		name   string
		handle http.HandlerFunc
		says   string
	}{
		{"redirect to a cloud metadata address", http.RedirectHandler("http://169.254.169.254/latest/", http.StatusFound).ServeHTTP, "redirects to a different host"},
		{"redirect to another server", http.RedirectHandler(private.URL, http.StatusFound).ServeHTTP, "redirects to a different host"},
		{"endless body", func(w http.ResponseWriter, _ *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<16))
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "larger than the limit"},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>`) }, "not a JSON array or object"},
		{"wrong types", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"workflows": "all"}`) }, "not a JSON array or object"},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }, `neither the member "workflows"`},
		{"different content", index(`{"name": "x.json", "size": 3, "sha256": "` + sum + `"}`), "does not match its SHA-256"},
		{"an invalid revision", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"format": %q, "revision": "\u001b[31m", "documents": []}`, registry.Format)
		}, "no valid revision"},
		{"too many", index(strings.TrimSuffix(strings.Repeat(`{"name": "x.json"},`, 1_500), ",")), "the limit is 1000"},
		{"silence", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "request the registry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var evil atomic.Bool
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if evil.Load() {
					tt.handle(w, r)
					return
				}
				if r.URL.Path == "/index" {
					http.NotFound(w, r)
					return
				}
				fmt.Fprintf(w, `{"workflows": [%s]}`, workflowText("good", "1.0.0"))
			}))
			defer web.Close()
			opts := localOptions(web, &pauseRecorder{})
			opts.Timeout, opts.Limits.Bytes = 300*time.Millisecond, 1<<20
			if tt.name == "endless body" {
				opts.Timeout = 10 * time.Second
			}
			c, err := registry.New(opts)
			checkError(t, err)
			dir := t.TempDir()
			s := mirror.New(catalog.SourceInfo{Name: "central", Trust: catalog.TrustRemote}, mirror.Options{Dir: dir, Origin: c.Origin(), Fetcher: indexClient{c}})
			_, err = s.Sync(t.Context())
			checkError(t, err)
			evil.Store(true)
			if _, err := s.Sync(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error is %v", err)
			}
			if diff := cmp.Diff([]string{"good@1.0.0"}, servedNames(t, s)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Cleanup(func() {
		if inner.Load() > 0 {
			t.Error("the other server was reached")
		}
	})
}

// indexClient requests the index of every registry, even if the last response was that
// there is no index.
type indexClient struct{ *registry.Client }

func (f indexClient) Fetch(ctx context.Context, have *mirror.Previous, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	if have != nil {
		have.Tag = ""
	}
	return f.Client.Fetch(ctx, have, stage)
}

// Documents with an unsafe name, an invalid hash or a size above the limit are reported and
// not requested.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	names := []string{`../x.json`, `/etc/x.json`, `a/../../x.json`, `.git/config.json`, `x\\y.json`, `CON.json`, `x.exe`, `a\u0000.json`}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index" {
			t.Errorf("%s was requested", r.URL.Path)
		}
		var items []string
		for _, name := range names {
			items = append(items, `{"name": "`+name+`", "size": 1, "sha256": "`+strings.Repeat("a", 64)+`"}`)
		}
		items = append(items, `{"name": "ok.json", "size": 1, "sha256": "../../x"}`, `{"name": "large.json", "size": 99999999, "sha256": "`+strings.Repeat("b", 64)+`"}`)
		fmt.Fprintf(w, `{"format": %q, "revision": "r-1", "documents": [%s]}`, registry.Format, strings.Join(items, ","))
	}))
	defer web.Close()
	s := newSource(t, localOptions(web, &pauseRecorder{}))
	_, err := s.Sync(t.Context())
	checkError(t, err)
	documents, found, err := s.Documents(t.Context())
	checkError(t, err)
	if len(documents) != 0 || len(found) != len(names)+2 {
		t.Errorf("%d documents, %d findings: %v", len(documents), len(found), found)
	}
}

// New refuses invalid URLs. Fetch refuses a private address unless AllowPrivate is set, and
// always refuses the cloud metadata address.
func TestRefusedURLs(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "registry", "ftp://x/y", "https://user:secret@host/x", "https://host/x?key=1", "http://registry.example.com"} {
		_, err := registry.New(registry.Options{URL: bad})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	for _, allow := range []bool{false, true} {
		c, err := registry.New(registry.Options{URL: tls.URL, AllowPrivate: allow, Pause: (&pauseRecorder{}).recordPause})
		checkError(t, err)
		_, err = c.Fetch(t.Context(), nil, func() (*mirror.Stage, error) { return nil, errors.New("not reached") })
		if private := strings.Contains(fmt.Sprint(err), "reserved address"); err == nil || private == allow {
			t.Errorf("with allowPrivate=%t the error is %v", allow, err)
		}
	}
	c, err := registry.New(registry.Options{URL: "http://169.254.169.254/x", AllowPrivate: true, Pause: (&pauseRecorder{}).recordPause})
	checkError(t, err)
	if _, err := c.Fetch(t.Context(), nil, nil); !strings.Contains(fmt.Sprint(err), "reserved address") {
		t.Errorf("the cloud metadata address returns %v", err)
	}
}
