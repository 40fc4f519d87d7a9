package shape

import (
	"fmt"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Entries reads a list of objects. plural names the entries in messages, and where returns
// the text for the location of an entry. An entry that is not an object is reported and
// read as the zero value, so that indices do not change.
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

// Entry returns the text for the location of a list entry, such as "in node 1 ('start')". i
// is 0-based. An entry without a name has only the number.
func Entry(noun string, i int, name string) string {
	where := fmt.Sprintf("in %s %d", noun, i+1)
	if name != "" {
		where += " (" + Quote(name) + ")"
	}
	return where
}
