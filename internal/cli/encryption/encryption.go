// Package encryption has the commands for the master key of the encryption.
package encryption

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
)

// NewEncryptionCmd returns the command guideway encryption.
func NewEncryptionCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:  "encryption",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(NewRotateCmd(a, runRotate))
	return cmd
}

// RotateOptions is the command line of guideway encryption rotate.
type RotateOptions struct {
	app            *app.App
	To             string
	PassphraseFile string
}

// NewRotateCmd returns the command guideway encryption rotate.
func NewRotateCmd(a *app.App, run func(context.Context, *RotateOptions) error) *cobra.Command {
	o := &RotateOptions{app: a}
	cmd := &cobra.Command{
		Use:  "rotate",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	modes := []string{config.EncryptionKeychain, config.EncryptionKeyFile, config.EncryptionPassphrase}
	cmd.Flags().StringVar(&o.To, "to", "", "the kind of the new key: "+strings.Join(modes, ", "))
	cmd.Flags().StringVar(&o.PassphraseFile, "new-passphrase-file", "", "the `file` with a new passphrase; without it, a prompt asks")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runRotate(ctx context.Context, o *RotateOptions) error {
	switch o.To {
	case "", config.EncryptionKeychain, config.EncryptionKeyFile, config.EncryptionPassphrase:
	default:
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "%q is not a kind of key", o.To).
			WithFix("use --to %s, %s or %s", config.EncryptionKeychain, config.EncryptionKeyFile, config.EncryptionPassphrase)}
	}
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	file := o.PassphraseFile
	if file != "" {
		file = o.app.Host.Abs(file)
	}
	from, to, err := o.app.RotateSources(cfg, o.To, file)
	if err != nil {
		return err
	}
	// Two rotations at a time could overwrite each other's new key in the key file.
	lock, err := lockRotation(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // closing the file releases the lock
	var kind string
	for _, store := range stores(cfg) {
		rotated, err := rotateStore(ctx, o.app, store, from, to)
		if guideway.ErrorCode(err) == guideway.CodeNotFound {
			continue // nothing is encrypted there
		}
		if err != nil {
			return err
		}
		kind = rotated.Kind
		resumed := ""
		if rotated.Resumed {
			resumed = " (completed an earlier rotation)"
		}
		fmt.Fprintf(o.app.Host.Out, "Wrapped again in %s: %s%s\n", slotsName(store), app.Plural(rotated.Keys, "data key", "data keys"), resumed)
		if rotated.Unreadable > 0 {
			fmt.Fprintf(o.app.Host.Err, "warning: data keys in %s that no available master key decrypts: %d. They could not be decrypted before this rotation either, and are unchanged. To list the checkpoints that cannot be read: guideway checkpoint verify\n", slotsName(store), rotated.Unreadable)
		}
	}
	if kind == "" {
		return guideway.Errorf(guideway.CodeNotFound, "nothing is encrypted yet").WithFix("start a run, or save a checkpoint, with encryption on")
	}
	fmt.Fprintf(o.app.Host.Out, "The master key comes from a new %s.\n", kind)
	if mode := strings.ReplaceAll(kind, " ", "-"); mode != cfg.Encryption.Mode && cfg.Encryption.Mode != config.EncryptionEnabled {
		fmt.Fprintf(o.app.Host.Out, "Set encryption.mode to %q before the next start.\n", mode)
	}
	return nil
}

func lockRotation(cfg *config.Config) (*flock.Flock, error) {
	path := cfg.Encryption.KeyFile + ".lock"
	err := atomicfile.MakeDir(filepath.Dir(path))
	lock := flock.New(path, flock.SetPermissions(0o600))
	if err == nil {
		var locked bool
		if locked, err = lock.TryLock(); err == nil && !locked {
			return nil, guideway.Errorf(guideway.CodeConflict, "another process replaces the master key").WithFix("wait until it has ended")
		}
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "lock %s: %w", path, err).WithFix("make the directory %s writable for this user", filepath.Dir(path))
	}
	return lock, nil
}

// stores returns the settings of the stores with data keys: that of runs and checkpoints,
// that of machine runs, and that of the files of this machine, unless they use one directory.
func stores(cfg *config.Config) []*config.Config {
	if cfg.Checkpoints.Dir != "" {
		return []*config.Config{cfg}
	}
	list := []*config.Config{cfg, server.MachineConfig(cfg)}
	if cfg.UsesPostgres() {
		local := *cfg
		local.Store = ""
		list = append(list, &local)
	}
	return list
}

// slotsName describes where the data keys of a store are.
func slotsName(cfg *config.Config) string {
	if cfg.UsesPostgres() && cfg.Checkpoints.Dir == "" {
		return cfg.RedactedStore()
	}
	return filepath.Join(app.CheckpointContentDir(cfg), "slots")
}

// rotateStore replaces the master key of one store.
func rotateStore(ctx context.Context, a *app.App, cfg *config.Config, from, to seal.Source) (*seal.Rotated, error) {
	var journal app.JournalStore
	if cfg.UsesPostgres() {
		var err error
		if journal, err = app.OpenJournal(ctx, cfg, a.Logger(cfg)); err != nil {
			return nil, app.StoreOpenError(err)
		}
		defer journal.Close()
	} else if _, err := os.Stat(slotsName(cfg)); err != nil {
		return nil, blob.NoSlot("master")
	}
	slots, err := checkpoints.Options{DataDir: cfg.DataDir, BlobDir: cfg.Checkpoints.Dir}.OpenSlots(journal)
	if err != nil {
		return nil, err
	}
	return seal.Rotate(ctx, slots, from, to)
}
