package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// byteString is a string that is stored as bytea.
type byteString = rows.Text

// byteSlices returns texts as they are stored in an array of bytea.
func byteSlices(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, text := range texts {
		list[i] = []byte(text)
	}
	return list
}

// byteList is a list of strings in an array of bytea. It implements pgtype.ArraySetter.
type byteList []string

func (l *byteList) SetDimensions(d []pgtype.ArrayDimension) error {
	if *l = nil; len(d) > 0 {
		*l = make(byteList, d[0].Length)
	}
	return nil
}
func (l *byteList) ScanIndex(i int) any { return (*byteString)(&(*l)[i]) }
func (*byteList) ScanIndexType() any    { return new(byteString) }

// recordColumns are the columns of rows.RunFields. The table runs has the alias r.
const recordColumns = `r.id, r.user_id, r.client, r.workflow, r.name, r.version, r.hash, r.goal, r.project, r.project_path,
	r.branch, r.commit_id, r.status, r.kind, r.step, r.title, r.person, r.done, r.parent, r.parent_seq, r.created, r.updated,
	r.seq, r.head, r.handle`

// dialect returns the description of the tables for the queries that all stores share.
func dialect() rows.Dialect {
	return rows.Dialect{
		User: "user_id", Number: "n", RunColumns: recordColumns, EventColumns: "seq, at, kind, by_user, by_client, via, data, mac",
		Summaries:   `select user_id, project, workflow, id, project_path, created, updated, revision, dashboard from documents`,
		LastPath:    "(array_agg(project_path order by updated desc))[1]",
		NeedsPerson: "r.person",
		HasTag:      "c.tags @> array[%s::bytea]",
		Unnest:      "unnest($1::bytea[]) value",
		List:        func(list []string) any { return byteSlices(list) },
		ScanList:    func(list *[]string) any { return (*byteList)(list) },
		AddWords:    addWords,
		InsertDocument: []string{`insert into documents (user_id, project, workflow, id, project_path, created, updated, revision, data, dashboard, write)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, gen_random_uuid())`},
		UpdateDocument: []string{`update documents set project_path = $5, created = $6, updated = $7, revision = $8, data = $9, dashboard = $10`},
		DocumentTables: []string{"document_log"},
		Now:            "(extract(epoch from clock_timestamp()) * 1000)::bigint",
		ForUpdate:      " FOR UPDATE", Greatest: "greatest", Lock: `select pg_advisory_xact_lock($1 # hashtext(current_schema())::bigint)`,
		Value: func(value any) any {
			switch v := value.(type) {
			case string:
				return byteString(v)
			case rows.OptionalTime:
				if at := time.Time(v); !at.IsZero() {
					return at
				}
				return nil
			}
			return value
		},
	}
}

// addWords adds the full-text search for the words of a filter.
func addWords(c *rows.Conditions, f checkpoint.Filter) (from, order string) {
	joint := " & "
	if f.Any {
		joint = " | "
	}
	list := lists.Map(f.Query, func(w words.Word) string { return tsquery(w.Any()) })
	c.Add("c.vector @@ %s::text::tsquery", strings.Join(list, joint))
	if f.User != "" {
		c.Add("c.vector @@ quote_literal(%s::text)::tsquery", userLexeme(f.User))
	}
	order = `c.n desc`
	if f.Any { // a whole word counts twice
		var ranks []string
		for _, w := range f.Query {
			for _, alternatives := range [][][]string{w.Any(), w.Whole} {
				ranks = append(ranks, "(c.vector @@ "+c.Arg(tsquery(alternatives))+"::text::tsquery)::int")
			}
		}
		order = strings.Join(ranks, " + ") + ` desc, c.n desc`
	}
	return `from checkpoints c`, order
}

// database is the pool or a connection.
type database interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

// conn implements rows.Reader.
type conn struct{ database }

// Each implements rows.Reader.
func (c conn) Each(ctx context.Context, q rows.Query, visit func(rows.Scanner) error) error {
	found, err := c.Query(ctx, q.Text, q.Args...)
	if err != nil {
		return err
	}
	return eachRow(found, visit)
}

// eachRow visits and closes the rows of a query.
func eachRow(found pgx.Rows, visit func(rows.Scanner) error) error {
	defer found.Close()
	for found.Next() {
		if err := visit(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// read implements rows.Access.
func (s *Store) read(ctx context.Context, doing string, do func(context.Context, rows.Reader) error) error {
	return s.retryRead(ctx, doing, func(ctx context.Context) error { return do(ctx, conn{s.pool}) })
}
