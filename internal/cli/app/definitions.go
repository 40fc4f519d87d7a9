package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/spf13/cobra"
)

// stdinName is the file name in diagnostics for the standard input.
const stdinName = "<stdin>"

// DisplayName returns the name of a file as diagnostics show it.
func DisplayName(name string) string {
	if name == "-" {
		return stdinName
	}
	return name
}

// LoadedDefinition is a definition that a command loaded by id or path.
type LoadedDefinition struct {
	*workflow.Definition
	// Entry is nil if the definition was loaded by path.
	Entry *catalog.Entry
}

// Source returns the name of the source, or "file".
func (f LoadedDefinition) Source() string {
	if f.Entry == nil {
		return "file"
	}
	return f.Entry.Source.Name
}

// Path returns the path of the document.
func (f LoadedDefinition) Path() string {
	if f.Entry == nil {
		return f.File
	}
	return f.Entry.Path
}

// IsPath reports whether a name is a path and not an id.
func IsPath(name string) bool {
	if name == "-" || strings.ContainsAny(name, `/\`) {
		return true
	}
	return HasDefinitionExt(name)
}

// FindDefinition loads the definition with an id or at a path. If the file is invalid, it
// prints the errors on standard error.
func (a *App) FindDefinition(ctx context.Context, name string) (LoadedDefinition, error) {
	if !IsPath(name) {
		return a.findByID(ctx, name)
	}
	data, err := a.Host.ReadDefinition(ctx, name)
	if err != nil {
		return LoadedDefinition{}, err
	}
	file := DisplayName(name)
	def, problems := workflow.Check(file, data)
	if problems = FilterErrors(problems); len(problems) > 0 {
		WriteDiagnostics(a.Host.Err, problems, Styles{})
		return LoadedDefinition{}, guideway.Errorf(guideway.CodeInvalidDefinition, "%s is invalid (%s)", file, Plural(len(problems), "error", "errors")).
			WithFix("guideway validate %s", name)
	}
	return LoadedDefinition{Definition: def}, nil
}

func (a *App) findByID(ctx context.Context, id string) (LoadedDefinition, error) {
	_, cat, err := a.LoadCatalog(ctx)
	if err != nil {
		return LoadedDefinition{}, err
	}
	defer cat.Close()
	entry, err := cat.Get(id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		missing := guideway.Errorf(guideway.CodeNotFound, "there is no workflow with the id %q", id).WithFix("guideway list")
		if _, statErr := os.Stat(a.Host.Abs(id)); statErr == nil {
			return LoadedDefinition{}, missing.WithFix("use ./%s if you mean the file", id)
		}
		if fix := guideway.ErrorFix(err); fix != "" {
			return LoadedDefinition{}, missing.WithFix("%s", fix)
		}
		return LoadedDefinition{}, missing
	}
	if err != nil {
		return LoadedDefinition{}, err
	}
	return LoadedDefinition{Definition: entry.Definition, Entry: entry.Entry}, nil
}

// Abs returns the absolute path of a file named on the command line.
func (h *Host) Abs(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(h.Dir, name)
}

// WriteDiagnostics prints diagnostics, each with its position, code and fix.
func WriteDiagnostics(w io.Writer, findings []guideway.Diagnostic, s Styles) {
	for _, d := range findings {
		mark := s.Red(string(d.Severity))
		if d.Severity == guideway.SeverityWarning {
			mark = s.Yellow(string(d.Severity))
		}
		about := "[" + d.Code + "]"
		if d.Pointer != "" {
			about += " (" + OneLine(d.Pointer) + ")"
		}
		fmt.Fprintf(w, "%s: %s: %s %s\n", s.Bold(formatPosition(d)), mark, OneLine(d.Message), s.Faint(about))
		if d.Fix != "" {
			fmt.Fprintf(w, "  fix: %s\n", OneLine(d.Fix))
		}
	}
}

// formatPosition returns file:line:column, which editors and CI systems understand.
func formatPosition(d guideway.Diagnostic) string {
	file := OneLine(d.File)
	switch {
	case d.Line == 0:
		return file
	case d.Column == 0:
		return fmt.Sprintf("%s:%d", file, d.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", file, d.Line, d.Column)
	}
}

// CompleteDefinitions completes ids and file names.
func (a *App) CompleteDefinitions() cobra.CompletionFunc {
	return CompleteNames(1, NamesOrFiles, func(ctx context.Context) (ids []string, err error) {
		cat, err := a.OpenCachedCatalog(ctx)
		if err != nil {
			return nil, err
		}
		defer cat.Close()
		for _, e := range cat.List(catalog.Filter{}) {
			ids = append(ids, e.ID+"\t"+OneLine(e.Name))
		}
		return ids, nil
	})
}

// CountDiagnostics returns the numbers of errors and of warnings, such as "1 error, 2
// warnings". It omits a number that is 0.
func CountDiagnostics(diagnostics []guideway.Diagnostic) string {
	failed := len(FilterErrors(diagnostics))
	errors, warnings := Plural(failed, "error", "errors"), Plural(len(diagnostics)-failed, "warning", "warnings")
	switch failed {
	case 0:
		return warnings
	case len(diagnostics):
		return errors
	}
	return errors + ", " + warnings
}

// FilterErrors returns the diagnostics with severity error.
func FilterErrors(findings []guideway.Diagnostic) []guideway.Diagnostic {
	return slices.DeleteFunc(slices.Clone(findings), func(d guideway.Diagnostic) bool {
		return d.Severity != guideway.SeverityError
	})
}

// HasDefinitionExt reports whether a file name has the extension of a definition.
func HasDefinitionExt(base string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(filepath.Ext(base)))
}

// IsRecording reports whether a file is the recording of a machine, which is not a
// definition. The machine is in the same directory, or next to that directory with the same
// name.
func IsRecording(path string) bool {
	dir := filepath.Dir(path)
	if filepath.Base(path) != "recording.json" {
		return false
	}
	for _, config := range []string{
		filepath.Join(dir, "machine.json"), filepath.Join(dir, "machine.yaml"), filepath.Join(dir, "machine.yml"), filepath.Join(dir, "config.json"),
		dir + ".json", dir + ".yaml", dir + ".yml",
	} {
		if _, err := os.Stat(config); err == nil {
			return true
		}
	}
	return false
}
