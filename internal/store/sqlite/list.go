package sqlite

import (
	"context"
	"strings"

	"github.com/guideway-dev/guideway/internal/run"
)

// defaultLimit is how many runs a list or a search gives that names no limit.
const defaultLimit = 100

// conditions is the WHERE of a query, and its values. The texts are this
// package's own; what a caller gives is a value.
type conditions struct {
	texts []string
	args  []any
}

// add adds a condition with its values.
func (c *conditions) add(text string, args ...any) {
	c.texts = append(c.texts, text)
	c.args = append(c.args, args...)
}

// query puts the conditions behind a SELECT and before what follows.
func (c *conditions) query(what, rest string) string {
	if len(c.texts) == 0 {
		return what + rest
	}
	return what + " WHERE " + strings.Join(c.texts, " AND ") + rest
}

// equal adds a condition on a column unless the value is empty.
func (c *conditions) equal(column, value string) {
	if value != "" {
		c.add(column+" = ?", value)
	}
}

// choose gives the conditions of a filter on the table runs.
func choose(f run.Filter) *conditions {
	c := &conditions{}
	c.equal("user", f.User)
	c.equal("project", f.Project)
	c.equal("workflow", f.Workflow)
	if len(f.Statuses) > 0 {
		args := make([]any, 0, len(f.Statuses))
		for _, status := range f.Statuses {
			args = append(args, string(status))
		}
		c.add("status IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	}
	if !f.Since.IsZero() {
		c.add("updated >= ?", fromTime(f.Since))
	}
	if !f.Until.IsZero() {
		c.add("updated < ?", fromTime(f.Until))
	}
	if f.Person {
		c.add("person = 1") // as the index has it
	}
	if f.Before != nil {
		c.add("(updated, id) < (?, ?)", fromTime(f.Before.Updated), f.Before.ID)
	}
	return c
}

// limitOf gives the limit of a filter.
func limitOf(f run.Filter) int {
	if f.Limit <= 0 {
		return defaultLimit
	}
	return f.Limit
}

// Runs implements run.Index.
func (s *Store) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	c := choose(f)
	text := c.query(`SELECT `+runColumns+` FROM runs`, ` ORDER BY updated DESC, id DESC LIMIT ?`)
	return readList(ctx, s, "list runs", s.readers.db.QueryContext, scanRun, text, append(c.args, limitOf(f))...)
}
