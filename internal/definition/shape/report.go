package shape

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/spelling"
)

// Dialect is how to speak of one dialect. Its functions may be nil.
type Dialect struct {
	// Name is the dialect's.
	Name string
	// Aliases gives the dialect's names of what people call otherwise.
	Aliases func(name string) []string
	// Sample is what a required member may look like, or "".
	Sample func(key string) string
	// Empty and TooLong say how to mend a text of such a length, by the name
	// of its field, or "".
	Empty, TooLong func(name string) string
}

// Report collects the findings on one document. The zero value, with File and
// Dialect set, is ready to use.
type Report struct {
	File    string
	Dialect Dialect
	// Canonical is the document as doc.Mark gave it.
	Canonical string
	// Found are the findings so far; Findings gives them in order.
	Found []guideway.Diagnostic

	// dropped counts the findings beyond maxFindings.
	dropped int
	// told holds what was said already; see Once.
	told map[string]bool
}

// maxFindings bounds what is said of one document: nobody reads more, and a
// hostile one could make as many as it has values.
const maxFindings = 100

// Full says that no more findings are kept.
func (r *Report) Full() bool { return len(r.Found) >= maxFindings }

// Findings are those collected, in the order of the document; a last one, of the
// severity given, counts those that were dropped.
func (r *Report) Findings(severity guideway.Severity) []guideway.Diagnostic {
	doc.Sort(r.Found)
	if r.dropped == 0 {
		return r.Found
	}
	last := r.Found[len(r.Found)-1]
	return append(r.Found, guideway.Diagnostic{
		Severity: severity, Code: CodeMore, File: r.File, Line: last.Line, Column: last.Column,
		Message: fmt.Sprintf("There are %d more findings.", r.dropped), Fix: "mend those above first",
	})
}

// Errorf reports an error.
func (r *Report) Errorf(at Place, code, fix, format string, args ...any) {
	r.add(guideway.SeverityError, at, code, fix, format, args...)
}

// Warnf reports a warning.
func (r *Report) Warnf(at Place, code, fix, format string, args ...any) {
	r.add(guideway.SeverityWarning, at, code, fix, format, args...)
}

// add reports a finding at a place.
func (r *Report) add(severity guideway.Severity, at Place, code, fix, format string, args ...any) {
	if r.Full() {
		r.dropped++
		return
	}
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	r.Found = append(r.Found, guideway.Diagnostic{
		Severity: severity, Code: code, File: r.File,
		Line: at.Line, Column: at.Column, Pointer: string(at.Pointer()),
		Message: message, Fix: fix,
	})
}

// Once says whether this is the first time that something is told.
func (r *Report) Once(what string) bool {
	if r.told[what] {
		return false
	}
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[what] = true
	return true
}

// Source is the value as canonical JSON; "" where it is missing.
func (r *Report) Source(at Place) string { return at.Node.Source(r.Canonical) }

// MaxNames bounds the names that a misspelt one is compared with.
const MaxNames = 200

// Closest gives the known word that the text most likely means, or "".
func (r *Report) Closest(text string, known []string) string {
	if r.Dialect.Aliases != nil {
		for _, other := range r.Dialect.Aliases(text) {
			if other != text && slices.Contains(known, other) {
				return other
			}
		}
	}
	return spelling.Closest(text, known[:min(len(known), MaxNames)])
}

// Guess is a fix that names the known word that the text most likely means, or
// else the other fix. The words, which may be many, are only asked for where
// somebody will read it.
func (r *Report) Guess(text string, known func() []string, other string) string {
	if r.Full() {
		return other
	}
	if guess := r.Closest(text, known()); guess != "" {
		return fmt.Sprintf("did you mean '%s'?", guess)
	}
	return other
}
