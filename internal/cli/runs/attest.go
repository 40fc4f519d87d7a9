package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// RunsAttestOptions is the command line of guideway runs attest.
type RunsAttestOptions struct {
	app   *app.App
	Run   string
	Out   string
	Key   string
	Force bool
	JSON  bool
}

func NewRunsAttestCmd(a *app.App, attestRun func(context.Context, *RunsAttestOptions) error) *cobra.Command {
	o := &RunsAttestOptions{app: a}
	cmd := &cobra.Command{
		Use:               "attest RUN",
		Args:              exactlyOneRun("attest"),
		ValidArgsFunction: completeRuns(a, func(r run.Record) bool { return r.Status == engine.StatusCompleted }),
		RunE:              app.RunWithArg(attestRun, o, &o.Run),
	}
	f := cmd.Flags()
	f.StringVarP(&o.Out, "out", "o", "", "write to this `file`, whose directory is created, instead of standard output")
	f.StringVar(&o.Key, "key", "", "sign with the key of this `name`; required if you have several keys")
	f.BoolVar(&o.Force, "force", false, "overwrite an existing file")
	f.BoolVar(&o.JSON, "json", false, "with --out, print the file, the subject and the numbers of steps with evidence and with claims only as JSON")
	_ = cmd.RegisterFlagCompletionFunc("key", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		cfg, err := a.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, _ := app.OpenSigningKeys(cfg).Names()
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// attested is the answer of guideway runs attest --out FILE --json.
type attested struct {
	File   string `json:"file"`
	RunID  string `json:"runId"`
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	KeyID  string `json:"keyId"`
	// Evidence and Claims count the steps.
	Evidence int `json:"evidence"`
	Claims   int `json:"claims"`
}

func runRunsAttest(ctx context.Context, o *RunsAttestOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	key, err := app.OpenSigningKeys(cfg).Choose(o.Key)
	if err != nil {
		return err
	}
	return o.app.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		details, err := d.Runs.GetWithEvents(ctx, d.Caller, parseRunRef(o.Run))
		if err != nil {
			return userError(err)
		}
		s, err := o.makeStatement(ctx, cfg, d, details)
		if err != nil {
			return err
		}
		file, err := attest.Sign(s, key.PrivateKey)
		if err != nil {
			return err
		}
		return o.writeFile(s, file, key.Public().ID())
	})
}

// makeStatement returns the statement about a run. It refuses if the run is not completed,
// its record cannot be trusted, or the workspace differs from what the last checks saw.
func (o *RunsAttestOptions) makeStatement(ctx context.Context, cfg *config.Config, d *app.RunDeps, details *run.Details) (*attest.Statement, error) {
	if details.Status != engine.StatusCompleted {
		err := guideway.Errorf(guideway.CodeRefused, "the run %s is %s, not completed", details.ID, statusText(details.Record)).
			WithFix("complete the run: guideway runs resume %s", details.ID)
		if details.Status == engine.StatusAborted {
			err = err.WithFix("complete a new run: guideway runs fork %s", details.ID)
		}
		return nil, err
	}
	report, err := d.Runs.Verify(ctx, details.ID)
	if err != nil {
		return nil, userError(err)
	}
	if len(report.Faults) > 0 {
		return nil, guideway.Errorf(guideway.CodeRefused, "the history of the run %s is broken: %s", details.ID, report.Faults[0].Message).
			WithFix("guideway runs verify %s", details.ID)
	}
	p, root, err := NewPredicate(details)
	if err != nil {
		return nil, err
	}
	p.Guideway, p.AttestedAt = app.Version(), o.app.Host.CurrentTime().UTC().Truncate(time.Second)
	if p.Protected, err = o.readProtectedApproval(cfg, root, details.ID); err != nil {
		return nil, err
	}
	state, err := worktree.NewReader(o.app.Host.CurrentTime).Read(ctx, root)
	if err != nil {
		return nil, err
	}
	if state.Commit == "" {
		return nil, guideway.Errorf(guideway.CodeRefused, "the workspace %s has no commit to attest", root).WithFix("commit the files, and attest the run again")
	}
	s := attest.NewStatement(state.Commit, state.Tree, *p)
	if refusals := s.Check(attest.Requirements{}); len(refusals) > 0 {
		return nil, refusals[0]
	}
	// An untracked file is no part of the subject: had a check seen it, the trees would differ.
	if dirty := slices.DeleteFunc(state.Dirty(), state.IsUntracked); len(dirty) > 0 {
		return nil, guideway.Errorf(guideway.CodeRefused, "%s in the workspace %s, such as %s, so the commit %s is not what the workspace contains",
			app.Plural(len(dirty), "tracked file differs from the commit", "tracked files differ from the commit"), root, app.OneLine(dirty[0]), state.Commit).
			WithFix("commit or stash the files; if a check depends on them, run its step again")
	}
	return s, nil
}

// readProtectedApproval returns the approval of changes of protected files in a run, or nil.
func (o *RunsAttestOptions) readProtectedApproval(cfg *config.Config, root, id string) (*attest.ProtectedApproval, error) {
	store, err := app.OpenApprovals(cfg, o.app.Host.CurrentTime)
	if err != nil {
		return nil, err
	}
	records, err := store.List()
	if err != nil {
		return nil, err
	}
	record := checksfile.FindChangesRecord(root, id, records)
	if record == nil {
		return nil, nil
	}
	approved := &attest.ProtectedApproval{By: record.Who, At: record.When}
	for _, c := range checksfile.ApprovedChanges(root, id, records) {
		approved.Changes = append(approved.Changes, attest.ProtectedChange(c))
	}
	return approved, nil
}

func (o *RunsAttestOptions) writeFile(s *attest.Statement, file []byte, keyID string) error {
	host := o.app.Host
	if o.Out == "" || o.Out == "-" {
		if _, err := host.Out.Write(file); err != nil {
			return guideway.Errorf(guideway.CodeUnavailable, "write the attestation: %w", err)
		}
		return nil
	}
	const mode, dirMode = 0o644, 0o755
	if err := os.MkdirAll(filepath.Dir(host.Abs(o.Out)), dirMode); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "create the directory of %s: %w", o.Out, err).
			WithFix("use another file, in a directory that is writable for this user")
	}
	if err := app.WriteNewFile(host.Abs(o.Out), file, mode, o.Force); err != nil {
		return err
	}
	result := attested{File: o.Out, RunID: s.Predicate.Run.ID, Commit: s.Commit(), Tree: s.Tree(), KeyID: keyID}
	for i := range s.Predicate.Steps {
		if s.Predicate.Steps[i].Label == attest.Evidence {
			result.Evidence++
		} else {
			result.Claims++
		}
	}
	return host.WriteJSONOr(o.JSON, result, func() {
		fmt.Fprintf(host.Out, "Written: %s\nThe attestation states %s and %s about the commit %s.\n", o.Out,
			app.Plural(result.Evidence, "step with evidence", "steps with evidence"), app.Plural(result.Claims, "step with a claim only", "steps with claims only"), s.Commit())
	})
}

// NewPredicate returns the predicate about a run, and the root of its workspace. The version
// of the program and the time are not set.
func NewPredicate(details *run.Details) (p *attest.Predicate, root string, err error) {
	b := predicateBuilder{root: details.Project.Path, p: &attest.Predicate{
		Run: attest.Run{
			ID: details.ID, GoalHash: attest.HashText(details.Goal), StartedAt: details.Created, CompletedAt: details.Updated,
			Events: details.Seq, Head: hex.EncodeToString(details.Head),
		},
		Workflow: attest.Workflow{ID: details.Workflow, Version: details.Version, Definition: details.Hash},
		Steps:    []attest.Step{}, Approvals: []attest.Approval{},
	}}
	for _, e := range details.Events {
		if e.By.Via == run.ViaImport {
			return nil, "", guideway.Errorf(guideway.CodeRefused, "the run %s was imported, so this installation did not observe its steps", details.ID).
				WithFix("attest the run where it was executed")
		}
		if err := b.addEvent(e); err != nil {
			return nil, "", eventError(details.ID, e, err)
		}
	}
	if b.root == "" {
		return nil, "", guideway.Errorf(guideway.CodeUnavailable, "the workspace of the run %s is unknown", details.ID).
			WithFix("attest a new run, started from a client in the project's directory")
	}
	return b.p, b.root, nil
}

// predicateBuilder collects a predicate from the events of a run.
type predicateBuilder struct {
	p *attest.Predicate
	// results are the results of the checks of the step that is not completed yet.
	results []evidence.Result
	root    string
}

func (b *predicateBuilder) addEvent(e run.Event) error {
	switch e.Kind {
	case run.KindCreated:
		var created run.Created
		if err := json.Unmarshal(e.Data, &created); err != nil {
			return err
		}
		b.addStart(created.Workspace)
	case run.KindCheckRun:
		var r evidence.Result
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return err
		}
		b.results = append(slices.DeleteFunc(b.results, func(old evidence.Result) bool { return old.Step == r.Step && old.Key == r.Key }), r)
	case run.KindRefused:
		var refused run.Refused
		if err := json.Unmarshal(e.Data, &refused); err != nil {
			return err
		}
		if b.p.Refused == nil {
			b.p.Refused = map[string]int{}
		}
		b.p.Refused[refused.Rule]++
	default:
		fact, ok, err := decodeEngineEvent(e)
		if err != nil {
			return err
		}
		if ok {
			b.addFact(e, fact)
		}
	}
	return nil
}

func (b *predicateBuilder) addStart(w *evidence.Workspace) {
	if w != nil {
		b.root, b.p.Start = w.Root, newWorkspace(w)
	}
}

func (b *predicateBuilder) addFact(e run.Event, fact engine.Event) {
	switch fact.Kind {
	case engine.EventStepCompleted:
		step := attest.Step{ID: fact.Step, Round: fact.Round, Seq: e.Seq, At: e.At, OutputHash: attest.HashText(fact.Output)}
		for _, outcome := range fact.Evidence {
			// A fork has the outcomes of its parent's checks without their results: they are
			// evidence in the attestation of the parent only.
			i := slices.IndexFunc(b.results, func(r evidence.Result) bool { return r.Step == fact.Step && r.Key == outcome.Key })
			if i >= 0 {
				step.Checks = append(step.Checks, b.newCheck(&b.results[i], outcome))
			}
		}
		step.Label = attest.LabelOf(step.Checks)
		b.p.Steps, b.results = append(b.p.Steps, step), nil
	case engine.EventStepSkipped:
		b.p.Skipped = append(b.p.Skipped, fact.Step)
	case engine.EventGateApproved, engine.EventGateAnswered, engine.EventCheckpointAnswer:
		b.p.Approvals = append(b.p.Approvals, attest.Approval{
			Gate: fact.Step, Option: fact.Option, Seq: e.Seq, At: e.At, By: e.By.User, Via: string(e.By.Via), Person: e.By.Via.Person(),
		})
	}
}

func (b *predicateBuilder) newCheck(r *evidence.Result, outcome engine.Evidence) attest.Check {
	check := attest.Check{
		Key: r.Key, Type: r.Type, Name: r.Name, With: r.With, Definition: r.Hash,
		Passed: outcome.Passed, Decided: outcome.Decided, Inconclusive: outcome.Inconclusive, Undefined: outcome.Undefined,
		Argv: r.Argv, ExitCode: r.ExitCode, DurationMS: r.DurationMS, OutputHash: r.OutputHash,
		Instance: r.Instance, Reused: r.Reused, Sandboxed: r.Sandboxed,
	}
	if w := r.Workspace; w != nil {
		if check.Workspace = newWorkspace(w); !w.Connect { // a policy must not trust the name that guideway connect reports
			check.Host = w.Host
		}
		b.root = cmp.Or(w.Root, b.root)
	}
	return check
}

func newWorkspace(w *evidence.Workspace) *attest.Workspace {
	return &attest.Workspace{Commit: w.Commit, Tree: w.Tree, WorkTree: w.WorkTree, Dirty: w.DirtyCount}
}
