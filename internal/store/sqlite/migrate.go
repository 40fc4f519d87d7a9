package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

//go:embed schema.sql
var schemaSQL string

//go:embed schema_hook_state.sql
var schemaHookStateSQL string

//go:embed schema_terms.sql
var schemaTermsSQL string

//go:embed schema_instances.sql
var schemaInstancesSQL string

// termsVersion is the version that schemaTermsSQL makes.
const termsVersion = 3

// migrations returns the statements that migrate a file to the versions 1, 2 and so on. A
// change of the schema appends a migration; a released migration is never edited.
func migrations() []string {
	return []string{schemaSQL, schemaHookStateSQL, schemaTermsSQL, schemaInstancesSQL}
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
	if version == termsVersion {
		for _, table := range []string{"words", "checkpoint_words"} {
			if err := reindexTexts(ctx, tx, table); err != nil {
				return fmt.Errorf("index the texts of the table %s: %w", table, err)
			}
		}
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

// reindexTexts moves the texts of the former form of a search index to the new one, and drops
// the former one. Terms of encrypted runs stay as they are.
func reindexTexts(ctx context.Context, tx *sql.Tx, table string) error {
	found, err := tx.QueryContext(ctx, "SELECT rowid, scope, text FROM old_"+table) //nolint:gosec // G202: the name of the table is a constant
	err = eachRow(found, err, func(row rows.Scanner) error {
		var w wordsEntry
		err := row.Scan(&w.row, &w.scope, &w.text)
		if err == nil {
			terms := strings.Join(words.Of(w.text), " ")
			_, err = tx.ExecContext(ctx, "INSERT INTO "+table+" (rowid, scope, text) VALUES (?, ?, ?)", w.row, w.scope, terms) //nolint:gosec // G202: the name of the table is a constant
		}
		return err
	})
	if err == nil {
		_, err = tx.ExecContext(ctx, "DROP TABLE old_"+table)
	}
	return err
}
