package httpapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"go.yaml.in/yaml/v3"
)

// pageFiles are the pages of the login and the files that they load: plain scripts and
// styles that need no build.
//
//go:embed assets
var pageFiles embed.FS

// pagePolicy lets a page load files from this server only. It forbids inline scripts and
// styles, frames, and forms that post to another origin.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; font-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// pages renders the pages.
type pages struct {
	*api
	// templates parses the templates at the first page, so that parsing does not delay the
	// start.
	templates func() (*template.Template, error)
}

func (a *api) mountPages(mux *http.ServeMux) {
	p := &pages{api: a, templates: sync.OnceValues(func() (*template.Template, error) {
		return template.New("").Funcs(referenceFuncs).ParseFS(pageFiles, "assets/*.html")
	})}
	handle := func(path string, rows methods) { mux.Handle(path, a.dispatchMethod(rows)) }
	for _, path := range appPages {
		handle(path, methods{"GET": {handle: p.getApp}})
	}
	handle("/api/docs", methods{"GET": {handle: p.getReference}})
	handle("/icon.svg", methods{"GET": {handle: p.getIcon}})
	handle(auth.UpstreamCallbackPath, methods{"GET": {handle: p.getUpstreamLogin}})
	handle("/login/{code}", methods{"GET": {handle: p.getConfirmPage}, "POST": {handle: p.postLogin}})
	if a.Identities != nil {
		handle(auth.LoginPath, methods{"GET": {handle: p.beginLogin}})
		handle(auth.CallbackPath, methods{"GET": {handle: p.finishLogin}})
	}
	handle("/assets/{file}", methods{"GET": {handle: p.getAsset}})
}

// appPages are the paths of the dashboard's pages, from which the application selects the
// page. ui/src/App.tsx must list the same paths.
var appPages = []string{
	"/{$}", "/runs", "/runs/{id}", "/sessions", "/dashboard/{id}", "/machines", "/machines/{name}", "/machine-runs/{id}", "/requests", "/requests/{id}", "/calls", "/calls/{id}",
	"/workflows", "/workflows/{id}", "/workflows/{id}/edit", "/workflows/{id}/try", "/new-workflow",
	"/hooks", "/hooks/{id}", "/new-hook",
	"/gateway", "/gateway/{id}", "/new-upstream", "/tokens",
}

// getApp serves the dashboard to a browser that is logged in.
func (p *pages) getApp(c *call) (any, error) {
	cookie := p.Browsers.Renew(c.Request)
	if cookie == nil {
		return p.renderOutside(c, "")
	}
	if p.UI == nil {
		return p.renderPage(c, http.StatusNotFound, "without.html", nil)
	}
	page, err := fs.ReadFile(p.UI, "index.html")
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "read the dashboard: %w", err)
	}
	http.SetCookie(c.w, cookie)
	return writePage(c, http.StatusOK, page)
}

// getConfirmPage asks the person to log this browser in. A GET of the link changes nothing,
// because prefetchers and link checkers open it too.
func (p *pages) getConfirmPage(c *call) (any, error) {
	// Without a referrer a browser sends a form with the origin null.
	c.w.Header().Set("Referrer-Policy", "same-origin")
	if !p.Browsers.LinkIsValid(c.PathValue("code")) {
		return p.renderOutside(c, invalidLink)
	}
	return p.renderPage(c, http.StatusOK, "confirm.html", nil)
}

// postLogin consumes the link. It sets the cookie of the browser and returns the key for
// pages of this origin.
func (p *pages) postLogin(c *call) (any, error) {
	login, err := p.Browsers.Redeem(c.Request, c.PathValue("code"))
	if guideway.ErrorCode(err) == guideway.CodeUnauthorized {
		return p.renderOutside(c, invalidLink)
	}
	if err != nil {
		return nil, err
	}
	http.SetCookie(c.w, login.Cookie)
	p.record(c.Request, audit.Entry{Kind: audit.Login, User: login.User, Via: "link"})
	return p.renderPage(c, http.StatusOK, "welcome.html", login.Key)
}

// getUpstreamLogin serves the page to which an authorization server sends the browser after a
// login to an upstream. A browser sends no cookie with that request, so the page sends the
// parameters to the API.
func (p *pages) getUpstreamLogin(c *call) (any, error) {
	return p.renderPage(c, http.StatusOK, "upstream.html", nil)
}

// invalidLink is the message for a login link that cannot be used.
const invalidLink = "This link is invalid, was already used or is older than five minutes."

// renderOutside explains how to log this browser in, and why it is not.
func (p *pages) renderOutside(c *call, message string) (any, error) {
	return p.renderPage(c, http.StatusUnauthorized, "outside.html", struct{ Message, Login string }{message, p.loginPath()})
}

// loginPath returns the path of the login through an identity provider, or "".
func (p *pages) loginPath() string {
	if p.Identities == nil {
		return ""
	}
	return auth.LoginPath
}

// beginLogin sends the browser to the identity provider.
func (p *pages) beginLogin(c *call) (any, error) {
	page, cookie, err := p.Identities.BeginLogin(c.Request)
	if err != nil {
		return nil, err
	}
	http.SetCookie(c.w, cookie)
	c.w.Header().Set("Cache-Control", "no-store")
	http.Redirect(c.w, c.Request, page, http.StatusFound)
	return responseWritten{}, nil
}

// finishLogin logs in the browser that the identity provider sends back. It always continues
// on the start page, so that no parameter redirects the browser.
func (p *pages) finishLogin(c *call) (any, error) {
	who, used, err := p.Identities.FinishLogin(c.Request)
	http.SetCookie(c.w, used)
	if who.User != "" && p.Tokens != nil { // also if the user has no role any more
		err = errors.Join(err, p.Tokens.Restrict(guideway.Principal{User: who.User, Roles: who.Roles}))
	}
	if err == nil {
		var login auth.Login
		if login, err = p.Browsers.Start(c.Request, who); err == nil {
			http.SetCookie(c.w, login.Cookie)
			p.record(c.Request, audit.Entry{Kind: audit.Login, User: who.User, Via: "identity", Detail: joinRoles(who.Roles)})
			return p.renderPage(c, http.StatusOK, "welcome.html", login.Key)
		}
	}
	switch guideway.ErrorCode(err) {
	case guideway.CodeUnauthorized, guideway.CodeForbidden:
		p.recordRefused(c.Request, audit.Entry{Kind: audit.LoginRefused, User: who.User, Via: "identity"}, err)
		return p.renderOutside(c, "The login was refused: "+err.Error()+".")
	}
	return nil, err
}

// describeResource returns the metadata of /mcp for OAuth clients (RFC 9728).
func (a *api) describeResource(c *call) (any, error) {
	resource, scope, issuer := a.AccessTokens.Audience()
	if path := strings.TrimPrefix(c.URL.Path, auth.MetadataPath); path != "" && !strings.HasSuffix(resource, path) {
		a.notFound(c.w, c.Request)
		return responseWritten{}, nil
	}
	out := object{"resource": resource, "authorization_servers": []string{issuer}, "bearer_methods_supported": []string{"header"}, "resource_name": "Guideway"}
	if scope != "" {
		out["scopes_supported"] = []string{scope}
	}
	return encodeWhole(out)
}

func (p *pages) renderPage(c *call, status int, name string, data any) (any, error) {
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
	_, _ = c.w.Write(page) // The client may have disconnected.
	return responseWritten{}, nil
}

// assetTypes are the media types of the files that pages load.
var assetTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".woff2": "font/woff2", ".svg": "image/svg+xml",
}

// getAsset serves a file of the dashboard or of the login pages. The files are the same for
// every user, so they need no login.
func (p *pages) getAsset(c *call) (any, error) {
	return p.serveFile(c, "assets/"+c.PathValue("file"))
}

func (p *pages) getIcon(c *call) (any, error) {
	return p.serveFile(c, "icon.svg")
}

func (p *pages) serveFile(c *call, name string) (any, error) {
	data, err := fs.ReadFile(pageFiles, name)
	if err != nil && p.UI != nil {
		data, err = fs.ReadFile(p.UI, name)
	}
	mediaType := assetTypes[path.Ext(name)]
	if err != nil || mediaType == "" {
		p.notFound(c.w, c.Request)
		return responseWritten{}, nil
	}
	tag := `"` + digest.Hex(data)[:16] + `"`
	h := c.w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Cache-Control", "no-cache") // browsers revalidate the file, and usually get 304
	h.Set("ETag", tag)
	if strings.Contains(c.Header.Get("If-None-Match"), tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return responseWritten{}, nil
	}
	_, _ = c.w.Write(data)
	return responseWritten{}, nil
}

// postLogout ends the login of this browser.
func (a *api) postLogout(c *call) (any, error) {
	if g := c.authGrant(); g.Proof != auth.ProofBrowser || !g.May(auth.RightTokens) {
		return nil, checkRight(auth.Grant{Proof: auth.ProofBrowser}, auth.RightTokens)
	}
	gone, err := a.Browsers.Logout(c.Request)
	if err != nil {
		return nil, err
	}
	http.SetCookie(c.w, gone)
	a.record(c.Request, audit.Entry{Kind: audit.Logout})
	return nil, nil
}

//go:embed openapi.yaml
var openAPIText []byte

// openAPIJSON returns the OpenAPI document as JSON.
func openAPIJSON() (json.RawMessage, error) {
	var document map[string]any
	if err := yaml.Unmarshal(openAPIText, &document); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "parse the OpenAPI document: %w", err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "encode the OpenAPI document: %w", err)
	}
	return text, nil
}

func (a *api) openAPI(*call) (any, error) {
	return a.document()
}

// referenceFuncs are the functions of reference.html.
var referenceFuncs = template.FuncMap{
	"base": path.Base,
	"has":  func(list any, value string) bool { all, _ := list.([]any); return slices.Contains(all, any(value)) },
	"join": func(types any) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(types), "[]"), " ", " or ") },
}

// getReference renders the OpenAPI document for callers that may read the API. A browser
// that is logged in needs no key, because the document contains no data and a link sends no
// key. Other callers get the page that explains how to log in.
func (p *pages) getReference(c *call) (any, error) {
	grant, err := p.access.Check(c.Request)
	if (err != nil || !grant.May(auth.RightRead)) && p.Browsers.Renew(c.Request) == nil {
		return p.renderPage(c, http.StatusUnauthorized, "outside.html", nil)
	}
	text, err := p.document()
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "parse the OpenAPI document: %w", err)
	}
	return p.renderPage(c, http.StatusOK, "reference.html", document)
}
