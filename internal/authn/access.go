package authn

import (
	"context"
	"net/http"
	"slices"

	"github.com/guideway-dev/guideway"
)

// Proof is what a request has shown of who sends it.
type Proof string

// The proofs.
const (
	// ProofBearer is the token of /mcp. An agent may hold it, so it never
	// stands for a person.
	ProofBearer Proof = "bearer"
	// ProofBrowser is the cookie of a browser that a person has logged in.
	ProofBrowser Proof = "browser"
	// ProofToken is a named token.
	ProofToken Proof = "token"
)

// Right is what a request wants to do.
type Right string

// The rights.
const (
	// RightRead sees what is the user's.
	RightRead Right = "read"
	// RightWork changes it, as an agent may.
	RightWork Right = "work"
	// RightAnswer answers a gate. Whether the answer is a person's follows
	// from the proof.
	RightAnswer Right = "answer"
	// RightManage changes what agents are let at: upstreams, the approvals of
	// their tools, and the tokens of clients. No credential of /mcp has it.
	RightManage Right = "manage"
)

// Grant is what a request may do, and in whose name.
type Grant struct {
	Principal guideway.Principal
	Proof     Proof
	Rights    []Right
}

// May tells whether the grant has a right.
func (g Grant) May(r Right) bool { return slices.Contains(g.Rights, r) }

// Person tells whether a person stands behind the request: as far as a browser
// or the holder of a token does.
func (g Grant) Person() bool {
	return (g.Proof == ProofBrowser || g.Proof == ProofToken) && g.May(RightAnswer)
}

type grantKey struct{}

// WithGrant gives a context that says what a request may do, and who calls.
func WithGrant(ctx context.Context, g Grant) context.Context {
	return WithPrincipal(context.WithValue(ctx, grantKey{}, g), g.Principal)
}

// GrantFrom gives what a request may do; the zero Grant, which may nothing, if
// nothing in front has said so.
func GrantFrom(ctx context.Context) Grant {
	g, _ := ctx.Value(grantKey{}).(Grant)
	return g
}

// Access finds out what a request to the API may do. It is for the API alone:
// who may come in at /mcp the Door says.
type Access struct {
	// Bearer is required.
	Bearer *Bearer
	// Browsers and Tokens may be nil; then nobody comes in that way.
	Browsers *Browsers
	Tokens   *Tokens
}

// Check looks at a request. A header Authorization decides by itself: where
// there is one the cookie is not looked at, so that a wrong token is never made
// good by it.
func (a *Access) Check(r *http.Request) (Grant, error) {
	header := len(r.Header.Values("Authorization")) > 0
	if !header && a.Browsers != nil && a.Browsers.carries(r) {
		return a.browser(r)
	}
	token, given := bearerToken(r)
	if given && isNamed(token) && a.Tokens != nil {
		return a.named(token)
	}
	p, err := a.Bearer.check(r)
	if err != nil {
		if !header && a.Browsers != nil {
			err.Fix += "; in a browser: guideway open"
		}
		return Grant{}, err
	}
	return Grant{Principal: p, Proof: ProofBearer, Rights: []Right{RightRead, RightWork, RightAnswer}}, nil
}

func (a *Access) browser(r *http.Request) (Grant, error) {
	user, commands, err := a.Browsers.check(r)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{Principal: guideway.Principal{User: user, Client: "browser"}, Proof: ProofBrowser, Rights: []Right{RightRead}}
	if commands {
		g.Rights = append(g.Rights, RightWork, RightAnswer, RightManage)
	}
	return g, nil
}

func (a *Access) named(token string) (Grant, error) {
	t, err := a.Tokens.find(token)
	if err != nil {
		return Grant{}, err
	}
	g := Grant{Principal: guideway.Principal{User: t.User, Client: t.Name}, Proof: ProofToken}
	for _, s := range t.Scopes {
		switch s {
		case ScopeRead:
			g.Rights = append(g.Rights, RightRead)
		case ScopeApprove:
			g.Rights = append(g.Rights, RightRead, RightAnswer)
		case ScopeManage:
			g.Rights = append(g.Rights, RightRead, RightManage)
		case ScopeMCP: // it is for /mcp alone
		}
	}
	return g, nil
}

// Challenge is the header WWW-Authenticate of a refusal.
func Challenge(r *http.Request) string {
	challenge := `Bearer realm="guideway"`
	if len(r.Header.Values("Authorization")) > 0 {
		challenge += `, error="invalid_token"`
	}
	return challenge
}
