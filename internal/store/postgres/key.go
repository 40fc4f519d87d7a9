package postgres

import "context"

// PinKey stores the fingerprint of the key that signs the runs of the store, if the store
// has no fingerprint yet, and returns the stored fingerprint. The first fingerprint is
// never replaced. With an empty fingerprint PinKey only reads; it returns nil if no
// fingerprint is stored.
func (s *Store) PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error) {
	look := func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, `select value from facts where name = 'key'`).Scan(&kept)
		if isNoRows(err) {
			return nil
		}
		return err
	}
	if err := s.retryRead(ctx, "read the fingerprint of the key", look); err != nil || kept != nil || len(fingerprint) == 0 {
		return kept, err
	}
	// The insert is idempotent. Its snapshot does not include a row that another
	// transaction committed while it waited, so the fingerprint is read afterwards.
	err = s.retryWrite(ctx, "store the fingerprint of the key", func(ctx context.Context, _ bool) error {
		if _, err := s.pool.Exec(ctx, `insert into facts (name, value) values ('key', $1) on conflict do nothing`, fingerprint); err != nil {
			return err
		}
		return look(ctx)
	})
	return kept, err
}
