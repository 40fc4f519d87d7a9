package authn

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
)

const (
	// linkBytes is 128 bits, keyBytes and cookieBytes are 256.
	linkBytes   = 16
	keyBytes    = 32
	cookieBytes = 32
	// linkTime is how long a login link is good for.
	linkTime = 5 * time.Minute
	// idleTime ends a browser's session that is not used, fullTime any.
	idleTime = 30 * 24 * time.Hour
	fullTime = 180 * 24 * time.Hour
	// touchTime is how often a session that is in use is marked as used.
	touchTime = 24 * time.Hour
)

// KeyHeader carries the key that a page sends with a command. The browser sends
// the cookie by itself, and to every port of the host; the key is known to the
// pages of our own origin alone, so that neither a foreign page nor another
// server on this machine that was sent the cookie can command with it.
const KeyHeader = "X-Guideway-Key"

// BrowserOptions are the options of NewBrowsers.
type BrowserOptions struct {
	// Dir keeps links and sessions, by hashes; required. It is made when it is
	// needed, for this user alone. Processes that share it share logins.
	Dir string
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Browsers lets a person's browser in: by a link that is good once, which gives
// it a cookie. Whoever can write the directory can make a link; there is no way
// to make one over the network.
type Browsers struct {
	links, sessions vault
	cookie          string
}

// NewBrowsers makes the check. It does not touch the disk.
func NewBrowsers(opts BrowserOptions) (*Browsers, error) {
	if opts.Dir == "" {
		return nil, guideway.Errorf(guideway.CodeInternal, "the check of browsers needs a directory")
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "find the directory %s: %w", opts.Dir, err)
	}
	return &Browsers{
		links:    newVault(filepath.Join(dir, "links"), opts.Now),
		sessions: newVault(filepath.Join(dir, "browsers"), opts.Now),
		// Cookies know no ports: servers of other data directories on this
		// host must not overwrite ours.
		cookie: "guideway_" + hashOf(dir)[:8],
	}, nil
}

// link and browser are the records.
type link struct {
	User    string    `json:"user"`
	Expires time.Time `json:"expires"`
}

type browser struct {
	User    string    `json:"user"`
	Created time.Time `json:"created"`
	// Key is the hash of the key that pages send with commands.
	Key string `json:"key"`
}

// NewLink makes the code of a link that logs a user's browser in: the path of
// the link is "/login/" and the code. It is good once, for five minutes.
func (b *Browsers) NewLink(user string) (code string, expires time.Time, err error) {
	if user == "" {
		return "", time.Time{}, guideway.Errorf(guideway.CodeInvalid, "a login link needs a user")
	}
	now := b.links.now()
	b.links.sweep(now.Add(-linkTime))
	code, expires = newSecret("", linkBytes), now.Add(linkTime)
	if err := b.links.put(code, link{User: user, Expires: expires}); err != nil {
		return "", time.Time{}, err
	}
	return code, expires, nil
}

// LinkIsGood tells whether a code can be redeemed. It uses nothing up.
func (b *Browsers) LinkIsGood(code string) bool {
	_, err := b.link(code)
	return err == nil
}

// link finds the record of a code that has not expired.
func (b *Browsers) link(code string) (link, error) {
	var l link
	_, err := b.links.get(code, &l)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return link{}, err
	}
	if err != nil || l.User == "" || !b.links.now().Before(l.Expires) {
		return link{}, guideway.Errorf(guideway.CodeUnauthorized, "this login link was used, or is older than five minutes").
			WithFix("make a new one with: guideway open")
	}
	return l, nil
}

// Login is what a browser gets for a link.
type Login struct {
	// Cookie is to be set. Key is for the pages of our origin to keep, and to
	// send with commands in KeyHeader.
	Cookie *http.Cookie
	Key    string
}

// Redeem uses a link up. The request must come from a page of our own: a link
// is opened by GET, which changes nothing, since programs that look ahead follow
// links too.
func (b *Browsers) Redeem(r *http.Request, code string) (Login, error) {
	if err := fromOwnPage(r, true); err != nil {
		return Login{}, err
	}
	l, err := b.link(code)
	if err != nil {
		return Login{}, err
	}
	first, err := b.links.remove(code)
	if err != nil {
		return Login{}, err
	}
	if !first { // another request was faster
		return Login{}, guideway.Errorf(guideway.CodeUnauthorized, "this login link was used").
			WithFix("make a new one with: guideway open")
	}
	now := b.sessions.now()
	b.sessions.sweep(now.Add(-idleTime))
	secret, key := newSecret("", cookieBytes), newSecret("", keyBytes)
	if err := b.sessions.put(secret, browser{User: l.User, Created: now, Key: hashOf(key)}); err != nil {
		return Login{}, err
	}
	return Login{Cookie: b.newCookie(r, secret), Key: key}, nil
}

// newCookie is the cookie for a secret. It is Secure where a proxy in front
// speaks TLS; on plain loopback browsers would not send it back.
func (b *Browsers) newCookie(r *http.Request, secret string) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // G124: Secure would lock out plain loopback; it is set behind TLS
		Name: b.cookie, Value: secret, Path: "/", MaxAge: int(idleTime / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
	}
}

// carries tells whether a request has a cookie of ours.
func (b *Browsers) carries(r *http.Request) bool {
	return len(r.CookiesNamed(b.cookie)) > 0
}

// session finds the session of the request's cookie, whatever page it is from.
func (b *Browsers) session(r *http.Request) (secret string, s browser, err error) {
	refused := guideway.Errorf(guideway.CodeUnauthorized, "this browser is not logged in, or no longer").
		WithFix("guideway open")
	cookies := r.CookiesNamed(b.cookie)
	if len(cookies) != 1 || cookies[0].Value == "" {
		return "", browser{}, refused
	}
	secret = cookies[0].Value
	touched, err := b.sessions.get(secret, &s)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", browser{}, err
	}
	now := b.sessions.now()
	if err != nil || s.User == "" || now.Sub(touched) >= idleTime || now.Sub(s.Created) >= fullTime {
		return "", browser{}, refused
	}
	if now.Sub(touched) >= touchTime {
		_ = b.sessions.touch(secret) // it goes on being good until it is idle for too long
	}
	return secret, s, nil
}

// Check lets a request of a logged in browser through. It must come from a page
// of our own origin; commanded says whether it also has the key.
func (b *Browsers) check(r *http.Request) (user string, commands bool, err error) {
	if err := fromOwnPage(r, false); err != nil {
		return "", false, err
	}
	_, s, err := b.session(r)
	if err != nil {
		return "", false, err
	}
	digest := sha256.Sum256([]byte(r.Header.Get(KeyHeader)))
	given := hex.EncodeToString(digest[:])
	commands = subtle.ConstantTimeCompare([]byte(given), []byte(s.Key)) == 1 && fromOwnPage(r, true) == nil
	return s.User, commands, nil
}

// Renew gives the cookie of a logged in browser with its full time again, or
// nil.
func (b *Browsers) Renew(r *http.Request) *http.Cookie {
	if !b.carries(r) {
		return nil
	}
	secret, _, err := b.session(r)
	if err != nil {
		return nil
	}
	return b.newCookie(r, secret)
}

// Logout ends the session of the request's cookie and gives the cookie that
// takes it out of the browser.
func (b *Browsers) Logout(r *http.Request) (*http.Cookie, error) {
	for _, c := range r.CookiesNamed(b.cookie) {
		if _, err := b.sessions.remove(c.Value); err != nil {
			return nil, err
		}
	}
	gone := b.newCookie(r, "") //nolint:gosec // G124: see newCookie
	gone.MaxAge = -1
	return gone, nil
}

// fromOwnPage refuses a request that a browser sends for a page of another
// origin: an allowed one and one on another port of the same host too. proven
// wants the browser's word that it is a page of ours, by either header.
func fromOwnPage(r *http.Request, proven bool) error {
	foreign := func(why string) error {
		return guideway.Errorf(guideway.CodeForbidden, "%s", why).
			WithFix("use the pages of this server: guideway open")
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && site != "none" {
		return foreign("a login is good for this server's own pages alone")
	}
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		if !sameOrigin(origin, r.Host) {
			return foreign("a login is good for this server's own pages alone")
		}
	}
	if proven && site != "same-origin" && (len(origins) != 1 || site == "none") {
		return foreign("the browser does not say that this comes from a page of this server")
	}
	return nil
}
