// Package auth authenticates callers and refuses unauthorized ones: the token file, the
// bearer check, browser sessions, named tokens, and the guard of the Host and Origin
// headers that protects a server on loopback from web pages.
//
// Credentials of persons and agents are separate: the token of /mcp never counts as a
// person, and a credential of a person does not work on /mcp.
package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/guideway-dev/guideway"
)

// Proof is the kind of credential that a request has shown.
type Proof string

// The proofs.
const (
	// ProofBearer is the token of /mcp. An agent may hold it, so it never counts as a
	// person.
	ProofBearer Proof = "bearer"
	// ProofBrowser is the cookie of a browser in which a person has logged in, and the key of
	// the page.
	ProofBrowser Proof = "browser"
	// ProofToken is a named token.
	ProofToken Proof = "token"
)

// Right is a kind of access that a request needs.
type Right string

// The rights.
const (
	// RightRead reads the data of the user, except what RightContents reads.
	RightRead Right = "read"
	// RightContents reads contexts, checkpoints and the bodies of recorded requests.
	RightContents Right = "contents"
	// RightRegistry reads the registry.
	RightRegistry Right = "registry"
	// RightWork changes the data of the user, as an agent may.
	RightWork Right = "work"
	// RightAnswer answers a gate. The proof decides whether the answer counts as a
	// person's.
	RightAnswer Right = "answer"
	// RightManage changes what agents may use: upstreams, the approvals of their tools, and
	// the tokens of clients. No credential of /mcp has it.
	RightManage Right = "manage"
	// RightDefine changes and enables what the server runs for all users: workflows and hook
	// graphs.
	RightDefine Right = "define"
	// RightLogin logs the user in to upstreams.
	RightLogin Right = "login"
	// RightTokens sees, creates and revokes the user's own tokens.
	RightTokens Right = "tokens"
)

// Grant is the principal of a request and its rights.
type Grant struct {
	Principal guideway.Principal
	Proof     Proof
	Rights    []Right
}

// May reports whether the grant has a right.
func (g Grant) May(r Right) bool { return slices.Contains(g.Rights, r) }

// Approves reports whether the request comes from a person with the role approver.
func (g Grant) Approves() bool { return g.Person() && g.Principal.Has(guideway.RoleApprover) }

// Person reports whether an answer of the request counts as a person's: it comes from a
// page of a logged in browser or has a token of ScopeApprove.
func (g Grant) Person() bool {
	return (g.Proof == ProofBrowser || g.Proof == ProofToken) && g.May(RightAnswer)
}

type grantKey struct{}

// WithGrant returns a context with the grant of a request.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return WithPrincipal(context.WithValue(ctx, grantKey{}, g), g.Principal)
}

// GrantFrom returns the grant of a context, or the zero Grant, which has no rights.
func GrantFrom(ctx context.Context) Grant {
	g, _ := ctx.Value(grantKey{}).(Grant)
	return g
}

// Access determines the grant of requests to the API. The Authenticator does so at /mcp.
type Access struct {
	// Bearer is required.
	Bearer *Bearer
	// Browsers and Tokens may be nil. Their credentials are then refused.
	Browsers *BrowserSessions
	Tokens   *Tokens
}

// Check returns the grant of a request. If there is a header Authorization, the cookie is
// ignored, so that a cookie never replaces a wrong token.
func (a *Access) Check(r *http.Request) (Grant, error) {
	header := len(r.Header.Values("Authorization")) > 0
	if !header && a.Browsers != nil && a.Browsers.HasCookie(r) {
		return a.browserGrant(r)
	}
	token, given := bearerToken(r)
	if given && isNamed(token) && a.Tokens != nil {
		return a.tokenGrant(token)
	}
	p, err := a.Bearer.checkRequest(r)
	if err != nil {
		if !header && a.Browsers != nil {
			err.Fix += "; in a browser: guideway open"
		}
		return Grant{}, err
	}
	return Grant{Principal: p, Proof: ProofBearer, Rights: append(readRights(), RightContents, RightWork, RightDefine, RightAnswer)}, nil
}

func (a *Access) browserGrant(r *http.Request) (Grant, error) {
	p, commands, err := a.Browsers.checkRequest(r)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{Principal: p, Proof: ProofBrowser, Rights: append(readRights(), RightContents)}
	if !commands {
		return g, nil
	}
	for _, more := range []struct {
		right Right
		has   bool
	}{
		{RightWork, p.Has(guideway.RoleOperator)},
		{RightAnswer, p.Has(guideway.RoleOperator) || p.Has(guideway.RoleApprover)},
		{RightDefine, p.Has(guideway.RoleAdmin)},
		{RightManage, p.Has(guideway.RoleAdmin)},
		{RightLogin, p.Has(guideway.RoleOperator)},
		{RightTokens, p.Has(guideway.RoleViewer)},
	} {
		if more.has {
			g.Rights = append(g.Rights, more.right)
		}
	}
	return g, nil
}

func (a *Access) tokenGrant(token string) (Grant, error) {
	t, err := a.Tokens.useToken(token)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{Principal: a.Bearer.principalOf(t), Proof: ProofToken}
	for _, s := range t.Scopes {
		switch s {
		case ScopeRead:
			g.Rights = append(g.Rights, readRights()...)
		case ScopeContents:
			g.Rights = append(append(g.Rights, readRights()...), RightContents)
		case ScopeRegistry:
			g.Rights = append(g.Rights, RightRegistry)
		case ScopeApprove:
			g.Rights = append(append(g.Rights, readRights()...), RightAnswer)
		case ScopeManage:
			g.Rights = append(append(g.Rights, readRights()...), RightManage, RightLogin, RightTokens)
		case ScopeMCP: // valid at /mcp only
		}
	}
	return g, nil
}

// readRights returns the rights of every credential that reads the API. The registry
// contains only definitions, which such a credential can also read at /api.
func readRights() []Right { return []Right{RightRead, RightRegistry} }

// Challenge returns the header WWW-Authenticate of a refusal.
func Challenge(r *http.Request) string {
	challenge := `Bearer realm="guideway"`
	if len(r.Header.Values("Authorization")) > 0 {
		challenge += `, error="invalid_token"`
	}
	return challenge
}

type principalKey struct{}

// WithPrincipal returns a context with the principal of a request.
func WithPrincipal(ctx context.Context, p guideway.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns the principal of a context. ok is false if the context has no
// principal.
func PrincipalFrom(ctx context.Context) (p guideway.Principal, ok bool) {
	p, ok = ctx.Value(principalKey{}).(guideway.Principal)
	return p, ok
}

type serverURLKey struct{}

// WithServerURL returns a context with the address at which the client of a request reaches
// the server. The host of the request can be trusted, because the guard or else the SDK
// checks it.
func WithServerURL(r *http.Request) context.Context {
	if ServerURL(r.Context()) != "" { // see WithPublicURL
		return r.Context()
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return context.WithValue(r.Context(), serverURLKey{}, scheme+"://"+r.Host)
}

// WithPublicURL returns a context with the URL of the server for people, which has precedence
// over the address of a request.
func WithPublicURL(ctx context.Context, url string) context.Context {
	return context.WithValue(ctx, serverURLKey{}, url)
}

// ServerURL returns the address at which a client over HTTP reaches the server, without a
// slash at the end, or "" for a client on stdio.
func ServerURL(ctx context.Context) string {
	text, _ := ctx.Value(serverURLKey{}).(string)
	return text
}

// SystemUser returns the name of the operating system user that runs this process. Clients
// on stdio and clients with the token from the token file act as this user. The name of a
// user without a name, as in a container that sets only a number, is "uid-" and the number.
func SystemUser() (string, error) {
	u, err := user.Current()
	return systemUserName(u, err, os.Getuid())
}

// systemUserName returns the name of a user, or a name made of uid if the user has none.
// uid is negative on Windows; without a name, systemUserName then returns an error.
func systemUserName(u *user.User, err error, uid int) (string, error) {
	switch {
	case err == nil && u.Username != "":
		return u.Username, nil
	case uid >= 0:
		return "uid-" + strconv.Itoa(uid), nil
	}
	if err == nil {
		err = errors.New("the name is empty")
	}
	return "", guideway.Errorf(guideway.CodeUnavailable, "the name of the operating system user cannot be determined: %w", err).
		WithFix("run this program as a user with a name")
}

// refuseRequest answers a request with an error in the form of the API: {"success": false,
// "error", "code", "fix"}.
func refuseRequest(w http.ResponseWriter, status int, err *guideway.Error) {
	type body struct {
		Success bool          `json:"success"`
		Error   string        `json:"error"`
		Code    guideway.Code `json:"code"`
		Fix     string        `json:"fix,omitempty"`
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body{Error: err.Message, Code: err.Code, Fix: err.Fix})
}
