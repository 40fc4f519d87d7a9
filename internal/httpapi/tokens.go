package httpapi

import (
	"cmp"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

func (a *api) tokenRoutes() []route {
	return []route{
		{"GET", "/api/tokens", auth.RightTokens, a.listTokens},
		{"POST", "/api/tokens", auth.RightTokens, withBody(a.makeToken)},
		{"DELETE", "/api/tokens/{name}", auth.RightTokens, a.revokeToken},
	}
}

// tokenInfo describes a token without its secret.
type tokenInfo struct {
	auth.NamedToken
	// Expired reports whether the token has expired.
	Expired bool `json:"expired"`
}

// listTokens returns the tokens of the user, or of all users for an administrator.
func (a *api) listTokens(c *call) (any, error) {
	all, err := a.Tokens.List()
	me, list := c.userName(), []tokenInfo{}
	for _, t := range all {
		if t.User == me || c.authGrant().May(auth.RightManage) {
			list = append(list, tokenInfo{t, t.Expired(a.Now())})
		}
	}
	return object{"tokens": list}, err
}

// tokenBody is the request body that creates a token.
type tokenBody struct {
	Name     string        `json:"name"`
	Scope    auth.Scope    `json:"scope"`
	Allow    *auth.Allow   `json:"allow"`
	Exposure auth.Exposure `json:"exposure"`
	Expires  *time.Time    `json:"expiresAt"`
}

// maxTokenTime is the maximum lifetime of a token of a user of the identity provider, which
// decides about the user's roles only at logins.
const maxTokenTime = 90 * 24 * time.Hour

// makeToken creates a token of the user with the scope mcp, read or registry. Tokens that
// act for a person or read contents can only be created at a terminal, which asks for the
// passphrase.
func (a *api) makeToken(c *call, body tokenBody) (any, error) {
	body.Scope = cmp.Or(body.Scope, auth.ScopeMCP)
	if body.Scope.Person() || body.Scope == auth.ScopeContents {
		return nil, guideway.Errorf(guideway.CodeForbidden, "a token with the scope %s must be created at a terminal", body.Scope).
			WithFix("guideway token create NAME --scope %s", body.Scope)
	}
	p := c.authGrant().Principal
	switch latest := a.Now().Add(maxTokenTime).UTC().Truncate(time.Second); {
	case !p.Has(body.Scope.Role()):
		return nil, guideway.Errorf(guideway.CodeForbidden, "a token with the scope %s requires the role %s, which the user %q lacks", body.Scope, body.Scope.Role(), p.User).
			WithFix("ask the administrator of this server")
	case p.Roles != nil && body.Expires == nil:
		body.Expires = &latest
	case p.Roles != nil && body.Expires.After(latest):
		return nil, guideway.Errorf(guideway.CodeInvalid, "expiresAt is %s; a token can be valid until %s", body.Expires.Format(time.RFC3339), latest.Format(time.RFC3339)).
			WithFix("set an earlier time, or omit expiresAt for the latest")
	}
	if body.Scope == auth.ScopeMCP && body.Allow == nil {
		body.Allow = &auth.Allow{}
	}
	token := auth.NamedToken{
		Name: body.Name, User: c.userName(), Scopes: []auth.Scope{body.Scope}, Allow: body.Allow, Exposure: body.Exposure, Expires: body.Expires,
	}
	secret, err := a.Tokens.Create(token)
	if err != nil {
		return nil, err
	}
	token.Created = a.Now().UTC()
	a.record(c.Request, audit.Entry{Kind: audit.TokenCreated, Subject: token.User + "/" + token.Name, Detail: "scope " + string(body.Scope)})
	c.setCreated("/api/tokens/", body.Name)
	return object{"secret": secret, "token": tokenInfo{token, false}}, nil
}

// revokeToken revokes a token of the user, or for an administrator one of the user that the
// parameter user names.
func (a *api) revokeToken(c *call) (any, error) {
	user := cmp.Or(c.textParam("user"), c.userName())
	if c.err == nil && user != c.userName() && !c.authGrant().May(auth.RightManage) {
		c.err = checkRight(c.authGrant(), auth.RightManage)
	}
	if c.err != nil {
		return nil, c.err
	}
	err := a.Tokens.Revoke(user, c.PathValue("name"))
	if err == nil {
		a.record(c.Request, audit.Entry{Kind: audit.TokenRevoked, Subject: user + "/" + c.PathValue("name")})
	}
	return nil, err
}
