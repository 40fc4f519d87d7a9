package cli

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
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/spf13/cobra"
)

// stdinName is how findings call the standard input.
const stdinName = "<stdin>"

// shownName returns the name of a file as diagnostics show it.
func shownName(name string) string {
	if name == "-" {
		return stdinName
	}
	return name
}

// found is a definition that a command was asked for.
type found struct {
	*definition.Definition
	// Entry is nil where the definition is a file that was named.
	Entry *catalog.Entry
}

// source says where the definition came from, for a person.
func (f found) source() string {
	if f.Entry == nil {
		return "file"
	}
	return f.Entry.Source.Name
}

// path is where the document is.
func (f found) path() string {
	if f.Entry == nil {
		return f.File
	}
	return f.Entry.Path
}

// isPath says whether a name is that of a file rather than an id.
func isPath(name string) bool {
	if name == "-" || strings.ContainsAny(name, `/\`) {
		return true
	}
	return isDefinitionName(name)
}

// find gives the definition of an id, or of a file. A file that does not load is
// shown with its problems on the error output.
func (a *app) find(ctx context.Context, name string) (found, error) {
	if !isPath(name) {
		return a.findID(ctx, name)
	}
	data, err := a.host.readDefinition(ctx, name)
	if err != nil {
		return found{}, err
	}
	file := shownName(name)
	def, problems := definition.Check(file, data)
	if problems = errorsOf(problems); len(problems) > 0 {
		writeDiagnostics(a.host.Err, problems, styles{})
		return found{}, guideway.Errorf(guideway.CodeInvalidDefinition, "%s is invalid (%s)", file, plural(len(problems), "error", "errors")).
			WithFix("guideway validate %s", name)
	}
	return found{Definition: def}, nil
}

func (a *app) findID(ctx context.Context, id string) (found, error) {
	_, cat, err := a.loadCatalog(ctx)
	if err != nil {
		return found{}, err
	}
	defer cat.Close()
	entry, err := cat.Get(id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		missing := guideway.Errorf(guideway.CodeNotFound, "there is no workflow with the id %q", id).WithFix("guideway list")
		if _, statErr := os.Stat(a.host.abs(id)); statErr == nil {
			return found{}, missing.WithFix("./%s, if the file is meant", id)
		}
		if fix := guideway.ErrorFix(err); fix != "" {
			return found{}, missing.WithFix("%s", fix)
		}
		return found{}, missing
	}
	if err != nil {
		return found{}, err
	}
	return found{Definition: entry.Definition, Entry: entry.Entry}, nil
}

// abs gives the path of a file that the command line names.
func (h *Host) abs(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(h.Dir, name)
}

// writeDiagnostics prints findings, each with its place, rule and fix.
func writeDiagnostics(w io.Writer, findings []guideway.Diagnostic, s styles) {
	for _, d := range findings {
		mark := s.red(string(d.Severity))
		if d.Severity == guideway.SeverityWarning {
			mark = s.yellow(string(d.Severity))
		}
		about := "[" + d.Code + "]"
		if d.Pointer != "" {
			about += " (" + oneLine(d.Pointer) + ")"
		}
		fmt.Fprintf(w, "%s: %s: %s %s\n", s.bold(place(d)), mark, oneLine(d.Message), s.faint(about))
		if d.Fix != "" {
			fmt.Fprintf(w, "  fix: %s\n", oneLine(d.Fix))
		}
	}
}

// place is file:line:column, as editors and CI systems read it.
func place(d guideway.Diagnostic) string {
	file := oneLine(d.File)
	switch {
	case d.Line == 0:
		return file
	case d.Column == 0:
		return fmt.Sprintf("%s:%d", file, d.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", file, d.Line, d.Column)
	}
}

// completeDefinitions completes ids; files are completed too.
func (a *app) completeDefinitions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cfg, err := a.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	cat, err := a.openCatalogAsItIs(cmd.Context(), cfg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	defer cat.Close()
	var ids []string
	for _, e := range cat.List(catalog.Filter{}) {
		ids = append(ids, e.ID+"\t"+oneLine(e.Name))
	}
	return ids, cobra.ShellCompDirectiveDefault
}

// errorsOf leaves out the warnings.
func errorsOf(findings []guideway.Diagnostic) []guideway.Diagnostic {
	return slices.DeleteFunc(slices.Clone(findings), func(d guideway.Diagnostic) bool {
		return d.Severity != guideway.SeverityError
	})
}

func isDefinitionName(base string) bool {
	return slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(filepath.Ext(base)))
}

// isRecording says whether a file is the recording of the machine beside it, which is
// no definition.
func isRecording(path string) bool {
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
