package workflow

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/spf13/cobra"
)

// ValidateOptions is the command line of guideway validate.
type ValidateOptions struct {
	app     *app.App
	Files   []string
	Dialect string
	Kind    string
	Strict  bool
	JSON    bool
}

// dialectNames returns all dialects.
func dialectNames() []string { return app.ToStrings(workflow.Dialects()...) }

// kindNames returns the document kinds of a dialect, or of all dialects for "".
func kindNames(dialect string) []string {
	return app.ToStrings(workflow.Kinds(guideway.Dialect(dialect))...)
}

func NewValidateCmd(a *app.App, run func(context.Context, *ValidateOptions) error) *cobra.Command {
	o := &ValidateOptions{app: a}
	cmd := &cobra.Command{
		Use: "validate FILE...",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return guideway.Errorf(guideway.CodeInvalid, "a file, a directory, or - for standard input is required").
					WithFix("guideway validate .guideway/workflows")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Files = args
			if err := checkKind(o.Dialect, o.Kind); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Dialect, "dialect", "", "`dialect` of the definitions: "+strings.Join(dialectNames(), ", ")+" (default: detected)")
	f.StringVar(&o.Kind, "kind", "", "`kind` of the documents: "+strings.Join(kindNames(""), ", ")+" (default: detected)")
	f.BoolVar(&o.Strict, "strict", false, "treat warnings as errors")
	app.AddJSONFlag(cmd, &o.JSON)
	app.AddFixedCompletion(cmd, "dialect", dialectNames())
	app.AddFixedCompletion(cmd, "kind", kindNames(""))
	return cmd
}

// checkKind returns an error if the dialect does not exist or has no documents of the kind.
// An empty dialect or kind is allowed: it is detected later from the document.
func checkKind(dialect, kind string) error {
	if dialect != "" && !slices.Contains(dialectNames(), dialect) {
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "there is no dialect %q; the dialects are %s", dialect, strings.Join(dialectNames(), ", ")).
			WithFix("--dialect %s", dialectNames()[0])}
	}
	if known := kindNames(dialect); kind != "" && !slices.Contains(known, kind) {
		what, fix := "there is no kind "+fmt.Sprintf("%q", kind), "--kind "+known[0]
		if slices.Contains(kindNames(""), kind) {
			what, fix = fmt.Sprintf("the %s dialect has no documents of the kind %q", dialect, kind), "--dialect "+dialectOf(kind)+" --kind "+kind
		}
		return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "%s; the kinds are %s", what, strings.Join(known, ", ")).WithFix("%s", fix)}
	}
	return nil
}

// dialectOf returns a dialect that has documents of a kind.
func dialectOf(kind string) string {
	for _, dialect := range dialectNames() {
		if slices.Contains(kindNames(dialect), kind) {
			return dialect
		}
	}
	return ""
}

func RunValidate(ctx context.Context, o *ValidateOptions) error {
	host := o.app.Host
	answer := app.ValidateAnswer{Files: []app.ValidateFile{}}
	for _, name := range o.Files {
		files, err := definitionFiles(ctx, host, name)
		if ctx.Err() != nil {
			return app.InterruptedError(ctx.Err())
		}
		if err != nil {
			answer.Add(app.ValidateFile{File: name, Diagnostics: []guideway.Diagnostic{}, Error: err.Error()})
			continue
		}
		for _, file := range files {
			if err := checkLink(host, name, file); err != nil {
				answer.Add(app.ValidateFile{File: file, Diagnostics: []guideway.Diagnostic{}, Error: err.Error()})
				continue
			}
			if !slices.ContainsFunc(answer.Files, func(f app.ValidateFile) bool { return f.File == file }) {
				answer.Add(validateFile(ctx, host, file, workflow.As{Dialect: guideway.Dialect(o.Dialect), Kind: phases.Kind(o.Kind)}))
			}
			if err := ctx.Err(); err != nil {
				return app.InterruptedError(err)
			}
		}
	}
	return answer.Finish(host, o.Strict, o.JSON)
}

// checkLink returns an error for a file in dir that is a link out of dir, because a
// diagnostic could quote an unrelated file. A file that the user named may be a link to any
// place.
func checkLink(h *app.Host, dir, file string) error {
	if file == dir {
		return nil
	}
	root, err := filepath.EvalSymlinks(h.Abs(dir))
	if err != nil {
		return app.ReadError(file, err)
	}
	target, err := filepath.EvalSymlinks(h.Abs(file))
	if err != nil {
		return app.ReadError(file, err)
	}
	if rel, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(rel) {
		return guideway.Errorf(guideway.CodeForbidden, "%s is a link to a file outside %s, and such links are not followed", file, dir).
			WithFix("replace the link with a copy of the file")
	}
	return nil
}

// validateFile checks one file.
func validateFile(ctx context.Context, h *app.Host, name string, as workflow.As) app.ValidateFile {
	file := app.ValidateFile{File: name, Diagnostics: []guideway.Diagnostic{}}
	data, err := h.ReadDefinition(ctx, name)
	if err != nil {
		file.Error = err.Error()
		return file
	}
	shown := app.DisplayName(name)
	if strings.HasSuffix(filepath.ToSlash(h.Abs(name)), "/"+checksfile.Path) && as.Dialect == "" {
		found := checksfile.Parse(shown, data).Diagnostics
		file.Diagnostics, file.Valid = app.OrEmpty(found), len(app.FilterErrors(found)) == 0
		return file
	}
	if name != "-" && isMachine(shown, data, as) {
		return validateMachine(h, name, file)
	}
	def, found := workflow.CheckAs(shown, data, as)
	if def != nil && def.Workflow != nil && name != "-" {
		found = workflow.Lint(def.Workflow, data, phases.Layout{Guides: listGuides(h.Abs(name))})
	}
	file.Diagnostics = app.OrEmpty(found)
	if def != nil {
		file.Valid, file.ID, file.Dialect, file.Hash = len(app.FilterErrors(found)) == 0, def.ID, def.Dialect, def.Hash
		if def.Dialect != guideway.DialectSteps {
			file.Kind = def.Kind
		}
	}
	return file
}

// listGuides returns the guides that belong to a workflow file NAME, in the directory
// NAME/guides next to it, or in guides next to it if its own directory is NAME; nil if
// there is no such directory.
func listGuides(file string) []string {
	dir, base := filepath.Split(file)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	guides := filepath.Join(dir, name, "guides")
	if filepath.Base(dir) == name {
		guides = filepath.Join(dir, "guides")
	}
	entries, err := os.ReadDir(guides)
	if err != nil {
		return nil
	}
	files := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			files = append(files, e.Name())
		}
	}
	return files
}

// definitionFiles returns the file, or the definitions below a directory that the catalog
// would read, including those in .guideway.
func definitionFiles(ctx context.Context, h *app.Host, name string) ([]string, error) {
	if name == "-" {
		return []string{name}, nil
	}
	root, err := filepath.EvalSymlinks(h.Abs(name))
	if err != nil {
		return nil, app.ReadError(name, err)
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		base := filepath.Base(path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && path == root:
			return err
		case path == root && !entry.IsDir():
			files = []string{name}
			return fs.SkipAll
		case path == root:
			return nil
		case isSkipped(base) && entry.IsDir():
			return fs.SkipDir
		case isSkipped(base) || entry.IsDir() && err == nil:
			return nil
		case err != nil || app.HasDefinitionExt(base) && !isAuxiliaryFile(path):
			rel, relErr := filepath.Rel(root, path)
			if relErr != nil {
				return relErr
			}
			files = append(files, filepath.Join(name, rel)) // reading the file reports the error
		}
		return nil
	})
	if err != nil {
		return nil, app.ReadError(name, err)
	}
	if len(files) == 0 {
		return nil, guideway.Errorf(guideway.CodeNotFound, "%s has no definition in a .yaml, .yml or .json file", name).
			WithFix("name a file, or a directory with definitions")
	}
	return files, nil
}

// isSkipped reports whether a name below a directory is skipped.
func isSkipped(base string) bool {
	return strings.HasPrefix(base, ".") && base != ".guideway" || base == "testdata" || base == "node_modules"
}

// isAuxiliaryFile reports whether a file is the recording of a machine, or is in a
// directory of rules or guides of phase workflows. Such files are not definitions.
func isAuxiliaryFile(file string) bool {
	if app.IsRecording(file) {
		return true
	}
	parts := strings.Split(filepath.ToSlash(file), "/")
	for _, depth := range []int{2, 3} {
		entry, ok := phases.Locate(strings.Join(parts[max(0, len(parts)-depth):], "/"))
		if ok && (entry.Kind == phases.EntryRules || entry.Kind == phases.EntryGuide) {
			return true
		}
	}
	return false
}
