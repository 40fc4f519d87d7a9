package sqlite

import (
	"context"
	"errors"
)

const sqlKey = `SELECT value FROM facts WHERE name = 'key'`

// PinKey keeps the fingerprint of the key that the runs of the store are chained
// by, for good: the first one that any process gives. It answers the one that is
// kept. Without a fingerprint it only looks, and nil is none.
func (s *Store) PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error) {
	err = s.read(ctx, "read the fingerprint of the key", func() error {
		err := s.readers.row(ctx, sqlKey, nil, []any{&kept})
		if errors.Is(err, errNone) {
			return nil
		}
		return err
	})
	if err != nil || kept != nil || len(fingerprint) == 0 {
		return kept, err
	}
	err = s.write(ctx, "keep the fingerprint of the key", func(ctx context.Context, t *txn) error {
		if _, err := t.exec(ctx, `INSERT INTO facts (name, value) VALUES ('key', ?) ON CONFLICT DO NOTHING`, fingerprint); err != nil {
			return err
		}
		return t.row(ctx, sqlKey, nil, []any{&kept})
	})
	return kept, err
}
