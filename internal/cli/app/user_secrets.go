package app

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
)

// The passphrase, the browser sessions and the named tokens, which grant human approvals,
// are in the same directory as the journal's key. If a variable or flag selects another
// directory, one without a passphrase or with a different one, it therefore also selects a
// different key and different credentials, which the running server does not accept. With
// PostgreSQL, the instances share them in the database, with MACs by the journal's key.

// UserSecretsDir returns the directory of the passphrase, the browser sessions, the named
// tokens and the key of the approvals. If the key file is a symbolic link, it is the
// directory of the link's target.
func UserSecretsDir(cfg *config.Config) string {
	path := cfg.Journal.KeyFile
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			path = to
		} // without a key file there is no run to protect
	}
	return filepath.Dir(path)
}

// PassphraseFile returns the file of the user's passphrase.
func (h *Host) PassphraseFile(cfg *config.Config) passphrase.File {
	return passphrase.File{Path: filepath.Join(UserSecretsDir(cfg), "approval-passphrase"), Shared: cfg.Shared, Cost: h.PassphraseCost, Now: h.CurrentTime}
}

// OpenBrowserSessions opens the browser sessions, which all processes share: each of them
// accepts a link that "guideway open" made.
func OpenBrowserSessions(cfg *config.Config) (*auth.BrowserSessions, error) {
	return auth.NewBrowserSessions(auth.BrowserOptions{Dir: filepath.Join(UserSecretsDir(cfg), "access"), Shared: cfg.Shared})
}

// OpenTokens opens the named tokens.
func OpenTokens(cfg *config.Config) (*auth.Tokens, error) {
	return auth.NewTokens(auth.TokenOptions{Dir: filepath.Join(UserSecretsDir(cfg), "tokens"), Shared: cfg.Shared})
}

// ApprovalsPath returns the path of the approvals file. Its key is in UserSecretsDir.
func ApprovalsPath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "approvals.json") }

// HookVersionsDir returns the directory of the saved versions of hook graphs.
func HookVersionsDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "hook-versions") }

// approvalsKeyPath returns the path of the key of all approvals.
func approvalsKeyPath(cfg *config.Config) string {
	return filepath.Join(UserSecretsDir(cfg), "approvals.key")
}

// OpenApprovals opens the approval store.
func OpenApprovals(cfg *config.Config, now func() time.Time) (*approval.Store, error) {
	if cfg.Shared != nil {
		return approval.Open(approval.Options{Path: ApprovalsPath(cfg), Shared: cfg.Shared, Now: now})
	}
	key, _, err := keyfile.LoadOrCreate(approvalsKeyPath(cfg))
	if err != nil {
		return nil, err
	}
	return approval.Open(approval.Options{Path: ApprovalsPath(cfg), Key: key, Now: now})
}

// ApprovalsStamp returns a text that changes with the approvals.
func ApprovalsStamp(cfg *config.Config) string {
	if cfg.Shared == nil {
		return FileStamp(ApprovalsPath(cfg))
	}
	ctx, cancel := deployment.Context()
	defer cancel()
	e, err := deployment.Get(ctx, cfg.Shared, filepath.Base(ApprovalsPath(cfg)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "unknown: " + err.Error()
	}
	return digest.Hex(e.Text)
}

// FileStamp returns a text that changes with a file or directory.
func FileStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size())
}

// ReadApprovals returns the approvals. If there is no file, it does not create a key.
func ReadApprovals(cfg *config.Config, now func() time.Time) (approval.Records, error) {
	if _, err := os.Lstat(ApprovalsPath(cfg)); cfg.Shared == nil && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := OpenApprovals(cfg, now)
	if err != nil {
		return nil, err
	}
	return store.List()
}

// OpenHolds returns the store of held calls. It is in the shared state or in the data
// directory, like the approvals, and it has their key. Answers are recorded in the audit log.
func (a *App) OpenHolds(cfg *config.Config) *holds.Store {
	return holds.New(holds.Options{
		Path: filepath.Join(cfg.DataDir, "held-calls.json"), Shared: cfg.Shared, Now: a.Host.CurrentTime, Texts: sealShared(cfg),
		Answered: func(ctx context.Context, c holds.Call) {
			a.NewAudit(cfg).Record(ctx, audit.Entry{
				Kind: audit.Approval, User: c.Answer.By, Via: c.Answer.Via, Subject: "call " + c.ID + " of " + c.Tool, Detail: "approve " + strconv.FormatBool(c.Answer.Approve),
			})
		},
		Key: func() ([]byte, error) {
			key, _, err := keyfile.LoadOrCreate(approvalsKeyPath(cfg))
			return key, err
		},
	})
}

// LoginsDir returns the directory of the logins to upstreams.
func LoginsDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "logins") }

// OpenLogins returns the logins of the local user to upstreams. Their key is in the keychain,
// or in a file in UserSecretsDir if there is no keychain or the settings select key files. The
// instances of a deployment share the logins, with a key from that of the journal.
func OpenLogins(cfg *config.Config) *upstream.Logins {
	user, _ := LocalUser(cfg) // without a name, the file permissions alone separate users
	if cfg.Shared != nil {
		return &upstream.Logins{User: user, Shared: cfg.Shared, Source: sharedSecret{cfg.Shared}}
	}
	l := &upstream.Logins{Dir: LoginsDir(cfg), User: user}
	keychain := seal.Keychain{Service: keychainService, Account: "logins"}
	file := seal.File{Path: filepath.Join(UserSecretsDir(cfg), "logins.key"), Data: "logins"}
	switch cfg.Encryption.Mode {
	case config.EncryptionKeychain:
		l.Source = keychain
	case config.EncryptionKeyFile:
		l.Source = file
	default:
		l.Source = seal.FirstOf{keychain, file}
	}
	return l
}

// sharedSecret is the secret of the logins that instances share.
type sharedSecret struct{ deployment.Shared }

var _ seal.Source = sharedSecret{}

// Kind implements seal.Source. So do the methods below.
func (sharedSecret) Kind() string { return "key of the journal" }

// Fix returns the fix.
func (sharedSecret) Fix() string { return "use the journal.keyFile of the other instances" }

// Load returns the secret.
func (s sharedSecret) Load(ctx context.Context, _ []byte, _ bool) ([]byte, error) {
	return s.DeriveKey(ctx, "logins to upstreams")
}

// SigningKeys are the user's keys for attestations: a private file for each.
type SigningKeys struct{ Dir string }

// SigningKey is a key with its name.
type SigningKey struct {
	Name string
	attest.PrivateKey
}

// OpenSigningKeys returns the signing keys. They are in UserSecretsDir.
func OpenSigningKeys(cfg *config.Config) SigningKeys {
	return SigningKeys{Dir: filepath.Join(UserSecretsDir(cfg), "attestation-keys")}
}

const (
	signingKeySuffix  = ".pem"
	createKeyCommand  = "guideway attest keys create NAME"
	maxSigningKeyFile = 4 << 10
)

var signingKeyName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`) })

// file returns the file of a key. The name must be valid.
func (k SigningKeys) file(name string) (atomicfile.File, error) {
	if !signingKeyName().MatchString(name) {
		return atomicfile.File{}, guideway.Errorf(guideway.CodeInvalid, "%q is not a valid name of a signing key", name).
			WithFix("use at most 63 lower-case letters, digits, dots, hyphens and underscores, with a letter or a digit first")
	}
	return atomicfile.File{
		Path: filepath.Join(k.Dir, name+signingKeySuffix), What: "signing key", MaxBytes: maxSigningKeyFile,
		IfSeen: "remove the key, and create another one: anyone who has read it can sign in your name",
	}, nil
}

// Create creates a key. The name must be new.
func (k SigningKeys) Create(name string) (SigningKey, error) {
	file, err := k.file(name)
	if err != nil {
		return SigningKey{}, err
	}
	key := attest.NewPrivateKey()
	err = atomicfile.Create(file.Path, key.PEM())
	switch {
	case errors.Is(err, fs.ErrExist):
		return SigningKey{}, guideway.Errorf(guideway.CodeConflict, "there is already a signing key named %q", name).WithFix("use another name, or remove the key: guideway attest keys remove %s", name)
	case err != nil:
		return SigningKey{}, guideway.Errorf(guideway.CodeUnavailable, "write the signing key %q: %w", name, err).WithFix("make the directory %s writable for this user, and check that its disk has free space", k.Dir)
	}
	return SigningKey{Name: name, PrivateKey: key}, nil
}

// Get returns the key with a name.
func (k SigningKeys) Get(name string) (SigningKey, error) {
	file, err := k.file(name)
	if err != nil {
		return SigningKey{}, err
	}
	text, err := file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return SigningKey{}, missingSigningKey(name)
	}
	if err != nil {
		return SigningKey{}, err
	}
	key, ok := attest.ParsePrivateKey(text)
	if !ok {
		return SigningKey{}, guideway.Errorf(guideway.CodeInvalid, "the file %s does not contain a signing key", file.Path).
			WithFix("restore the file from a backup, or remove the key: guideway attest keys remove %s", name)
	}
	return SigningKey{Name: name, PrivateKey: key}, nil
}

// missingSigningKey returns the error for a name without a key.
func missingSigningKey(name string) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no signing key named %q", name).WithFix("guideway attest keys list")
}

// Remove removes a key.
func (k SigningKeys) Remove(name string) error {
	file, err := k.file(name)
	if err != nil {
		return err
	}
	err = os.Remove(file.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missingSigningKey(name)
	case err != nil:
		return guideway.Errorf(guideway.CodeUnavailable, "cannot remove %s: %w", file.Path, safeopen.Cause(err)).WithFix("make the directory %s writable for this user", k.Dir)
	}
	return nil
}

// Names returns the names of the keys, sorted.
func (k SigningKeys) Names() ([]string, error) {
	entries, err := os.ReadDir(k.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "cannot list the signing keys in %s: %w", k.Dir, safeopen.Cause(err)).WithFix("make the directory %s readable for this user", k.Dir)
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), signingKeySuffix); ok && signingKeyName().MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Choose returns the key with a name, or the only key if name is "".
func (k SigningKeys) Choose(name string) (SigningKey, error) {
	if name != "" {
		return k.Get(name)
	}
	names, err := k.Names()
	switch {
	case err != nil:
		return SigningKey{}, err
	case len(names) == 0:
		return SigningKey{}, guideway.Errorf(guideway.CodeNotFound, "there is no signing key").WithFix(createKeyCommand)
	case len(names) > 1:
		return SigningKey{}, guideway.Errorf(guideway.CodeInvalid, "there are several signing keys, so --key is required: %s", strings.Join(names, ", ")).WithFix("--key %s", names[0])
	}
	return k.Get(names[0])
}

// serverToken is the name of the entry with the token of the token file.
const serverToken = "token"

// LoadServerToken returns the token of the token file, and creates it at the first start. The
// instances of a deployment have the same token, which the shared state keeps encrypted,
// unless the setting tokenFile names a file, such as a mounted secret.
func LoadServerToken(cfg *config.Config) (string, error) {
	if cfg.Shared == nil || cfg.Origin("tokenFile").Kind != config.OriginDefault {
		token, _, err := auth.LoadOrCreateToken(cfg.TokenFile)
		return token, err
	}
	ctx, cancel := deployment.Context()
	defer cancel()
	shared, err := shareToken(ctx, cfg)
	_, missing := os.Stat(cfg.TokenFile)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeUnavailable && missing == nil: // the store may be restarting
	case err != nil:
		return "", err
	case errors.Is(missing, fs.ErrNotExist):
		if err := atomicfile.Create(cfg.TokenFile, shared+"\n"); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", guideway.Errorf(guideway.CodeUnavailable, "create the token file: %w", err).WithFix("make the directory of %s writable for this user", cfg.TokenFile)
		}
	}
	token, _, failed := auth.LoadOrCreateToken(cfg.TokenFile)
	if failed == nil && err == nil && token != shared {
		return "", guideway.Errorf(guideway.CodeConflict, "the token file %s has another token than the other instances on the store", cfg.TokenFile).
			WithFix("remove the file, to use the token of the other instances; or name a token file of all instances with GUIDEWAY_TOKEN_FILE")
	}
	return token, failed
}

// shareToken returns the token of the deployment. The first instance shares the one of its
// token file.
func shareToken(ctx context.Context, cfg *config.Config) (token string, err error) {
	key, err := cfg.Shared.DeriveKey(ctx, "server token")
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return "", err
	}
	err = cfg.Shared.Change(ctx, serverToken, func(text string) (string, error) {
		if text == "" {
			token, _, err = auth.LoadOrCreateToken(cfg.TokenFile)
			return base64.StdEncoding.EncodeToString(box.Seal(nil, nil, []byte(token), nil)), err //nolint:gosec // G407: the nonce is random
		}
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return "", err
		}
		opened, err := box.Open(nil, nil, sealed, nil)
		token = string(opened)
		return text, err
	})
	return token, err
}

// LocalUser returns the user of commands, of clients on stdio and of the token file: the
// setting user, or the user of the operating system. A user of the operating system does
// not identify a person in a store that several computers share.
func LocalUser(cfg *config.Config) (string, error) {
	switch {
	case cfg.User != "":
		return cfg.User, nil
	case cfg.UsesPostgres():
		return "", guideway.Errorf(guideway.CodeInvalid, "the store %s can be shared by several computers, where the user of the operating system does not identify you", cfg.RedactedStore()).
			WithFix("set user in guideway.json, GUIDEWAY_USER or --user")
	}
	return auth.SystemUser()
}
