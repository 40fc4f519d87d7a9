package app

import (
	"bytes"
	"context"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
	"github.com/guideway-dev/guideway/internal/store/keyfile"
)

// CheckReady returns nil if the store answers, this version supports its tables, and the keys
// of the store are present.
func (s *Store) CheckReady(ctx context.Context) error {
	o, err := s.Open(ctx)
	if err != nil {
		return err
	}
	kept, err := o.PinKey(ctx, nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(kept, keyfile.Fingerprint(o.key)) {
		return wrongKeyError(s.Cfg.Journal.KeyFile)
	}
	if s.Cfg.Encryption.Mode == config.EncryptionDisabled {
		return nil
	}
	journal, err := s.openJournalAlone(ctx)
	if err != nil {
		return err
	}
	slots, err := checkpoints.Options{DataDir: s.Cfg.DataDir, BlobDir: s.Cfg.Checkpoints.Dir}.OpenSlots(journal)
	if err != nil {
		return err
	}
	if used, err := seal.Initialized(ctx, slots); err != nil || !used {
		return err // the first encrypted value creates the key
	}
	_, err = openKeys(s.Cfg, journal)(ctx)
	return err
}
