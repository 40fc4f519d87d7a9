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
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// Logins stores the logins of one user to upstreams, each in a file with encrypted tokens.
// Several processes may share the directory.
type Logins struct {
	Dir, User string
	// Source has the secret that encrypts the tokens.
	Source seal.Source
	// Changed, if set, is called after a login or a logout of a person.
	Changed func(name string) error
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

func (l *Logins) path(name string) string { return filepath.Join(l.Dir, name+".json") }

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

// readFile reads the login to the server of a spec. It returns nil without a login, and if the
// login is for other settings.
func (l *Logins) readFile(spec Spec) (*loginFile, error) {
	if l == nil {
		return nil, nil
	}
	text, err := atomicfile.File{
		Path: l.path(spec.Name), What: "login file", MaxBytes: maxLogin,
		IfSeen: "log in again: guideway upstream logout " + spec.Name + ", then guideway upstream login " + spec.Name,
	}.Read()
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
	if err := atomicfile.Replace(l.path(spec.Name), string(text)+"\n"); err != nil {
		return l.fileError("store", spec.Name, err)
	}
	return nil
}

func (l *Logins) fileError(doing, name string, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "%s the login to %s: %w", doing, name, err).WithFix("check that this user can write to the directory %s, and that its disk has space", l.Dir)
}

// lock locks the login to a server against changes by all processes.
func (l *Logins) lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := atomicfile.MakeDir(l.Dir); err != nil {
		return nil, l.fileError("lock", name, err)
	}
	path := filepath.Join(l.Dir, name+".lock")
	if err := atomicfile.EnsureFile(path); err != nil {
		return nil, l.fileError("lock", name, err)
	}
	lock := flock.New(path)
	if ok, err := lock.TryLockContext(ctx, loginLockRetry); !ok && ctx.Err() != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "another call or process still uses the login to %s: %w", name, err).WithFix("try again; if it fails again, end the other processes of guideway")
	} else if !ok {
		return nil, l.fileError("lock", name, err)
	}
	return func() { _ = lock.Close() }, nil
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

// Remove removes the login to an upstream, if there is one. l may be nil.
func (l *Logins) Remove(name string) error {
	if l == nil {
		return nil
	}
	if err := CheckName(name); err != nil {
		return err
	}
	if err := os.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l.fileError("delete", name, err)
	}
	return nil
}
