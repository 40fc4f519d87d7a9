package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import sessioncmd "github.com/guideway-dev/guideway/internal/cli/session"

import hookscmd "github.com/guideway-dev/guideway/internal/cli/hooks"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/migrate"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/spf13/cobra"
)

func NewMigrateCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "migrate"},
		newMigrateWorkrailCmd(a, runMigrateWorkrail), newMigratePhasesCmd(a, runMigratePhases), newMigrateHooksCmd(a, hookscmd.RunHooksImport),
	)
}

// migrateOptions is the command line of guideway migrate workrail and phases.
type migrateOptions struct {
	app    *app.App
	From   string
	DryRun bool
	JSON   bool
}

func (o *migrateOptions) addFlags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "show the changes without writing them")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func newMigrateWorkrailCmd(a *app.App, run func(context.Context, *migrateOptions) error) *cobra.Command {
	o := &migrateOptions{app: a}
	cmd := &cobra.Command{
		Use:  "workrail",
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.From == "" {
				o.From = filepath.Join(a.Host.Home(), ".workrail")
			}
			o.From = a.Host.Abs(o.From)
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.From, "from", "", "`directory` of WorkRail (default: ~/.workrail)")
	return o.addFlags(cmd)
}

func newMigratePhasesCmd(a *app.App, run func(context.Context, *migrateOptions) error) *cobra.Command {
	o := &migrateOptions{app: a}
	return o.addFlags(&cobra.Command{
		Use:  "phases DIR",
		Args: app.ExactArgs(1, "one directory", "guideway migrate phases ../team-workflows"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.From = a.Host.Abs(args[0])
			return run(cmd.Context(), o)
		},
	})
}

// newMigrateHooksCmd returns guideway hooks import under a name that users of MCP Router
// look for.
func newMigrateHooksCmd(a *app.App, run func(context.Context, *hookscmd.HooksImportOptions) error) *cobra.Command {
	o := &hookscmd.HooksImportOptions{App: a}
	return &cobra.Command{
		Use:  "hooks FILE",
		Args: app.ExactArgs(1, "one file", "guideway migrate hooks their-graph.json"),
		RunE: app.RunWithArg(run, o, &o.Name),
	}
}

// checkDefinition returns the diagnostics of a file of any dialect.
func checkDefinition(file string, data []byte) []guideway.Diagnostic {
	_, found := workflow.CheckAs(file, data, workflow.As{})
	return found
}

func (o *migrateOptions) userDir(cfg *config.Config) (string, error) {
	if cfg.Workflows.UserDir == "" {
		return "", guideway.Errorf(guideway.CodeInvalid, "the directory of your workflows is unknown, because the configuration directory is unknown").WithFix("set the environment variable HOME (USERPROFILE on Windows)")
	}
	return cfg.Workflows.UserDir, nil
}

func runMigratePhases(ctx context.Context, o *migrateOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	to, err := o.userDir(cfg)
	if err != nil {
		return err
	}
	items, err := migrate.Tree{From: o.From, To: to, Check: checkDefinition, DryRun: o.DryRun}.Copy(ctx)
	if err != nil {
		return err
	}
	return o.writeReport(items)
}

func runMigrateWorkrail(ctx context.Context, o *migrateOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	switch _, err := os.Stat(o.From); {
	case errors.Is(err, fs.ErrNotExist):
		return guideway.Errorf(guideway.CodeNotFound, "there is no WorkRail directory %s", o.From).WithFix("name the directory that WorkRail uses: guideway migrate workrail --from DIR")
	case err != nil:
		return app.ReadError(o.From, err)
	}
	to, err := o.userDir(cfg)
	if err != nil {
		return err
	}
	var items []migrate.Item
	if workflows := filepath.Join(o.From, "workflows"); fileExists(workflows) {
		if items, err = (migrate.Tree{From: workflows, To: to, Check: checkDefinition, DryRun: o.DryRun}).Copy(ctx); err != nil {
			return err
		}
	}
	sessions, err := o.migrateSessions(ctx, cfg)
	if err != nil {
		return err
	}
	items = append(append(items, sessions...), o.migrateSettings(ctx, cfg)...)
	return o.writeReport(append(items, migrate.Others(o.From)...))
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// migrateSessions copies the session documents. The store is opened only if there are any.
func (o *migrateOptions) migrateSessions(ctx context.Context, cfg *config.Config) (items []migrate.Item, err error) {
	if !fileExists(filepath.Join(o.From, "sessions")) {
		return nil, nil
	}
	if o.DryRun && !strings.HasPrefix(cfg.Store, "postgres") && !fileExists(cfg.DataDir) { // opening the store would create the data directory
		return migrate.Sessions(ctx, o.From, func(_ context.Context, doc migrate.Session) (migrate.Outcome, string, error) {
			return migrate.Copied, sessioncmd.WholeName(session.Ref{Project: doc.Project, Workflow: doc.Workflow, ID: doc.ID}), nil
		})
	}
	err = o.app.WithStore(ctx, func(ctx context.Context, s *app.Opened, person guideway.Principal) error {
		items, err = migrate.Sessions(ctx, o.From, func(ctx context.Context, doc migrate.Session) (migrate.Outcome, string, error) {
			return o.saveSession(ctx, s, person, doc)
		})
		return err
	})
	return items, err
}

// saveSession creates a document with its original times. An existing document with the
// same creation time counts as already copied.
func (o *migrateOptions) saveSession(ctx context.Context, s *app.Opened, p guideway.Principal, doc migrate.Session) (migrate.Outcome, string, error) {
	at := doc.CreatedAt
	service := session.New(session.Options{Store: s, Now: func() time.Time {
		if at.IsZero() {
			return time.Now()
		}
		return at
	}})
	if here, err := project.Detect(doc.ProjectPath); doc.ProjectPath != "" && err == nil {
		doc.Project = here.ID
	}
	name := session.Name{Project: doc.Project, Workflow: doc.Workflow, ID: doc.ID}
	shown := sessioncmd.WholeName(session.Ref{Project: doc.Project, Workflow: doc.Workflow, ID: doc.ID})
	there, err := service.Get(ctx, p, name)
	switch {
	case err == nil && reflect.DeepEqual(there.Created.UTC(), at.UTC().Truncate(time.Microsecond)):
		return migrate.Same, shown, nil
	case err == nil:
		return migrate.Kept, shown, nil
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return migrate.Broken, shown, err
	case o.DryRun:
		return migrate.Copied, shown, nil
	}
	if _, err := service.Create(ctx, p, session.CreateRequest{
		Project: doc.Project, ProjectPath: doc.ProjectPath, Workflow: doc.Workflow, ID: doc.ID, Data: doc.Data,
	}); err != nil {
		return migrate.Broken, shown, err
	}
	if doc.UpdatedAt.After(at) {
		at = doc.UpdatedAt
		if _, err := service.Update(ctx, p, name, map[string]any{}); err != nil {
			return migrate.Broken, shown, err
		}
	}
	return migrate.Copied, shown, nil
}

// migrateSettings copies the settings if Guideway accepts all of them, and otherwise
// reports how to write them.
func (o *migrateOptions) migrateSettings(ctx context.Context, cfg *config.Config) []migrate.Item {
	item := migrate.Item{Kind: "settings", From: filepath.Join(o.From, "config.json")}
	data, err := os.ReadFile(item.From)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		item.Outcome, item.Reason, item.Fix = migrate.Broken, app.ReadError(item.From, err).Error(), "make the file readable for this user"
		return []migrate.Item{item}
	}
	_, err = config.Load(config.Options{File: item.From, Getenv: func(name string) string {
		if name == "HOME" || name == "USERPROFILE" {
			return o.app.Host.Getenv(name)
		}
		return ""
	}, Dir: o.From})
	if err != nil {
		item.Outcome, item.Reason, item.Diagnostics = migrate.Broken, "config.json is not a valid configuration of Guideway", config.DiagnosticsOf(err)
		item.Fix = "fix the errors in a copy of config.json, and save it as " + filepath.Join(cfg.Dirs.Config, "guideway.json")
		return []migrate.Item{item}
	}
	item.To = filepath.Join(cfg.Dirs.Config, "guideway.json")
	if item.Outcome, err = migrate.Put(ctx, cfg.Dirs.Config, "guideway.json", data, o.DryRun); err != nil {
		item.Reason, item.Fix = err.Error(), guideway.ErrorFix(err)
	}
	if item.Outcome == migrate.Kept {
		item.Reason = "guideway.json already exists; copy the settings that you want into it by hand"
	}
	return []migrate.Item{item}
}

// migrateAnswer is the answer of guideway migrate --json.
type migrateAnswer struct {
	DryRun bool           `json:"dry_run"`
	Items  []migrate.Item `json:"items"`
}

// writeReport prints every item. It returns an error if an item could not be copied.
func (o *migrateOptions) writeReport(items []migrate.Item) error {
	host := o.app.Host
	return host.WriteCheckResult(o.JSON, migrateAnswer{DryRun: o.DryRun, Items: app.OrEmpty(items)}, migrate.Count(items, migrate.Broken) > 0, func() { o.writeText(items) })
}

func (o *migrateOptions) writeText(items []migrate.Item) {
	host, s := o.app.Host, o.app.Host.OutStyles()
	for _, item := range items {
		outcome := string(item.Outcome)
		if o.DryRun && item.Outcome == migrate.Copied {
			outcome = "to copy"
		}
		fmt.Fprintf(host.Out, "%-7s %-9s %s\n", outcome, item.Kind, item.From)
		if item.To != "" && item.Outcome != migrate.Broken {
			fmt.Fprintf(host.Out, "          to %s\n", item.To)
		}
		if item.Reason != "" && len(item.Diagnostics) == 0 {
			fmt.Fprintf(host.Out, "          %s\n", app.OneLine(item.Reason))
		}
		if item.Outcome == migrate.Broken {
			app.WriteDiagnostics(indented{host.Out}, item.Diagnostics, s)
		}
		if item.Fix != "" {
			fmt.Fprintf(host.Out, "          next: %s\n", app.OneLine(item.Fix))
		}
	}
	did := "copied"
	if o.DryRun {
		did = "to be copied (nothing was written)"
	}
	fmt.Fprintf(host.Out, "\nFiles: %d %s, %d already copied, %d kept unchanged, %d failed, %d skipped\n", migrate.Count(items, migrate.Copied), did,
		migrate.Count(items, migrate.Same), migrate.Count(items, migrate.Kept), migrate.Count(items, migrate.Broken), migrate.Count(items, migrate.Left))
}
