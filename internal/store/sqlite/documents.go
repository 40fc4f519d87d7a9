package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// maxLogEntries is the number of entries of the validation log that a document keeps.
const maxLogEntries = 500

// The statements of session documents.
const (
	documentColumns   = `user, project, workflow, id, project_path, created, updated, revision, data`
	documentKey       = `user = ? AND project = ? AND workflow = ? AND id = ?`
	sqlDocument       = `SELECT num, ` + documentColumns + ` FROM documents WHERE ` + documentKey + ` AND deleted IS NULL`
	sqlInsertDocument = `INSERT INTO documents (user, project, workflow, id, project_path, created, updated, revision, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlUpdateDocument = `UPDATE documents SET project_path = ?, updated = ?, revision = ?, data = ? WHERE num = ?`
	sqlSummarise      = `INSERT INTO document_summaries (document, dashboard) VALUES (?, ?)
		ON CONFLICT DO UPDATE SET dashboard = excluded.dashboard`
)

func documentKeyArgs(r session.Ref) []any { return dialect().Values(rows.RefFields(&r)) }

// CreateDocument implements session.Documents.
func (s *Store) CreateDocument(ctx context.Context, d session.Document, log []session.LogEntry) error {
	return s.writeExclusive(ctx, "create the session document "+d.ID, func(ctx context.Context, t *txn) error {
		data, err := d.EncodeData()
		if err != nil {
			return err
		}
		if _, err := t.purgeDocument(ctx, d.Ref); err != nil { // a deleted document with the same key is replaced
			return err
		}
		d.Revision = 1
		result, err := t.execStatement(ctx, sqlInsertDocument, dialect().Values(rows.DocumentFields(&d, &data))...)
		if err != nil {
			return err
		}
		num, err := result.LastInsertId()
		if err != nil {
			return err
		}
		if err := t.putSummary(ctx, num, d); err != nil {
			return err
		}
		if err := t.appendLog(ctx, num, log); err != nil {
			return err
		}
		return t.insertDocumentChange(ctx, s, run.OpCreated, d.Ref, d.Revision, d.Updated)
	})
}

// UpdateDocument implements session.Documents. change is called once, within the
// transaction, so that no other update interferes.
func (s *Store) UpdateDocument(
	ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error),
) (session.Document, error) {
	var next session.Document
	var refused error
	err := s.writeExclusive(ctx, "update the session document "+ref.ID, func(ctx context.Context, t *txn) error {
		var num int64
		before, err := rows.ScanDocument(t.tx.QueryRowContext(ctx, sqlDocument, documentKeyArgs(ref)...), &num)
		if errors.Is(err, errNoRow) {
			return rows.NoDocument(ref)
		}
		if err != nil {
			return err
		}
		key, created, revision := before.Ref, before.Created, before.Revision
		var log []session.LogEntry
		if next, log, refused = change(before); refused != nil {
			return refused
		}
		next.Ref, next.Created, next.Revision = key, created, revision+1
		data, err := next.EncodeData()
		if err != nil {
			return err
		}
		if _, err = t.execStatement(ctx, sqlUpdateDocument, next.ProjectPath, fromTime(next.Updated), next.Revision, data, num); err != nil {
			return err
		}
		if err := t.putSummary(ctx, num, next); err != nil {
			return err
		}
		if err := t.appendLog(ctx, num, log); err != nil {
			return err
		}
		return t.insertDocumentChange(ctx, s, run.OpChanged, ref, next.Revision, next.Updated)
	})
	if refused != nil {
		return session.Document{}, refused
	}
	if err != nil {
		return session.Document{}, err
	}
	return next, nil
}

// DeleteDocument implements session.Documents.
func (s *Store) DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	const hide = `UPDATE documents SET deleted = ? WHERE ` + documentKey + ` AND deleted IS NULL RETURNING revision`
	return s.setDeleted(ctx, "delete the session document "+ref.ID, ref, at, hide, run.OpDeleted, fromTime(at))
}

// RestoreDocument implements session.Documents.
func (s *Store) RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	const show = `UPDATE documents SET deleted = ? WHERE ` + documentKey + ` AND deleted IS NOT NULL RETURNING revision`
	return s.setDeleted(ctx, "restore the session document "+ref.ID, ref, at, show, run.OpCreated, nil)
}

// PurgeDocument implements session.Documents.
func (s *Store) PurgeDocument(ctx context.Context, ref session.Ref) error {
	err := s.writeExclusive(ctx, "erase the session document "+ref.ID, func(ctx context.Context, t *txn) error {
		purged, err := t.purgeDocument(ctx, ref)
		if err == nil && purged == 0 {
			return rows.NoDocument(ref)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.Compact(ctx)
}

// purgeDocument deletes the row of a deleted document, with its log and its summary, and
// returns the number of deleted documents.
func (t *txn) purgeDocument(ctx context.Context, ref session.Ref) (purged int64, err error) {
	const deleted = documentKey + ` AND deleted IS NOT NULL`
	for _, text := range []string{
		`DELETE FROM document_log WHERE document IN (SELECT num FROM documents WHERE ` + deleted + `)`,
		`DELETE FROM document_summaries WHERE document IN (SELECT num FROM documents WHERE ` + deleted + `)`,
		`DELETE FROM documents WHERE ` + deleted,
	} {
		result, err := t.execStatement(ctx, text, documentKeyArgs(ref)...)
		if err != nil {
			return 0, err
		}
		if purged, err = result.RowsAffected(); err != nil {
			return 0, err
		}
	}
	return purged, nil
}

// setDeleted marks a document as deleted or restores it.
func (s *Store) setDeleted(ctx context.Context, doing string, ref session.Ref, at time.Time, text, op string, deleted any) error {
	return s.writeExclusive(ctx, doing, func(ctx context.Context, t *txn) error {
		var revision int64
		err := t.queryRow(ctx, text, append([]any{deleted}, documentKeyArgs(ref)...), []any{&revision})
		if errors.Is(err, errNoRow) {
			return rows.NoDocument(ref)
		}
		if err != nil {
			return err
		}
		return t.insertDocumentChange(ctx, s, op, ref, revision, at)
	})
}

// putSummary stores the summary of a document, which lists show.
func (t *txn) putSummary(ctx context.Context, document int64, d session.Document) error {
	summary, err := d.Summary()
	if err != nil {
		return err
	}
	_, err = t.execStatement(ctx, sqlSummarise, document, []byte(summary.Dashboard))
	return err
}

// appendLog appends to the log of a document and deletes its oldest entries.
func (t *txn) appendLog(ctx context.Context, document int64, log []session.LogEntry) error {
	if len(log) == 0 {
		return nil
	}
	for _, entry := range log {
		_, err := t.execStatement(ctx, `INSERT INTO document_log (document, at, revision, pointer, message) VALUES (?, ?, ?, ?, ?)`,
			append([]any{document}, dialect().Values(rows.LogFields(&entry))...)...)
		if err != nil {
			return err
		}
	}
	_, err := t.execStatement(ctx, `DELETE FROM document_log WHERE document = ?1 AND num <=
		(SELECT num FROM document_log WHERE document = ?1 ORDER BY num DESC LIMIT 1 OFFSET ?2)`, document, maxLogEntries)
	return err
}

func (t *txn) insertDocumentChange(ctx context.Context, s *Store, op string, ref session.Ref, revision int64, at time.Time) error {
	return t.insertChange(ctx, s, run.Change{
		At: at, Subject: run.SubjectSession, Op: op, User: ref.User, ID: ref.ID, Workflow: ref.Workflow, Project: ref.Project, Seq: revision,
	})
}
