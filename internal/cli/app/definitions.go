package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
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

const (
	// maxProjects bounds the number of projects whose definitions are kept.
	maxProjects = 8
	// projectTTL is the time for which the definitions of a project are not read again.
	projectTTL = time.Second
)

// ProjectDefinitions provides the definitions that apply in directories other than the
// working directory: those of all other sources, and those of the directory and of the top
// of its repository. They are not trusted, even if the configuration trusts the project of
// the working directory.
type ProjectDefinitions struct {
	app *App
	cfg *config.Config
	own *catalog.Catalog

	mu   sync.Mutex
	open []*projectCatalog // the most recently used first
}

type projectCatalog struct {
	dir     string
	catalog *catalog.Catalog
	mu      sync.Mutex
	loaded  time.Time
}

// NewProjectDefinitions returns the definitions of projects. own are the definitions of the
// working directory.
func (a *App) NewProjectDefinitions(cfg *config.Config, own *catalog.Catalog) *ProjectDefinitions {
	return &ProjectDefinitions{app: a, cfg: cfg, own: own}
}

// Open returns the definitions for a directory of the user of this process.
func (p *ProjectDefinitions) Open(ctx context.Context, dir string) (*catalog.Snapshot, run.Definitions, error) {
	here, err := filepath.EvalSymlinks(p.app.Host.Dir)
	found, foundErr := filepath.EvalSymlinks(dir)
	switch {
	case !p.cfg.Workflows.Project, foundErr != nil, err == nil && found == here:
		return p.own.Snapshot(), StartableDefinitions{Catalog: p.own}, nil
	case !project.IsOwned(found, p.app.Host.Dir):
		return nil, nil, guideway.Errorf(guideway.CodeForbidden, "the directory %s belongs to another user, so its workflows are not read", dir).
			WithFix("copy the workflows into a directory of your own, or name their directory in workflows.paths")
	}
	c := p.catalogOf(found)
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := p.app.Host.CurrentTime(); now.Sub(c.loaded) >= projectTTL || now.Before(c.loaded) {
		if err := c.catalog.Load(ctx); err != nil {
			return nil, nil, err
		}
		c.loaded = now
	}
	return c.catalog.Snapshot(), StartableDefinitions{Catalog: c.catalog}, nil
}

// catalogOf returns the catalog for a directory.
func (p *ProjectDefinitions) catalogOf(dir string) *projectCatalog {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.open, func(c *projectCatalog) bool { return c.dir == dir })
	if i < 0 {
		layout := p.app.layoutFor(p.cfg, dir)
		for _, name := range []string{"project", "project-guideway", "project-root", "project-root-guideway"} {
			if layout.Levels[name] == catalog.LevelTrusted {
				delete(layout.Levels, name)
			}
		}
		c := &projectCatalog{dir: dir, catalog: catalog.New(catalog.Standard(layout), catalogOptions(p.cfg))}
		p.open = append(p.open[:min(len(p.open), maxProjects-1)], c)
		i = len(p.open) - 1
	}
	c := p.open[i]
	p.open = slices.Insert(slices.Delete(p.open, i, i+1), 0, c)
	return c
}
