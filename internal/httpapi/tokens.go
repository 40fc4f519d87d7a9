package httpapi

import (
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

func (a *api) tokenRoutes() []route {
	return []route{
		{"GET", "/api/tokens", auth.RightManage, a.listTokens},
		{"POST", "/api/tokens", auth.RightManage, withBody(a.makeToken)},
		{"DELETE", "/api/tokens/{name}", auth.RightManage, a.revokeToken},
	}
}

// tokenInfo describes a token without its secret.
type tokenInfo struct {
	auth.NamedToken
	// Expired reports whether the token has expired.
	Expired bool `json:"expired"`
}

func (a *api) listTokens(c *call) (any, error) {
	all, err := a.Tokens.List()
	me, list := c.userName(), []tokenInfo{}
	for _, t := range all {
		if t.User == me {
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

// makeToken creates a token with the scope mcp, read or registry. Tokens that act for a
// person or read contents can only be created at a terminal, which asks for the passphrase.
func (a *api) makeToken(c *call, body tokenBody) (any, error) {
	if body.Scope == "" {
		body.Scope = auth.ScopeMCP
	}
	if body.Scope.Person() || body.Scope == auth.ScopeContents {
		return nil, guideway.Errorf(guideway.CodeForbidden, "a token with the scope %s must be created at a terminal", body.Scope).
			WithFix("guideway token create NAME --scope %s", body.Scope)
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
	c.setCreated("/api/tokens/", body.Name)
	return object{"secret": secret, "token": tokenInfo{token, false}}, nil
}

func (a *api) revokeToken(c *call) (any, error) {
	name := c.PathValue("name")
	all, err := a.Tokens.List()
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.Name == name && t.User != c.userName() {
			return nil, guideway.Errorf(guideway.CodeNotFound, "there is no token with the name %q", clipText(name)).
				WithFix("list the tokens with: guideway token list")
		}
	}
	return nil, a.Tokens.Revoke(name)
}
