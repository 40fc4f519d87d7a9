package sso

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"golang.org/x/oauth2"
)

const (
	// attemptCookie has the secret of a login in progress.
	attemptCookie = "guideway_login"
	// attemptTime is the time limit of a login.
	attemptTime = 10 * time.Minute
)

// attempt is the secret of a login in progress: the time of its start and random bytes. The
// browser keeps it in a cookie, so that any instance completes the login. The state, the
// nonce and the PKCE verifier are hashes of it, so that the provider learns no other one.
type attempt string

func (a attempt) derive(purpose string) string {
	sum := sha256.Sum256([]byte(purpose + "\x00" + string(a)))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// isCurrent reports whether the login started less than attemptTime ago.
func (a attempt) isCurrent(now time.Time) bool {
	text, _, _ := strings.Cut(string(a), ".")
	seconds, err := strconv.ParseInt(text, 10, 64)
	age := now.Sub(time.Unix(seconds, 0))
	return err == nil && age >= 0 && age < attemptTime
}

// newCookie returns the cookie of a login. It is Lax, because the provider sends the browser
// back from another site.
func (p *Provider) newCookie(value string, lasts time.Duration) *http.Cookie {
	return &http.Cookie{ //nolint:gosec // G124: Secure is set behind TLS, as for the cookie of a session
		Name: attemptCookie, Value: value, Path: auth.LoginPath, MaxAge: int(lasts / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(p.PublicURL, "https://"),
	}
}

// BeginLogin implements auth.Identities.
func (p *Provider) BeginLogin(r *http.Request) (page string, cookie *http.Cookie, err error) {
	m, err := p.discover(r.Context())
	if err != nil {
		return "", nil, err
	}
	a := attempt(strconv.FormatInt(p.Now().Unix(), 10) + "." + rand.Text())
	page = p.config(m).AuthCodeURL(a.derive("state"), oidc.Nonce(a.derive("nonce")), oauth2.S256ChallengeOption(a.derive("verifier")))
	return page, p.newCookie(string(a), attemptTime), nil
}

// FinishLogin implements auth.Identities.
func (p *Provider) FinishLogin(r *http.Request) (who auth.Person, cookie *http.Cookie, err error) {
	cookie = p.newCookie("", -time.Second) // the login is used, whatever its result
	m, err := p.discover(r.Context())
	if err != nil {
		return who, cookie, err
	}
	a, err := p.checkRedirect(r, m)
	if err != nil {
		return who, cookie, err
	}
	ctx := oidc.ClientContext(r.Context(), p.client)
	token, err := p.config(m).Exchange(ctx, r.URL.Query().Get("code"), oauth2.VerifierOption(a.derive("verifier")))
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) { // its text can repeat the request, which has secrets
		err = errors.New(cmp.Or(answer.ErrorCode, answer.Response.Status))
	}
	if err != nil {
		return who, cookie, refuseLogin("the identity provider does not accept the code: %w", err)
	}
	text, ok := token.Extra("id_token").(string)
	if !ok {
		return who, cookie, refuseLogin("the identity provider returned no ID token")
	}
	t, c, err := p.verify(ctx, m, text, p.ClientID)
	switch {
	case err != nil:
		return who, cookie, refuseLogin("the ID token is invalid: %w", err)
	case subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(a.derive("nonce"))) != 1:
		return who, cookie, refuseLogin("the ID token belongs to another login")
	case len(t.Audience) > 1 && c.text("azp") == "", c["azp"] != nil && c.text("azp") != p.ClientID:
		return who, cookie, refuseLogin("the ID token was issued to another client")
	case t.AccessTokenHash != "" && t.VerifyAccessToken(token.AccessToken) != nil:
		return who, cookie, refuseLogin("the ID token belongs to another access token")
	}
	who, err = p.identify(c)
	return who, cookie, err
}

// checkRedirect returns the login of this browser to which a redirect of the provider
// belongs.
func (p *Provider) checkRedirect(r *http.Request, m *metadata) (attempt, error) {
	q := r.URL.Query()
	for _, name := range []string{"state", "code", "iss", "error"} {
		if len(q[name]) > 1 {
			return "", refuseLogin("the parameter %s occurs several times", name)
		}
	}
	cookies := r.CookiesNamed(attemptCookie)
	i := slices.IndexFunc(cookies, func(c *http.Cookie) bool {
		a := attempt(c.Value)
		return a.isCurrent(p.Now()) && subtle.ConstantTimeCompare([]byte(a.derive("state")), []byte(q.Get("state"))) == 1
	})
	switch iss := q.Get("iss"); {
	case i < 0:
		return "", refuseLogin("this browser did not start the login, or more than %s ago", attemptTime)
	case iss != "" && iss != p.Issuer, iss == "" && m.answersIssuer:
		return "", refuseLogin("the answer comes from another identity provider")
	case q.Has("error"):
		return "", refuseLogin("the identity provider answers %q", q.Get("error"))
	case q.Get("code") == "":
		return "", refuseLogin("the answer of the identity provider has no code")
	}
	return attempt(cookies[i].Value), nil
}

func refuseLogin(format string, args ...any) error {
	return guideway.Errorf(guideway.CodeUnauthorized, "the login failed: "+format, args...).WithFix("log in again")
}
