package authn

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
)

// Scope is what a named token is good for. No scope is good for /mcp.
type Scope string

// The scopes.
const (
	// ScopeRead sees the user's runs, sessions and workflows.
	ScopeRead Scope = "read"
	// ScopeApprove is ScopeRead, and answers gates as a person.
	ScopeApprove Scope = "approve"
)

// namedPrefix begins a named token, so that a scanner for leaked secrets knows
// one, and so that /mcp can say why it refuses one.
const namedPrefix = "gdn_"

// TokenOptions are the options of NewTokens.
type TokenOptions struct {
	// Dir keeps the tokens, by hashes; required. It is made when it is needed,
	// for this user alone.
	Dir string
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Tokens are named tokens with scopes. They are apart from the token of /mcp:
// that one commands as an agent does, and these never work there.
type Tokens struct{ vault vault }

// NewTokens makes the check. It does not touch the disk.
func NewTokens(opts TokenOptions) (*Tokens, error) {
	if opts.Dir == "" {
		return nil, guideway.Errorf(guideway.CodeInternal, "the check of named tokens needs a directory")
	}
	return &Tokens{vault: newVault(opts.Dir, opts.Now)}, nil
}

// NamedToken is a token without its secret.
type NamedToken struct {
	Name    string    `json:"name"`
	User    string    `json:"user"`
	Scopes  []Scope   `json:"scopes"`
	Created time.Time `json:"createdAt"`
}

// Create makes a token and gives its secret, which is kept nowhere. The name is
// for people; one that is taken is CodeConflict.
func (t *Tokens) Create(name, user string, scopes ...Scope) (string, error) {
	if !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`).MatchString(name) {
		return "", guideway.Errorf(guideway.CodeInvalid, "the name %q is not one for a token", clip(name)).
			WithFix("use up to 64 letters, digits and ._-")
	}
	if user == "" || len(scopes) == 0 {
		return "", guideway.Errorf(guideway.CodeInvalid, "a token needs a user and a scope")
	}
	for _, s := range scopes {
		if s != ScopeRead && s != ScopeApprove {
			return "", guideway.Errorf(guideway.CodeInvalid, "there is no scope %q", clip(string(s))).
				WithFix("the scopes are %s and %s", ScopeRead, ScopeApprove)
		}
	}
	all, err := t.List()
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(o NamedToken) bool { return o.Name == name }) {
		return "", guideway.Errorf(guideway.CodeConflict, "there is a token with the name %q", name).
			WithFix("revoke it, or take another name")
	}
	secret := newSecret(namedPrefix, tokenBytes)
	err = t.vault.put(secret, NamedToken{Name: name, User: user, Scopes: scopes, Created: t.vault.now().UTC()})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// List gives the tokens in order of their names.
func (t *Tokens) List() ([]NamedToken, error) {
	list := []NamedToken{}
	err := t.each(func(_ string, token NamedToken) error {
		list = append(list, token)
		return nil
	})
	slices.SortFunc(list, func(a, b NamedToken) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// Revoke removes a token by its name, at once and in every process.
func (t *Tokens) Revoke(name string) error {
	found := false
	err := t.each(func(path string, token NamedToken) error {
		if token.Name != name {
			return nil
		}
		found = true
		_, err := t.vault.removeFile(path)
		return err
	})
	if err == nil && !found {
		return guideway.Errorf(guideway.CodeNotFound, "there is no token with the name %q", clip(name))
	}
	return err
}

// each visits all tokens. A file that is no token is passed over: it lets nobody
// in.
func (t *Tokens) each(visit func(path string, token NamedToken) error) error {
	paths, err := t.vault.paths()
	if err != nil {
		return err
	}
	for _, path := range paths {
		var token NamedToken
		if _, err := t.vault.read(path, &token); err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
				continue
			}
			return err
		}
		if err := visit(path, token); err != nil {
			return err
		}
	}
	return nil
}

// find gives the token of a secret.
func (t *Tokens) find(secret string) (NamedToken, error) {
	var token NamedToken
	_, err := t.vault.get(secret, &token)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return NamedToken{}, err
	}
	if err != nil || token.User == "" {
		return NamedToken{}, guideway.Errorf(guideway.CodeUnauthorized, "the bearer token is not one of this server, or was revoked").
			WithFix("make a new one on the machine of this server")
	}
	return token, nil
}

// isNamed tells a named token from the token of /mcp by its form.
func isNamed(token string) bool { return strings.HasPrefix(token, namedPrefix) }
