package httpapi

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
)

// pageFiles are the pages of the login, and what they load: plain scripts and
// styles without a build.
//
//go:embed assets
var pageFiles embed.FS

// pagePolicy lets a page load from this server alone: no inline script or style,
// no frame, no form to elsewhere.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// pages renders the pages.
type pages struct {
	*api
	// templates are parsed at the first page, so that nothing waits for them
	// at the start.
	templates func() (*template.Template, error)
}

func (a *api) mountPages(mux *http.ServeMux) {
	p := &pages{api: a, templates: sync.OnceValues(func() (*template.Template, error) {
		return template.New("").Funcs(referenceFuncs).ParseFS(pageFiles, "assets/*.html")
	})}
	handle := func(path string, rows methods) { mux.Handle(path, a.dispatch(rows)) }
	for _, path := range appPages {
		handle(path, methods{"GET": {handle: p.app}})
	}
	handle("/api/docs", methods{"GET": {handle: p.reference}})
	handle("/icon.svg", methods{"GET": {handle: p.icon}})
	handle("/login/{code}", methods{"GET": {handle: p.confirm}, "POST": {handle: p.login}})
	handle("/assets/{file}", methods{"GET": {handle: p.asset}})
}

// appPages are the addresses that the dashboard has pages for; which one it is the
// application reads from the address. ui/src/App.tsx has the same.
var appPages = []string{
	"/{$}", "/runs", "/runs/{id}", "/sessions", "/dashboard/{id}", "/machines", "/machines/{name}", "/machine-runs/{id}", "/requests", "/requests/{id}",
	"/workflows", "/workflows/{id}", "/workflows/{id}/edit", "/workflows/{id}/try", "/new-workflow",
	"/hooks", "/hooks/{id}", "/new-hook",
	"/gateway", "/gateway/{id}", "/new-upstream", "/tokens",
}

// app is the dashboard, for a browser that is logged in.
func (p *pages) app(w http.ResponseWriter, r *http.Request) error {
	cookie := p.Browsers.Renew(r)
	if cookie == nil {
		return p.show(w, http.StatusUnauthorized, "outside.html", nil)
	}
	if p.UI == nil {
		return p.show(w, http.StatusNotFound, "without.html", nil)
	}
	page, err := fs.ReadFile(p.UI, "index.html")
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "read the dashboard: %w", err)
	}
	http.SetCookie(w, cookie)
	writePage(w, http.StatusOK, page)
	return nil
}

// confirm asks the person to log this browser in. To open the link changes
// nothing: programs that look ahead, and those that check links, open them too.
func (p *pages) confirm(w http.ResponseWriter, r *http.Request) error {
	// A browser tells the origin of a form only where it may tell the referrer.
	w.Header().Set("Referrer-Policy", "same-origin")
	if !p.Browsers.LinkIsGood(r.PathValue("code")) {
		return p.show(w, http.StatusUnauthorized, "outside.html", "This link was used, or is older than five minutes.")
	}
	return p.show(w, http.StatusOK, "confirm.html", nil)
}

// login uses the link up and gives the browser its cookie, and the pages of this
// origin their key.
func (p *pages) login(w http.ResponseWriter, r *http.Request) error {
	login, err := p.Browsers.Redeem(r, r.PathValue("code"))
	if guideway.ErrorCode(err) == guideway.CodeUnauthorized {
		return p.show(w, http.StatusUnauthorized, "outside.html", "This link was used, or is older than five minutes.")
	}
	if err != nil {
		return err
	}
	http.SetCookie(w, login.Cookie)
	return p.show(w, http.StatusOK, "welcome.html", login.Key)
}

func (p *pages) show(w http.ResponseWriter, status int, name string, data any) error {
	templates, err := p.templates()
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "parse the pages: %w", err)
	}
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, name, data); err != nil {
		return guideway.Errorf(guideway.CodeInternal, "render %s: %w", name, err)
	}
	writePage(w, status, page.Bytes())
	return nil
}

func writePage(w http.ResponseWriter, status int, page []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy)
	w.WriteHeader(status)
	_, _ = w.Write(page) // the client may be gone
}

// assetTypes are the types of files that pages load.
var assetTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2", ".svg": "image/svg+xml",
}

// asset gives a file that a page loads: of the dashboard, or of the login.
// They are the program's own, the same for everybody, so that they need no login.
func (p *pages) asset(w http.ResponseWriter, r *http.Request) error {
	return p.file(w, r, "assets/"+r.PathValue("file"))
}

func (p *pages) icon(w http.ResponseWriter, r *http.Request) error {
	return p.file(w, r, "icon.svg")
}

func (p *pages) file(w http.ResponseWriter, r *http.Request, name string) error {
	data, err := fs.ReadFile(pageFiles, name)
	if err != nil && p.UI != nil {
		data, err = fs.ReadFile(p.UI, name)
	}
	mediaType := assetTypes[path.Ext(name)]
	if err != nil || mediaType == "" {
		p.notFound(w, r)
		return nil
	}
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-cache") // to be asked for again, and answered by 304
	h.Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	_, _ = w.Write(data) //nolint:gosec // G705: it is a file of the program's own
	return nil
}

// logout ends the login of this browser.
func (a *api) logout(w http.ResponseWriter, r *http.Request) error {
	if g := authn.GrantFrom(r.Context()); g.Proof != authn.ProofBrowser || !g.May(authn.RightWork) {
		return mayDo(authn.Grant{Proof: authn.ProofBrowser}, authn.RightWork)
	}
	gone, err := a.Browsers.Logout(r)
	if err != nil {
		return err
	}
	http.SetCookie(w, gone)
	answer(w, http.StatusOK, map[string]bool{"success": true})
	return nil
}
