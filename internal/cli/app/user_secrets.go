package app

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/cli/passphrase"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// All that opens a person's gate lies in one directory, the one of the journal's
// key: the passphrase, the logins of browsers and the named tokens. Whoever names
// another place by a variable or a flag, where no passphrase is or one of his own,
// leaves with it what a server that is alive takes, and the key that the events of
// its runs are chained by.

// UserSecretsDir is that directory. A key file that is a link counts where it leads: a
// link to it, made elsewhere, is no other place.
func UserSecretsDir(cfg *config.Config) string {
	path := cfg.Journal.KeyFile
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if to, err := filepath.EvalSymlinks(path); err == nil {
			path = to
		} // else there is no key, and so no run
	}
	return filepath.Dir(path)
}

// PassphraseFile is where the person's passphrase is.
func (h *Host) PassphraseFile(cfg *config.Config) passphrase.File {
	return passphrase.File{Path: filepath.Join(UserSecretsDir(cfg), "approval-passphrase"), Cost: h.PassphraseCost, Now: h.CurrentTime}
}

// OpenBrowserSessions is the check of a person's browser. Every process shares it, so that
// "guideway open" makes links that any of them takes.
func OpenBrowserSessions(cfg *config.Config) (*auth.BrowserSessions, error) {
	return auth.NewBrowserSessions(auth.BrowserOptions{Dir: filepath.Join(UserSecretsDir(cfg), "access")})
}

// OpenTokens are the named tokens.
func OpenTokens(cfg *config.Config) (*auth.Tokens, error) {
	return auth.NewTokens(auth.TokenOptions{Dir: filepath.Join(UserSecretsDir(cfg), "tokens")})
}
