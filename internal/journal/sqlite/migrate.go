package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema. Its number is the user_version that the
// file has behind it.
type migration struct {
	number int
	text   string
}

// migrations gives all steps, in order: 0001_name.sql and so on.
func migrations() ([]migration, error) {
	entries, err := fs.ReadDir(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	var steps []migration
	for _, entry := range entries { // sorted by name
		digits, _, _ := strings.Cut(entry.Name(), "_")
		number, err := strconv.Atoi(digits)
		if err != nil || number != len(steps)+1 {
			return nil, fmt.Errorf("the migration %s does not follow number %d", entry.Name(), len(steps))
		}
		text, err := fs.ReadFile(migrationFiles, "migrations/"+entry.Name())
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{number, string(text)})
	}
	return steps, nil
}

// migrate makes one step, whole or not at all.
func (s *Store) migrate(ctx context.Context, step migration) error {
	tx, err := s.writer.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // behind a commit it does nothing
	if _, err := tx.ExecContext(ctx, step.text); err != nil {
		return fmt.Errorf("bring the store to the schema %d: %w", step.number, err)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO migrations (number, program, at) VALUES (?, ?, ?)",
		step.number, s.o.Program, time.Now().UnixMicro())
	if err != nil {
		return err
	}
	marks := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, step.number)
	if _, err := tx.ExecContext(ctx, marks); err != nil {
		return err
	}
	return tx.Commit()
}
