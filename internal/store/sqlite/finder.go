package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/guideway-dev/guideway/internal/session"
)

// defaultDocuments is how many documents a list gives that names no limit.
const defaultDocuments = 1000

// Documents implements session.Finder.
func (s *Store) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	text, args := listDocuments(`SELECT `+documentColumns+` FROM documents`, f)
	scan := func(row scanner) (session.Document, error) { return scanDocument(row, f.Ref.User) }
	return readList(ctx, s, "list documents", s.readers.db.QueryContext, scan, text, args...)
}

// Summaries implements session.Finder.
func (s *Store) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	text, args := listDocuments(sqlSummaries, f)
	scan := func(row scanner) (session.Summary, error) { return scanSummary(row, f.Ref.User) }
	return readList(ctx, s, "list summaries of documents", s.readers.db.QueryContext, scan, text, args...)
}

const sqlSummaries = `
	SELECT d.project, d.workflow, d.id, d.project_path, d.created, d.updated, d.revision, s.dashboard
	FROM documents d JOIN document_summaries s ON s.document = d.num`

// scanSummary scans the columns of sqlSummaries.
func scanSummary(row scanner, user string) (session.Summary, error) {
	d := session.Summary{Ref: session.Ref{User: user}}
	var created, updated int64
	err := row.Scan(&d.Project, &d.Workflow, &d.ID, &d.ProjectPath, &created, &updated, &d.Revision, (*[]byte)(&d.Dashboard))
	d.Created, d.Updated = toTime(created), toTime(updated)
	return d, err
}

// listDocuments returns the query of a list of documents, the last changed first.
func listDocuments(what string, f session.Filter) (text string, args []any) {
	c := &conditions{}
	c.add("user = ?", f.Ref.User) // an empty one is nobody
	c.add("deleted IS NULL")
	c.equal("project", f.Ref.Project)
	c.equal("workflow", f.Ref.Workflow)
	c.equal("id", f.Ref.ID)
	limit := f.Limit
	if limit <= 0 {
		limit = defaultDocuments
	}
	return c.query(what, ` ORDER BY updated DESC, num DESC LIMIT ?`), append(c.args, limit)
}

// ValidationLog implements session.Finder.
func (s *Store) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	scan := func(row scanner) (session.LogEntry, error) {
		var entry session.LogEntry
		var at int64
		err := row.Scan(&at, &entry.Revision, &entry.Pointer, &entry.Message)
		entry.At = toTime(at)
		return entry, err
	}
	return readList(ctx, s, "read the log of the document "+ref.ID, s.readers.rows, scan, `SELECT at, revision, pointer, message FROM document_log
		WHERE document = (SELECT num FROM documents WHERE `+documentKey+` AND deleted IS NULL)
		ORDER BY num DESC LIMIT ?`, append(keyOf(ref), limit)...)
}

// share is what one workflow has in a project, in documents or in runs.
type share struct {
	project, workflow, path string
	updated                 time.Time
	sessions, runs          int
}

// sqlShares takes the path from the row that was changed last: SQLite gives
// plain columns beside max() from its row.
const sqlShares = `
	SELECT project, workflow, project_path, max(updated), count(*), 0 FROM documents
	WHERE user = ?1 AND deleted IS NULL AND project <> '' GROUP BY project, workflow
	UNION ALL
	SELECT project, workflow, project_path, max(updated), 0, count(*) FROM runs
	WHERE user = ?1 AND project <> '' GROUP BY project, workflow`

// Projects implements session.Finder.
func (s *Store) Projects(ctx context.Context, user string) ([]session.ProjectSummary, error) {
	shares, err := readList(ctx, s, "list projects", s.readers.rows, func(row scanner) (share, error) {
		var one share
		var updated int64
		err := row.Scan(&one.project, &one.workflow, &one.path, &updated, &one.sessions, &one.runs)
		one.updated = toTime(updated)
		return one, err
	}, sqlShares, user)
	return summarise(shares), err
}

// summarise adds up the shares of each project, the last changed first.
func summarise(shares []share) []session.ProjectSummary {
	slices.SortFunc(shares, func(a, b share) int { return b.updated.Compare(a.updated) })
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
