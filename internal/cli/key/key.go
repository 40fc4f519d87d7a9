// Package key has the command for the keys of a store that several machines share.
package key

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
)

// NewKeyCmd returns the command guideway key.
func NewKeyCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:  "key",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newInitCmd(a, runInit))
	return cmd
}

func newInitCmd(a *app.App, run func(context.Context, *app.App) error) *cobra.Command {
	return &cobra.Command{
		Use:  "init",
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), a) },
	}
}

func runInit(ctx context.Context, a *app.App) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	key, created, err := keyfile.LoadOrCreate(cfg.Journal.KeyFile)
	if err != nil {
		return err
	}
	state := "exists"
	if created {
		state = "created"
	}
	fmt.Fprintf(a.Host.Out, "%s: %s, fingerprint %s\n", cfg.Journal.KeyFile, state, hex.EncodeToString(keyfile.Fingerprint(key))[:16])
	if cfg.Encryption.Mode != config.EncryptionKeyFile {
		return nil
	}
	if _, err := (seal.File{Path: cfg.Encryption.KeyFile}).Load(ctx, nil, true); err != nil {
		return err
	}
	fmt.Fprintf(a.Host.Out, "%s: ready\n", cfg.Encryption.KeyFile)
	return nil
}
