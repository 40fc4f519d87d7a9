package rows

import "context"

// PinKey stores the fingerprint of the key that signs the runs of the store, if the store
// has no fingerprint yet, and returns the stored fingerprint. The first fingerprint is
// never replaced. With an empty fingerprint PinKey only reads; it returns nil if no
// fingerprint is stored.
func (m *Methods) PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error) {
	stored := m.query(`SELECT value FROM facts WHERE name = 'key'`)
	err = QueryOne(ctx, m, "read the fingerprint of the key", nil, stored, &kept)
	if err != nil || kept != nil || len(fingerprint) == 0 {
		return kept, err
	}
	err = m.access.Write(ctx, Write{Doing: "store the fingerprint of the key", Stored: notStored, Do: func(ctx context.Context, t Tx) error {
		err := t.Queue(ctx, m.query(`INSERT INTO facts (name, value) VALUES ('key', $1) ON CONFLICT DO NOTHING`, fingerprint))
		if err != nil {
			return err
		}
		_, err = scanRow(ctx, t, stored, &kept)
		return err
	}})
	return kept, err
}
