package rows

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// maxLogEntries is the number of entries of the validation log that a document keeps at
// least. Each pruneEvery revisions, the older ones are deleted.
const (
	maxLogEntries = 500
	pruneEvery    = 16
)

// refArgs returns the parameters $1 to $4 of DocumentKey, and further parameters.
func refArgs(r session.Ref, more ...any) []any {
	return append([]any{r.User, r.Project, r.Workflow, r.ID}, more...)
}

// storedDocument is a document with the encoded values of its row.
type storedDocument struct {
	session.Document
	data, dashboard []byte
}

func encodeDocument(d session.Document) (s storedDocument, err error) {
	s.Document = d
	if s.data, err = d.EncodeData(); err != nil {
		return s, err
	}
	summary, err := d.Summary()
	s.dashboard = summary.Dashboard
	return s, err
}

// args returns the parameters of the statements that write a document.
func (s storedDocument) args() []any {
	return refArgs(s.Ref, s.ProjectPath, s.Created, s.Updated, s.Revision, s.data, s.dashboard)
}

// CreateDocument implements session.Documents.
func (m *Methods) CreateDocument(ctx context.Context, d session.Document, log []session.LogEntry) error {
	d.Revision = 1
	s, err := encodeDocument(d)
	if err != nil {
		return err
	}
	return m.access.Write(ctx, Write{
		Doing:  "create the session document " + d.ID,
		Stored: func(ctx context.Context, r Reader) (bool, error) { return m.isLastWrite(ctx, r, s) },
		Do: func(ctx context.Context, t Tx) error {
			if _, err := m.purgeDocument(ctx, t, d.Ref); err != nil { // a deleted document with the same key is replaced
				return err
			}
			return m.logWrite(ctx, t, m.queries(m.dialect.InsertDocument, s.args()...), s.Document, log, run.OpCreated)
		},
	})
}

// isLastWrite reports whether a document is stored as it was to be written.
func (m *Methods) isLastWrite(ctx context.Context, r Reader, s storedDocument) (bool, error) {
	return m.exists(ctx, r, `SELECT id FROM documents WHERE `+m.dialect.DocumentKey()+` AND deleted IS NULL AND revision = $5 AND updated = $6 AND data = $7`,
		refArgs(s.Ref, s.Revision, s.Updated, s.data)...)
}

// UpdateDocument implements session.Documents. It holds no lock and no connection during
// change. After a concurrent update it calls change again with the new document.
func (m *Methods) UpdateDocument(
	ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error),
) (session.Document, error) {
	const most = 1000
	for range most {
		before, err := m.document(ctx, ref)
		if err != nil {
			return session.Document{}, err
		}
		key, created, revision, updated := before.Ref, before.Created, before.Revision, before.Updated
		next, log, err := change(before)
		if err != nil {
			return session.Document{}, err
		}
		next.Ref, next.Created, next.Revision = key, created, revision+1
		next.Updated = next.Updated.UTC().Truncate(time.Microsecond)
		if done, err := m.replaceDocument(ctx, next, log, updated); done || err != nil {
			return next, err
		}
	}
	return session.Document{}, guideway.Errorf(guideway.CodeUnavailable,
		"the session document %s/%s was changed by other clients during each of %d attempts", ref.Workflow, ref.ID, most).WithFix("repeat the call")
}

// document reads a document that is not deleted.
func (m *Methods) document(ctx context.Context, ref session.Ref) (d session.Document, err error) {
	q := m.query(`SELECT `+m.dialect.DocumentColumns()+` FROM documents WHERE `+m.dialect.DocumentKey()+` AND deleted IS NULL`, refArgs(ref)...)
	list, err := List(ctx, m, "read the session document "+ref.ID, q, func(row Scanner) (session.Document, error) { return ScanDocument(row) })
	if err == nil && len(list) == 0 {
		err = noDocument(ref)
	}
	if err != nil {
		return d, err
	}
	return list[0], nil
}

// replaceDocument stores the next revision of a document that was last updated at a time.
// done is false if another client has changed the document since.
func (m *Methods) replaceDocument(ctx context.Context, next session.Document, log []session.LogEntry, updated time.Time) (done bool, err error) {
	s, err := encodeDocument(next)
	if err != nil {
		return false, err
	}
	update, rest := m.dialect.UpdateDocument[0], m.dialect.UpdateDocument[1:]
	err = m.access.Write(ctx, Write{
		Doing: "update the session document " + next.ID,
		Stored: func(ctx context.Context, r Reader) (bool, error) {
			done, err = m.isReplaced(ctx, r, s, updated)
			return done, err
		},
		Do: func(ctx context.Context, t Tx) error {
			n, err := t.Exec(ctx, m.query(update+` WHERE `+m.dialect.DocumentKey()+` AND deleted IS NULL AND revision = $8 - 1 AND updated = $11`, append(s.args(), updated)...))
			if done = n > 0; err != nil || !done {
				return err
			}
			return m.logWrite(ctx, t, m.queries(rest, s.args()...), next, log, run.OpChanged)
		},
	})
	return done, err
}

// isReplaced reports whether a document was replaced by its next revision. It returns an
// error if another client has changed the document since: then the outcome is unknown.
func (m *Methods) isReplaced(ctx context.Context, r Reader, next storedDocument, updated time.Time) (bool, error) {
	if done, err := m.isLastWrite(ctx, r, next); err != nil || done {
		return done, err
	}
	unchanged, err := m.exists(ctx, r, `SELECT id FROM documents WHERE `+m.dialect.DocumentKey()+` AND deleted IS NULL AND revision = $5 AND updated = $6`,
		refArgs(next.Ref, next.Revision-1, updated)...)
	if err == nil && !unchanged {
		err = guideway.Errorf(guideway.CodeUnavailable, "the answer of the server was lost, and another client has changed the session document %s/%s since",
			next.Workflow, next.ID).WithFix("read the document before you repeat the call")
	}
	return false, err
}

// logWrite executes the statements of a write, appends to the log of the document, deletes
// its oldest entries, and adds the write to the feed.
func (m *Methods) logWrite(ctx context.Context, t Tx, list []Query, d session.Document, log []session.LogEntry, op string) error {
	number := `(SELECT {num} FROM documents WHERE ` + m.dialect.DocumentKey() + `)`
	for _, e := range log {
		list = append(list, m.query(`INSERT INTO document_log (document, at, revision, pointer, message) VALUES (`+number+`, $5, $6, $7, $8)`,
			refArgs(d.Ref, e.At, e.Revision, e.Pointer, e.Message)...))
	}
	if d.Revision%pruneEvery == 0 {
		list = append(list, m.query(`DELETE FROM document_log WHERE document = `+number+` AND {num} <=
			(SELECT {num} FROM document_log WHERE document = `+number+` ORDER BY {num} DESC LIMIT 1 OFFSET $5)`, refArgs(d.Ref, maxLogEntries)...))
	}
	if err := t.Queue(ctx, list...); err != nil {
		return err
	}
	return addDocumentChange(ctx, t, d.Ref, op, d.Revision, d.Updated)
}

func addDocumentChange(ctx context.Context, t Tx, ref session.Ref, op string, revision int64, at time.Time) error {
	return t.AddChange(ctx, run.Change{
		At: at, Subject: run.SubjectSession, Op: op, User: ref.User, ID: ref.ID, Workflow: ref.Workflow, Project: ref.Project, Seq: revision,
	})
}

// DeleteDocument implements session.Documents.
func (m *Methods) DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return m.setDeleted(ctx, "delete the session document "+ref.ID, ref, `SET deleted = $5`, `deleted IS NULL`, run.OpDeleted, at, at)
}

// RestoreDocument implements session.Documents.
func (m *Methods) RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return m.setDeleted(ctx, "restore the session document "+ref.ID, ref, `SET deleted = NULL`, `deleted IS NOT NULL`, run.OpCreated, at)
}

// setDeleted marks a document as deleted or restores it, if the condition is true. args are
// further parameters of the clause set.
func (m *Methods) setDeleted(ctx context.Context, doing string, ref session.Ref, set, condition, op string, at time.Time, args ...any) error {
	return m.access.Write(ctx, Write{
		Doing: doing,
		Stored: func(ctx context.Context, r Reader) (bool, error) {
			return m.exists(ctx, r, `SELECT id FROM documents WHERE `+m.dialect.DocumentKey()+` AND NOT (`+condition+`)`, refArgs(ref)...)
		},
		Do: func(ctx context.Context, t Tx) error {
			var revision int64
			found, err := scanRow(ctx, t, m.query(`UPDATE documents `+set+` WHERE `+m.dialect.DocumentKey()+` AND `+condition+` RETURNING revision`,
				refArgs(ref, args...)...), &revision)
			if err != nil {
				return err
			}
			if !found {
				return noDocument(ref)
			}
			return addDocumentChange(ctx, t, ref, op, revision, at)
		},
	})
}

// PurgeDocument implements session.Documents. After a lost answer, the repetition finds no
// document if the first attempt erased it.
func (m *Methods) PurgeDocument(ctx context.Context, ref session.Ref) error {
	return m.access.Write(ctx, Write{
		Doing: "erase the session document " + ref.ID,
		Stored: func(ctx context.Context, r Reader) (bool, error) {
			there, err := m.exists(ctx, r, `SELECT id FROM documents WHERE `+m.dialect.DocumentKey(), refArgs(ref)...)
			return !there, err
		},
		Do: func(ctx context.Context, t Tx) error {
			purged, err := m.purgeDocument(ctx, t, ref)
			if err == nil && purged == 0 {
				return noDocument(ref)
			}
			return err
		},
	})
}

// purgeDocument deletes the row of a deleted document, with its log and its summary, and
// returns the number of deleted documents.
func (m *Methods) purgeDocument(ctx context.Context, t Tx, ref session.Ref) (purged int64, err error) {
	number := `(SELECT {num} FROM documents WHERE ` + m.dialect.DocumentKey() + ` AND deleted IS NOT NULL` + m.dialect.ForUpdate + `)`
	for _, table := range m.dialect.DocumentTables {
		if err := t.Queue(ctx, m.query(`DELETE FROM `+table+` WHERE document IN `+number, refArgs(ref)...)); err != nil {
			return 0, err
		}
	}
	return t.Exec(ctx, m.query(`DELETE FROM documents WHERE {num} IN `+number, refArgs(ref)...))
}
