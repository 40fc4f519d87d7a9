package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/spf13/cobra"
)

// listOptions is the command line of guideway list.
type listOptions struct {
	app    *app
	Query  []string
	Source string
	// Dialect chooses a dialect; hooks and machines are only listed where they are
	// asked for.
	Dialect string
	JSON    bool
}

func newListCmd(a *app, run func(context.Context, *listOptions) error) *cobra.Command {
	o := &listOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list [QUERY...]",
		Short: "List the workflows of all sources",
		Long: `List the workflows that are served, from all sources. With words, those whose id,
name or description has all of them. What did not load follows, with the reason. Hook
graphs are listed by --dialect hooks, agent machines by --dialect machines, and by
"guideway hooks list" and "guideway machine list".`,
		Example: `  guideway list
  guideway list bug
  guideway list --source bundled --json`,
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
	cmd.Flags().StringVar(&o.Dialect, "dialect", "", "only definitions of this `dialect`: "+strings.Join(dialects(), ", "))
	cmd.Flags().StringVar(&o.Source, "source", "", "only those that the source of this `name` serves")
	addJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("source", a.completeSources)
	addFixedCompletion(cmd, "dialect", dialects())
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

func runList(ctx context.Context, o *listOptions) error {
	_, cat, err := o.app.loadCatalog(ctx)
	if err != nil {
		return err
	}
	defer cat.Close()
	snap := cat.Snapshot()
	findings := snap.Diagnostics()
	if o.Source != "" {
		status, err := namedSource(snap, o.Source)
		if err != nil {
			return err
		}
		findings = ofSource(findings, status)
	}
	answer := listAnswer{Definitions: []listRow{}, Diagnostics: orEmpty(findings)}
	if o.Dialect == string(guideway.DialectHooks) {
		answer.Definitions = append(answer.Definitions, o.hookRows(snap)...)
	}
	if o.Dialect == string(guideway.DialectMachines) {
		answer.Definitions = append(answer.Definitions, o.machineRows(snap)...)
	}
	for _, e := range snap.List(catalog.Filter{Source: o.Source, Dialect: guideway.Dialect(o.Dialect)}) {
		if o.matches(e) {
			answer.Definitions = append(answer.Definitions, newListRow(e))
		}
	}
	return o.app.host.writeJSONOr(o.JSON, answer, func() { o.write(answer) })
}

func newListRow(e *catalog.Entry) listRow {
	return listRow{
		ID: e.ID, Name: e.Name, Description: e.Description, Version: e.Version, Dialect: e.Dialect,
		Steps: e.Steps, Phases: e.Phases, Source: e.Source.Name, Path: e.Path, Hash: e.Hash,
		Stale: e.Stale, Overrides: e.Overrides,
	}
}

// hookRows are the hook graphs that load; their steps are their nodes.
func (o *listOptions) hookRows(snap *catalog.Snapshot) []listRow {
	var rows []listRow
	for _, e := range snap.Hooks() {
		if e.Graph == nil || o.Source != "" && o.Source != e.Source.Name || !o.has(e.ID, e.Graph.Name, e.Graph.Description) {
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

// matches says whether a definition has all words of the query.
func (o *listOptions) matches(e *catalog.Entry) bool {
	return o.has(e.ID, e.Name, e.Description)
}

// has says whether texts have all words of the query.
func (o *listOptions) has(texts ...string) bool {
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

func (o *listOptions) write(answer listAnswer) {
	host := o.app.host
	switch {
	case len(answer.Definitions) > 0:
		writeRows(host, newTable(4, "ID", "DIALECT", "STEPS", "SOURCE", "NAME").alignRight(2), answer.Definitions, func(row listRow) []string {
			return []string{row.ID, string(row.Dialect), fmt.Sprint(row.Steps), row.Source, oneLine(row.Name + ": " + row.Description)}
		})
	case len(o.Query) > 0:
		fmt.Fprintf(host.Err, "No workflow has %q. All of them: guideway list\n", strings.Join(o.Query, " "))
	default:
		fmt.Fprintln(host.Err, "There are no workflows here. Begin one: guideway init")
	}
	if len(answer.Diagnostics) > 0 {
		fmt.Fprintf(host.Err, "\n%s about definitions:\n", plural(len(answer.Diagnostics), "finding", "findings"))
		writeDiagnostics(host.Err, answer.Diagnostics, host.errStyles())
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
	return catalog.SourceStatus{}, usageError{err: guideway.Errorf(guideway.CodeInvalid,
		"there is no source %q; there are %s", name, strings.Join(names, ", ")).WithFix("guideway sources")}
}

// ofSource chooses the findings about the documents of a source.
func ofSource(findings []guideway.Diagnostic, status catalog.SourceStatus) []guideway.Diagnostic {
	root := status.Name + ":"
	if status.Location != "" {
		root = status.Location
	}
	var own []guideway.Diagnostic
	for _, d := range findings {
		if d.File == root || strings.HasPrefix(d.File, root+"/") || strings.HasPrefix(d.File, root+string(filepath.Separator)) {
			own = append(own, d)
		}
	}
	return own
}
