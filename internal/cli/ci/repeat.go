package ci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/policy"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// CheckState is the result of a check of the change.
type CheckState string

// The results. StateTrusted means that the attested result counts, because a trusted host
// signed it.
const (
	StatePassed  CheckState = "passed"
	StateFailed  CheckState = "failed"
	StateUnknown CheckState = "unknown"
	StateTrusted CheckState = "trusted"
)

// Check is a check of the change.
type Check struct {
	Name       string     `json:"name"`
	State      CheckState `json:"state"`
	Argv       []string   `json:"argv,omitempty"`
	ExitCode   *int       `json:"exitCode,omitempty"`
	DurationMS int64      `json:"durationMs"`
	// Message explains a result other than passed, Output is the end of the output.
	Message string `json:"message,omitempty"`
	Output  string `json:"output,omitempty"`
	// Replaced are the files that define the check and that the base replaced.
	Replaced []string `json:"replaced,omitempty"`
	// Host is the trusted host of the result.
	Host string `json:"host,omitempty"`

	// changed allows the definition of the change. with are the attested parameters.
	changed bool
	with    map[string]string
}

// repeatChecks executes the checks of the evidence on a clean checkout of the head.
func (c *change) repeatChecks(ctx context.Context) error {
	for _, need := range c.report.Needs {
		if need.meets != nil {
			c.collectChecks(need)
		}
	}
	if !slices.ContainsFunc(c.report.Checks, func(check *Check) bool { return check.State == StateUnknown }) {
		return nil
	}
	temp, err := os.MkdirTemp("", "guideway-ci-")
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "create a temporary directory: %w", err).
			WithFix("make %s writable for this user, and check that its disk is not full", os.TempDir())
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "resolve the path of the temporary directory: %w", err).WithFix("set TMPDIR (TMP on Windows) to a directory that this user can read and write")
	}
	clean := checkouts{base: filepath.Join(temp, "base"), head: filepath.Join(temp, "head")}
	if err := errors.Join(c.repo.CheckOut(ctx, c.base.ID, clean.base), c.repo.CheckOut(ctx, c.head.ID, clean.head)); err != nil {
		return err
	}
	for _, name := range c.policy.Prepare {
		check := &Check{Name: name, State: StateUnknown, changed: c.o.ChangedChecks}
		if err := c.execute(ctx, &clean, check); err != nil {
			return err
		}
		if check.State != StatePassed {
			return guideway.Errorf(guideway.CodeUnavailable, "the clean checkout cannot be prepared: the check %s did not pass: %s", name, check.Message).
				WithFix("correct the check %s, or remove it from \"prepare\" in the policy", name)
		}
	}
	for _, changed := range []bool{true, false} { // first the checks with files of the head, because files of the base that replace them stay in the checkout
		for _, check := range c.report.Checks {
			if check.State == StateUnknown && check.changed == changed {
				if err := c.execute(ctx, &clean, check); err != nil {
					c.addProblem(err)
				}
			}
		}
	}
	return nil
}

// collectChecks adds the checks of the evidence of a rule, and refuses required evidence that
// cannot be repeated.
func (c *change) collectChecks(need *Need) {
	s := need.meets.statement
	last := map[string]*attest.Check{}
	var names []string
	for i := range s.Predicate.Steps {
		for j := range s.Predicate.Steps[i].Checks {
			check := &s.Predicate.Steps[i].Checks[j]
			if check.Name == "" {
				continue
			}
			if last[check.Name] == nil {
				names = append(names, check.Name)
			}
			last[check.Name] = check
		}
	}
	for _, name := range names {
		if check := last[name]; check.Passed && check.Workspace.Content() == s.Tree() {
			c.addCheck(check, c.trustedHost(need.meets, check), need.rule)
		}
	}
	for _, id := range need.rule.Evidence {
		i := len(s.Predicate.Steps) - 1
		for i >= 0 && s.Predicate.Steps[i].ID != id {
			i--
		}
		if i < 0 || last[id] != nil {
			continue // id is the name of a check, not the id of a step
		}
		for j := range s.Predicate.Steps[i].Checks {
			check := &s.Predicate.Steps[i].Checks[j]
			repeated := slices.ContainsFunc(c.report.Checks, func(known *Check) bool { return known.Name == check.Name })
			if check.Decided && !repeated && c.trustedHost(need.meets, check) == "" {
				need.Refusals = append(need.Refusals, &attest.Refusal{
					Reason: ReasonNotRepeated, Message: fmt.Sprintf("the evidence of the step %s cannot be repeated: it is the result of the rule %s", id, check.Title()),
					Fix: "require a check of the project by its name, or trust the host " + cmp.Or(check.Host, "of the result") + " in the policy",
				})
			}
		}
	}
}

// trustedHost returns the host of a check if the policy trusts it with the key that signed.
func (c *change) trustedHost(a *Attestation, check *attest.Check) string {
	for _, key := range a.Keys {
		if slices.Contains(c.hosts[key], check.Host) {
			return check.Host
		}
	}
	return ""
}

// addCheck adds a check. If several rules need the check, the strictest one applies.
func (c *change) addCheck(attested *attest.Check, host string, rule *policy.Rule) {
	state, changed := StateUnknown, rule.ChangedChecks || c.o.ChangedChecks
	if host != "" {
		state = StateTrusted
	}
	if i := slices.IndexFunc(c.report.Checks, func(check *Check) bool { return check.Name == attested.Name }); i >= 0 {
		known := c.report.Checks[i]
		known.changed = known.changed && changed
		if host == "" {
			known.State, known.Host = StateUnknown, ""
		}
		return
	}
	c.report.Checks = append(c.report.Checks, &Check{Name: attested.Name, State: state, Host: host, changed: changed, with: attested.With})
}

// checkouts are the directories of clean checkouts of the base and the head.
type checkouts struct{ base, head string }

// execute executes a check in the checkout of the head. An error means that the result is
// not known.
func (c *change) execute(ctx context.Context, clean *checkouts, check *Check) error {
	from, side := clean.base, "base"
	if check.changed {
		from, side = clean.head, "change"
	}
	definition, err := checksfile.Load(from).Get(check.Name)
	if err != nil {
		return wrapError(err, "the check "+check.Name+" of the "+side)
	}
	var subject *checksfile.Subject
	if check.changed {
		subject, err = checksfile.NewSubject(clean.head, definition)
	} else {
		subject, err = clean.replaceDefinition(definition, check)
	}
	if err != nil {
		return wrapError(err, "the check "+check.Name)
	}
	record, err := subject.Record("the reviewed base " + c.o.Base)
	if err != nil {
		return err
	}
	changes, err := c.approvedChanges(clean.head)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.o.app.Host.Err, "executing the check %s\n", app.OneLine(check.Name))
	rule := &criteria.CheckRule{Type: criteria.NamedCheck, Check: check.Name, With: check.requiredParameters(definition)}
	result, err := c.o.execute(ctx, approval.Records{record, changes}, evidence.Request{
		Run: requestRun, Step: requestRun, Key: "/" + check.Name, Template: rule, Rule: rule, ProjectPath: clean.head,
		Start: &evidence.Workspace{Root: clean.head, Commit: c.ancestor.ID, Tree: c.ancestor.Tree, WorkTree: c.ancestor.Tree},
	})
	if err != nil {
		return wrapError(err, "the check "+check.Name)
	}
	check.setResult(&result)
	if check.State == StateUnknown {
		return guideway.Errorf(guideway.CodeUnavailable, "the check %s has no result: %s", check.Name, check.Message).WithFix("correct the environment of the job, and repeat the job")
	}
	return nil
}

// requiredParameters returns the attested values of the parameters without a default. The
// agent selected the attested values, so the default of a parameter takes precedence.
func (check *Check) requiredParameters(definition *checksfile.Check) map[string]string {
	with := map[string]string{}
	for _, p := range definition.Parameters {
		if value, ok := check.with[p.Name]; ok && p.Default == nil {
			with[p.Name] = value
		}
	}
	return with
}

// requestRun replaces the id of a run in requests for checks.
const requestRun = "ci"

// approvedChanges returns the changes of protected files that the attestations of the change
// approve.
func (c *change) approvedChanges(root string) (approval.Record, error) {
	var changes []checksfile.ProtectedChange
	for _, need := range c.report.Needs {
		if need.meets == nil || need.meets.statement.Predicate.Protected == nil {
			continue
		}
		for _, change := range need.meets.statement.Predicate.Protected.Changes {
			changes = append(changes, checksfile.ProtectedChange(change))
		}
	}
	return checksfile.NewChangesRecord(root, requestRun, "the attestation", changes)
}

// wrapError adds the subject of an error to its message, and keeps its fix.
func wrapError(err error, what string) error {
	return guideway.Errorf(guideway.ErrorCode(err), "%s: %w", what, err).WithFix("%s", guideway.ErrorFix(err))
}

// setResult sets the result of an execution.
func (check *Check) setResult(r *evidence.Result) {
	const most = 4 << 10
	check.Argv, check.ExitCode, check.DurationMS, check.Message = r.Argv, r.ExitCode, r.DurationMS, r.Issue
	switch {
	case r.Undefined || r.Inconclusive:
		check.State = StateUnknown
	case r.Passed:
		check.State = StatePassed
	default:
		check.State = StateFailed
	}
	if check.State != StatePassed {
		output := r.Head + r.Tail
		check.Output = output[max(0, len(output)-most):]
	}
}

// replaceDefinition replaces the checks file and the files that define a check in the head
// with those of the base, and returns the subject that is then executed.
func (c *checkouts) replaceDefinition(definition *checksfile.Check, check *Check) (*checksfile.Subject, error) {
	base, err := checksfile.NewSubject(c.base, definition)
	if err != nil {
		return nil, err
	}
	if err := c.replace(checksfile.Path, check); err != nil {
		return nil, err
	}
	const rounds = 5 // a replaced file can name other files
	for range rounds {
		head, err := checksfile.NewSubject(c.head, definition)
		if err != nil {
			return nil, err
		}
		if head.Hash == base.Hash {
			return head, nil
		}
		for _, f := range append(slices.Clone(base.Files), head.Files...) {
			if err := c.replace(f.Path, check); err != nil {
				return nil, err
			}
		}
	}
	return nil, guideway.Errorf(guideway.CodeRefused, "the files of the change that define the check %s cannot be replaced with those of the base", check.Name).
		WithFix("change the definition of the check in a change of its own, or pass --trust-changed-checks")
}

// replace replaces a file of the head with the one of the base, or removes it if the base
// does not have it.
func (c *checkouts) replace(name string, check *Check) (err error) {
	want, wantMode, err := readFile(c.base, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	missing := err != nil
	got, gotMode, err := readFile(c.head, name)
	if same := err == nil && !missing && string(want) == string(got) && wantMode == gotMode; same || missing && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	root, err := os.OpenRoot(c.head)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if !slices.Contains(check.Replaced, name) {
		check.Replaced = append(check.Replaced, name)
	}
	local := filepath.FromSlash(name)
	if err := root.RemoveAll(local); err != nil || missing {
		return err
	}
	const dirMode = 0o755
	if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), dirMode); err != nil {
		return err
	}
	return root.WriteFile(local, want, wantMode)
}

// readFile reads a regular file below a directory.
func readFile(dir, name string) (text []byte, mode fs.FileMode, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	file, err := safeopen.OpenIn(root, name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	text, err = io.ReadAll(file)
	return text, info.Mode().Perm(), err
}
