package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway/internal/session"
)

// DocumentKey returns the condition for the key of a document, whose parameters are $1 to
// $4.
func (d Dialect) DocumentKey() string {
	return d.User + ` = $1 AND project = $2 AND workflow = $3 AND id = $4`
}

// DocumentColumns returns the columns of DocumentFields.
func (d Dialect) DocumentColumns() string {
	return d.User + `, project, workflow, id, project_path, created, updated, revision, data`
}

// ScanDocument scans the columns of a document after the given leading columns.
func ScanDocument(row Scanner, before ...any) (d session.Document, err error) {
	var data []byte
	if err := row.Scan(append(before, DocumentFields(&d, &data)...)...); err != nil {
		return d, err
	}
	if len(data) > 0 && data[0] != '{' { // encrypted: the data of a document is an object
		d.Sealed = data
		return d, nil
	}
	if d.Data, err = session.DecodeData(data); err != nil {
		return d, fmt.Errorf("the session document %s is not JSON: %w", d.ID, errors.Join(ErrInvalidValue, err))
	}
	return d, nil
}

// Documents implements session.Finder.
func (m *Methods) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	q := m.listQuery(`SELECT `+m.dialect.DocumentColumns()+` FROM documents`, f)
	return List(ctx, m, "list session documents", q, func(row Scanner) (session.Document, error) { return ScanDocument(row) })
}

// Summaries implements session.Finder.
func (m *Methods) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	return List(ctx, m, "list summaries of session documents", m.listQuery(m.dialect.Summaries, f), ScanFields(SummaryFields))
}

// listQuery returns the query of a list of documents, with the last changed one first.
func (m *Methods) listQuery(what string, f session.Filter) Query {
	c := Conditions{Dialect: m.dialect}
	c.AddDocuments(f)
	return c.Query(what + c.Where() + ` ORDER BY updated DESC, ` + m.dialect.Number + ` DESC LIMIT ` + c.Arg(LimitOr(f.Limit, DefaultDocuments)))
}

// ValidationLog implements session.Finder.
func (m *Methods) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	q := m.query(`SELECT at, revision, pointer, message FROM document_log
		WHERE document = (SELECT `+m.dialect.Number+` FROM documents WHERE `+m.dialect.DocumentKey()+` AND deleted IS NULL)
		ORDER BY `+m.dialect.Number+` DESC LIMIT $5`, ref.User, ref.Project, ref.Workflow, ref.ID, max(limit, 0))
	return List(ctx, m, "read the log of the session document "+ref.ID, q, ScanFields(LogFields))
}

// workflowCount is the number of documents or runs of a workflow in a project.
type workflowCount struct {
	project, workflow, path string
	updated                 time.Time
	sessions, runs          int
}

// Projects implements session.Finder.
func (m *Methods) Projects(ctx context.Context, user string) ([]session.ProjectSummary, error) {
	count := `SELECT project, workflow, ` + m.dialect.LastPath + `, max(updated), `
	rest := ` AND project <> '' GROUP BY project, workflow`
	q := m.query(count+`count(*), 0 FROM documents WHERE `+m.dialect.User+` = $1 AND deleted IS NULL`+rest+
		` UNION ALL `+count+`0, count(*) FROM runs WHERE `+m.dialect.User+` = $1`+rest, user)
	list, err := List(ctx, m, "list projects", q, ScanFields(func(one *workflowCount) []any {
		return []any{(*Text)(&one.project), (*Text)(&one.workflow), (*Text)(&one.path), (*Time)(&one.updated), &one.sessions, &one.runs}
	}))
	return sumProjects(list), err
}

// sumProjects adds up the counts of each project, with the last changed project first.
func sumProjects(shares []workflowCount) []session.ProjectSummary {
	slices.SortFunc(shares, func(a, b workflowCount) int {
		return cmp.Or(b.updated.Compare(a.updated), cmp.Compare(a.project, b.project))
	})
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
