package app

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// The passphrase, the browser sessions and the named tokens, which grant human approvals,
// are in the same directory as the journal's key. If a variable or flag selects another
// directory, one without a passphrase or with a different one, it therefore also selects a
// different key and different credentials, which the running server does not accept.

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
	return passphrase.File{Path: filepath.Join(UserSecretsDir(cfg), "approval-passphrase"), Cost: h.PassphraseCost, Now: h.CurrentTime}
}

// OpenBrowserSessions opens the browser sessions, which all processes share: each of them
// accepts a link that "guideway open" made.
func OpenBrowserSessions(cfg *config.Config) (*auth.BrowserSessions, error) {
	return auth.NewBrowserSessions(auth.BrowserOptions{Dir: filepath.Join(UserSecretsDir(cfg), "access")})
}

// OpenTokens opens the named tokens.
func OpenTokens(cfg *config.Config) (*auth.Tokens, error) {
	return auth.NewTokens(auth.TokenOptions{Dir: filepath.Join(UserSecretsDir(cfg), "tokens")})
}
