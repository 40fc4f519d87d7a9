package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/run"
)

// octets is a string that is kept as bytea.
type octets string

// BytesValue is what the driver writes.
func (o octets) BytesValue() ([]byte, error) { return []byte(o), nil }

// ScanBytes takes what the driver reads.
func (o *octets) ScanBytes(b []byte) error {
	*o = octets(b)
	return nil
}

// recordColumns are the columns of a run in the order of recordTargets and
// recordValues. In a query, runs is called r.
const recordColumns = `r.id, r.user_id, r.client, r.workflow, r.name, r.version, r.hash, r.goal, r.project, r.project_path,
	r.branch, r.commit_id, r.status, r.kind, r.step, r.title, r.person, r.done, r.parent, r.parent_seq, r.created, r.updated,
	r.seq, r.head, r.handle`

// recordTargets are where the columns of a run go.
func recordTargets(r *run.Record) []any {
	return []any{
		(*octets)(&r.ID), (*octets)(&r.User), (*octets)(&r.Client), (*octets)(&r.Workflow), (*octets)(&r.Name),
		(*octets)(&r.Version), (*octets)(&r.Hash), (*octets)(&r.Goal), (*octets)(&r.Project.ID), (*octets)(&r.Project.Path),
		(*octets)(&r.Project.Branch), (*octets)(&r.Project.Commit), (*octets)(&r.Status), (*octets)(&r.Kind), (*octets)(&r.Step),
		(*octets)(&r.Title), &r.Person, &r.Done, (*octets)(&r.Parent), &r.ParentSeq, &r.Created, &r.Updated,
		&r.Seq, &r.Head, (*octets)(&r.Handle),
	}
}

// recordValues are the columns of a run.
func recordValues(r run.Record) []any {
	return []any{
		octets(r.ID), octets(r.User), octets(r.Client), octets(r.Workflow), octets(r.Name),
		octets(r.Version), octets(r.Hash), octets(r.Goal), octets(r.Project.ID), octets(r.Project.Path),
		octets(r.Project.Branch), octets(r.Project.Commit), octets(r.Status), octets(r.Kind), octets(r.Step),
		octets(r.Title), r.Person, int64(r.Done), octets(r.Parent), r.ParentSeq, r.Created, r.Updated,
		r.Seq, r.Head, octets(r.Handle),
	}
}

// inUTC is what times are in; the driver reads them in the process's zone.
func inUTC(r *run.Record) {
	r.Created, r.Updated = r.Created.UTC(), r.Updated.UTC()
}

// scanRecord reads a run.
func scanRecord(row pgx.CollectableRow) (run.Record, error) {
	var r run.Record
	err := row.Scan(recordTargets(&r)...)
	inUTC(&r)
	return r, err
}
