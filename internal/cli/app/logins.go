package app

import (
	"path/filepath"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// LoginsDir returns the directory of the logins to upstreams.
func LoginsDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "logins") }

// OpenLogins returns the logins of this user to upstreams. Their key is in the keychain, or
// in a file in UserSecretsDir if there is no keychain or the settings select key files.
func OpenLogins(cfg *config.Config) *upstream.Logins {
	user, _ := LocalUser(cfg) // without a name, the file permissions alone separate users
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
