// Package execute executes the checks of a run in its workspace.
//
// A check has the powers of this process, unless it runs in a sandbox. Commands, tools and
// requests to this machine are executed only after a person approved them; see package
// checksfile. A check that did not run to its end is inconclusive, so that neither the rule
// nor its negation passes.
package execute

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// Options configure a Checker. Approvals is required.
type Options struct {
	// Approvals returns the approvals of people.
	Approvals func() (approval.Records, error)
	// Tools calls the tools of the gateway; nil if there is no gateway.
	Tools Tools
	// Instance identifies the server, and Host is the name of the machine.
	Instance, Host string
	// Now returns the time. If nil, it is time.Now.
	Now func() time.Time
	// Limits are the limits of commands; zero fields have defaults.
	Limits Limits
}

// Limits are the limits of a command.
type Limits struct {
	// OutputBytes is the maximum size of the output; 0 means 64 MiB.
	OutputBytes int64
	// Processes is the maximum number of processes at once; 0 means 2,000.
	Processes int
	// Grace is the time that a command has to end after its time limit; 0 means 2 seconds.
	Grace time.Duration
	// Progress is the interval of messages about a running command; 0 means 5 seconds.
	Progress time.Duration
}

// Tools calls the tools of the gateway.
type Tools interface {
	// CallTool calls a tool. An error means that the tool did not answer.
	CallTool(ctx context.Context, name string, arguments map[string]any) (ToolResult, error)
}

// ToolResult is the result of a tool.
type ToolResult struct {
	IsError bool
	// Structured is the structured result, or nil. Text is the text of the result.
	Structured any
	Text       string
}

// Checker executes checks. It is safe for concurrent use.
type Checker struct {
	opts   Options
	reader *worktree.Reader

	mu sync.Mutex
	// cached are passed results of checks that may be reused.
	cached map[string]evidence.Result
}

// New returns a checker.
func New(opts Options) *Checker {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	setDefault(&opts.Limits.OutputBytes, 64<<20)
	setDefault(&opts.Limits.Processes, 2000)
	setDefault(&opts.Limits.Grace, 2*time.Second)
	setDefault(&opts.Limits.Progress, 5*time.Second)
	return &Checker{opts: opts, reader: worktree.NewReader(opts.Now), cached: map[string]evidence.Result{}}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Workspace returns the workspace of the directory of a project: the top of its Git work
// tree, or the directory.
func (c *Checker) Workspace(ctx context.Context, dir string) (*evidence.Workspace, error) {
	s, err := c.reader.Read(ctx, dir)
	if err != nil {
		return nil, err
	}
	return s.Workspace(c.opts.Host), nil
}

// job is the execution of one check.
type job struct {
	*Checker
	request evidence.Request
	root    string
	// rule is the rule to execute with all values filled in, and template the same rule with
	// placeholders. check is the check of the project; nil for a rule of a workflow.
	rule, template *criteria.CheckRule
	check          *checksfile.Check
	subject        *checksfile.Subject
	approved       approval.Records
	result         evidence.Result
	// state is the work tree that the check saw, if the check has read it.
	state *worktree.State
}

// Check executes a check. An error means that the check cannot be executed now, for example
// because a person has not approved it; it has a code and a fix.
func (c *Checker) Check(ctx context.Context, r evidence.Request) (evidence.Result, error) {
	began := c.opts.Now()
	j := &job{Checker: c, request: r, result: evidence.Result{
		Step: r.Step, Key: r.Key, Type: r.Template.Type, Name: r.Template.Check, With: r.Rule.With, Describe: r.Rule.Describe(), Instance: c.opts.Instance,
	}}
	finish := func() (evidence.Result, error) {
		j.result.DurationMS = c.opts.Now().Sub(began).Milliseconds()
		return j.result, nil
	}
	proceed, err := j.prepare()
	if err != nil {
		return evidence.Result{}, err
	}
	if !proceed {
		return finish()
	}
	if reused, err := j.reuse(ctx); reused || err != nil {
		return j.result, err
	}
	if err := j.execute(ctx); err != nil {
		return evidence.Result{}, err
	}
	if ctx.Err() != nil {
		return evidence.Result{}, context.Cause(ctx)
	}
	if err := j.recordWorkspace(ctx); err != nil {
		return evidence.Result{}, err
	}
	return finish()
}

// locate finds the workspace of the run.
func (c *Checker) locate(start *evidence.Workspace, projectPath string) (root string, err error) {
	if start == nil {
		if projectPath == "" {
			return "", guideway.Errorf(guideway.CodeUnavailable, "the project of the run is unknown, so its checks cannot be executed").
				WithFix("start a new run from a client in the project's directory")
		}
		return worktree.Root(projectPath)
	}
	if start.Host != "" && c.opts.Host != "" && start.Host != c.opts.Host {
		return "", guideway.Errorf(guideway.CodeUnavailable, "the workspace %s of the run is on the computer %s, but this server is on %s", start.Root, start.Host, c.opts.Host).
			WithFix("continue the run with a server on the computer %s", start.Host)
	}
	info, err := os.Stat(start.Root)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "the workspace %s of the run cannot be read: %w", start.Root, err).
			WithFix("restore the directory, or start a new run")
	}
	return start.Root, nil
}

// prepare finds the command of the check and its approval. It reports false if the result is
// already known.
func (j *job) prepare() (proceed bool, err error) {
	if j.root, err = j.locate(j.request.Start, j.request.ProjectPath); err != nil {
		return false, err
	}
	if j.approved, err = j.opts.Approvals(); err != nil {
		return false, err
	}
	resolution, err := checksfile.Resolve(j.root, j.request.Template, j.request.Rule, j.approved)
	switch {
	case guideway.ErrorCode(err) == guideway.CodeInvalid:
		// A value from the run is not valid for its parameter.
		j.fail(err.Error())
		j.result.Inconclusive = true
		return false, nil
	case err != nil:
		return false, err
	case resolution == nil:
		j.result.Undefined = true
		return false, nil
	}
	j.rule, j.template, j.check, j.subject = resolution.Rule, j.request.Template, resolution.Check, resolution.Subject
	if j.check != nil {
		j.template = &j.check.Command
	}
	if j.subject == nil {
		j.result.Hash, err = hashRule(j.template)
		return true, err
	}
	j.result.Hash = j.subject.Hash
	return true, j.subject.CheckApproved(j.approved)
}

// hashRule returns the hash of a rule that needs no approval.
func hashRule(r *criteria.CheckRule) (string, error) {
	text, err := jsontext.Marshal(r)
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "write a rule: %w", err)
	}
	return digest.Hex(string(text)), nil
}

// execute executes the check and sets its outcome.
func (j *job) execute(ctx context.Context) error {
	switch j.rule.Type {
	case criteria.Command:
		return j.executeCommand(ctx)
	case criteria.File:
		return j.executeFile(ctx)
	case criteria.Git:
		return j.executeGit(ctx)
	case criteria.Protect:
		return j.executeProtect(ctx)
	case criteria.HTTP:
		return j.executeHTTP(ctx)
	case criteria.Tool:
		return j.executeTool(ctx)
	default:
		return guideway.Errorf(guideway.CodeInvalidDefinition, "there is no check of type %s", j.rule.Type)
	}
}

// fail sets the outcome of a check that did not pass.
func (j *job) fail(issue string) { j.result.CheckOutcome = criteria.CheckOutcome{Issue: issue} }

// giveUp sets the outcome of a check that did not run to its end.
func (j *job) giveUp(issue string) {
	j.result.CheckOutcome = criteria.CheckOutcome{Issue: issue, Inconclusive: true}
}

// pass sets the outcome of a check that passed.
func (j *job) pass() { j.result.CheckOutcome = criteria.CheckOutcome{Passed: true} }

// readState reads the work tree.
func (j *job) readState(ctx context.Context) (err error) {
	j.state, err = j.reader.Read(ctx, j.root)
	return err
}

// recordWorkspace records the workspace after the check, or the one that the check compared.
func (j *job) recordWorkspace(ctx context.Context) error {
	before := j.state
	compares := j.rule.Type == criteria.Git || j.rule.Type == criteria.Protect
	if before == nil || !compares {
		if err := j.readState(ctx); err != nil {
			return err
		}
	}
	j.result.Workspace = j.state.Workspace(j.opts.Host)
	j.remember(before)
	return nil
}

// maxCached is the maximum number of results that are remembered.
const maxCached = 200

// cacheKey returns the key of the result for a work tree, or "" if it must not be reused.
func (j *job) cacheKey(s *worktree.State) (string, error) {
	if j.check == nil || !j.check.CacheTree || s == nil || !s.Git {
		return "", nil
	}
	rule, err := hashRule(j.rule)
	if err != nil {
		return "", err
	}
	w := s.Workspace("")
	return digest.Hex(j.root + "\x00" + w.Tree + "\x00" + w.DirtyHash + "\x00" + j.subject.Hash + "\x00" + rule), nil
}

// reuse sets the result of an earlier execution for the same work tree.
func (j *job) reuse(ctx context.Context) (reused bool, err error) {
	if j.check == nil || !j.check.CacheTree {
		return false, nil
	}
	if err := j.readState(ctx); err != nil {
		return false, err
	}
	key, err := j.cacheKey(j.state)
	if err != nil {
		return false, err
	}
	j.mu.Lock()
	earlier, ok := j.cached[key]
	j.mu.Unlock()
	if !ok || key == "" {
		return false, nil
	}
	earlier.Step, earlier.Key, earlier.Describe, earlier.Reused = j.result.Step, j.result.Key, j.result.Describe, true
	earlier.Workspace = j.state.Workspace(j.opts.Host)
	j.result = earlier
	return true, nil
}

// remember remembers a result that may be reused. The check must not have changed the work
// tree.
func (j *job) remember(before *worktree.State) {
	old, err := j.cacheKey(before)
	now, nowErr := j.cacheKey(j.state)
	if err != nil || nowErr != nil || old == "" || old != now || !j.result.Passed {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.cached) >= maxCached {
		clear(j.cached)
	}
	j.cached[now] = j.result
}
