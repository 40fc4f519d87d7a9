package rows

import (
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// The default limits of lists.
const (
	DefaultLimit     = 100
	DefaultDocuments = 1000
)

// LimitOr returns limit, or otherwise if limit is not positive.
func LimitOr(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return limit
}

// Dialect describes the tables of a store where they differ from those of other stores.
type Dialect struct {
	// User is the name of the column with the user, Number that of the column with the
	// number of a row.
	User, Number string
	// RunColumns are the columns of RunFields in the table runs r, EventColumns those of
	// EventFields.
	RunColumns, EventColumns string
	// Summaries selects the columns of SummaryFields, without conditions.
	Summaries string
	// LastPath is the path in the last changed row of a group.
	LastPath string
	// NeedsPerson is the condition that a run r waits for a person. HasTag is the condition
	// that a checkpoint c has the tag %s.
	NeedsPerson, HasTag string
	// Unnest is the table of the strings in the parameter $1, whose column is value. List
	// converts the strings to such a parameter, and to the value of the column tags. ScanList
	// returns the field for that column.
	Unnest   string
	List     func([]string) any
	ScanList func(*[]string) any
	// ForUpdate is the clause that locks the selected rows, Greatest the function for the
	// greatest of several values. Lock locks the number $1 until the end of the transaction.
	// Stores that execute one transaction at a time need no locks.
	ForUpdate, Greatest, Lock string
	// InsertDocument and UpdateDocument store a document, of which $1 to $4 are the key, $5 to
	// $8 the path, the times and the revision, $9 the data and $10 the dashboard. A condition
	// is added to the first statement of UpdateDocument. DocumentTables are the further tables
	// with rows of a document.
	InsertDocument, UpdateDocument, DocumentTables []string
	// RemoveWords deletes the words and tags of the deleted checkpoint with the number $1.
	RemoveWords []string
	// AddWords adds the condition that a checkpoint c has the words of a filter, and returns
	// the FROM clause and the order.
	AddWords func(c *Conditions, f checkpoint.Filter) (from, order string)
	// Now is the time of the database in milliseconds.
	Now string
	// Value converts a string, a time or an OptionalTime to the value of a column; it
	// returns other values unchanged.
	Value func(any) any
}

// Conditions is the WHERE clause of a query with its parameters. The texts are constants;
// input of callers is always a parameter.
type Conditions struct {
	Dialect Dialect
	Args    []any
	texts   []string
}

// Arg adds a parameter and returns its placeholder.
func (c *Conditions) Arg(value any) string {
	c.Args = append(c.Args, c.Dialect.Value(value))
	return fmt.Sprintf("$%d", len(c.Args))
}

// Add adds a condition. The verbs in its text are replaced by the placeholders of the
// values.
func (c *Conditions) Add(text string, values ...any) {
	places := make([]any, len(values))
	for i, value := range values {
		places[i] = c.Arg(value)
	}
	c.texts = append(c.texts, fmt.Sprintf(text, places...))
}

// AddIn adds the condition that a column has one of the values. There must be at least one
// value.
func (c *Conditions) AddIn(column string, values []any) {
	c.Add(column+" IN (%s"+strings.Repeat(", %s", len(values)-1)+")", values...)
}

// addOneOf is AddIn for strings. Without values it adds nothing.
func (c *Conditions) addOneOf(column string, values []string) {
	if len(values) > 0 {
		c.AddIn(column, lists.Map(values, func(value string) any { return value }))
	}
}

// addEqual adds the condition that a column has a value, unless the value is empty.
func (c *Conditions) addEqual(column, value string) {
	if value != "" {
		c.Add(column+" = %s", value)
	}
}

// addPeriod adds the condition that a time is in a period. If since or until is zero, the
// period has no bound there.
func (c *Conditions) addPeriod(column string, since, until time.Time) {
	if !since.IsZero() {
		c.Add(column+" >= %s", since)
	}
	if !until.IsZero() {
		c.Add(column+" < %s", until)
	}
}

// Query returns the query with a text that depends on the conditions.
func (c *Conditions) Query(text string) Query {
	return Query{Text: text, Args: c.Args, Varies: true}
}

// Len returns the number of conditions.
func (c *Conditions) Len() int { return len(c.texts) }

// Where returns the WHERE clause, or "" if there are no conditions.
func (c *Conditions) Where() string {
	if len(c.texts) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.texts, " AND ")
}

// AddRuns adds the conditions of a filter on runs r.
func (c *Conditions) AddRuns(f run.Filter) {
	c.addEqual("r."+c.Dialect.User, f.User)
	c.addOneOf("r."+c.Dialect.User, f.Users)
	c.addOneOf("r.id", f.IDs)
	c.addEqual("r.project", f.Project)
	c.addEqual("r.workflow", f.Workflow)
	if len(f.Statuses) > 0 {
		values := make([]any, len(f.Statuses))
		for i, status := range f.Statuses {
			values[i] = string(status)
		}
		c.AddIn("r.status", values)
	}
	c.addPeriod("r.updated", f.Since, f.Until)
	if f.Person {
		c.Add(c.Dialect.NeedsPerson)
	}
	if f.Before != nil {
		c.Add("(r.updated, r.id) < (%s, %s)", f.Before.Updated, f.Before.ID)
	}
}

// AddDocuments adds the conditions of a filter on documents. An empty user matches no
// document.
func (c *Conditions) AddDocuments(f session.Filter) {
	c.Add(c.Dialect.User+" = %s", f.Ref.User)
	c.Add("deleted IS NULL")
	c.addEqual("project", f.Ref.Project)
	c.addEqual("workflow", f.Ref.Workflow)
	c.addEqual("id", f.Ref.ID)
}

// AddCheckpoints adds the conditions of a filter on checkpoints c, except for its words.
func (c *Conditions) AddCheckpoints(f checkpoint.Filter) {
	for _, field := range [][2]string{
		{c.Dialect.User, f.User},
		{"session", f.Session},
		{"workflow", f.Workflow},
		{"project", f.Project},
		{"run", f.Run},
		{"parent", f.Parent},
		{"base", f.Base},
		{"key", f.Key},
	} {
		c.addEqual("c."+field[0], field[1])
	}
	c.addPeriod("c.created", f.Since, f.Until)
	for _, tag := range f.Tags {
		c.Add(c.Dialect.HasTag, tag)
	}
	if f.Heads {
		c.Add("NOT EXISTS (SELECT 1 FROM checkpoints n WHERE n.parent = c.id)")
	}
	switch {
	case f.All:
	case f.Fragments:
		c.Add("c.kind = 'piece'")
	default:
		c.Add("c.kind <> 'piece'")
	}
	if f.Before != nil && !f.Any {
		c.Add("c."+c.Dialect.Number+" < %s", f.Before.Pos)
	}
}

// AddHistory adds the conditions for the checkpoints c of a series, and returns the clauses
// for their order and limit.
func (c *Conditions) AddHistory(key checkpoint.SeriesKey, h checkpoint.History) (rest string) {
	c.Add("c."+c.Dialect.User+" = %s", key.User)
	c.Add("c.session = %s", key.Session)
	c.Add("c.kind <> 'piece'")
	if h.Below > 0 {
		c.Add("c.number < %s", h.Below)
	}
	rest = " ORDER BY c.number DESC"
	if h.Oldest {
		rest = " ORDER BY c.number"
	}
	return rest + c.limitOrAll(h.Limit)
}

// AddSeries adds the conditions of a filter on series, and returns the clauses for their
// order and limit.
func (c *Conditions) AddSeries(f checkpoint.SeriesFilter) (rest string) {
	c.addEqual(c.Dialect.User, f.User)
	if !f.Before.IsZero() {
		c.Add("touched < %s", f.Before)
	}
	return " ORDER BY touched, " + c.Dialect.User + ", session" + c.limitOrAll(f.Limit)
}

// AddEntries adds the conditions for the entries of the audit log of a user, or of all
// users if user is empty, and returns the clauses for their order and limit.
func (c *Conditions) AddEntries(user string, limit int) (rest string) {
	c.addEqual(c.Dialect.User, user)
	return " ORDER BY " + c.Dialect.Number + " DESC LIMIT " + c.Arg(limit)
}

// limitOrAll returns the clause for a limit, or "" if the limit is not positive.
func (c *Conditions) limitOrAll(limit int) string {
	if limit <= 0 {
		return ""
	}
	return " LIMIT " + c.Arg(limit)
}
