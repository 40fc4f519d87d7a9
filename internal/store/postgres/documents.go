package postgres

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// writeID identifies one write of a document, so that a write whose response was lost can
// be distinguished from other writes.
type writeID [16]byte

func newWriteID() writeID {
	var id writeID
	_, _ = rand.Read(id[:]) // never returns an error
	return id
}

// sqlDocumentLog is the end of the statements that write a document. It inserts log entries
// ($7 to $10) and a change in the feed ($11, $12).
const sqlDocumentLog = `, logged as (
	insert into document_log (document, at, revision, pointer, message)
	select w.n, l.at, l.revision, l.pointer, l.message
	from written w, unnest($7::timestamptz[], $8::bigint[], $9::bytea[], $10::bytea[]) with ordinality l (at, revision, pointer, message, n)
	order by l.n
), notified as (
	insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
	select $11::timestamptz, 'session', $12::text, user_id, id, workflow, project, revision from written
)
select exists (select from written)`

const sqlCreateDocument = `
with written as (
	insert into documents (user_id, project, workflow, id, write, data, project_path, created, updated, revision, dashboard)
	values ($1, $2, $3, $4, $5, $6, $13, $14, $15, $16, $17)
	on conflict (user_id, project, workflow, id) do update set write = excluded.write, data = excluded.data,
		project_path = excluded.project_path, created = excluded.created, updated = excluded.updated, revision = excluded.revision,
		dashboard = excluded.dashboard, deleted = null
	where documents.deleted is not null
	returning n, user_id, project, workflow, id, revision
), pruned_log as (
	delete from document_log l using written w where l.document = w.n
)` + sqlDocumentLog

const sqlUpdateDocument = `
with written as (
	update documents set write = $5, data = $6, project_path = $13, updated = $14, revision = revision + 1,
		dashboard = $17
	where user_id = $1 and project = $2 and workflow = $3 and id = $4 and deleted is null and revision = $15 and write = $16
	returning n, user_id, project, workflow, id, revision
)` + sqlDocumentLog

// logArgs returns the parameters of sqlDocumentLog.
func logArgs(log []session.LogEntry, at time.Time, op string) []any {
	times, revisions := make([]time.Time, len(log)), make([]int64, len(log))
	pointers, messages := make([][]byte, len(log)), make([][]byte, len(log))
	for i, e := range log {
		times[i], revisions[i], pointers[i], messages[i] = e.At, e.Revision, []byte(e.Pointer), []byte(e.Message)
	}
	return []any{times, revisions, pointers, messages, at, op}
}

// refArgs returns the parameters $1 to $4.
func refArgs(r session.Ref) []any {
	return dialect().Values(rows.RefFields(&r))
}

// CreateDocument implements session.Documents.
func (s *Store) CreateDocument(ctx context.Context, d session.Document, log []session.LogEntry) error {
	data, err := d.EncodeData()
	if err != nil {
		return err
	}
	summary, err := d.Summary()
	if err != nil {
		return err
	}
	write := newWriteID()
	args := append(refArgs(d.Ref), write, data)
	args = append(args, logArgs(log, d.Updated, run.OpCreated)...)
	args = append(args, byteString(d.ProjectPath), d.Created, d.Updated, d.Revision, []byte(summary.Dashboard))
	err = s.retryWrite(ctx, "create a session document", func(ctx context.Context, maybeCommitted bool) error {
		var done bool
		if err := s.pool.QueryRow(ctx, sqlCreateDocument, args...).Scan(&done); err != nil || done {
			return err
		}
		if maybeCommitted {
			if own, err := s.isLastWrite(ctx, d.Ref, write); err != nil || own {
				return err
			}
		}
		return guideway.Errorf(guideway.CodeConflict, "the session document %s/%s already exists", d.Workflow, d.ID)
	})
	if err == nil {
		s.afterCommit()
	}
	return err
}

// isLastWrite reports whether the last write of a document has the given id.
func (s *Store) isLastWrite(ctx context.Context, ref session.Ref, write writeID) (bool, error) {
	var last writeID
	err := s.pool.QueryRow(ctx, `select write from documents where user_id = $1 and project = $2 and workflow = $3 and id = $4`,
		refArgs(ref)...).Scan((*[16]byte)(&last))
	if isNoRows(err) {
		return false, nil
	}
	return last == write, err
}

// UpdateDocument implements session.Documents. It holds no lock during change. After a
// concurrent update it calls change again with the new document.
func (s *Store) UpdateDocument(
	ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error),
) (session.Document, error) {
	u := &documentUpdate{store: s, ref: ref, change: change}
	err := s.retryWrite(ctx, "update a session document", u.applyUpdate)
	if u.refused != nil {
		return session.Document{}, u.refused
	}
	if err != nil {
		return session.Document{}, err
	}
	s.afterCommit()
	return u.next, nil
}

// documentUpdate is one call of UpdateDocument.
type documentUpdate struct {
	store  *Store
	ref    session.Ref
	change func(session.Document) (session.Document, []session.LogEntry, error)
	// refused is the error that change returned.
	refused error
	// next is the document to store.
	next session.Document
	// lost has the documents whose update was sent without a response, by the ids of their
	// writes. before is the id of the write that these updates would replace.
	lost   map[writeID]session.Document
	before writeID
}

// applyUpdate reads, changes and writes until there is no conflict. After a lost response,
// the write id of the document shows the outcome: it is the id of the lost write, or the id
// of the write before it. If it is a different id, the outcome is unknown.
func (u *documentUpdate) applyUpdate(ctx context.Context, _ bool) error {
	const most = 1000
	for range most {
		d, last, err := u.store.readDocument(ctx, u.ref)
		if err != nil {
			return err
		}
		if stored, own := u.lost[last]; own {
			u.next = stored
			return nil
		}
		if len(u.lost) > 0 && last != u.before {
			return guideway.Errorf(guideway.CodeUnavailable,
				"the answer of the PostgreSQL server was lost, and another client has changed the session document %s/%s since", u.ref.Workflow, u.ref.ID).
				WithFix("read the document before you repeat the call")
		}
		next, log, err := u.change(d)
		if err != nil {
			u.refused = err
			return guideway.Errorf(guideway.CodeInvalid, "the change was refused: %w", err)
		}
		next.Ref, next.Created, next.Revision = d.Ref, d.Created, d.Revision+1
		next.Updated = next.Updated.UTC().Truncate(time.Microsecond)
		u.before = last
		if done, err := u.sendUpdate(ctx, next, log); err != nil || done {
			u.next = next
			return err
		}
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the session document %s/%s was changed by other clients during each of %d attempts", u.ref.Workflow, u.ref.ID, most).
		WithFix("repeat the call")
}

// sendUpdate stores the next document unless another update came first.
func (u *documentUpdate) sendUpdate(ctx context.Context, next session.Document, log []session.LogEntry) (done bool, err error) {
	data, err := next.EncodeData()
	if err != nil {
		return false, err
	}
	summary, err := next.Summary()
	if err != nil {
		return false, err
	}
	write := newWriteID()
	args := append(refArgs(u.ref), write, data)
	args = append(args, logArgs(log, next.Updated, run.OpChanged)...)
	args = append(args, byteString(next.ProjectPath), next.Updated, next.Revision-1, u.before, []byte(summary.Dashboard))
	err = u.store.pool.QueryRow(ctx, sqlUpdateDocument, args...).Scan(&done)
	if err != nil && outcomeOf(err) == outcomeUnknown {
		if u.lost == nil {
			u.lost = map[writeID]session.Document{}
		}
		u.lost[write] = next
	}
	return done, err
}

// readDocument returns a document that is not deleted and the id of its last write.
func (s *Store) readDocument(ctx context.Context, ref session.Ref) (session.Document, writeID, error) {
	var write writeID
	row := s.pool.QueryRow(ctx, `select write, `+dialect().DocumentColumns()+` from documents where `+dialect().DocumentKey()+` and deleted is null`, refArgs(ref)...)
	d, err := rows.ScanDocument(row, (*[16]byte)(&write))
	if isNoRows(err) {
		return d, write, rows.NoDocument(ref)
	}
	return d, write, err
}

// DeleteDocument implements session.Documents.
func (s *Store) DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return s.setDeleted(ctx, "delete a session document", ref, `deleted = $6 where deleted is null`, at, run.OpDeleted)
}

// RestoreDocument implements session.Documents.
func (s *Store) RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return s.setDeleted(ctx, "restore a session document", ref, `deleted = null where deleted is not null`, at, run.OpCreated)
}

// PurgeDocument implements session.Documents. After a lost answer, the repetition finds no
// document if the first attempt erased it.
func (s *Store) PurgeDocument(ctx context.Context, ref session.Ref) error {
	const sql = `
		with gone as (
			select n from documents where user_id = $1 and project = $2 and workflow = $3 and id = $4 and deleted is not null for update
		), pruned_log as (
			delete from document_log l using gone g where l.document = g.n
		)
		delete from documents d using gone g where d.n = g.n`
	return s.retryWrite(ctx, "erase a session document", func(ctx context.Context, maybeCommitted bool) error {
		tag, err := s.pool.Exec(ctx, sql, refArgs(ref)...)
		if err == nil && tag.RowsAffected() == 0 && !maybeCommitted {
			return rows.NoDocument(ref)
		}
		return err
	})
}

// setDeleted marks a document as deleted or restores it.
func (s *Store) setDeleted(ctx context.Context, what string, ref session.Ref, set string, at time.Time, op string) error {
	write := newWriteID()
	sql := `
		with written as (
			update documents set write = $5, ` + set + ` and user_id = $1 and project = $2 and workflow = $3 and id = $4
			returning user_id, project, workflow, id, revision
		), notified as (
			insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
			select $6::timestamptz, 'session', $7::text, user_id, id, workflow, project, revision from written
		)
		select exists (select from written)`
	args := append(refArgs(ref), write, at, op)
	err := s.retryWrite(ctx, what, func(ctx context.Context, maybeCommitted bool) error {
		if maybeCommitted {
			if own, err := s.isLastWrite(ctx, ref, write); err != nil || own {
				return err
			}
		}
		var done bool
		if err := s.pool.QueryRow(ctx, sql, args...).Scan(&done); err != nil || done {
			return err
		}
		return rows.NoDocument(ref)
	})
	if err == nil {
		s.afterCommit()
	}
	return err
}
