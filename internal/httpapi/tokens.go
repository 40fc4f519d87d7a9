package httpapi

import (
	"net/http"
	"net/url"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
)

func (a *api) tokenRoutes() []route {
	return []route{
		{"GET", "/api/tokens", authn.RightManage, a.listTokens},
		{"POST", "/api/tokens", authn.RightManage, a.makeToken},
		{"DELETE", "/api/tokens/{name}", authn.RightManage, a.revokeToken},
	}
}

// tokenInfo is a token without its secret.
type tokenInfo struct {
	authn.NamedToken
	// Expired says that it has ended.
	Expired bool `json:"expired"`
}

func (a *api) listTokens(w http.ResponseWriter, r *http.Request) error {
	all, err := a.Tokens.List()
	if err != nil {
		return err
	}
	me, list := user(r), []tokenInfo{}
	for _, t := range all {
		if t.User == me {
			list = append(list, tokenInfo{t, t.Expired(a.Now())})
		}
	}
	answer(w, http.StatusOK, map[string]any{"success": true, "tokens": list})
	return nil
}

// makeToken makes a token of a client, or one that reads. Those that stand for a
// person are made at a terminal, where the passphrase is asked for.
func (a *api) makeToken(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name     string         `json:"name"`
		Scope    authn.Scope    `json:"scope"`
		Allow    *authn.Allow   `json:"allow"`
		Exposure authn.Exposure `json:"exposure"`
		Expires  *time.Time     `json:"expiresAt"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	if body.Scope == "" {
		body.Scope = authn.ScopeMCP
	}
	if body.Scope.Person() {
		return guideway.Errorf(guideway.CodeForbidden, "a token of the scope %s stands for a person, and is made at a terminal", body.Scope).
			WithFix("guideway token create NAME --scope %s", body.Scope)
	}
	if body.Scope == authn.ScopeMCP && body.Allow == nil {
		body.Allow = &authn.Allow{}
	}
	token := authn.NamedToken{
		Name: body.Name, User: user(r), Scopes: []authn.Scope{body.Scope}, Allow: body.Allow, Exposure: body.Exposure, Expires: body.Expires,
	}
	secret, err := a.Tokens.Create(token)
	if err != nil {
		return err
	}
	token.Created = a.Now().UTC()
	w.Header().Set("Location", "/api/tokens/"+url.PathEscape(body.Name))
	answer(w, http.StatusCreated, map[string]any{"success": true, "secret": secret, "token": tokenInfo{token, false}})
	return nil
}

func (a *api) revokeToken(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	all, err := a.Tokens.List()
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Name == name && t.User != user(r) {
			return guideway.Errorf(guideway.CodeNotFound, "there is no token with the name %q", clip(name))
		}
	}
	if err := a.Tokens.Revoke(name); err != nil {
		return err
	}
	answer(w, http.StatusOK, map[string]bool{"success": true})
	return nil
}
