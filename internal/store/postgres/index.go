package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// defaultRuns is the limit of a list of runs without a limit.
const defaultRuns = 100

// Run implements run.Index.
func (s *Store) Run(ctx context.Context, id string) (r run.Record, err error) {
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no run %s", id)
	err = s.queryRow(ctx, "read a run", missing, `select `+recordColumns+` from runs r where r.id = $1`, []any{byteString(id)}, recordTargets(&r))
	toUTC(&r)
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
		return run.Handle{}, guideway.Errorf(guideway.CodeNotFound, "the handle is unknown")
	}
	return h, err
}

// Runs implements run.Index.
func (s *Store) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	var w conditions
	w.addRunFilter(f)
	sql := `select ` + recordColumns + ` from runs r` + w.whereClause() + ` order by r.updated desc, r.id desc limit ` + w.addArg(limitOrDefault(f.Limit, defaultRuns))
	return queryList(ctx, s, "list runs", scanRecord, sql, w.args...)
}

// conditions collects the conditions of a query and their parameters. Input of callers is
// always a parameter.
type conditions struct {
	conditions []string
	args       []any
}

// addArg adds a parameter and returns its placeholder.
func (w *conditions) addArg(value any) string {
	w.args = append(w.args, value)
	return fmt.Sprintf("$%d", len(w.args))
}

// addCondition adds a condition. Its verbs are replaced by the placeholders of the values.
func (w *conditions) addCondition(condition string, values ...any) {
	places := make([]any, len(values))
	for i, v := range values {
		places[i] = w.addArg(v)
	}
	w.conditions = append(w.conditions, fmt.Sprintf(condition, places...))
}

// addEqual adds a condition on a text unless the value is empty.
func (w *conditions) addEqual(condition, value string) {
	if value != "" {
		w.addCondition(condition, byteString(value))
	}
}

// addRunFilter adds the conditions of a filter on runs r.
func (w *conditions) addRunFilter(f run.Filter) {
	w.addEqual("r.user_id = %s", f.User)
	w.addEqual("r.project = %s", f.Project)
	w.addEqual("r.workflow = %s", f.Workflow)
	if len(f.Statuses) > 0 {
		statuses := make([][]byte, len(f.Statuses))
		for i, status := range f.Statuses {
			statuses[i] = []byte(status)
		}
		w.addCondition("r.status = any(%s::bytea[])", statuses)
	}
	if !f.Since.IsZero() {
		w.addCondition("r.updated >= %s", f.Since)
	}
	if !f.Until.IsZero() {
		w.addCondition("r.updated < %s", f.Until)
	}
	if f.Person {
		w.addCondition("r.person")
	}
	if f.Before != nil {
		w.addCondition("(r.updated, r.id) < (%s, %s)", f.Before.Updated, byteString(f.Before.ID))
	}
}

func (w *conditions) whereClause() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " where " + strings.Join(w.conditions, " and ")
}

// limitOrDefault returns a limit, or the default if it is 0.
func limitOrDefault(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return limit
}
