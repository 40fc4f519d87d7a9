package httpapi_test

import (
	"html"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// A person opens the login link, submits its form, receives the cookie, opens pages and
// logs out.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(o *httpapi.Options) { o.UI = newAppFiles() })
	code, _, err := s.browsers.NewLink("ann")
	if err != nil {
		t.Fatal(err)
	}
	path := "/login/" + code
	// Prefetchers also open the link. That must not consume it.
	for range 2 {
		got := s.wantStatus(t, 200, withoutCredential, "GET", path, "", "Sec-Fetch-Site", "none", "Purpose", "prefetch")
		if len(got.Cookies()) != 0 || !strings.Contains(string(got.body), `method="post"`) {
			t.Errorf("the link returns %v: %s", got.Cookies(), got.body)
		}
		// Without this policy the browser may send the form with the origin null.
		if got.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("Referrer-Policy %q", got.Header.Get("Referrer-Policy"))
		}
	}
	s.wantCode(t, 403, guideway.CodeForbidden, withoutCredential, "POST", path, "")
	s.wantCode(t, 403, guideway.CodeForbidden, withoutCredential, "POST", path, "", "Origin", allowedOrigin, "Sec-Fetch-Site", "same-site")
	in := s.wantStatus(t, 200, s.addPageHeaders, "POST", path, "")
	cookies := in.Cookies()
	key := regexp.MustCompile(`name="guideway-key" content="([^"]+)"`).FindSubmatch(in.body)
	if len(cookies) != 1 || key == nil {
		t.Fatalf("the login returns %v: %s", cookies, in.body)
	}
	s.wantStatus(t, 401, s.addPageHeaders, "POST", path, "")
	s.wantStatus(t, 401, withoutCredential, "GET", path, "")
	browser := func(r *http.Request) {
		s.addPageHeaders(r)
		r.AddCookie(cookies[0])
		r.Header.Set(auth.KeyHeader, string(key[1]))
	}
	for _, page := range []string{"/", "/dashboard/one?workflow=bug"} {
		got := s.wantStatus(t, 200, browser, "GET", page, "", "Sec-Fetch-Site", "none")
		if again := got.Cookies(); len(again) != 1 || again[0].Value != cookies[0].Value || again[0].MaxAge <= 0 {
			t.Errorf("%s does not renew the cookie: %v", page, again)
		}
	}
	out := s.wantStatus(t, 200, browser, "POST", "/api/logout", "")
	if gone := out.Cookies(); len(gone) != 1 || gone[0].MaxAge >= 0 {
		t.Errorf("the logout returns %v", gone)
	}
	s.wantStatus(t, 401, browser, "GET", "/", "")
	s.wantCode(t, 401, guideway.CodeUnauthorized, browser, "GET", "/api/runs", "")
	s.wantCode(t, 403, guideway.CodeForbidden, asAgent, "POST", "/api/logout", "")
}

func TestPagesWithoutALogin(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	for _, page := range []string{"/", "/dashboard/one", "/login/none"} {
		got := s.wantStatus(t, 401, withoutCredential, "GET", page, "")
		if !strings.Contains(string(got.body), "guideway open") || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s does not explain how to log in: %s", page, got.body)
		}
	}
	// The token of /mcp does not open a page.
	s.wantStatus(t, 401, asAgent, "GET", "/", "")
	for _, page := range []string{"/none", "/assets/none.js", "/assets/confirm.html", "/assets/..%2fopenapi.yaml", "/dashboard", "/login/"} {
		s.wantCode(t, 404, guideway.CodeNotFound, withoutCredential, "GET", page, "")
	}
	s.wantCode(t, 405, guideway.CodeInvalid, withoutCredential, "POST", "/", "")
	s.wantCode(t, 403, guideway.CodeForbidden, withoutCredential, "GET", "/login/x", "", "Sec-Fetch-Site", "cross-site")
	without := newRig(t, func(o *httpapi.Options) { o.Browsers = nil })
	without.wantCode(t, 404, guideway.CodeNotFound, withoutCredential, "GET", "/", "")
	without.wantCode(t, 404, guideway.CodeNotFound, asAgent, "POST", "/api/logout", "")
}

// The pages load nothing from other origins and have no inline script or style that the
// policy would block. Every file that they name exists.
func TestPagesAreStrict(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	cookie, _ := s.loginBrowser(t, "ann")
	got := s.wantStatus(t, 404, cookie, "GET", "/", "")
	if !strings.Contains(string(got.body), "no_ui") {
		t.Errorf("without a dashboard the page shows %s", got.body)
	}
	policy := got.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy %q lacks %s", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	pages, err := fs.Glob(os.DirFS("assets"), "*.html")
	if err != nil || len(pages) < 4 {
		t.Fatalf("pages: %v, %v", pages, err)
	}
	for _, name := range pages {
		text, err := os.ReadFile(path.Join("assets", name))
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`<script(>| [^>]*>[^<])|<style| style=| on[a-z]+=|https?:`).Match(text) {
			t.Errorf("%s has an inline script or style, or a URL of another origin", name)
		}
		for _, want := range []string{`<html lang="en">`, `name="viewport"`, "<title>", "<main"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
		for _, asset := range regexp.MustCompile(`/assets/[a-z.]+`).FindAllString(string(text), -1) {
			got := s.wantStatus(t, 200, withoutCredential, "GET", asset, "")
			s.wantStatus(t, 304, withoutCredential, "GET", asset, "", "If-None-Match", got.Header.Get("ETag"))
		}
	}
	for _, name := range []string{"welcome.js"} {
		text, err := os.ReadFile(path.Join("assets", name))
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(`).Match(text) {
			t.Errorf("%s uses text as HTML", name)
		}
	}
}

// TestAPIReference checks that the page /api/docs requires a credential, contains each
// operation of the OpenAPI document, and has no link to a missing element.
func TestAPIReference(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	cookie, _ := s.loginBrowser(t, "ann")
	for _, who := range []credential{withoutCredential, withBearer(strings.Repeat("x", 48))} {
		if got := s.wantStatus(t, 401, who, "GET", "/api/docs", ""); !strings.Contains(string(got.body), "guideway open") {
			t.Errorf("without a login the page shows %s", got.body)
		}
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/docs", "")
	s.wantStatus(t, 405, cookie, "POST", "/api/docs", "")
	got := s.wantStatus(t, 200, cookie, "GET", "/api/docs", "", "Sec-Fetch-Site", "none")
	page, ids := html.UnescapeString(string(got.body)), map[string]bool{}
	for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[id[1]] {
			t.Errorf("two elements have the id %s", id[1])
		}
		ids[id[1]] = true
	}
	for _, operations := range s.contract.paths {
		for method := range operations.(map[string]any) {
			if id, _ := memberAt(operations, method)["operationId"].(string); !ids[id] {
				t.Errorf("the page lacks %s", id)
			}
		}
	}
	links := regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) < 300 {
		t.Errorf("the page has only %d links", len(links))
	}
	for _, link := range links {
		if !ids[link[1]] {
			t.Errorf("the link #%s does not resolve", link[1])
		}
	}
	if bad := regexp.MustCompile(`<no value>|map\[|ZgotmplZ`).FindString(page); bad != "" {
		t.Errorf("the page has %s", bad)
	}
}

// newAppFiles returns the files of a built dashboard.
func newAppFiles() fs.FS {
	return fstest.MapFS{
		"index.html": {Data: []byte("<title>App</title>")}, "icon.svg": {Data: []byte("<svg/>")},
		"assets/index-1a.js": {Data: []byte("go()")}, "assets/inter.woff2": {Data: []byte("font")}, "secret.txt": {Data: []byte("no")},
	}
}

// The dashboard is served at each of its paths, for browsers that are logged in. Its files
// need no login and are revalidated.
func TestDashboardIsServed(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(o *httpapi.Options) { o.UI = newAppFiles() })
	cookie, _ := s.loginBrowser(t, "ann")
	for _, page := range routesOfTheApplication(t) {
		s.wantStatus(t, 401, withoutCredential, "GET", page, "")
		got := s.wantStatus(t, 200, cookie, "GET", page, "")
		if string(got.body) != "<title>App</title>" || !strings.Contains(got.Header.Get("Content-Security-Policy"), "font-src 'self'") || len(got.Cookies()) != 1 {
			t.Errorf("%s: %v %s", page, got.Header, got.body)
		}
	}
	for file, mediaType := range map[string]string{"/assets/index-1a.js": "text/javascript; charset=utf-8", "/assets/inter.woff2": "font/woff2", "/icon.svg": "image/svg+xml", "/assets/login.css": "text/css; charset=utf-8"} {
		got := s.wantStatus(t, 200, withoutCredential, "GET", file, "")
		if got.Header.Get("Content-Type") != mediaType {
			t.Errorf("%s is %s", file, got.Header.Get("Content-Type"))
		}
		s.wantStatus(t, 304, withoutCredential, "GET", file, "", "If-None-Match", got.Header.Get("ETag"))
	}
	s.wantCode(t, 404, guideway.CodeNotFound, withoutCredential, "GET", "/assets/..%2fsecret.txt", "")
	s.wantCode(t, 404, guideway.CodeNotFound, withoutCredential, "GET", "/secret.txt", "")
	s.wantCode(t, 404, guideway.CodeNotFound, cookie, "GET", "/runs/r_1/none", "")
}

// routesOfTheApplication returns the paths of the dashboard's router. The server must serve
// each, so that a page can be opened by its address.
func routesOfTheApplication(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../ui/src/App.tsx")
	if err != nil {
		t.Fatal(err)
	}
	var pages []string
	for _, m := range regexp.MustCompile(`<Route path="([^"]+)"`).FindAllSubmatch(text, -1) {
		pages = append(pages, strings.ReplaceAll(string(m[1]), ":id", "one"))
	}
	if len(pages) < 8 {
		t.Fatalf("only the pages %v are served", pages)
	}
	return pages
}

// The login pages use the colors of the dashboard.
func TestLoginUsesDashboardColors(t *testing.T) {
	t.Parallel()
	colours := func(file string) map[string]string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, m := range regexp.MustCompile(`(--[a-z-]+): (light-dark[^;]+);`).FindAllSubmatch(text, -1) {
			all[string(m[1])] = string(m[2])
		}
		return all
	}
	tokens, login := colours("../../ui/src/look/tokens.css"), colours("assets/login.css")
	if len(login) < 5 {
		t.Fatalf("the login has the colors %v", login)
	}
	for name, value := range login {
		if tokens[name] != value {
			t.Errorf("%s is %s, and that of the dashboard %s", name, value, tokens[name])
		}
	}
}
