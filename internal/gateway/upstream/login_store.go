package upstream

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Logins stores the logins of one user to upstreams, each in an entry with encrypted tokens.
// Several processes may share the directory.
type Logins struct {
	Dir, User string
	// Shared, if not nil, has the logins instead of the directory.
	Shared deployment.State
	// Source has the secret that encrypts the tokens.
	Source seal.Source
	// Changed, if set, is called after a login or a logout of the local user.
	Changed func(name string) error

	// isPerson reports that the user is not the local user.
	isPerson bool
}

// Of returns the logins of a user. The empty name is the local user. l may be nil.
func (l *Logins) Of(user string) *Logins {
	if l == nil || user == "" || user == l.User {
		return l
	}
	return &Logins{Dir: l.Dir, User: user, Shared: l.Shared, Source: l.Source, isPerson: true}
}

// noteChange calls Changed. l may be nil.
func (l *Logins) noteChange(name string) error {
	if l == nil || l.Changed == nil {
		return nil
	}
	return l.Changed(name)
}

// LoginInfo describes a login without its secrets.
type LoginInfo struct {
	// Issuer is the authorization server, and Client the client id there.
	Issuer string    `json:"issuer"`
	Client string    `json:"client"`
	Scopes []string  `json:"scopes,omitempty"`
	Since  time.Time `json:"since"`
	// Expires is the time at which the token expires. Renews reports whether it is then
	// replaced without a person.
	Expires *time.Time `json:"expires,omitempty"`
	Renews  bool       `json:"renews"`
}

// loginSecrets is the encrypted part of a login.
type loginSecrets struct {
	tokenGrant

	Revocation string        `json:"revocation,omitempty"`
	Token      *oauth2.Token `json:"token"`
}

// loginFile is the content of the file of a login.
type loginFile struct {
	Version int `json:"version"`
	// Server is the hash of the URL and the OAuth settings that the login is for.
	Server string    `json:"server"`
	Info   LoginInfo `json:"info"`
	Box    *seal.Box `json:"box"`
}

const (
	loginVersion = 1
	loginPurpose = "logins"
	maxLogin     = 1 << 20
	// loginLockRetry is the interval of attempts to get the lock of a login.
	loginLockRetry = 5 * time.Millisecond
)

const (
	// people is the directory of the logins of persons.
	people = "people/"
	// sharedLogin is the beginning of the names of logins in the shared state, and sharedLock of
	// those of their locks. A lock ends after lockTime if its process has ended.
	sharedLogin, sharedLock = "upstream-login/", "upstream-login-lock/"
	lockTime                = 10 * time.Minute
)

// entry returns the name under which the login to an upstream is stored.
func (l *Logins) entry(name string) string {
	if l.isPerson {
		return people + name + "/" + digest.Hex(l.User)
	}
	return name
}

// pendingEntry returns the name under which a login in progress is stored.
func (l *Logins) pendingEntry(name string) string {
	return people + name + "/" + digest.Hex(l.User) + "-pending"
}

func (l *Logins) path(entry string) string {
	return filepath.Join(l.Dir, filepath.FromSlash(entry)+".json")
}

// readText returns the text of an entry. The error is fs.ErrNotExist if there is none.
func (l *Logins) readText(name, entry string) (string, error) {
	if l.Shared != nil {
		ctx, cancel := deployment.Context()
		defer cancel()
		e, err := deployment.Get(ctx, l.Shared, sharedLogin+entry)
		return e.Text, err
	}
	return atomicfile.File{
		Path: l.path(entry), What: "login file", MaxBytes: maxLogin,
		IfSeen: "log in again: guideway upstream logout " + name + ", then guideway upstream login " + name,
	}.Read()
}

// writeText stores an entry, or removes it if the text is empty.
func (l *Logins) writeText(name, entry, text string) error {
	var err error
	switch path := l.path(entry); {
	case l.Shared != nil:
		ctx, cancel := deployment.Context()
		defer cancel()
		err = l.Shared.Change(ctx, sharedLogin+entry, func(string) (string, error) { return text, nil })
	case text == "":
		if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	default:
		if err = atomicfile.MakeDir(filepath.Dir(path)); err == nil {
			err = atomicfile.Replace(path, text+"\n")
		}
	}
	if err != nil {
		return l.storeError("change", name, err)
	}
	return nil
}

// serverHash returns the hash of the settings that a login is for.
func serverHash(spec Spec) string {
	sum := credentialsHash(spec)
	return hex.EncodeToString(sum[:])
}

// boundTo returns what the encryption of a login binds its tokens to: they cannot be used for
// another user, upstream, URL or authorization server.
func (f *loginFile) boundTo(user, name string) []byte {
	text, _ := json.Marshal([]any{user, name, f.Version, f.Server, f.Info}) // strings and times always marshal
	return text
}

// hasLogin reports whether there is a login for a resolved spec. l may be nil.
func (l *Logins) hasLogin(spec Spec) bool {
	f, err := l.readFile(spec)
	return err != nil || f != nil // the error is reported when the login is used
}

// LoginTo describes the login to a server. It returns nil without a login, and if the login
// cannot be read, which a call reports.
func LoginTo(spec Spec, opts Options) *LoginInfo {
	spec, _, err := opts.Secrets.resolveSpec(spec)
	if err != nil {
		return nil
	}
	f, err := opts.Logins.readFile(spec)
	if err != nil || f == nil {
		return nil
	}
	return &f.Info
}

// HasLogin reports whether a person has a login to the server that can be used.
func (u *Upstream) HasLogin(user string) bool {
	opts := u.opts
	opts.Logins = opts.Logins.Of(user)
	return LoginTo(u.spec, opts) != nil
}

// readFile reads the login to the server of a spec. It returns nil without a login, and if the
// login is for other settings.
func (l *Logins) readFile(spec Spec) (*loginFile, error) {
	if l == nil {
		return nil, nil
	}
	text, err := l.readText(spec.Name, l.entry(spec.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f loginFile
	if json.Unmarshal([]byte(text), &f) != nil || f.Version == loginVersion && f.Box == nil {
		return nil, unreadableLogin(spec.Name, errors.New("the login file is damaged"))
	}
	if f.Version != loginVersion {
		return nil, unreadableLogin(spec.Name, errors.New("another version of Guideway wrote the login file"))
	}
	if f.Server != serverHash(spec) {
		return nil, nil
	}
	return &f, nil
}

func unreadableLogin(name string, err error) error {
	return &LoginRequired{Err: guideway.Errorf(guideway.CodeUnavailable, "read the login to %s: %w", name, err).
		WithFix("log in again: guideway upstream login %s", name)}
}

// readSecrets reads a login with its secrets. It returns nil without a login.
func (l *Logins) readSecrets(ctx context.Context, spec Spec) (*loginFile, *loginSecrets, error) {
	f, err := l.readFile(spec)
	if f == nil {
		return nil, nil, err
	}
	text, err := f.Box.Open(ctx, l.Source, loginPurpose, f.boundTo(l.User, spec.Name))
	if err != nil {
		return nil, nil, unreadableLogin(spec.Name, err)
	}
	var s loginSecrets
	if err := json.Unmarshal(text, &s); err != nil || s.Token == nil {
		return nil, nil, unreadableLogin(spec.Name, errors.New("the tokens are missing or damaged"))
	}
	return f, &s, nil
}

// write stores a login. The caller holds its lock.
func (l *Logins) write(ctx context.Context, spec Spec, info *LoginInfo, s *loginSecrets) error {
	info.Expires, info.Renews = nil, s.Token.RefreshToken != ""
	if !s.Token.Expiry.IsZero() {
		at := s.Token.Expiry.UTC().Truncate(time.Second)
		info.Expires = &at
	}
	info.Since = info.Since.UTC().Truncate(time.Second)
	secrets, err := json.Marshal(s)
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "store the login to %s: %w", spec.Name, err)
	}
	f := loginFile{Version: loginVersion, Server: serverHash(spec), Info: *info}
	if f.Box, err = seal.NewBox(ctx, l.Source, loginPurpose, secrets, f.boundTo(l.User, spec.Name)); err != nil {
		return err
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "store the login to %s: %w", spec.Name, err)
	}
	if len(text) >= maxLogin {
		return guideway.Errorf(guideway.CodeTooLarge, "the login to %s with its tokens takes %d bytes; fewer than %d are allowed", spec.Name, len(text), maxLogin).
			WithFix("ask the operator of the authorization server for smaller tokens")
	}
	return l.writeText(spec.Name, l.entry(spec.Name), string(text))
}

func (l *Logins) storeError(doing, name string, err error) error {
	failed := guideway.Errorf(guideway.CodeUnavailable, "%s the login to %s: %w", doing, name, err)
	if l.Shared != nil {
		return failed.WithFix("check the database")
	}
	return failed.WithFix("check that this user can write to the directory %s, and that its disk has space", l.Dir)
}

// lock locks the login to a server against changes by all processes.
func (l *Logins) lock(ctx context.Context, name string) (unlock func(), err error) {
	try, unlock := l.trySharedLock, func() { _, _ = l.Shared.Remove(context.WithoutCancel(ctx), sharedLock+l.entry(name)) } // it ends after lockTime
	if l.Shared == nil {
		path := strings.TrimSuffix(l.path(l.entry(name)), ".json") + ".lock"
		if err := errors.Join(atomicfile.MakeDir(filepath.Dir(path)), atomicfile.EnsureFile(path)); err != nil {
			return nil, l.storeError("lock", name, err)
		}
		file := flock.New(path)
		try, unlock = func(context.Context, string) (bool, error) { return file.TryLock() }, func() { _ = file.Close() }
	}
	for {
		ok, err := try(ctx, name)
		switch {
		case ok:
			return unlock, nil
		case err != nil && ctx.Err() == nil:
			return nil, l.storeError("lock", name, err)
		case ctxsleep.For(ctx, loginLockRetry) != nil:
			return nil, guideway.Errorf(guideway.CodeUnavailable, "another call or process still uses the login to %s: %w", name, ctx.Err()).WithFix("try again; if it fails again, end the other processes of guideway")
		}
	}
}

// trySharedLock creates the lock of a login in the shared state, unless it exists.
func (l *Logins) trySharedLock(ctx context.Context, name string) (bool, error) {
	entry := sharedLock + l.entry(name)
	return deployment.UseOnce(ctx, l.Shared, entry, time.Now(), lockTime)
}

// validToken returns the token of the login, which it renews if it has expired or is the
// refused one. Of several processes, one renews it. It returns nil without a login.
func (l *Logins) validToken(ctx context.Context, spec Spec, client *http.Client, refused *oauth2.Token) (*oauth2.Token, error) {
	isValid := func(t *oauth2.Token) bool {
		return t.Valid() && (refused == nil || t.AccessToken != refused.AccessToken)
	}
	_, s, err := l.readSecrets(ctx, spec)
	if s == nil || isValid(s.Token) {
		return s.token(), err
	}
	unlock, err := l.lock(ctx, spec.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f, s, err := l.readSecrets(ctx, spec) // another process may have renewed it
	if s == nil || isValid(s.Token) {
		return s.token(), err
	}
	if s.Token.RefreshToken == "" {
		return nil, l.expire(spec, errors.New("the authorization server issued no refresh token"))
	}
	token, err := s.requestToken(ctx, client, nil, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.Token.RefreshToken}})
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, refusal.ErrorCode) {
		return nil, l.expire(spec, err)
	}
	if err != nil {
		return nil, err
	}
	s.Token = token
	return token, l.write(ctx, spec, &f.Info, s)
}

// token returns the token of a login, or nil if s is nil.
func (s *loginSecrets) token() *oauth2.Token {
	if s == nil {
		return nil
	}
	return s.Token
}

// expire removes a login that cannot be renewed, and returns the error for it.
func (l *Logins) expire(spec Spec, why error) error {
	if err := l.Remove(spec.Name); err != nil {
		return err
	}
	return &LoginRequired{Err: guideway.Errorf(guideway.CodeUnauthorized, "the login to %s has expired or was revoked, and was removed: %w", spec.Name, why).
		WithFix("log in again: guideway upstream login %s", spec.Name)}
}

// Remove removes the login of the user to an upstream, if there is one.
func (l *Logins) Remove(name string) error {
	return l.writeText(name, l.entry(name), "")
}

// RemoveAll removes the logins of all users to an upstream. l may be nil.
func (l *Logins) RemoveAll(ctx context.Context, name string) error {
	if l == nil {
		return nil
	}
	if err := CheckName(name); err != nil {
		return err
	}
	err := l.Remove(name)
	if l.Shared == nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(l.Dir, people, name)))
	}
	return errors.Join(err, l.Shared.Prune(ctx, sharedLogin+people+name+"/", time.Now().Add(lockTime)))
}
