package shape

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Document checks that the root is an object. what names the document, such as "A
// workflow". It returns false if there is nothing to read.
func (r *Report) Document(at Place, what, fix string) bool {
	if at.Node != nil && at.Node.Kind == doc.Object {
		return true
	}
	r.Errorf(at, CodeObject, fix, "%s must be an object, but it is %s.", what, Describe(at.Node))
	return false
}

// WrongType reports a value of an unexpected kind.
func (r *Report) WrongType(at Place, want string) {
	r.Errorf(at, CodeType, typeFix(at, want), "Field '%s' %s must be %s, but it is %s.", at.Name, at.Where, want, Describe(at.Node))
}

// sampleValue returns an example value of a required member.
func (r *Report) sampleValue(key string) string {
	return cmp.Or(callText(r.Dialect.Sample, key), `"..."`)
}

// Text reads a string member that must have from low to high characters; if high is zero,
// there is no upper limit.
func (r *Report) Text(at Place, low, high int) string {
	if at.Node == nil {
		return ""
	}
	if at.Node.Kind != doc.String {
		r.WrongType(at, "a string")
		return ""
	}
	// Count characters only if the number of bytes is not sufficient to decide.
	size := len(at.Node.Text)
	if size >= low && (high == 0 || size <= high) && (low <= 1 || size > 4*low) {
		return at.Node.Text
	}
	switch size = utf8.RuneCountInString(at.Node.Text); {
	case size < low && size == 0:
		r.Errorf(at, CodeLength, r.emptyFix(at.Name), "Field '%s' %s is empty.", at.Name, at.Where)
	case size < low:
		r.Errorf(at, CodeLength, fmt.Sprintf("write at least %s", Count(low, "character")), "Field '%s' %s has %s; at least %d are required.", at.Name, at.Where, Count(size, "character"), low)
	case high > 0 && size > high:
		r.Errorf(at, CodeLength, r.tooLongFix(at.Name), "Field '%s' %s has %s; at most %d are allowed.", at.Name, at.Where, Count(size, "character"), high)
	}
	return at.Node.Text
}

// emptyFix returns the fix for an empty text.
func (r *Report) emptyFix(name string) string {
	if strings.HasSuffix(name, "]") {
		return "enter a text, or remove the entry"
	}
	return cmp.Or(callText(r.Dialect.Empty, name), "enter a text")
}

// tooLongFix returns the fix for a text that is too long.
func (r *Report) tooLongFix(name string) string {
	return cmp.Or(callText(r.Dialect.TooLong, name), "shorten the text")
}

// callText calls a function of a dialect, or returns "" if the dialect has no such function.
func callText(text func(string) string, name string) string {
	if text == nil {
		return ""
	}
	return text(name)
}

// Texts reads a member that is a list of strings of low to high characters each.
func (r *Report) Texts(at Place, low, high int) []string {
	if !r.Array(at, "a list of strings") {
		return nil
	}
	out := make([]string, 0, len(at.Node.Items))
	for i := range at.Node.Items {
		out = append(out, r.Text(at.Index(i), low, high))
	}
	return out
}

// Array checks that the value is a list. It returns false if there is nothing to read.
func (r *Report) Array(at Place, want string) bool {
	if at.Node == nil {
		return false
	}
	if at.Node.Kind != doc.Array {
		r.WrongType(at, want)
		return false
	}
	return true
}

// NotEmpty reports a list that is present but empty.
func (r *Report) NotEmpty(at Place, fix string) {
	if at.Node != nil && at.Node.Kind == doc.Array && len(at.Node.Items) == 0 {
		r.Errorf(at, CodeEmptyList, fix, "Field '%s' %s is empty.", at.Name, at.Where)
	}
}

// Unique reports duplicate elements of a list.
func (r *Report) Unique(at Place) {
	if at.Node == nil || at.Node.Kind != doc.Array || len(at.Node.Items) < 2 {
		return
	}
	seen := make(map[string]int, len(at.Node.Items))
	for i, item := range at.Node.Items {
		key := string(doc.Canonical(item))
		if first, ok := seen[key]; ok {
			r.Errorf(at.Index(i), CodeUnique, "remove one of the two elements", "Field '%s' %s repeats '%s'.", at.Index(i).Name, at.Where, at.Index(first).Name)
			continue
		}
		seen[key] = i
	}
}

// Flag reads a boolean member.
func (r *Report) Flag(at Place) bool {
	if at.Node == nil {
		return false
	}
	if at.Node.Kind != doc.Bool {
		r.WrongType(at, "true or false")
		return false
	}
	return at.Node.Flag
}

// maxPersons is the maximum number of persons that approve.
const maxPersons = 10

// Approval reads who confirms: "agent", "human", or the roles and the number of the persons.
func (r *Report) Approval(at Place) (person bool, approval *guideway.Approval) {
	if at.Node == nil || at.Node.Kind != doc.Object {
		return r.Choice(at, CodeEnum, "agent", "human") == "human", nil
	}
	r.Object(at, "by", "count")
	r.Require(at, "by")
	approval = &guideway.Approval{}
	words := []string{string(guideway.RoleOperator), string(guideway.RoleApprover), string(guideway.RoleAdmin)}
	if by := at.Key("by"); by.Node != nil && r.Array(by, "a list of roles") {
		for i := range by.Node.Items {
			approval.By = append(approval.By, guideway.Role(r.Choice(by.Index(i), CodeEnum, words...)))
		}
		r.NotEmpty(by, "name at least one role: "+strings.Join(words, ", "))
		r.Unique(by)
	}
	switch count := at.Key("count"); {
	case count.Node == nil:
	case count.Node.Kind != doc.Number:
		r.WrongType(count, "a number")
	case count.Node.Num != math.Trunc(count.Node.Num) || count.Node.Num < 1 || count.Node.Num > maxPersons:
		r.Errorf(count, CodeEnum, "write a whole number from 1 to "+strconv.Itoa(maxPersons), "Field 'count' %s is %v, not a whole number from 1 to %d.", count.Where, count.Node.Num, maxPersons)
	default:
		approval.Count = int(count.Node.Num)
	}
	return true, approval
}

// Choice reads a member with a fixed set of values.
func (r *Report) Choice(at Place, code string, words ...string) string {
	if at.Node == nil {
		return ""
	}
	text := r.Text(at, 0, 0)
	if at.Node.Kind == doc.String && !slices.Contains(words, text) {
		r.Errorf(at, code, r.Suggest(text, words, "write one of: "+strings.Join(words, ", ")), "Field '%s' %s has the value %s. It must be one of: %s.", at.Name, at.Where, Quote(text), strings.Join(words, ", "))
	}
	return text
}
