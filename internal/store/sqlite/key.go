package sqlite

import (
	"context"
	"errors"
)

const sqlKey = `SELECT value FROM facts WHERE name = 'key'`

// PinKey stores the fingerprint of the key that signs the runs of the store, if the store
// has no fingerprint yet, and returns the stored fingerprint. The first fingerprint is
// never replaced. With an empty fingerprint PinKey only reads; it returns nil if no
// fingerprint is stored.
func (s *Store) PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error) {
	err = s.withReadAccess(ctx, "read the fingerprint of the key", func() error {
		err := s.readers.queryRow(ctx, sqlKey, nil, []any{&kept})
		if errors.Is(err, errNoRow) {
			return nil
		}
		return err
	})
	if err != nil || kept != nil || len(fingerprint) == 0 {
		return kept, err
	}
	err = s.writeExclusive(ctx, "store the fingerprint of the key", func(ctx context.Context, t *txn) error {
		if _, err := t.execStatement(ctx, `INSERT INTO facts (name, value) VALUES ('key', ?) ON CONFLICT DO NOTHING`, fingerprint); err != nil {
			return err
		}
		return t.queryRow(ctx, sqlKey, nil, []any{&kept})
	})
	return kept, err
}
