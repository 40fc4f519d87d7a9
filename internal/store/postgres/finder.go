package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/session"
)

// defaultDocuments is the limit of a list of documents without a limit.
const defaultDocuments = 1000

// Documents implements session.Finder.
func (s *Store) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	return listDocuments(ctx, s, documentColumns, f, func(row pgx.CollectableRow) (session.Document, error) { return scanDocument(row) })
}

// Summaries implements session.Finder.
func (s *Store) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	return listDocuments(ctx, s, summaryColumns, f, scanSummary)
}

const summaryColumns = `user_id, project, workflow, id, project_path, created, updated, revision, dashboard`

// scanSummary scans summaryColumns.
func scanSummary(row pgx.CollectableRow) (session.Summary, error) {
	var d session.Summary
	err := row.Scan(
		(*byteString)(&d.User), (*byteString)(&d.Project), (*byteString)(&d.Workflow), (*byteString)(&d.ID), (*byteString)(&d.ProjectPath),
		&d.Created, &d.Updated, &d.Revision, (*[]byte)(&d.Dashboard),
	)
	d.Created, d.Updated = d.Created.UTC(), d.Updated.UTC()
	return d, err
}

// listDocuments returns documents, with the last changed one first.
func listDocuments[T any](ctx context.Context, s *Store, columns string, f session.Filter, scan pgx.RowToFunc[T]) ([]T, error) {
	var w conditions
	w.addCondition("user_id = %s", byteString(f.Ref.User)) // an empty user matches no document
	w.addCondition("deleted is null")
	w.addEqual("project = %s", f.Ref.Project)
	w.addEqual("workflow = %s", f.Ref.Workflow)
	w.addEqual("id = %s", f.Ref.ID)
	sql := `select ` + columns + ` from documents` + w.whereClause() + ` order by updated desc, n desc limit ` + w.addArg(limitOrDefault(f.Limit, defaultDocuments))
	return queryList(ctx, s, "list documents", scan, sql, w.args...)
}

// Projects implements session.Finder. The path is that of the last change.
func (s *Store) Projects(ctx context.Context, user string) ([]session.ProjectSummary, error) {
	const sql = `
		with work as (
			select project, workflow, project_path as path, updated, 1 as documents, 0 as runs
			from documents where user_id = $1 and deleted is null and project <> ''
			union all
			select project, workflow, project_path, updated, 0, 1 from runs where user_id = $1 and project <> ''
		)
		select project, (array_agg(path order by updated desc))[1], max(updated), sum(documents), sum(runs), array_agg(distinct workflow)
		from work group by project order by max(updated) desc, project`
	return queryList(ctx, s, "list projects", func(row pgx.CollectableRow) (session.ProjectSummary, error) {
		var p session.ProjectSummary
		var workflows [][]byte
		err := row.Scan((*byteString)(&p.ID), (*byteString)(&p.Path), &p.Updated, &p.Sessions, &p.Runs, &workflows)
		p.Updated = p.Updated.UTC()
		for _, w := range workflows {
			p.Workflows = append(p.Workflows, string(w))
		}
		slices.Sort(p.Workflows)
		return p, err
	}, sql, byteString(user))
}

// ValidationLog implements session.Finder.
func (s *Store) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	return queryList(ctx, s, "read a validation log", func(row pgx.CollectableRow) (session.LogEntry, error) {
		var e session.LogEntry
		err := row.Scan(&e.At, &e.Revision, (*byteString)(&e.Pointer), (*byteString)(&e.Message))
		e.At = e.At.UTC()
		return e, err
	}, `
		select l.at, l.revision, l.pointer, l.message from document_log l join documents d on d.n = l.document
		where d.user_id = $1 and d.project = $2 and d.workflow = $3 and d.id = $4 and d.deleted is null
		order by l.n desc limit $5`, append(refArgs(ref), max(limit, 0))...)
}
