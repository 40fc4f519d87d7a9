// Package checks implements the commands for the checks of a project.
package checks

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/spf13/cobra"
)

// NewChecksCmd returns the command for the checks of a project.
func NewChecksCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "checks"}, newListCmd(a, runList), newRunCmd(a, runCheck), newApproveCmd(a, runApprove))
}

// The states of checks in addition to those of approvals.
const (
	stateBroken  checksfile.State = "broken"
	stateRemoved checksfile.State = "removed"
)

// item is a check of the workspace, or a rule of a workflow that an active run uses.
type item struct {
	Name        string        `json:"name"`
	Type        criteria.Type `json:"type"`
	Description string        `json:"description,omitempty"`
	// Argv is the command, URL the address, Tool the tool, and Protect the globs of protected
	// files.
	Argv    []string                  `json:"argv,omitempty"`
	URL     string                    `json:"url,omitempty"`
	Tool    string                    `json:"tool,omitempty"`
	Protect []string                  `json:"protect,omitempty"`
	State   checksfile.State          `json:"state"`
	Hash    string                    `json:"hash,omitempty"`
	Files   []checksfile.DefiningFile `json:"files,omitempty"`
	// ApprovedBy and ApprovedAt describe the last approval, also of another version.
	ApprovedBy string     `json:"approvedBy,omitempty"`
	ApprovedAt *time.Time `json:"approvedAt,omitempty"`
	// Runs are the active runs of the workspace whose definitions use the check.
	Runs []string `json:"runs,omitempty"`
	// Error describes why the check cannot be executed.
	Error string `json:"error,omitempty"`
	Fix   string `json:"fix,omitempty"`

	subject *checksfile.Subject
}

// isWaiting reports whether a person has to decide about the check.
func (i *item) isWaiting() bool {
	return i.State == checksfile.StateWaiting || i.State == checksfile.StateChanged || i.State == stateRemoved
}

// workspace is the checks of a workspace with their approvals.
type workspace struct {
	Root string `json:"workspace"`
	// File is the path of the checks file, which need not exist.
	File        string                `json:"file"`
	Exists      bool                  `json:"exists"`
	Checks      []item                `json:"checks"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
	cfg         *config.Config
	file        *checksfile.File
	approved    approval.Records
}

// loadChecks reads the checks file of the workspace of the working directory and the
// approvals.
func loadChecks(a *app.App) (*workspace, error) {
	cfg, err := a.Load()
	if err != nil {
		return nil, err
	}
	root, err := worktree.Root(a.Host.Dir)
	if err != nil {
		return nil, err
	}
	w := &workspace{Root: root, cfg: cfg, file: checksfile.Load(root), Checks: []item{}}
	w.File, w.Exists, w.Diagnostics = w.file.Path, w.file.Exists, app.OrEmpty(w.file.Diagnostics)
	w.approved, err = app.ReadApprovals(cfg, a.Host.CurrentTime)
	return w, err
}

// loadWorkspace is like loadChecks, and adds the subjects of the checks and of the rules that
// the active runs use.
func loadWorkspace(ctx context.Context, a *app.App) (*workspace, error) {
	w, err := loadChecks(a)
	if err != nil {
		return nil, err
	}
	for i := range w.file.Checks {
		c := &w.file.Checks[i]
		subject, err := checksfile.NewSubject(w.Root, c)
		w.add(item{Name: c.Name, Type: criteria.NamedCheck, Description: c.Description, Argv: c.Command.Argv, Protect: c.Command.Paths}, subject, err)
	}
	for _, name := range w.file.Broken {
		_, err := w.file.Find(name)
		w.add(item{Name: name, Type: criteria.NamedCheck}, nil, err)
	}
	for _, name := range w.file.Removed(w.Root, w.approved) {
		w.Checks = append(w.Checks, item{
			Name: name, Type: criteria.NamedCheck, State: stateRemoved,
			Error: "the check was approved, but " + checksfile.Path + " no longer defines it",
			Fix:   "restore the definition of the check, or confirm the removal: guideway checks approve " + name,
		})
	}
	return w, w.addRuns(ctx, a)
}

// add adds a check with its subject, or with the error that prevents its execution.
func (w *workspace) add(i item, subject *checksfile.Subject, err error) *item {
	if err != nil {
		i.State, i.Error, i.Fix = stateBroken, err.Error(), guideway.ErrorFix(err)
	} else {
		i.subject, i.State, i.Hash, i.Files = subject, subject.State(w.approved), subject.Hash, subject.Files
		if r := w.approved.Find(subject.Key()); r != nil {
			i.ApprovedBy, i.ApprovedAt = r.Who, &r.When
		}
	}
	w.Checks = append(w.Checks, i)
	return &w.Checks[len(w.Checks)-1]
}

// find returns the check of a name, or nil.
func (w *workspace) find(name string) *item {
	i := slices.IndexFunc(w.Checks, func(i item) bool { return i.Name == name })
	if i < 0 {
		return nil
	}
	return &w.Checks[i]
}

// maxRuns is the maximum number of active runs whose checks are listed.
const maxRuns = 50

// addRuns adds the checks that the active runs of the workspace use.
func (w *workspace) addRuns(ctx context.Context, a *app.App) error {
	if !app.HasStore(w.cfg) {
		return nil
	}
	return a.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		filter := run.Filter{Project: d.Project.ID, Statuses: []engine.Status{engine.StatusRunning, engine.StatusWaiting}, Limit: maxRuns}
		records, err := d.Runs.List(ctx, d.Caller, filter)
		if err != nil {
			return err
		}
		for _, r := range records {
			if root, err := worktree.Root(r.Project.Path); err != nil || root != w.Root {
				continue
			}
			details, err := d.Runs.Get(ctx, d.Caller, run.Ref{RunID: r.ID})
			if err != nil {
				return err
			}
			w.addRun(details)
		}
		return nil
	})
}

// addRun adds the checks that a run uses.
func (w *workspace) addRun(d *run.Details) {
	definition, _ := workflow.Parse("definition.json", []byte(d.Definition))
	if definition == nil {
		return
	}
	for _, rule := range definition.CheckRules() {
		name := rule.Check
		if rule.Type != criteria.NamedCheck {
			subject, err := checksfile.NewRuleSubject(w.Root, rule, rule)
			if subject == nil {
				continue
			}
			if name = subject.Name; w.find(name) == nil {
				shown := subject.Rule
				w.add(item{Name: name, Type: shown.Type, Argv: shown.Argv, URL: shown.URL, Tool: shown.Tool}, subject, err)
			}
		}
		if i := w.find(name); i != nil && !slices.Contains(i.Runs, d.ID) {
			i.Runs = append(i.Runs, d.ID)
		}
	}
}

// subjectText describes the command, the address or the tool of a check.
func (i *item) subjectText() string {
	switch {
	case i.URL != "":
		return i.URL
	case i.Tool != "":
		return i.Tool
	case len(i.Protect) > 0:
		return "unchanged " + strings.Join(i.Protect, ", ")
	default:
		return strings.Join(i.Argv, " ")
	}
}

// completeNames completes the names of checks.
func completeNames(a *app.App, most int) cobra.CompletionFunc {
	return app.CompleteNames(most, app.NamesInOrder, func(context.Context) ([]string, error) {
		root, err := worktree.Root(a.Host.Dir)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, c := range checksfile.Load(root).Checks {
			names = append(names, c.Name+"\t"+app.OneLine(c.Description))
		}
		return names, nil
	})
}

func newListCmd(a *app.App, run func(context.Context, *app.PlainOptions) error) *cobra.Command {
	return app.NewPlainCmd(a, run, &cobra.Command{Use: "list"})
}

func runList(ctx context.Context, o *app.PlainOptions) error {
	w, err := loadWorkspace(ctx, o.App)
	if err != nil {
		return err
	}
	host := o.App.Host
	if !o.JSON {
		app.WriteDiagnostics(host.Err, w.Diagnostics, host.ErrStyles())
	}
	empty := "This project has no checks. To propose them: guideway init --dialect none"
	if w.Exists {
		empty = "There is no usable check in " + w.File + "."
	}
	more := ""
	for i := range w.Checks {
		if w.Checks[i].isWaiting() {
			more = "To review the checks that are not approved: guideway checks approve"
		}
	}
	err = app.WriteList(host, o.JSON, app.Listing[item]{
		Items: w.Checks, Answer: w, Empty: empty, More: more,
		Table: app.NewTable(2, "NAME", "STATE", "CHECKS", "FILES", "DESCRIPTION"),
		Row: func(i item) []string {
			files := lists.Map(i.Files, func(f checksfile.DefiningFile) string { return f.Path })
			description := i.Description
			if i.Error != "" {
				description = i.Error
			}
			return []string{i.Name, string(i.State), app.OrDash(i.subjectText()), app.OrDash(strings.Join(files, ", ")), app.OrDash(description)}
		},
	})
	if err == nil && len(app.FilterErrors(w.Diagnostics)) > 0 {
		return app.SilentError{Code: app.ExitInvalid}
	}
	return err
}
