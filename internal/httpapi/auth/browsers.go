package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

const (
	// linkBytes are 128 bits, keyBytes and cookieBytes are 256 bits.
	linkBytes   = 16
	keyBytes    = 32
	cookieBytes = 32
	// linkTime is the lifetime of a login link.
	linkTime = 5 * time.Minute
	// idleTime is the lifetime of an unused session, fullTime of any session.
	idleTime = 30 * 24 * time.Hour
	fullTime = 180 * 24 * time.Hour
	// identityTime is the lifetime of a session of a login through the identity provider,
	// which then decides again whether the user may log in.
	identityTime = 12 * time.Hour
	// touchTime is how often a session in use is marked as used.
	touchTime = 24 * time.Hour
)

// KeyHeader carries the key that a page sends with each request. Browsers attach the cookie
// automatically, for every port of the host. Only pages of this server's origin know the
// key, so neither a foreign page nor another server on this machine that received the
// cookie can read data or send commands.
const KeyHeader = "X-Guideway-Key"

// BrowserOptions are the options of NewBrowserSessions.
type BrowserOptions struct {
	// Dir stores hashes of links and sessions; required. It is created when it is needed
	// and private to the user. Processes with the same directory share logins.
	Dir string
	// Shared, if not nil, has the links and sessions instead of the directory.
	Shared deployment.State
	// Now is the clock. Nil is the system clock.
	Now func() time.Time
}

// BrowserSessions logs browsers in: a link that can be used once sets a cookie. Anyone with
// write access to the directory can create a link; no link can be created over the network.
type BrowserSessions struct {
	links, sessions tokenStore
	cookie          string
}

// NewBrowserSessions returns the sessions of a directory. It does not access the disk.
func NewBrowserSessions(opts BrowserOptions) (*BrowserSessions, error) {
	if opts.Dir == "" {
		return nil, guideway.Errorf(guideway.CodeInternal, "browser sessions need a directory")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "find the directory %s: %w", opts.Dir, err)
	}
	b := &BrowserSessions{
		links:    newTokenStore(filepath.Join(dir, "links"), opts.Shared, opts.Now),
		sessions: newTokenStore(filepath.Join(dir, "browsers"), opts.Shared, opts.Now),
		// Cookies are not bound to ports: servers with other data directories on this host
		// must not overwrite the cookie.
		cookie: "guideway_" + digest.Hex(dir)[:8],
	}
	if opts.Shared != nil { // each instance has another directory
		b.cookie = "guideway_shared"
	}
	return b, nil
}

// link and browser are the stored records.
type link struct {
	User    string    `json:"user"`
	Expires time.Time `json:"expires"`
}

type browser struct {
	User    string    `json:"user"`
	Created time.Time `json:"created"`
	// Roles are the roles of a user of the identity provider. They are nil for the local user.
	Roles []guideway.Role `json:"roles,omitempty"`
	// Key is the hash of the key that pages send with requests.
	Key string `json:"key"`
}

// NewLink returns the code of a link that logs a user's browser in. The path of the link is
// "/login/" and the code. The link can be used once, within five minutes.
func (b *BrowserSessions) NewLink(user string) (code string, expires time.Time, err error) {
	if user == "" {
		return "", time.Time{}, guideway.Errorf(guideway.CodeInvalid, "a login link needs a user")
	}
	now := b.links.now()
	b.links.removeOld(now.Add(-linkTime))
	code, expires = newSecret("", linkBytes), now.Add(linkTime)
	if err := b.links.createRecord(code, link{User: user, Expires: expires}); err != nil {
		return "", time.Time{}, err
	}
	return code, expires, nil
}

// LinkIsValid reports whether a code can be redeemed. It does not consume the code.
func (b *BrowserSessions) LinkIsValid(code string) bool {
	_, err := b.findLink(code)
	return err == nil
}

// findLink returns the record of a code that has not expired.
func (b *BrowserSessions) findLink(code string) (link, error) {
	var l link
	_, err := b.links.getRecord(code, &l)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return link{}, err
	}
	if err != nil || l.User == "" || !b.links.now().Before(l.Expires) {
		return link{}, guideway.Errorf(guideway.CodeUnauthorized, "this login link is invalid, was already used or is older than five minutes").
			WithFix("create a new link with: guideway open")
	}
	return l, nil
}

// Login is the result of redeeming a link.
type Login struct {
	// Cookie must be set in the browser. Pages of this server's origin keep Key and send it with
	// requests in KeyHeader.
	Cookie *http.Cookie
	Key    string
	User   string
}

// Redeem consumes a link. The request must come from a page of this server's origin. A GET
// of the link does not consume it, because prefetchers open links too.
func (b *BrowserSessions) Redeem(r *http.Request, code string) (Login, error) {
	if err := fromOwnPage(r, true); err != nil {
		return Login{}, err
	}
	l, err := b.findLink(code)
	if err != nil {
		return Login{}, err
	}
	first, err := b.links.removeRecord(code)
	if err != nil {
		return Login{}, err
	}
	if !first { // another request has redeemed the link first
		return Login{}, guideway.Errorf(guideway.CodeUnauthorized, "this login link was already used").
			WithFix("create a new link with: guideway open")
	}
	return b.startSession(r, browser{User: l.User})
}

// Start logs a browser in as a user of the identity provider.
func (b *BrowserSessions) Start(r *http.Request, who Person) (Login, error) {
	if who.User == "" || len(who.Roles) == 0 { // Without roles, the session would be that of the local user.
		return Login{}, guideway.Errorf(guideway.CodeInternal, "a login requires a user with a role")
	}
	return b.startSession(r, browser{User: who.User, Roles: who.Roles})
}

// startSession stores a session with a new key.
func (b *BrowserSessions) startSession(r *http.Request, s browser) (Login, error) {
	now := b.sessions.now()
	b.sessions.removeOld(now.Add(-idleTime))
	secret, key := newSecret("", cookieBytes), newSecret("", keyBytes)
	s.Created, s.Key = now, digest.Hex(key)
	if err := b.sessions.createRecord(secret, s); err != nil {
		return Login{}, err
	}
	return Login{Cookie: b.newCookie(r, secret), Key: key, User: s.User}, nil
}

// newCookie returns the cookie for a secret. It is Secure if a proxy uses TLS. On plain
// loopback, browsers would not return a Secure cookie.
func (b *BrowserSessions) newCookie(r *http.Request, secret string) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // G124: Secure would lock out plain loopback; it is set behind TLS
		Name: b.cookie, Value: secret, Path: "/", MaxAge: int(idleTime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
}

// HasCookie reports whether a request has a cookie of this server.
func (b *BrowserSessions) HasCookie(r *http.Request) bool {
	return len(r.CookiesNamed(b.cookie)) > 0
}

// findSession returns the session of one of the request's cookies, whichever page the
// request comes from. Every program on this host can add a cookie of the same name, so each
// cookie is tried, and a cookie whose session has the request's key comes first.
func (b *BrowserSessions) findSession(r *http.Request) (secret string, s browser, err error) {
	found := false
	for _, cookie := range r.CookiesNamed(b.cookie) {
		given, valid, err := b.getSession(cookie.Value)
		if err != nil {
			return "", browser{}, err
		}
		if valid && (!found || given.hasKey(r)) {
			secret, s, found = cookie.Value, given, true
		}
	}
	if !found {
		return "", browser{}, guideway.Errorf(guideway.CodeUnauthorized, "this browser is not logged in or its login has expired").
			WithFix("guideway open")
	}
	return secret, s, nil
}

// getSession returns the session of a cookie, and marks it as used if that is due.
func (b *BrowserSessions) getSession(secret string) (s browser, valid bool, err error) {
	touched, err := b.sessions.getRecord(secret, &s)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return browser{}, false, err
	}
	now := b.sessions.now()
	lifetime := fullTime
	if s.Roles != nil {
		lifetime = identityTime
	}
	if err != nil || s.User == "" || now.Sub(touched) >= idleTime || now.Sub(s.Created) >= lifetime {
		return browser{}, false, nil
	}
	if now.Sub(touched) >= touchTime {
		_ = b.sessions.touchRecord(secret) // an error only shortens the session
	}
	return s, true, nil
}

// hasKey reports whether a request has the key of the session.
func (s browser) hasKey(r *http.Request) bool {
	digest := sha256.Sum256([]byte(r.Header.Get(KeyHeader)))
	return subtle.ConstantTimeCompare([]byte(hex.EncodeToString(digest[:])), []byte(s.Key)) == 1
}

// checkRequest returns the principal of a logged in browser. The request must have the key of the
// login and must not come from a page of another origin. commands reports whether it is
// proven that the request comes from a page of this server.
func (b *BrowserSessions) checkRequest(r *http.Request) (p guideway.Principal, commands bool, err error) {
	if err := fromOwnPage(r, false); err != nil {
		return p, false, err
	}
	_, s, err := b.findSession(r)
	if err != nil {
		return p, false, err
	}
	if !s.hasKey(r) {
		return p, false, guideway.Errorf(guideway.CodeUnauthorized, "the header %s of the request is missing or does not contain this page's key", KeyHeader).
			WithFix("log this browser in at this address: guideway open")
	}
	return guideway.Principal{User: s.User, Client: "browser", Roles: s.Roles}, fromOwnPage(r, true) == nil, nil
}

// Renew returns a logged in browser's cookie with a new lifetime, or nil.
func (b *BrowserSessions) Renew(r *http.Request) *http.Cookie {
	if !b.HasCookie(r) {
		return nil
	}
	secret, _, err := b.findSession(r)
	if err != nil {
		return nil
	}
	return b.newCookie(r, secret)
}

// Logout ends the session of the request's cookie and returns the cookie that deletes it in
// the browser.
func (b *BrowserSessions) Logout(r *http.Request) (*http.Cookie, error) {
	for _, c := range r.CookiesNamed(b.cookie) {
		if _, err := b.sessions.removeRecord(c.Value); err != nil {
			return nil, err
		}
	}
	gone := b.newCookie(r, "") //nolint:gosec // G124: see newCookie
	gone.MaxAge = -1
	return gone, nil
}

// fromOwnPage refuses a browser's request that comes from another origin, even an allowed
// one or another port of the same host. If proven is set, the header Origin or
// Sec-Fetch-Site must prove that the request comes from a page of this server.
func fromOwnPage(r *http.Request, proven bool) error {
	foreign := func(why string) error {
		return guideway.Errorf(guideway.CodeForbidden, "%s", why).
			WithFix("use the pages of this server: guideway open")
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && site != "none" {
		return foreign("the request comes from another site; a login is valid only for pages of this server")
	}
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if !sameOrigin(origin, r.Host) {
			return foreign("the request comes from another origin; a login is valid only for pages of this server")
		}
	}
	if proven && site != "same-origin" && (len(origins) != 1 || site == "none") {
		return foreign("the request does not come from a page of this server")
	}
	return nil
}
