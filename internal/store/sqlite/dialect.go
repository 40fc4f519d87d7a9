package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// runColumns and eventColumns are the columns of rows.RunFields and rows.EventFields.
const (
	runColumns = `id, user, client, workflow, name, version, hash, goal, project, project_path, project_branch, project_commit, ` +
		`status, kind, step, title, person, done, parent, parent_seq, created, updated, seq, head, handle`
	eventColumns = `seq, at, kind, by_user, by_client, by_via, data, mac`
	// documentColumns are the columns of rows.DocumentFields. sqlSummarize stores the summary
	// of a document, which lists show.
	documentColumns = `user, project, workflow, id, project_path, created, updated, revision, data`
	sqlSummarize    = `INSERT INTO document_summaries (document, dashboard)
		SELECT num, $10 FROM documents WHERE user = $1 AND project = $2 AND workflow = $3 AND id = $4
		ON CONFLICT DO UPDATE SET dashboard = excluded.dashboard`
)

// dialect returns the description of the tables for the queries that all stores share.
func dialect() rows.Dialect {
	return rows.Dialect{
		User: "user", Number: "num", RunColumns: runColumns, EventColumns: eventColumns,
		Summaries: `SELECT d.user, d.project, d.workflow, d.id, d.project_path, d.created, d.updated, d.revision, s.dashboard
			FROM documents d JOIN document_summaries s ON s.document = d.num`,
		LastPath:    "project_path", // SQLite reads plain columns next to max() from the row of the maximum
		NeedsPerson: "r.person = 1", // the same text as in the partial index
		HasTag:      "c.num IN (SELECT t.num FROM checkpoint_tags t WHERE t.tag = %s)",
		Unnest:      "json_each($1)",
		List:        encodeList,
		ScanList:    func(list *[]string) any { return (*jsonList)(list) },
		AddWords:    addWords,
		InsertDocument: []string{
			`INSERT INTO documents (` + documentColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, sqlSummarize,
		},
		UpdateDocument: []string{`UPDATE documents SET project_path = $5, created = $6, updated = $7, revision = $8, data = $9`, sqlSummarize},
		DocumentTables: []string{"document_log", "document_summaries"},
		Greatest:       "max",
		Now:            sqlNow,
		RemoveWords:    []string{`DELETE FROM checkpoint_tags WHERE num = $1`, `DELETE FROM checkpoint_words WHERE rowid = $1`},
		Value: func(value any) any {
			switch v := value.(type) {
			case time.Time:
				return fromTime(v)
			case rows.OptionalTime:
				if at := time.Time(v); !at.IsZero() {
					return fromTime(at)
				}
				return 0
			}
			return value
		},
	}
}

// fromTime returns a time as it is stored, in microseconds.
func fromTime(t time.Time) int64 { return t.UnixMicro() }

// encodeList returns strings as they are stored, as JSON.
func encodeList(list []string) any {
	if len(list) == 0 {
		return "[]"
	}
	text, _ := json.Marshal(list) // strings have no error
	return string(text)
}

// jsonList is a list in a column.
type jsonList []string

// Scan implements sql.Scanner.
func (l *jsonList) Scan(value any) error {
	text, _ := value.(string)
	if text == "[]" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), (*[]string)(l)); err != nil {
		return fmt.Errorf("decode a list of strings: %w", errors.Join(rows.ErrInvalidValue, err))
	}
	return nil
}

// addWords adds the full-text search for the words of a filter.
func addWords(c *rows.Conditions, f checkpoint.Filter) (from, order string) {
	// Without Any, SQLite reads the matching rows from the newest to the oldest and stops at
	// the limit.
	joint, order := " AND ", `w.rowid DESC`
	if f.Any {
		joint, order = " OR ", `bm25(checkpoint_words, 0.0, 1.0), c.num DESC`
	}
	list := lists.Map(f.Query, func(w words.Word) string { return matchExpr(w.Any()) })
	c.Add("w.checkpoint_words MATCH %s", scopeQuery(f.User, f.Session, f.Project, f.Workflow)+"("+strings.Join(list, joint)+")")
	// CROSS JOIN makes SQLite scan the full-text index first.
	return `FROM checkpoint_words w CROSS JOIN checkpoints c ON c.num = w.rowid`, order
}
