package sqlite

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/run"
)

// defaultLimit is the limit of a list or a search of runs without a limit.
const defaultLimit = 100

// conditions is the WHERE clause of a query with its values. The texts are constants of
// this package; input of callers is only used as a value.
type conditions struct {
	texts []string
	args  []any
}

// addCondition adds a condition with its values.
func (c *conditions) addCondition(text string, args ...any) {
	c.texts = append(c.texts, text)
	c.args = append(c.args, args...)
}

// buildQuery returns the query of a SELECT, the conditions and the rest.
func (c *conditions) buildQuery(what, rest string) string {
	if len(c.texts) == 0 {
		return what + rest
	}
	return what + " WHERE " + strings.Join(c.texts, " AND ") + rest
}

// addEqual adds a condition on a column unless the value is empty.
func (c *conditions) addEqual(column, value string) {
	if value != "" {
		c.addCondition(column+" = ?", value)
	}
}

// runConditions returns the conditions of a filter on the table runs.
func runConditions(f run.Filter) *conditions {
	c := &conditions{}
	c.addEqual("user", f.User)
	c.addEqual("project", f.Project)
	c.addEqual("workflow", f.Workflow)
	if len(f.Statuses) > 0 {
		args := make([]any, 0, len(f.Statuses))
		for _, status := range f.Statuses {
			args = append(args, string(status))
		}
		c.addCondition("status IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	}
	if !f.Since.IsZero() {
		c.addCondition("updated >= ?", fromTime(f.Since))
	}
	if !f.Until.IsZero() {
		c.addCondition("updated < ?", fromTime(f.Until))
	}
	if f.Person {
		c.addCondition("person = 1") // written like this in the partial index
	}
	if f.Before != nil {
		c.addCondition("(updated, id) < (?, ?)", fromTime(f.Before.Updated), f.Before.ID)
	}
	return c
}

// limitOrDefault returns the limit of a filter.
func limitOrDefault(f run.Filter) int {
	if f.Limit <= 0 {
		return defaultLimit
	}
	return f.Limit
}

// Runs implements run.Index.
func (s *Store) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	c := runConditions(f)
	text := c.buildQuery(`SELECT `+runColumns+` FROM runs`, ` ORDER BY updated DESC, id DESC LIMIT ?`)
	return queryList(ctx, s, "list runs", s.readers.db.QueryContext, scanRun, text, append(c.args, limitOrDefault(f))...)
}
