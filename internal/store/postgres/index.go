package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// defaultRuns is how many runs a list has that asks for no number.
const defaultRuns = 100

// Run implements run.Index.
func (s *Store) Run(ctx context.Context, id string) (r run.Record, err error) {
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no run %s", id)
	err = s.readRow(ctx, "read a run", missing, `select `+recordColumns+` from runs r where r.id = $1`, []any{octets(id)}, recordTargets(&r))
	inUTC(&r)
	return r, err
}

// Handle implements run.Index.
func (s *Store) Handle(ctx context.Context, token string) (run.Handle, error) {
	var h run.Handle
	err := s.read(ctx, "read a handle", func(ctx context.Context) (err error) {
		h, err = s.handle(ctx, token)
		return err
	})
	return h, err
}

func (s *Store) handle(ctx context.Context, token string) (run.Handle, error) {
	h := run.Handle{Token: token}
	err := s.pool.QueryRow(ctx, `select run, seq from handles where token = $1`, octets(token)).Scan((*octets)(&h.Run), &h.Seq)
	if noRows(err) {
		return run.Handle{}, guideway.Errorf(guideway.CodeNotFound, "the handle is not known")
	}
	return h, err
}

// Runs implements run.Index.
func (s *Store) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	var w where
	w.runs(f)
	sql := `select ` + recordColumns + ` from runs r` + w.sql() + ` order by r.updated desc, r.id desc limit ` + w.arg(limitOr(f.Limit, defaultRuns))
	return readList(ctx, s, "list runs", scanRecord, sql, w.args...)
}

// where collects the conditions of a query and their parameters. What a caller
// gives is always a parameter.
type where struct {
	conditions []string
	args       []any
}

// arg adds a parameter and gives its place.
func (w *where) arg(value any) string {
	w.args = append(w.args, value)
	return fmt.Sprintf("$%d", len(w.args))
}

// and adds a condition; its verbs are the places of values.
func (w *where) and(condition string, values ...any) {
	places := make([]any, len(values))
	for i, v := range values {
		places[i] = w.arg(v)
	}
	w.conditions = append(w.conditions, fmt.Sprintf(condition, places...))
}

// text adds a condition for a text that chooses unless it is empty.
func (w *where) text(condition, value string) {
	if value != "" {
		w.and(condition, octets(value))
	}
}

// runs adds the conditions of a filter on runs r.
func (w *where) runs(f run.Filter) {
	w.text("r.user_id = %s", f.User)
	w.text("r.project = %s", f.Project)
	w.text("r.workflow = %s", f.Workflow)
	if len(f.Statuses) > 0 {
		statuses := make([][]byte, len(f.Statuses))
		for i, status := range f.Statuses {
			statuses[i] = []byte(status)
		}
		w.and("r.status = any(%s::bytea[])", statuses)
	}
	if !f.Since.IsZero() {
		w.and("r.updated >= %s", f.Since)
	}
	if !f.Until.IsZero() {
		w.and("r.updated < %s", f.Until)
	}
	if f.Person {
		w.and("r.person")
	}
	if f.Before != nil {
		w.and("(r.updated, r.id) < (%s, %s)", f.Before.Updated, octets(f.Before.ID))
	}
}

func (w *where) sql() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(w.conditions, " and ")
}

// limitOr gives a limit, or what 0 stands for.
func limitOr(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return limit
}
