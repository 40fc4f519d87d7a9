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
func (p *pages) app(c *call) (any, error) {
	cookie := p.Browsers.Renew(c.Request)
	if cookie == nil {
		return p.show(c, http.StatusUnauthorized, "outside.html", nil)
	}
	if p.UI == nil {
		return p.show(c, http.StatusNotFound, "without.html", nil)
	}
	page, err := fs.ReadFile(p.UI, "index.html")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "read the dashboard: %w", err)
	}
	http.SetCookie(c.w, cookie)
	return writePage(c, http.StatusOK, page)
}

// confirm asks the person to log this browser in. To open the link changes
// nothing: programs that look ahead, and those that check links, open them too.
func (p *pages) confirm(c *call) (any, error) {
	// A browser tells the origin of a form only where it may tell the referrer.
	c.w.Header().Set("Referrer-Policy", "same-origin")
	if !p.Browsers.LinkIsGood(c.PathValue("code")) {
		return p.show(c, http.StatusUnauthorized, "outside.html", "This link was used, or is older than five minutes.")
	}
	return p.show(c, http.StatusOK, "confirm.html", nil)
}

// login uses the link up and gives the browser its cookie, and the pages of this
// origin their key.
func (p *pages) login(c *call) (any, error) {
	login, err := p.Browsers.Redeem(c.Request, c.PathValue("code"))
	if guideway.ErrorCode(err) == guideway.CodeUnauthorized {
		return p.show(c, http.StatusUnauthorized, "outside.html", "This link was used, or is older than five minutes.")
	}
	if err != nil {
		return nil, err
	}
	http.SetCookie(c.w, login.Cookie)
	return p.show(c, http.StatusOK, "welcome.html", login.Key)
}

func (p *pages) show(c *call, status int, name string, data any) (any, error) {
	templates, err := p.templates()
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "parse the pages: %w", err)
	}
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, name, data); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "render %s: %w", name, err)
	}
	return writePage(c, status, page.Bytes())
}

func writePage(c *call, status int, page []byte) (any, error) {
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy)
	c.w.WriteHeader(status)
	_, _ = c.w.Write(page) // the client may be gone
	return responseWritten{}, nil
}

// assetTypes are the types of files that pages load.
var assetTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2", ".svg": "image/svg+xml",
}

// asset gives a file that a page loads: of the dashboard, or of the login.
// They are the program's own, the same for everybody, so that they need no login.
func (p *pages) asset(c *call) (any, error) {
	return p.file(c, "assets/"+c.PathValue("file"))
}

func (p *pages) icon(c *call) (any, error) {
	return p.file(c, "icon.svg")
}

func (p *pages) file(c *call, name string) (any, error) {
	data, err := fs.ReadFile(pageFiles, name)
	if err != nil && p.UI != nil {
		data, err = fs.ReadFile(p.UI, name)
	}
	mediaType := assetTypes[path.Ext(name)]
	if err != nil || mediaType == "" {
		p.notFound(c.w, c.Request)
		return responseWritten{}, nil
	}
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := c.w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-cache") // to be asked for again, and answered by 304
	h.Set("ETag", tag)
	if strings.Contains(c.Header.Get("If-None-Match"), tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return responseWritten{}, nil
	}
	_, _ = c.w.Write(data) //nolint:gosec // G705: it is a file of the program's own
	return responseWritten{}, nil
}

// logout ends the login of this browser.
func (a *api) logout(c *call) (any, error) {
	if g := c.authGrant(); g.Proof != authn.ProofBrowser || !g.May(authn.RightWork) {
		return nil, mayDo(authn.Grant{Proof: authn.ProofBrowser}, authn.RightWork)
	}
	gone, err := a.Browsers.Logout(c.Request)
	if err != nil {
		return nil, err
	}
	http.SetCookie(c.w, gone)
	return nil, nil
}
