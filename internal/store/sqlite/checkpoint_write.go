package sqlite

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

var _ checkpoint.Index = (*Store)(nil)

// The statements that add a checkpoint.
const (
	sqlInsertTag      = `INSERT INTO checkpoint_tags (tag, num) VALUES (?, ?)`
	sqlInsertKeywords = `INSERT INTO checkpoint_words (rowid, scope, text) VALUES (?, ?, ?)`
)

func sqlInsertCheckpoint() string {
	return `INSERT INTO checkpoints (` + dialect().CheckpointColumns() +
		`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
}

// AddCheckpoint implements rows.Tx.
func (t *txn) AddCheckpoint(ctx context.Context, c checkpoint.Change, r checkpoint.Record) error {
	tags := encodeList(r.Tags)
	result, err := t.execStatement(ctx, sqlInsertCheckpoint(), dialect().Values(rows.CheckpointFields(&r, &tags))...)
	if err != nil {
		return err // the error has CodeConflict if the record already exists
	}
	num, err := result.LastInsertId()
	if err != nil {
		return err
	}
	for _, tag := range r.Tags {
		if _, err := t.execStatement(ctx, sqlInsertTag, tag, num); err != nil {
			return err
		}
	}
	if len(c.Terms) == 0 {
		return nil
	}
	_, err = t.execStatement(ctx, sqlInsertKeywords, num, checkpointScope(r), strings.Join(c.Terms, " "))
	return err
}

// checkpointScope returns search tokens for the owner, the session, the project and the
// workflow of a checkpoint, which make a search within one of these cheap.
func checkpointScope(r checkpoint.Record) string {
	return scopeToken('u', r.User) + " " + scopeToken('s', r.Session) + " " + scopeToken('p', r.Project) + " " + scopeToken('w', r.Workflow)
}
