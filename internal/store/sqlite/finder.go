package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// Documents implements session.Finder.
func (s *Store) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	text, args := documentListQuery(`SELECT `+documentColumns+` FROM documents`, f)
	scan := func(row scanner) (session.Document, error) { return scanDocument(row) }
	return queryList(ctx, s, "list documents", s.readers.db.QueryContext, scan, text, args...)
}

// Summaries implements session.Finder.
func (s *Store) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	text, args := documentListQuery(sqlSummaries, f)
	return queryList(ctx, s, "list summaries of documents", s.readers.db.QueryContext, func(row scanner) (d session.Summary, err error) {
		err = row.Scan(rows.SummaryFields(&d)...)
		return d, err
	}, text, args...)
}

const sqlSummaries = `
	SELECT d.user, d.project, d.workflow, d.id, d.project_path, d.created, d.updated, d.revision, s.dashboard
	FROM documents d JOIN document_summaries s ON s.document = d.num`

// documentListQuery returns the query of a list of documents, with the last changed one
// first.
func documentListQuery(what string, f session.Filter) (text string, args []any) {
	c := rows.Conditions{Dialect: dialect()}
	c.AddDocuments(f)
	text = what + c.Where() + ` ORDER BY updated DESC, num DESC LIMIT ` + c.Arg(rows.LimitOr(f.Limit, rows.DefaultDocuments))
	return text, c.Args
}

// ValidationLog implements session.Finder.
func (s *Store) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	return queryList(ctx, s, "read the log of the session document "+ref.ID, s.readers.queryRows, func(row scanner) (entry session.LogEntry, err error) {
		err = row.Scan(rows.LogFields(&entry)...)
		return entry, err
	}, `SELECT at, revision, pointer, message FROM document_log
		WHERE document = (SELECT num FROM documents WHERE `+documentKey+` AND deleted IS NULL)
		ORDER BY num DESC LIMIT ?`, append(documentKeyArgs(ref), limit)...)
}

// workflowCount is the number of documents or runs of a workflow in a project.
type workflowCount struct {
	project, workflow, path string
	updated                 time.Time
	sessions, runs          int
}

// sqlWorkflowCounts takes the path from the last changed row: SQLite reads plain columns
// next to max() from the row of the maximum.
const sqlWorkflowCounts = `
	SELECT project, workflow, project_path, max(updated), count(*), 0 FROM documents
	WHERE user = ?1 AND deleted IS NULL AND project <> '' GROUP BY project, workflow
	UNION ALL
	SELECT project, workflow, project_path, max(updated), 0, count(*) FROM runs
	WHERE user = ?1 AND project <> '' GROUP BY project, workflow`

// Projects implements session.Finder.
func (s *Store) Projects(ctx context.Context, user string) ([]session.ProjectSummary, error) {
	shares, err := queryList(ctx, s, "list projects", s.readers.queryRows, func(row scanner) (workflowCount, error) {
		var one workflowCount
		err := row.Scan(&one.project, &one.workflow, &one.path, (*rows.Time)(&one.updated), &one.sessions, &one.runs)
		return one, err
	}, sqlWorkflowCounts, user)
	return sumProjects(shares), err
}

// sumProjects adds up the counts of each project, with the last changed project first.
func sumProjects(shares []workflowCount) []session.ProjectSummary {
	slices.SortFunc(shares, func(a, b workflowCount) int { return b.updated.Compare(a.updated) })
	at := map[string]int{}
	var list []session.ProjectSummary
	for _, one := range shares {
		i, there := at[one.project]
		if !there {
			i = len(list)
			at[one.project] = i
			list = append(list, session.ProjectSummary{ID: one.project, Updated: one.updated})
		}
		p := &list[i]
		p.Path = cmp.Or(p.Path, one.path)
		p.Sessions += one.sessions
		p.Runs += one.runs
		if !slices.Contains(p.Workflows, one.workflow) {
			p.Workflows = append(p.Workflows, one.workflow)
		}
	}
	for i := range list {
		slices.Sort(list[i].Workflows)
	}
	return list
}
