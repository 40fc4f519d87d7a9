// Package workflow implements the commands for workflow definitions: list, show, validate,
// schema, init.
package workflow

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	machinecmd "github.com/guideway-dev/guideway/internal/cli/machine"
	"github.com/guideway-dev/guideway/internal/cli/server"
	sourcescmd "github.com/guideway-dev/guideway/internal/cli/sources"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/spf13/cobra"
)

// ListOptions is the command line of guideway list.
type ListOptions struct {
	app    *app.App
	Query  []string
	Source string
	// Dialect filters by dialect. Hooks and machines are listed only if it names them.
	Dialect string
	JSON    bool
}

func NewListCmd(a *app.App, run func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{app: a}
	cmd := &cobra.Command{
		Use:               "list [WORD...]",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Query = args
			if err := checkKind(o.Dialect, ""); err != nil {
				return err
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Dialect, "dialect", "", "filter by `dialect`: "+strings.Join(dialectNames(), ", "))
	cmd.Flags().StringVar(&o.Source, "source", "", "filter by the `name` of the source")
	app.AddJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("source", sourcescmd.CompleteSources(a))
	app.AddFixedCompletion(cmd, "dialect", dialectNames())
	return cmd
}

// listAnswer is the answer of guideway list --json.
type listAnswer struct {
	Definitions []listRow             `json:"definitions"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// listRow is one definition.
type listRow struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Version     string           `json:"version"`
	Dialect     guideway.Dialect `json:"dialect"`
	Steps       int              `json:"steps"`
	// Phases counts the phases of a phase workflow.
	Phases    int                  `json:"phases,omitempty"`
	Source    string               `json:"source"`
	Path      string               `json:"path"`
	Hash      string               `json:"hash"`
	Stale     bool                 `json:"stale,omitempty"`
	Overrides []catalog.Overridden `json:"overrides,omitempty"`
}

func RunList(ctx context.Context, o *ListOptions) error {
	_, cat, err := o.app.LoadCatalog(ctx)
	if err != nil {
		return err
	}
	defer cat.Close()
	snap := cat.Snapshot()
	diagnostics := snap.Diagnostics()
	if o.Source != "" {
		status, err := namedSource(snap, o.Source)
		if err != nil {
			return err
		}
		diagnostics = filterBySource(diagnostics, status)
	}
	answer := listAnswer{Definitions: []listRow{}, Diagnostics: app.OrEmpty(diagnostics)}
	if o.Dialect == string(guideway.DialectHooks) {
		answer.Definitions = append(answer.Definitions, o.hookRows(snap)...)
	}
	if o.Dialect == string(guideway.DialectMachines) {
		answer.Definitions = append(answer.Definitions, o.machineRows(snap)...)
	}
	for _, e := range snap.List(catalog.Filter{Source: o.Source, Dialect: guideway.Dialect(o.Dialect)}) {
		if o.containsAllWords(e.ID, e.Name, e.Description) {
			answer.Definitions = append(answer.Definitions, newListRow(e))
		}
	}
	return o.app.Host.WriteJSONOr(o.JSON, answer, func() { o.writeText(answer) })
}

func newListRow(e *catalog.Entry) listRow {
	return listRow{
		ID: e.ID, Name: e.Name, Description: e.Description, Version: e.Version, Dialect: e.Dialect,
		Steps: e.Steps, Phases: e.Phases, Source: e.Source.Name, Path: e.Path, Hash: e.Hash,
		Stale: e.Stale, Overrides: e.Overrides,
	}
}

// hookRows returns the hook graphs that load, with the number of their nodes as steps.
func (o *ListOptions) hookRows(snap *catalog.Snapshot) []listRow {
	var rows []listRow
	for _, e := range snap.Hooks() {
		if e.Graph == nil || o.Source != "" && o.Source != e.Source.Name || !o.containsAllWords(e.ID, e.Graph.Name, e.Graph.Description) {
			continue
		}
		row := listRow{
			ID: e.ID, Name: e.Graph.Name, Description: e.Graph.Description, Version: e.Graph.Version, Dialect: guideway.DialectHooks,
			Steps: len(e.Graph.Nodes), Source: e.Source.Name, Path: e.Path, Stale: e.Stale, Overrides: e.Overrides,
		}
		if e.Linked != nil {
			row.Hash = e.Linked.Pin
		}
		rows = append(rows, row)
	}
	return rows
}

// containsAllWords reports whether the texts contain all words of the query.
func (o *ListOptions) containsAllWords(texts ...string) bool {
	text := strings.ToLower(strings.Join(texts, "\n"))
	for _, query := range o.Query {
		for word := range strings.FieldsSeq(strings.ToLower(query)) {
			if !strings.Contains(text, word) {
				return false
			}
		}
	}
	return true
}

func (o *ListOptions) writeText(answer listAnswer) {
	host := o.app.Host
	switch {
	case len(answer.Definitions) > 0:
		app.WriteRows(host, app.NewTable(4, "ID", "DIALECT", "STEPS", "SOURCE", "NAME").AlignRight(2), answer.Definitions, func(row listRow) []string {
			return []string{row.ID, string(row.Dialect), fmt.Sprint(row.Steps), row.Source, app.OneLine(row.Name + ": " + row.Description)}
		})
	case len(o.Query) > 0:
		fmt.Fprintf(host.Err, "No definition matches %q; to list all workflows: guideway list\n", strings.Join(o.Query, " "))
	case o.Source != "" || o.Dialect != "":
		fmt.Fprintln(host.Err, "No definition matches the filters; to list all workflows: guideway list")
	default:
		fmt.Fprintln(host.Err, "There are no workflows. To create one: guideway init")
	}
	if len(answer.Diagnostics) > 0 {
		fmt.Fprintf(host.Err, "\n%s in definitions:\n", app.CountDiagnostics(answer.Diagnostics))
		app.WriteDiagnostics(host.Err, answer.Diagnostics, host.ErrStyles())
	}
}

// namedSource finds a source by its name.
func namedSource(snap *catalog.Snapshot, name string) (catalog.SourceStatus, error) {
	var names []string
	for _, status := range snap.Sources() {
		if status.Name == name {
			return status, nil
		}
		names = append(names, status.Name)
	}
	return catalog.SourceStatus{}, app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid,
		"there is no source %q; the sources are %s", name, strings.Join(names, ", ")).WithFix("guideway sources")}
}

// filterBySource returns the diagnostics about the documents of a source.
func filterBySource(diagnostics []guideway.Diagnostic, status catalog.SourceStatus) []guideway.Diagnostic {
	root := cmp.Or(status.Location, status.Name+":")
	return lists.Filter(diagnostics, func(d guideway.Diagnostic) bool {
		return d.File == root || strings.HasPrefix(d.File, root+"/") || strings.HasPrefix(d.File, root+string(filepath.Separator))
	})
}

// isMachine reports whether a document is the configuration of a machine.
func isMachine(file string, data []byte, as workflow.As) bool {
	guessed := workflow.Guess(file, data, as)
	return guessed.Dialect == guideway.DialectMachines && guessed.Kind == phases.Kind(machinedef.KindMachine)
}

// validateMachine checks a machine with the script and the roles in its directory.
func validateMachine(h *app.Host, name string, file app.ValidateFile) app.ValidateFile {
	root, err := os.OpenRoot(filepath.Dir(h.Abs(name)))
	if err != nil {
		file.Error = app.ReadError(name, err).Error()
		return file
	}
	defer root.Close()
	l := machinedef.LoadFile(safeopen.In(root), filepath.Dir(name), filepath.Base(name))
	file.Dialect, file.Kind, file.Diagnostics = guideway.DialectMachines, phases.Kind(machinedef.KindMachine), app.OrEmpty(l.Found)
	if l.Definition != nil {
		file.Valid, file.ID, file.Hash, file.Diagnostics = true, l.Definition.Name, l.Definition.Hash, app.OrEmpty(l.Lint())
	}
	return file
}

// machineRows returns the machines that load, with the number of their states as steps.
func (o *ListOptions) machineRows(snap *catalog.Snapshot) []listRow {
	var rows []listRow
	for _, e := range snap.Machines() {
		d := e.Definition
		if d == nil || o.Source != "" && o.Source != e.Source.Name || !o.containsAllWords(d.Name, d.Description) {
			continue
		}
		rows = append(rows, listRow{
			ID: d.Name, Name: d.Name, Description: d.Description, Version: d.Version, Dialect: guideway.DialectMachines,
			Steps: len(d.States), Source: e.Source.Name, Path: e.Path, Hash: d.Hash, Stale: e.Stale, Overrides: e.Overrides,
		})
	}
	return rows
}

// showMachine shows a machine if the name is the file or the directory of a machine, or the
// id of a machine in the catalog that is not also the id of a workflow.
func (o *ShowOptions) showMachine(ctx context.Context) (is bool, err error) {
	if o.Name == "-" {
		return false, nil // standard input can be read only once; it is read as a workflow
	}
	if app.IsPath(o.Name) {
		info, err := os.Stat(o.app.Host.Abs(o.Name))
		switch {
		case err != nil:
			return false, nil //nolint:nilerr // the search for a workflow reports the error
		case !info.IsDir():
			data, err := o.app.Host.ReadDefinition(ctx, o.Name)
			if err != nil || !isMachine(o.Name, data, workflow.As{}) {
				return false, nil //nolint:nilerr // the search for a workflow reports the error
			}
		}
	}
	_, shelf, err := server.OpenMachineResolver(ctx, o.app)
	if err != nil {
		return false, err
	}
	if !app.IsPath(o.Name) {
		if _, err := shelf.Snapshot().Machine(o.Name); guideway.ErrorCode(err) == guideway.CodeNotFound {
			return false, nil
		}
		if _, err := shelf.Snapshot().Get(o.Name); guideway.ErrorCode(err) != guideway.CodeNotFound {
			return false, nil
		}
	}
	return true, (&machinecmd.MachineShowOptions{App: o.app, Name: o.Name, Graph: o.Graph, JSON: o.JSON}).ShowMachine(shelf)
}
