package git_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/git"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// TestMain keeps the settings of this machine's user out of the tests.
func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "guideway-git-home-")
	if err != nil {
		panic(err)
	}
	for _, v := range [][2]string{
		{"HOME", home},
		{"XDG_CONFIG_HOME", filepath.Join(home, ".config")},
		{"GIT_CONFIG_GLOBAL", os.DevNull},
		{"GIT_CONFIG_NOSYSTEM", "1"},
		{"SSH_AUTH_SOCK", ""},
	} {
		if err := os.Setenv(v[0], v[1]); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(home)
		os.Exit(code)
	}))
}

// repo is a repository made by the git program.
type repo struct {
	t   testing.TB
	dir string
}

// newRepo makes a repository with one workflow on the branch master.
func newRepo(t testing.TB) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this test needs git, which is not installed")
	}
	r := &repo{t: t, dir: filepath.Join(t.TempDir(), "repo")}
	checkError(t, os.MkdirAll(r.dir, 0o755))
	r.runGit("init", "-q", "-b", "master", ".")
	r.runGit("config", "uploadpack.allowFilter", "true")
	r.writeFile("workflows/one.json", workflowText("one", "1.0.0"))
	r.commitAll()
	return r
}

// runGit runs git in the repository without the user's settings and returns the output.
func (r *repo) runGit(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), "git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repo) writeFile(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(name))
	checkError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	checkError(r.t, os.WriteFile(path, []byte(text), 0o644))
}

// commitAll commits everything and returns the hash.
func (r *repo) commitAll() string {
	r.t.Helper()
	r.runGit("add", "-A")
	r.runGit("commit", "-q", "--allow-empty", "-m", "a change")
	return r.runGit("rev-parse", "HEAD")
}

func workflowText(id, version string) string {
	return fmt.Sprintf(`{"id": %q, "name": "N", "description": "D", "version": %q, "steps": [{"id": "step", "title": "T", "prompt": "P"}]}`, id, version)
}

// smartHTTP serves repositories with git's own HTTP server to clients that send the token.
func smartHTTP(t testing.TB, root, token string) *httptest.Server {
	t.Helper()
	path, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, statErr := os.Stat(backend); err != nil || statErr != nil {
		t.Skip("this test needs git-http-backend, which is not installed")
	}
	handler := &cgi.Handler{
		Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
		Stderr: io.Discard,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, given, _ := r.BasicAuth(); given != token {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server
}

// newSource makes a source from options, with its copy in a directory.
func newSource(t testing.TB, dir string, opts git.Options) *mirror.Source {
	t.Helper()
	f, err := git.New(opts)
	checkError(t, err)
	return mirror.New(catalog.SourceInfo{Name: "team", Kind: "git", Location: f.Location(), Trust: catalog.TrustRemote},
		mirror.Options{Dir: dir, Origin: f.Origin(), Fetcher: f, Interval: time.Second, Poll: 20 * time.Millisecond})
}

// servedNames lists the definitions of a source, as "id@version".
func servedNames(t testing.TB, s catalog.Source) []string {
	t.Helper()
	return servedBy(t, loadCatalog(t, s))
}

func servedBy(_ testing.TB, c *catalog.Catalog) []string {
	ids := []string{}
	for _, e := range c.List(catalog.Filter{}) {
		ids = append(ids, e.ID+"@"+e.Version)
	}
	return ids
}

// loadCatalog returns a loaded catalog of sources.
func loadCatalog(t testing.TB, sources ...catalog.Source) *catalog.Catalog {
	t.Helper()
	c := catalog.New(sources, catalog.Options{})
	checkError(t, c.Load(context.Background()))
	return c
}

// codeList lists the diagnostics of a catalog as "code file".
func codeList(c *catalog.Catalog) []string {
	var lines []string
	for _, d := range c.Diagnostics() {
		_, name, _ := strings.Cut(strings.TrimPrefix(d.File, "file://"), "//")
		lines = append(lines, d.Code+" "+name)
	}
	slices.Sort(lines)
	return lines
}

// syncSource brings a source up to date.
func syncSource(t testing.TB, s *mirror.Source) catalog.Synced {
	t.Helper()
	done, err := s.Sync(t.Context())
	checkError(t, err)
	return done
}

func checkError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
