// Package rows contains the code that the stores with SQL share: the methods whose
// statements are the same but for the dialect, the fields of a row in the order of its
// columns, the conditions of a filter, and the checks of a change.
package rows

import (
	"fmt"
	"reflect"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// Text is a string in a text or a byte column.
type Text string

// Scan implements sql.Scanner.
func (t *Text) Scan(value any) error {
	switch v := value.(type) {
	case string:
		*t = Text(v)
	case []byte:
		*t = Text(v)
	default:
		return fmt.Errorf("the value has the type %T; expected a string or bytes", value)
	}
	return nil
}

// BytesValue implements pgtype.BytesValuer.
func (t Text) BytesValue() ([]byte, error) { return []byte(t), nil }

// ScanBytes implements pgtype.BytesScanner.
func (t *Text) ScanBytes(b []byte) error {
	*t = Text(b)
	return nil
}

// Time is a time in a time column or a column of microseconds. The time is in UTC.
type Time time.Time

// Scan implements sql.Scanner.
func (t *Time) Scan(value any) error {
	switch v := value.(type) {
	case int64:
		*t = Time(time.UnixMicro(v).UTC())
	case time.Time:
		*t = Time(v.UTC())
	default:
		return fmt.Errorf("the value has the type %T; expected a time", value)
	}
	return nil
}

// OptionalTime is a Time that is zero if the column is null or has the time 1970-01-01.
type OptionalTime time.Time

// Scan implements sql.Scanner.
func (t *OptionalTime) Scan(value any) error {
	*t = OptionalTime{}
	if value == nil {
		return nil
	}
	var at Time
	err := at.Scan(value)
	if time.Time(at).UnixMicro() != 0 {
		*t = OptionalTime(at)
	}
	return err
}

// RunFields returns the fields of a run, to scan or to store.
func RunFields(r *run.Record) []any {
	return []any{
		(*Text)(&r.ID), (*Text)(&r.User), (*Text)(&r.Client), (*Text)(&r.Workflow), (*Text)(&r.Name), (*Text)(&r.Version), (*Text)(&r.Hash), (*Text)(&r.Goal),
		(*Text)(&r.Project.ID), (*Text)(&r.Project.Path), (*Text)(&r.Project.Branch), (*Text)(&r.Project.Commit),
		(*Text)(&r.Status), (*Text)(&r.Kind), (*Text)(&r.Step), (*Text)(&r.Title), &r.Person, &r.Done, (*Text)(&r.Parent), &r.ParentSeq,
		(*Time)(&r.Created), (*Time)(&r.Updated), &r.Seq, &r.Head, (*Text)(&r.Handle),
	}
}

// EventFields returns the fields of an event.
func EventFields(e *run.Event) []any {
	return []any{
		&e.Seq, (*Time)(&e.At), (*Text)(&e.Kind), (*Text)(&e.By.User), (*Text)(&e.By.Client), (*Text)(&e.By.Via), (*[]byte)(&e.Data), &e.MAC,
	}
}

// RefFields returns the fields of the key of a document.
func RefFields(r *session.Ref) []any {
	return []any{(*Text)(&r.User), (*Text)(&r.Project), (*Text)(&r.Workflow), (*Text)(&r.ID)}
}

// DocumentFields returns the fields of a document; data is its encoded content.
func DocumentFields(d *session.Document, data *[]byte) []any {
	return append(RefFields(&d.Ref), (*Text)(&d.ProjectPath), (*Time)(&d.Created), (*Time)(&d.Updated), &d.Revision, data)
}

// SummaryFields returns the fields of the summary of a document.
func SummaryFields(d *session.Summary) []any {
	return append(RefFields(&d.Ref), (*Text)(&d.ProjectPath), (*Time)(&d.Created), (*Time)(&d.Updated), &d.Revision, (*[]byte)(&d.Dashboard))
}

// LogFields returns the fields of an entry of a validation log.
func LogFields(e *session.LogEntry) []any {
	return []any{(*Time)(&e.At), &e.Revision, (*Text)(&e.Pointer), (*Text)(&e.Message)}
}

// CheckpointFields returns the fields of a checkpoint; tags are its encoded tags.
func CheckpointFields(r *checkpoint.Record, tags any) []any {
	return []any{
		(*Text)(&r.ID), (*Text)(&r.User), (*Text)(&r.Session), (*Text)(&r.Run), &r.RunSeq, (*Text)(&r.Parent), &r.Branch, &r.Number, &r.Link,
		(*Text)(&r.Workflow), (*Text)(&r.Project), (*Text)(&r.Agent), (*Text)(&r.Name), tags, (*Text)(&r.Kind), (*Time)(&r.Created), &r.Bytes, &r.Tokens,
		&r.Sum, (*Text)(&r.Blob), &r.Stored, (*Text)(&r.Base), (*Text)(&r.Key), (*Text)(&r.Problem),
	}
}

// SeriesFields returns the fields of a series of checkpoints.
func SeriesFields(s *checkpoint.Series) []any {
	return []any{
		(*Text)(&s.User), (*Text)(&s.Session), (*Text)(&s.Run), (*Text)(&s.Workflow), (*Text)(&s.Project),
		&s.Last, &s.Count, &s.Stored, &s.Bytes, (*OptionalTime)(&s.Touched),
	}
}

// EntryFields returns the fields of an entry of the audit log.
func EntryFields(e *checkpoint.Entry) []any {
	return []any{
		(*Time)(&e.At), (*Text)(&e.Action), (*Text)(&e.User), (*Text)(&e.Session), (*Text)(&e.Checkpoint), (*Text)(&e.Client), (*Text)(&e.Detail),
	}
}

// Values returns the values of fields in the form in which a store writes them.
func (d Dialect) Values(fields []any) []any {
	list := make([]any, len(fields))
	for i, field := range fields {
		switch f := field.(type) {
		case *Text:
			list[i] = d.Value(string(*f))
		case *Time:
			list[i] = d.Value(time.Time(*f))
		default:
			list[i] = reflect.ValueOf(f).Elem().Interface()
		}
	}
	return list
}
