package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
)

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
	key, _, err := keyfile.LoadOrCreate(approvalsKeyPath(cfg))
	if err != nil {
		return nil, err
	}
	return approval.Open(approval.Options{Path: ApprovalsPath(cfg), Key: key, Now: now})
}

// ReadApprovals returns the approvals. If there is no file, it does not create a key.
func ReadApprovals(cfg *config.Config, now func() time.Time) (approval.Records, error) {
	if _, err := os.Lstat(ApprovalsPath(cfg)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := OpenApprovals(cfg, now)
	if err != nil {
		return nil, err
	}
	return store.List()
}
