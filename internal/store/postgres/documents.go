package postgres

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// writeID names one write of a document, so that one that got no answer can be
// told from another one's.
type writeID [16]byte

func newWriteID() writeID {
	var id writeID
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// documentLog is the end of the statements that write a document: they bring
// log entries ($7 to $10), and a change in the feed ($11, $12).
const documentLog = `, logged as (
	insert into document_log (document, at, revision, pointer, message)
	select w.n, l.at, l.revision, l.pointer, l.message
	from written w, unnest($7::timestamptz[], $8::bigint[], $9::bytea[], $10::bytea[]) with ordinality l (at, revision, pointer, message, n)
	order by l.n
), told as (
	insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
	select $11::timestamptz, 'session', $12::text, user_id, id, workflow, project, revision from written
)
select exists (select from written)`

const createDocument = `
with written as (
	insert into documents (user_id, project, workflow, id, write, data, project_path, created, updated, revision, dashboard)
	values ($1, $2, $3, $4, $5, $6, $13, $14, $15, $16, $17)
	on conflict (user_id, project, workflow, id) do update set write = excluded.write, data = excluded.data,
		project_path = excluded.project_path, created = excluded.created, updated = excluded.updated, revision = excluded.revision,
		dashboard = excluded.dashboard, deleted = null
	where documents.deleted is not null
	returning n, user_id, project, workflow, id, revision
), forgotten as (
	delete from document_log l using written w where l.document = w.n
)` + documentLog

const updateDocument = `
with written as (
	update documents set write = $5, data = $6, project_path = $13, updated = $14, revision = revision + 1,
		dashboard = $17
	where user_id = $1 and project = $2 and workflow = $3 and id = $4 and deleted is null and revision = $15 and write = $16
	returning n, user_id, project, workflow, id, revision
)` + documentLog

// logValues are the parameters of documentLog.
func logValues(log []session.LogEntry, at time.Time, op string) []any {
	times, revisions := make([]time.Time, len(log)), make([]int64, len(log))
	pointers, messages := make([][]byte, len(log)), make([][]byte, len(log))
	for i, e := range log {
		times[i], revisions[i], pointers[i], messages[i] = e.At, e.Revision, []byte(e.Pointer), []byte(e.Message)
	}
	return []any{times, revisions, pointers, messages, at, op}
}

// refValues are the parameters $1 to $4.
func refValues(r session.Ref) []any {
	return []any{octets(r.User), octets(r.Project), octets(r.Workflow), octets(r.ID)}
}

// CreateDocument implements session.Documents.
func (s *Store) CreateDocument(ctx context.Context, d session.Document, log []session.LogEntry) error {
	data, err := session.EncodeData(d.Data)
	if err != nil {
		return err
	}
	summary, err := d.Summary()
	if err != nil {
		return err
	}
	write := newWriteID()
	args := append(refValues(d.Ref), write, data)
	args = append(args, logValues(log, d.Updated, run.OpCreated)...)
	args = append(args, octets(d.ProjectPath), d.Created, d.Updated, d.Revision, []byte(summary.Dashboard))
	err = s.try(ctx, "create a document", func(ctx context.Context, doubt bool) error {
		var done bool
		if err := s.pool.QueryRow(ctx, createDocument, args...).Scan(&done); err != nil || done {
			return err
		}
		if doubt {
			if own, err := s.wrote(ctx, d.Ref, write); err != nil || own {
				return err
			}
		}
		return guideway.Errorf(guideway.CodeConflict, "there is a document %s/%s already", d.Workflow, d.ID)
	})
	if err == nil {
		s.changed()
	}
	return err
}

// wrote says whether the last write of a document is a certain one.
func (s *Store) wrote(ctx context.Context, ref session.Ref, write writeID) (bool, error) {
	var last writeID
	err := s.pool.QueryRow(ctx, `select write from documents where user_id = $1 and project = $2 and workflow = $3 and id = $4`,
		refValues(ref)...).Scan((*[16]byte)(&last))
	if noRows(err) {
		return false, nil
	}
	return last == write, err
}

// UpdateDocument implements session.Documents. Nothing is locked while change
// works: where another update was faster, change works on that one's document.
func (s *Store) UpdateDocument(
	ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error),
) (session.Document, error) {
	u := &update{store: s, ref: ref, change: change}
	err := s.try(ctx, "update a document", u.attempt)
	if u.refused != nil {
		return session.Document{}, u.refused
	}
	if err != nil {
		return session.Document{}, err
	}
	s.changed()
	return u.next, nil
}

// update is one call of UpdateDocument.
type update struct {
	store  *Store
	ref    session.Ref
	change func(session.Document) (session.Document, []session.LogEntry, error)
	// refused is the error of change.
	refused error
	// next is the document that was stored.
	next session.Document
	// lost are the documents that were sent and got no answer, by the names of
	// their writes, before is the name of the write that they would replace.
	lost   map[writeID]session.Document
	before writeID
}

// attempt reads, changes and writes until nobody was faster. Where an answer got
// lost, the document says what came of it: the write's name is on it, or that of
// the one before, or another one's, and then nobody knows.
func (u *update) attempt(ctx context.Context, _ bool) error {
	const most = 1000
	for range most {
		d, last, err := u.store.document(ctx, u.ref)
		if err != nil {
			return err
		}
		if stored, own := u.lost[last]; own {
			u.next = stored
			return nil
		}
		if len(u.lost) > 0 && last != u.before {
			return guideway.Errorf(guideway.CodeUnavailable,
				"the answer of the PostgreSQL server is lost, and the document %s/%s has gone on meanwhile", u.ref.Workflow, u.ref.ID)
		}
		next, log, err := u.change(d)
		if err != nil {
			u.refused = err
			return guideway.Errorf(guideway.CodeInvalid, "the change was refused: %w", err)
		}
		next.Ref, next.Created, next.Revision = d.Ref, d.Created, d.Revision+1
		next.Updated = next.Updated.UTC().Truncate(time.Microsecond)
		u.before = last
		if done, err := u.send(ctx, next, log); err != nil || done {
			u.next = next
			return err
		}
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the document %s/%s is being changed by too many at once", u.ref.Workflow, u.ref.ID).
		WithFix("repeat the call")
}

// send stores the next document, if nobody was faster.
func (u *update) send(ctx context.Context, next session.Document, log []session.LogEntry) (done bool, err error) {
	data, err := session.EncodeData(next.Data)
	if err != nil {
		return false, err
	}
	summary, err := next.Summary()
	if err != nil {
		return false, err
	}
	write := newWriteID()
	args := append(refValues(u.ref), write, data)
	args = append(args, logValues(log, next.Updated, run.OpChanged)...)
	args = append(args, octets(next.ProjectPath), next.Updated, next.Revision-1, u.before, []byte(summary.Dashboard))
	err = u.store.pool.QueryRow(ctx, updateDocument, args...).Scan(&done)
	if err != nil && fateOf(err) == unknown {
		if u.lost == nil {
			u.lost = map[writeID]session.Document{}
		}
		u.lost[write] = next
	}
	return done, err
}

// document reads a document that is not deleted, and the name of its last write.
func (s *Store) document(ctx context.Context, ref session.Ref) (session.Document, writeID, error) {
	var write writeID
	row := s.pool.QueryRow(ctx, `select `+documentColumns+`, write from documents
		where user_id = $1 and project = $2 and workflow = $3 and id = $4 and deleted is null`, refValues(ref)...)
	d, err := scanDocument(row, (*[16]byte)(&write))
	if noRows(err) {
		return d, write, noDocument(ref)
	}
	return d, write, err
}

func noDocument(ref session.Ref) error {
	return guideway.Errorf(guideway.CodeNotFound, "there is no document %s/%s", ref.Workflow, ref.ID)
}

// DeleteDocument implements session.Documents.
func (s *Store) DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return s.hide(ctx, "delete a document", ref, `deleted = $6 where deleted is null`, at, run.OpDeleted)
}

// RestoreDocument implements session.Documents.
func (s *Store) RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return s.hide(ctx, "restore a document", ref, `deleted = null where deleted is not null`, at, run.OpCreated)
}

// hide takes a document out of the lists or brings it back.
func (s *Store) hide(ctx context.Context, what string, ref session.Ref, set string, at time.Time, op string) error {
	write := newWriteID()
	sql := `
		with written as (
			update documents set write = $5, ` + set + ` and user_id = $1 and project = $2 and workflow = $3 and id = $4
			returning user_id, project, workflow, id, revision
		), told as (
			insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
			select $6::timestamptz, 'session', $7::text, user_id, id, workflow, project, revision from written
		)
		select exists (select from written)`
	args := append(refValues(ref), write, at, op)
	err := s.try(ctx, what, func(ctx context.Context, doubt bool) error {
		if doubt {
			if own, err := s.wrote(ctx, ref, write); err != nil || own {
				return err
			}
		}
		var done bool
		if err := s.pool.QueryRow(ctx, sql, args...).Scan(&done); err != nil || done {
			return err
		}
		return noDocument(ref)
	})
	if err == nil {
		s.changed()
	}
	return err
}

const documentColumns = `user_id, project, workflow, id, project_path, created, updated, revision, data`

// scanDocument reads a document, and what the query has besides.
func scanDocument(row pgx.Row, besides ...any) (session.Document, error) {
	var d session.Document
	var data []byte
	targets := []any{
		(*octets)(&d.User), (*octets)(&d.Project), (*octets)(&d.Workflow), (*octets)(&d.ID), (*octets)(&d.ProjectPath),
		&d.Created, &d.Updated, &d.Revision, &data,
	}
	if err := row.Scan(append(targets, besides...)...); err != nil {
		return d, err
	}
	d.Created, d.Updated = d.Created.UTC(), d.Updated.UTC()
	var err error
	if d.Data, err = session.DecodeData(data); err != nil {
		return d, guideway.Errorf(guideway.CodeInternal, "the document %s/%s does not read: %w", d.Workflow, d.ID, err)
	}
	return d, nil
}
