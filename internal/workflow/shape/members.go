package shape

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Object checks that the value is an object with only known members. It returns false if
// there is nothing to read.
func (r *Report) Object(at Place, known ...string) bool {
	if !r.Open(at) {
		return false
	}
	r.Closed(at, "", known)
	return true
}

// Open checks that the value is an object with any members. It returns false if there is
// nothing to read.
func (r *Report) Open(at Place) bool {
	if at.Node == nil {
		return false
	}
	if at.Node.Kind != doc.Object {
		r.WrongType(at, "an object")
		return false
	}
	return true
}

// Element is like Object for an element of a list; the location in diagnostics inside the
// element is the element.
func (r *Report) Element(at Place, known ...string) (Place, bool) {
	inner := at.In(fmt.Sprintf("in %s %s", at.Name, at.Where))
	if at.Node.Kind != doc.Object {
		r.WrongType(at, "an object")
		return inner, false
	}
	return inner, r.Object(inner, known...)
}

// Closed reports the unknown members of an object. The fix names a similar known member if
// there is one, otherwise it is the hint, or a list of the known members if the hint is "".
func (r *Report) Closed(at Place, hint string, known []string) {
	for i := range at.Node.Members {
		key := at.Member(i)
		if slices.Contains(known, key.Name) {
			continue
		}
		if r.Full() {
			r.dropped++
			continue
		}
		fix := r.Suggest(key.Name, known, cmp.Or(hint, fmt.Sprintf("remove '%s', or use one of: %s", key.Name, strings.Join(known, ", "))))
		r.Errorf(key, CodeUnexpected, fix, "Unexpected property '%s' found %s. The %s dialect has no such property here.", key.Name, at.Where, r.Dialect.Name)
	}
}

// Require reports missing members.
func (r *Report) Require(at Place, keys ...string) {
	for _, key := range keys {
		if at.Node.Get(key) == nil {
			r.reportMissing(at, key)
		}
	}
}

// reportMissing reports a missing member.
func (r *Report) reportMissing(at Place, key string) {
	fix := fmt.Sprintf("add \"%s\": %s", key, r.sampleValue(key))
	for i := range min(len(at.Node.Members), MaxNames) {
		if r.Closest(at.Node.Members[i].Key, []string{key}) != "" {
			fix = fmt.Sprintf("rename '%s' to '%s'", at.Node.Members[i].Key, key)
		}
	}
	r.Missing(at, key, fix)
}

// Missing reports a missing member with the given fix.
func (r *Report) Missing(at Place, key, fix string) {
	r.Errorf(at, CodeRequired, fix, "Missing required field '%s' %s. This field is mandatory and must be provided.", key, at.Where)
}

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
