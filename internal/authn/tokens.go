package authn

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
)

// Scope is what a named token is good for.
type Scope string

// The scopes.
const (
	// ScopeMCP is good for /mcp, as far as its Allow goes, and for nothing else.
	// It stands alone, so that no token opens a person's gate and works on /mcp.
	ScopeMCP Scope = "mcp"
	// ScopeRead sees the user's runs, sessions and workflows.
	ScopeRead Scope = "read"
	// ScopeApprove is ScopeRead, and answers gates as a person.
	ScopeApprove Scope = "approve"
	// ScopeManage is ScopeRead, and changes upstreams, approves their tools and
	// makes tokens for clients.
	ScopeManage Scope = "manage"
)

// Scopes are all scopes.
func Scopes() []Scope { return []Scope{ScopeMCP, ScopeRead, ScopeApprove, ScopeManage} }

// Person tells whether who has the scope counts as a person.
func (s Scope) Person() bool { return s == ScopeApprove || s == ScopeManage }

// Exposure is a way in which the tools of upstreams are offered.
type Exposure string

// The exposures.
const (
	// ExposureAll offers every tool.
	ExposureAll Exposure = "all"
	// ExposureSearch offers a tool to find them and one to call them.
	ExposureSearch Exposure = "search"
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

// Tokens are named tokens with scopes. They are apart from the token of the token
// file: that one commands as an agent does.
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
	// Allow is what a token of ScopeMCP may use.
	Allow *Allow `json:"allow,omitempty"`
	// Exposure says in which way a client with a token of ScopeMCP is offered the
	// tools of upstreams; empty leaves that to the server's settings.
	Exposure Exposure `json:"exposure,omitempty"`
	// Expires is when the token ends by itself; nil is never.
	Expires *time.Time `json:"expiresAt,omitempty"`
	// Used is when it was used last, to a minute; nil is never.
	Used *time.Time `json:"usedAt,omitempty"`

	// id tells this token from every other one, those of the same name that were
	// revoked among them.
	id string
}

// Expired tells whether the token has ended by a time.
func (t *NamedToken) Expired(now time.Time) bool { return t.Expires != nil && !now.Before(*t.Expires) }

// has tells whether the token has a scope.
func (t *NamedToken) has(s Scope) bool { return slices.Contains(t.Scopes, s) }

// Create makes a token and gives its secret, which is kept nowhere. Name, User and
// Scopes are needed; Created and Used are not looked at. A name that is taken is
// CodeConflict.
func (t *Tokens) Create(token NamedToken) (string, error) {
	now := t.vault.now().UTC()
	if err := token.check(now); err != nil {
		return "", err
	}
	all, err := t.List()
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(o NamedToken) bool { return o.Name == token.Name }) {
		return "", guideway.Errorf(guideway.CodeConflict, "there is a token with the name %q", token.Name).
			WithFix("revoke it, or take another name")
	}
	token.Created, token.Used = now, nil
	secret := newSecret(namedPrefix, tokenBytes)
	if err := t.vault.put(secret, token); err != nil {
		return "", err
	}
	// A record that was touched at its own time was never used.
	return secret, t.vault.touchAt(secret, token.Created)
}

// check refuses what is no token.
func (t *NamedToken) check(now time.Time) error {
	if !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`).MatchString(t.Name) {
		return guideway.Errorf(guideway.CodeInvalid, "the name %q is not one for a token", clip(t.Name)).
			WithFix("use up to 64 letters, digits and ._-")
	}
	if t.User == "" || len(t.Scopes) == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "a token needs a user and a scope")
	}
	for _, s := range t.Scopes {
		if !slices.Contains(Scopes(), s) {
			return guideway.Errorf(guideway.CodeInvalid, "there is no scope %q", clip(string(s))).
				WithFix("the scopes are %v", Scopes())
		}
	}
	switch {
	case t.has(ScopeMCP) && len(t.Scopes) > 1:
		return guideway.Errorf(guideway.CodeInvalid, "the scope %s stands alone: what works on /mcp proves no person", ScopeMCP).
			WithFix("make two tokens")
	case !t.has(ScopeMCP) && t.Allow != nil:
		return guideway.Errorf(guideway.CodeInvalid, "upstreams, projects, tools and toolsets are for the scope %s", ScopeMCP).
			WithFix("leave them out, or take the scope %s", ScopeMCP)
	case !t.has(ScopeMCP) && t.Exposure != "":
		return guideway.Errorf(guideway.CodeInvalid, "an exposure of tools is for the scope %s", ScopeMCP).
			WithFix("leave it out, or take the scope %s", ScopeMCP)
	case t.Exposure != "" && t.Exposure != ExposureAll && t.Exposure != ExposureSearch:
		return guideway.Errorf(guideway.CodeInvalid, "there is no exposure %q", clip(string(t.Exposure))).
			WithFix("use %s or %s", ExposureAll, ExposureSearch)
	case t.Expired(now):
		return guideway.Errorf(guideway.CodeInvalid, "the token would have ended before it begins").WithFix("give a later time")
	case t.Allow != nil:
		return t.Allow.check()
	}
	return nil
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
		touched, err := t.vault.read(path, &token)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
				continue
			}
			return err
		}
		token.usedAt(touched)
		if err := visit(path, token); err != nil {
			return err
		}
	}
	return nil
}

// usedAt says when the record was touched last.
func (t *NamedToken) usedAt(touched time.Time) {
	t.Used = nil
	if touched = touched.UTC().Truncate(time.Millisecond); touched.After(t.Created) {
		t.Used = &touched
	}
}

// usedTime is how often the use of a token is noted.
const usedTime = time.Minute

// find gives the token of a secret, and notes that it is used.
func (t *Tokens) find(secret string) (NamedToken, error) {
	token, err := t.look(secret)
	if err != nil {
		return NamedToken{}, err
	}
	if token.Used == nil || t.vault.now().Sub(*token.Used) >= usedTime {
		_ = t.vault.touch(secret) // whether it is noted decides nothing
	}
	return token, nil
}

// look is find without the note.
func (t *Tokens) look(secret string) (NamedToken, error) {
	var token NamedToken
	touched, err := t.vault.get(secret, &token)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return NamedToken{}, err
	}
	if err != nil || token.User == "" {
		return NamedToken{}, guideway.Errorf(guideway.CodeUnauthorized, "the bearer token is not one of this server, or was revoked").
			WithFix("make a new one on the machine of this server")
	}
	if token.Expired(t.vault.now()) {
		return NamedToken{}, guideway.Errorf(guideway.CodeUnauthorized, "the bearer token has expired").
			WithFix("make a new one on the machine of this server")
	}
	token.usedAt(touched)
	token.id = idOf(hashOf(secret))
	return token, nil
}

// Good tells whether the token of a Holder's ID is still good: not revoked by any
// process, and not expired.
func (t *Tokens) Good(id string) (bool, error) {
	good := false
	err := t.each(func(path string, token NamedToken) error {
		good = good || idOf(strings.TrimSuffix(filepath.Base(path), recordSuffix)) == id && token.has(ScopeMCP) && !token.Expired(t.vault.now())
		return nil
	})
	return good, err
}

// idOf is the ID of the token whose secret has a hash.
func idOf(hash string) string { return hash[:min(16, len(hash))] }

// isNamed tells a named token from the token of the token file by its form.
func isNamed(token string) bool { return strings.HasPrefix(token, namedPrefix) }
