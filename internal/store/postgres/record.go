package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/run"
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

// dialect returns the description of the tables for the queries that all stores share.
func dialect() rows.Dialect {
	return rows.Dialect{
		User: "user_id", Number: "n", NeedsPerson: "r.person", HasTag: "c.tags @> array[%s::bytea]",
		Value: func(value any) any {
			if text, ok := value.(string); ok {
				return byteString(text)
			}
			return value
		},
	}
}

// recordColumns are the columns of rows.RunFields. The table runs has the alias r.
const recordColumns = `r.id, r.user_id, r.client, r.workflow, r.name, r.version, r.hash, r.goal, r.project, r.project_path,
	r.branch, r.commit_id, r.status, r.kind, r.step, r.title, r.person, r.done, r.parent, r.parent_seq, r.created, r.updated,
	r.seq, r.head, r.handle`

// scanRecord scans a run.
func scanRecord(row pgx.CollectableRow) (r run.Record, err error) {
	err = row.Scan(rows.RunFields(&r)...)
	return r, err
}
