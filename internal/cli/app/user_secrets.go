package app

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// Everything that grants a human approval is in the directory of the journal's key: the
// passphrase, the browser sessions and the named tokens. A user who points a variable or a
// flag at another directory, with no passphrase or another one, also loses the credentials
// of the running server and the key of its runs.

// UserSecretsDir returns that directory. If the key file is a symbolic link, it is the
// directory of the target: a link to the key from elsewhere gives no other directory.
func UserSecretsDir(cfg *config.Config) string {
	path := cfg.Journal.KeyFile
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			path = to
		} // otherwise there is no key and no run
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
