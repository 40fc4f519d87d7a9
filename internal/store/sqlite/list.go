package sqlite

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// dialect returns the description of the tables for the queries that all stores share.
func dialect() rows.Dialect {
	return rows.Dialect{
		User: "user", Number: "num",
		NeedsPerson: "r.person = 1", // the same text as in the partial index
		HasTag:      "c.num IN (SELECT t.num FROM checkpoint_tags t WHERE t.tag = %s)",
		Value: func(value any) any {
			if t, ok := value.(time.Time); ok {
				return fromTime(t)
			}
			return value
		},
	}
}

// Runs implements run.Index.
func (s *Store) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	c := rows.Conditions{Dialect: dialect()}
	c.AddRuns(f)
	text := `SELECT ` + runColumns + ` FROM runs r` + c.Where() + ` ORDER BY r.updated DESC, r.id DESC LIMIT ` + c.Arg(rows.LimitOr(f.Limit, rows.DefaultLimit))
	return queryList(ctx, s, "list runs", s.readers.db.QueryContext, scanRun, text, c.Args...)
}
