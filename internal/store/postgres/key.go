package postgres

import "context"

// PinKey keeps the fingerprint of the key that the runs of the store are chained
// by, for good: the first one that any process gives. It answers the one that is
// kept. Without a fingerprint it only looks, and nil is none.
func (s *Store) PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error) {
	look := func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, `select value from facts where name = 'key'`).Scan(&kept)
		if noRows(err) {
			return nil
		}
		return err
	}
	if err := s.read(ctx, "read the fingerprint of the key", look); err != nil || kept != nil || len(fingerprint) == 0 {
		return kept, err
	}
	// To do it twice is to do it once. A statement does not see what another has
	// committed while it waited for it, so that what is kept is asked for after it.
	err = s.try(ctx, "keep the fingerprint of the key", func(ctx context.Context, _ bool) error {
		if _, err := s.pool.Exec(ctx, `insert into facts (name, value) values ('key', $1) on conflict do nothing`, fingerprint); err != nil {
			return err
		}
		return look(ctx)
	})
	return kept, err
}
