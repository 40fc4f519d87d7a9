package shape

import (
	"fmt"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// Entries reads a list of objects; plural names them, and where says in what words an
// entry is told. What is no object is reported and read as the zero value, so that
// positions stay.
func Entries[T any](r *Report, at Place, plural string, where func(item Place, i int) string, read func(Place) T) []T {
	if !r.Array(at, "a list of "+plural) {
		return nil
	}
	out := make([]T, len(at.Node.Items))
	for i := range at.Node.Items {
		item := at.Index(i)
		if item.Node.Kind != doc.Object {
			r.WrongType(item, "an object")
			continue
		}
		out[i] = read(item.In(where(item, i)))
	}
	return out
}

// Entry says that something is in an entry of a list: "in node 1 ('start')". The
// number counts from 0; an entry without a name has it alone.
func Entry(noun string, i int, name string) string {
	where := fmt.Sprintf("in %s %d", noun, i+1)
	if name != "" {
		where += " (" + Quote(name) + ")"
	}
	return where
}
