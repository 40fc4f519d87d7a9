package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// Documents implements session.Finder.
func (s *Store) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	return listDocuments(ctx, s, documentColumns, f, func(row pgx.CollectableRow) (session.Document, error) { return scanDocument(row) })
}

// Summaries implements session.Finder.
func (s *Store) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	return listDocuments(ctx, s, summaryColumns, f, func(row pgx.CollectableRow) (d session.Summary, err error) {
		err = row.Scan(rows.SummaryFields(&d)...)
		return d, err
	})
}

const summaryColumns = `user_id, project, workflow, id, project_path, created, updated, revision, dashboard`

// listDocuments returns documents, with the last changed one first.
func listDocuments[T any](ctx context.Context, s *Store, columns string, f session.Filter, scan pgx.RowToFunc[T]) ([]T, error) {
	w := rows.Conditions{Dialect: dialect()}
	w.AddDocuments(f)
	sql := `select ` + columns + ` from documents` + w.Where() + ` order by updated desc, n desc limit ` + w.Arg(rows.LimitOr(f.Limit, rows.DefaultDocuments))
	return queryList(ctx, s, "list documents", scan, sql, w.Args...)
}

// Projects implements session.Finder. The path of a project is the path in its last change.
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
		err := row.Scan((*byteString)(&p.ID), (*byteString)(&p.Path), (*rows.Time)(&p.Updated), &p.Sessions, &p.Runs, &workflows)
		for _, w := range workflows {
			p.Workflows = append(p.Workflows, string(w))
		}
		slices.Sort(p.Workflows)
		return p, err
	}, sql, byteString(user))
}

// ValidationLog implements session.Finder.
func (s *Store) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	return queryList(ctx, s, "read a validation log", func(row pgx.CollectableRow) (e session.LogEntry, err error) {
		err = row.Scan(rows.LogFields(&e)...)
		return e, err
	}, `
		select l.at, l.revision, l.pointer, l.message from document_log l join documents d on d.n = l.document
		where d.user_id = $1 and d.project = $2 and d.workflow = $3 and d.id = $4 and d.deleted is null
		order by l.n desc limit $5`, append(refArgs(ref), max(limit, 0))...)
}
