package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/internal/approval"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/journal/keyfile"
)

// approvalsPath is the file of approvals; its key lies with all that opens a
// person's gate.
func approvalsPath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "approvals.json") }

// openApprovals opens the store of approvals.
func openApprovals(cfg *config.Config, now func() time.Time) (*approval.Store, error) {
	key, _, err := keyfile.LoadOrCreate(filepath.Join(personDir(cfg), "approvals.key"))
	if err != nil {
		return nil, err
	}
	return approval.Open(approval.Options{Path: approvalsPath(cfg), Key: key, Now: now})
}

// readApprovals reads what is approved. Where there is no file, no key is made.
func readApprovals(cfg *config.Config, now func() time.Time) (approval.Records, error) {
	if _, err := os.Lstat(approvalsPath(cfg)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := openApprovals(cfg, now)
	if err != nil {
		return nil, err
	}
	return store.List()
}
