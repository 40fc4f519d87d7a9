package sqlite

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed schema.sql
var schemaSQL string

// migrations returns the statements that migrate a file to the versions 1, 2 and so on. A
// change of the schema appends a migration; a released migration is never edited.
func migrations() []string {
	return []string{schemaSQL}
}

// applyMigration migrates the file to a version in one transaction.
func (s *Store) applyMigration(ctx context.Context, version int, text string) error {
	tx, err := s.writer.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // has no effect after a commit
	if _, err := tx.ExecContext(ctx, text); err != nil {
		return fmt.Errorf("migrate the store to schema %d: %w", version, err)
	}
	if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO facts (name, value) VALUES ('program', ?)", []byte(s.o.Program)); err != nil {
		return err
	}
	marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version)
	if _, err := tx.ExecContext(ctx, marks); err != nil {
		return err
	}
	return tx.Commit()
}
