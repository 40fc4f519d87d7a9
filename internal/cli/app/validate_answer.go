package app

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// ValidateAnswer is the output of guideway validate --json and guideway hooks validate
// --json.
type ValidateAnswer struct {
	Valid   bool           `json:"valid"`
	Files   []ValidateFile `json:"files"`
	Summary struct {
		Files      int `json:"files"`
		Valid      int `json:"valid"`
		Invalid    int `json:"invalid"`
		Unreadable int `json:"unreadable"`
		Errors     int `json:"errors"`
		Warnings   int `json:"warnings"`
	} `json:"summary"`
}

// ValidateFile is the result for one file.
type ValidateFile struct {
	File string `json:"file"`
	// Valid reports whether the definition has no errors.
	Valid   bool             `json:"valid"`
	ID      string           `json:"id,omitempty"`
	Dialect guideway.Dialect `json:"dialect,omitempty"`
	// Kind is the kind of document, in a dialect that has several.
	Kind        phases.Kind           `json:"kind,omitempty"`
	Hash        string                `json:"hash,omitempty"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
	// Error is set if the file could not be read, or the graph was not found.
	Error string `json:"error,omitempty"`
}

// Add adds the result of a file.
func (a *ValidateAnswer) Add(f ValidateFile) {
	a.Files = append(a.Files, f)
	a.Summary.Files++
	switch {
	case f.Error != "":
		a.Summary.Unreadable++
	case f.Valid:
		a.Summary.Valid++
	default:
		a.Summary.Invalid++
	}
	for _, d := range f.Diagnostics {
		if d.Severity == guideway.SeverityError {
			a.Summary.Errors++
		} else {
			a.Summary.Warnings++
		}
	}
}

func (a *ValidateAnswer) writeText(host *Host) {
	s := host.OutStyles()
	findings := false
	for _, f := range a.Files {
		WriteDiagnostics(host.Out, f.Diagnostics, s)
		findings = findings || len(f.Diagnostics) > 0
	}
	if findings {
		fmt.Fprintln(host.Out)
	}
	sum := a.Summary
	parts := []string{s.Green(fmt.Sprintf("%d valid", sum.Valid))}
	if sum.Invalid > 0 {
		parts = append(parts, s.Red(fmt.Sprintf("%d invalid", sum.Invalid)))
	}
	if sum.Unreadable > 0 {
		parts = append(parts, s.Red(fmt.Sprintf("%d unreadable", sum.Unreadable)))
	}
	fmt.Fprintf(host.Out, "%s checked: %s; %s, %s\n", Plural(sum.Files, "file", "files"), strings.Join(parts, ", "),
		Plural(sum.Errors, "error", "errors"), Plural(sum.Warnings, "warning", "warnings"))
	for _, f := range a.Files {
		if f.Error != "" {
			fmt.Fprintf(host.Err, "error: %s\n", EscapeText(f.Error))
		}
	}
}

// Finish prints the answer and returns the error with the exit code.
func (a *ValidateAnswer) Finish(host *Host, strict, asJSON bool) error {
	sum := a.Summary
	a.Valid = sum.Invalid+sum.Unreadable == 0 && (!strict || sum.Warnings == 0)
	if err := host.WriteJSONOr(asJSON, a, func() { a.writeText(host) }); err != nil {
		return err
	}
	switch {
	case sum.Unreadable > 0:
		return SilentError{Code: ExitFailed}
	case !a.Valid:
		return SilentError{Code: ExitInvalid}
	default:
		return nil
	}
}
