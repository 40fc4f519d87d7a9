package postgres

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// Run implements run.Index.
func (s *Store) Run(ctx context.Context, id string) (r run.Record, err error) {
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no run %q", id)
	err = s.queryRow(ctx, "read a run", missing, `select `+recordColumns+` from runs r where r.id = $1`, []any{byteString(id)}, rows.RunFields(&r))
	return r, err
}

// Handle implements run.Index.
func (s *Store) Handle(ctx context.Context, token string) (run.Handle, error) {
	var h run.Handle
	err := s.retryRead(ctx, "read a handle", func(ctx context.Context) (err error) {
		h, err = s.readHandle(ctx, token)
		return err
	})
	return h, err
}

func (s *Store) readHandle(ctx context.Context, token string) (run.Handle, error) {
	h := run.Handle{Token: token}
	err := s.pool.QueryRow(ctx, `select run, seq from handles where token = $1`, byteString(token)).Scan((*byteString)(&h.Run), &h.Seq)
	if isNoRows(err) {
		return run.Handle{}, guideway.Errorf(guideway.CodeNotFound, "there is no such handle")
	}
	return h, err
}

// Runs implements run.Index.
func (s *Store) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	w := rows.Conditions{Dialect: dialect()}
	w.AddRuns(f)
	sql := `select ` + recordColumns + ` from runs r` + w.Where() + ` order by r.updated desc, r.id desc limit ` + w.Arg(rows.LimitOr(f.Limit, rows.DefaultLimit))
	return queryList(ctx, s, "list runs", scanRecord, sql, w.Args...)
}
