package app

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
)

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
