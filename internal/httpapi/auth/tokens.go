package auth

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Scope is a kind of access that a named token has.
type Scope string

// The scopes.
const (
	// ScopeMCP gives access to /mcp, as far as its Allow permits, and to nothing else. It
	// cannot be combined with other scopes, so that no token both answers a human approval
	// and works on /mcp.
	ScopeMCP Scope = "mcp"
	// ScopeRead reads the user's runs, session documents, definitions and upstreams.
	ScopeRead Scope = "read"
	// ScopeContents reads what ScopeRead does, and contexts, checkpoints and the bodies of
	// recorded requests.
	ScopeContents Scope = "contents"
	// ScopeRegistry reads the registry, and nothing else.
	ScopeRegistry Scope = "registry"
	// ScopeApprove reads what ScopeRead does, and answers gates as a person.
	ScopeApprove Scope = "approve"
	// ScopeManage reads what ScopeRead does, and changes upstreams, which can start any
	// program, approves their tools and creates tokens for clients. It opens no gate.
	ScopeManage Scope = "manage"
)

// Scopes returns all scopes.
func Scopes() []Scope {
	return []Scope{ScopeMCP, ScopeRead, ScopeContents, ScopeRegistry, ScopeApprove, ScopeManage}
}

func scopeNames() []string {
	var names []string
	for _, s := range Scopes() {
		names = append(names, string(s))
	}
	return names
}

// Person reports whether a token with the scope decides for a person: about gates, or about
// what agents may use.
func (s Scope) Person() bool { return s == ScopeApprove || s == ScopeManage }

// Role returns the role of a user whose token has the scope.
func (s Scope) Role() guideway.Role {
	switch s {
	case ScopeMCP:
		return guideway.RoleOperator
	case ScopeApprove:
		return guideway.RoleApprover
	case ScopeManage:
		return guideway.RoleAdmin
	case ScopeRead, ScopeContents, ScopeRegistry:
	}
	return guideway.RoleViewer
}

// Exposure is how upstream tools are exposed to a client.
type Exposure string

// The exposures.
const (
	// ExposureAll lists every tool.
	ExposureAll Exposure = "all"
	// ExposureSearch offers a tool that finds tools and one that calls them.
	ExposureSearch Exposure = "search"
)

// namedPrefix starts a named token, so that secret scanners recognize it and /mcp can
// explain why it refuses one.
const namedPrefix = "gdn_"

// TokenOptions are the options of NewTokens.
type TokenOptions struct {
	// Dir stores hashes of the tokens; required. It is created when it is needed and
	// private to the user.
	Dir string
	// Shared, if not nil, has the tokens instead of the directory.
	Shared deployment.State
	// Now is the clock. Nil is the system clock.
	Now func() time.Time
}

// Tokens are named tokens with scopes. The token of the token file is not among them: it
// has the rights of an agent.
type Tokens struct{ store tokenStore }

// NewTokens returns the tokens of a directory. It does not access the disk.
func NewTokens(opts TokenOptions) (*Tokens, error) {
	if opts.Dir == "" {
		return nil, guideway.Errorf(guideway.CodeInternal, "named tokens need a directory")
	}
	return &Tokens{store: newTokenStore(opts.Dir, opts.Shared, opts.Now)}, nil
}

// NamedToken is a token without its secret.
type NamedToken struct {
	Name    string    `json:"name"`
	User    string    `json:"user"`
	Scopes  []Scope   `json:"scopes"`
	Created time.Time `json:"createdAt"`
	// Allow lists what a token of ScopeMCP may use.
	Allow *Allow `json:"allow,omitempty"`
	// Exposure is how upstream tools are exposed to a client with a token of ScopeMCP.
	// Empty means the setting of the server.
	Exposure Exposure `json:"exposure,omitempty"`
	// Expires is the expiry of the token. Nil means never.
	Expires *time.Time `json:"expiresAt,omitempty"`
	// Used is the time of the last use, to a minute. Nil means never.
	Used *time.Time `json:"usedAt,omitempty"`

	// id identifies this token. A revoked token of the same name has another id.
	id string
}

// Expired reports whether the token has expired at a time.
func (t *NamedToken) Expired(now time.Time) bool { return t.Expires != nil && !now.Before(*t.Expires) }

// hasScope reports whether the token has a scope.
func (t *NamedToken) hasScope(s Scope) bool { return slices.Contains(t.Scopes, s) }

// Create stores a token and returns its secret, which is not stored. Name, User and Scopes
// are required; Created and Used are ignored. If the user has a token of that name, Create
// returns CodeConflict.
func (t *Tokens) Create(token NamedToken) (string, error) {
	now := t.store.now().UTC()
	if err := token.validate(now); err != nil {
		return "", err
	}
	all, err := t.List()
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(all, func(o NamedToken) bool { return o.Name == token.Name && o.User == token.User }) {
		return "", guideway.Errorf(guideway.CodeConflict, "a token with the name %q already exists", token.Name).
			WithFix("revoke the existing token, or use another name")
	}
	token.Created, token.Used = now, nil
	secret := newSecret(namedPrefix, tokenBytes)
	if err := t.store.createRecord(secret, token); err != nil {
		return "", err
	}
	// A record whose modification time is its creation time was never used.
	return secret, t.store.touchRecordAt(secret, token.Created)
}

// validate returns an error if the token is invalid.
func (t *NamedToken) validate(now time.Time) error {
	if !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$`).MatchString(t.Name) {
		return guideway.Errorf(guideway.CodeInvalid, "%q is not a valid token name", clipText(t.Name)).
			WithFix("use at most 64 letters, digits and ._-, and start with a letter or a digit")
	}
	if t.User == "" || len(t.Scopes) == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "a token needs a user and at least one scope").
			WithFix("name the user and at least one scope: %s", strings.Join(scopeNames(), ", "))
	}
	for _, s := range t.Scopes {
		if !slices.Contains(Scopes(), s) {
			return guideway.Errorf(guideway.CodeInvalid, "there is no scope %q", clipText(string(s))).
				WithFix("use one of: %s", strings.Join(scopeNames(), ", "))
		}
	}
	switch {
	case t.hasScope(ScopeMCP) && len(t.Scopes) > 1:
		return guideway.Errorf(guideway.CodeInvalid, "the scope %s cannot be combined with others: a token for /mcp must not act for a person", ScopeMCP).
			WithFix("create a separate token with the scope %s", ScopeMCP)
	case !t.hasScope(ScopeMCP) && t.Allow != nil:
		return guideway.Errorf(guideway.CodeInvalid, "only a token with the scope %s can have upstreams, projects, tools or toolsets", ScopeMCP).
			WithFix("omit upstreams, projects, tools and toolsets, or use the scope %s", ScopeMCP)
	case !t.hasScope(ScopeMCP) && t.Exposure != "":
		return guideway.Errorf(guideway.CodeInvalid, "only a token with the scope %s can have an exposure of tools", ScopeMCP).
			WithFix("omit the exposure, or use the scope %s", ScopeMCP)
	case t.Exposure != "" && t.Exposure != ExposureAll && t.Exposure != ExposureSearch:
		return guideway.Errorf(guideway.CodeInvalid, "there is no exposure %q", clipText(string(t.Exposure))).
			WithFix("use %s or %s", ExposureAll, ExposureSearch)
	case t.Expired(now):
		return guideway.Errorf(guideway.CodeInvalid, "the token cannot expire at %s, which is not in the future", t.Expires.UTC().Format(time.RFC3339)).
			WithFix("set a time in the future, or no time for a token that does not expire")
	case t.Allow != nil:
		return t.Allow.validate()
	}
	return nil
}

// List returns the tokens of all users in order of their names.
func (t *Tokens) List() ([]NamedToken, error) {
	list := []NamedToken{}
	err := t.visitTokens(func(_ string, token NamedToken) error {
		list = append(list, token)
		return nil
	})
	slices.SortFunc(list, func(a, b NamedToken) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.User, b.User))
	})
	return list, err
}

// Revoke removes a token of a user by its name, immediately and for every process.
func (t *Tokens) Revoke(user, name string) error {
	found, err := t.revokeAll(func(token NamedToken) bool { return token.Name == name && token.User == user })
	if err == nil && !found {
		return guideway.Errorf(guideway.CodeNotFound, "there is no token with the name %q", clipText(name)).
			WithFix("list the tokens with: guideway token list")
	}
	return err
}

// Restrict revokes the tokens of a user for which the user lacks the role.
func (t *Tokens) Restrict(p guideway.Principal) error {
	_, err := t.revokeAll(func(token NamedToken) bool {
		return token.User == p.User && slices.ContainsFunc(token.Scopes, func(s Scope) bool { return !p.Has(s.Role()) })
	})
	return err
}

// revokeAll removes the selected tokens. found reports whether there were any.
func (t *Tokens) revokeAll(selected func(NamedToken) bool) (found bool, err error) {
	err = t.visitTokens(func(path string, token NamedToken) error {
		if !selected(token) {
			return nil
		}
		found = true
		_, err := t.store.removeFile(path)
		return err
	})
	return found, err
}

// visitTokens calls visit for all tokens. It skips invalid files, because they grant no
// access.
func (t *Tokens) visitTokens(visit func(path string, token NamedToken) error) error {
	paths, err := t.store.recordPaths()
	if err != nil {
		return err
	}
	for _, path := range paths {
		var token NamedToken
		touched, err := t.store.readRecord(path, &token)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) {
				continue
			}
			return err
		}
		token.setUsed(touched)
		if err := visit(path, token); err != nil {
			return err
		}
	}
	return nil
}

// setUsed sets the time of the last use from the modification time of the record.
func (t *NamedToken) setUsed(touched time.Time) {
	t.Used = nil
	if touched = touched.UTC().Truncate(time.Millisecond); touched.After(t.Created) {
		t.Used = &touched
	}
}

// usedTime is the minimum time between two records of a token's use.
const usedTime = time.Minute

// useToken returns the token of a secret, and records that it is used.
func (t *Tokens) useToken(secret string) (NamedToken, error) {
	token, err := t.findToken(secret)
	if err != nil {
		return NamedToken{}, err
	}
	if token.Used == nil || t.store.now().Sub(*token.Used) >= usedTime {
		_ = t.store.touchRecord(secret) // an error must not refuse the request
	}
	return token, nil
}

// findToken returns the token of a secret.
func (t *Tokens) findToken(secret string) (NamedToken, error) {
	var token NamedToken
	touched, err := t.store.getRecord(secret, &token)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return NamedToken{}, err
	}
	if err != nil || token.User == "" {
		return NamedToken{}, guideway.Errorf(guideway.CodeUnauthorized, "the bearer token does not belong to this server or was revoked").
			WithFix("create a new token on the computer of this server with: guideway token create NAME")
	}
	if token.Expired(t.store.now()) {
		return NamedToken{}, guideway.Errorf(guideway.CodeUnauthorized, "the bearer token has expired").
			WithFix("create a new token on the computer of this server with: guideway token create NAME")
	}
	token.setUsed(touched)
	token.id = tokenID(digest.Hex(secret))
	return token, nil
}

// IsValid reports whether the token with the ID of a TokenLease is still valid: not revoked
// by any process, and not expired.
func (t *Tokens) IsValid(id string) (bool, error) {
	good := false
	err := t.visitTokens(func(path string, token NamedToken) error {
		good = good || tokenID(strings.TrimSuffix(filepath.Base(path), recordSuffix)) == id && token.hasScope(ScopeMCP) && !token.Expired(t.store.now())
		return nil
	})
	return good, err
}

// tokenID returns the ID of the token whose secret has the given hash.
func tokenID(hash string) string { return hash[:min(16, len(hash))] }

// isNamed reports whether a token has the form of a named token.
func isNamed(token string) bool { return strings.HasPrefix(token, namedPrefix) }

// Allow lists what a token of ScopeMCP may use. Anything else is denied; the zero value
// allows nothing.
type Allow struct {
	// All allows everything.
	All bool `json:"all,omitempty"`
	// Upstreams and Projects allow all tools of upstreams, by the upstream's name or by its
	// project.
	Upstreams []string `json:"upstreams,omitempty"`
	Projects  []string `json:"projects,omitempty"`
	// Tools allow single upstream tools by patterns of the names that clients see, such as
	// "github__get_*".
	Tools []string `json:"tools,omitempty"`
	// Toolsets allow Guideway's own tools with their prompts and resources.
	Toolsets []string `json:"toolsets,omitempty"`
}

// IsEmpty reports whether nothing is allowed.
func (a *Allow) IsEmpty() bool {
	return a == nil || !a.All && len(a.Upstreams)+len(a.Projects)+len(a.Tools)+len(a.Toolsets) == 0
}

// Covers reports whether a allows everything that b allows. It compares names, so it may
// return false for the same tools if a and b name them differently.
func (a *Allow) Covers(b *Allow) bool {
	within := func(some, all []string) bool {
		return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
	}
	return a.All || !b.All && within(b.Upstreams, a.Upstreams) && within(b.Projects, a.Projects) &&
		within(b.Tools, a.Tools) && within(b.Toolsets, a.Toolsets)
}

// Delegation is the access that a client with a named token passes to work that continues
// without the client: no more access than the token has, and for no longer.
type Delegation struct {
	Allow
	// Token is the ID of the TokenLease.
	Token string `json:"token,omitempty"`
}

// Delegate returns the access that the client of ctx passes on. It is nil, which means
// everything, for a client without a named token. The work outlasts an access token, because
// its client renews it.
func Delegate(ctx context.Context) *Delegation {
	h := TokenLeaseFrom(ctx)
	if h == nil || h.isAccess {
		return nil
	}
	return &Delegation{Allow: h.Allow, Token: h.ID}
}

// maxAllowed is the maximum number of names of one kind, and the maximum length of each.
const maxAllowed = 200

func (a *Allow) validate() error {
	for what, list := range map[string][]string{"upstreams": a.Upstreams, "projects": a.Projects, "tools": a.Tools, "toolsets": a.Toolsets} {
		if len(list) > maxAllowed {
			return guideway.Errorf(guideway.CodeInvalid, "a token can name at most %d %s, not %d", maxAllowed, what, len(list)).
				WithFix("name fewer %s, or create several tokens", what)
		}
		for _, name := range list {
			switch {
			case name == "":
				return guideway.Errorf(guideway.CodeInvalid, "one of the %s has an empty name", what).WithFix("remove the empty name")
			case len(name) > maxAllowed:
				return guideway.Errorf(guideway.CodeInvalid, "the name %q in %s has %d bytes; at most %d are allowed", clipText(name), what, len(name), maxAllowed).WithFix("shorten the name")
			case strings.ContainsFunc(name, unicode.IsControl):
				return guideway.Errorf(guideway.CodeInvalid, "the name %q in %s contains a control character", clipText(name), what).WithFix("remove the control character")
			}
		}
	}
	for _, pattern := range a.Tools {
		if _, err := path.Match(pattern, "x"); err != nil {
			return guideway.Errorf(guideway.CodeInvalid, "%q is not a valid tool pattern", clipText(pattern)).
				WithFix(`use * for any characters, such as "github__get_*"`)
		}
	}
	return nil
}
