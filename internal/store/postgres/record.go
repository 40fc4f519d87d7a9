package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/run"
)

// byteString is a string that is stored as bytea.
type byteString string

// BytesValue implements pgtype.BytesValuer.
func (o byteString) BytesValue() ([]byte, error) { return []byte(o), nil }

// ScanBytes implements pgtype.BytesScanner.
func (o *byteString) ScanBytes(b []byte) error {
	*o = byteString(b)
	return nil
}

// recordColumns are the columns of a run in the order of recordTargets and recordArgs. The
// table runs has the alias r.
const recordColumns = `r.id, r.user_id, r.client, r.workflow, r.name, r.version, r.hash, r.goal, r.project, r.project_path,
	r.branch, r.commit_id, r.status, r.kind, r.step, r.title, r.person, r.done, r.parent, r.parent_seq, r.created, r.updated,
	r.seq, r.head, r.handle`

// recordTargets returns the scan targets of recordColumns.
func recordTargets(r *run.Record) []any {
	return []any{
		(*byteString)(&r.ID), (*byteString)(&r.User), (*byteString)(&r.Client), (*byteString)(&r.Workflow), (*byteString)(&r.Name),
		(*byteString)(&r.Version), (*byteString)(&r.Hash), (*byteString)(&r.Goal), (*byteString)(&r.Project.ID), (*byteString)(&r.Project.Path),
		(*byteString)(&r.Project.Branch), (*byteString)(&r.Project.Commit), (*byteString)(&r.Status), (*byteString)(&r.Kind), (*byteString)(&r.Step),
		(*byteString)(&r.Title), &r.Person, &r.Done, (*byteString)(&r.Parent), &r.ParentSeq, &r.Created, &r.Updated,
		&r.Seq, &r.Head, (*byteString)(&r.Handle),
	}
}

// recordArgs returns the values of recordColumns.
func recordArgs(r run.Record) []any {
	return []any{
		byteString(r.ID), byteString(r.User), byteString(r.Client), byteString(r.Workflow), byteString(r.Name),
		byteString(r.Version), byteString(r.Hash), byteString(r.Goal), byteString(r.Project.ID), byteString(r.Project.Path),
		byteString(r.Project.Branch), byteString(r.Project.Commit), byteString(r.Status), byteString(r.Kind), byteString(r.Step),
		byteString(r.Title), r.Person, int64(r.Done), byteString(r.Parent), r.ParentSeq, r.Created, r.Updated,
		r.Seq, r.Head, byteString(r.Handle),
	}
}

// toUTC converts the times to UTC; the driver scans them in the local zone.
func toUTC(r *run.Record) {
	r.Created, r.Updated = r.Created.UTC(), r.Updated.UTC()
}

// scanRecord scans a run.
func scanRecord(row pgx.CollectableRow) (run.Record, error) {
	var r run.Record
	err := row.Scan(recordTargets(&r)...)
	toUTC(&r)
	return r, err
}
