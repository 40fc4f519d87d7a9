package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/rogpeppe/go-internal/diff"
)

// maxFile is the maximum size of a file whose content is checked.
const maxFile = 16 << 20

// executeFile checks a file of the workspace. Symbolic links are followed inside the
// workspace.
func (j *job) executeFile(ctx context.Context) error {
	name := j.rule.Path
	if name == "" {
		j.giveUp("the path of the file is empty: set the variable that fills it")
		return nil
	}
	if reason, _ := criteria.ExplainPath(name); reason != "" {
		j.giveUp(fmt.Sprintf("the path %q %s", name, reason))
		return nil
	}
	root, err := os.OpenRoot(j.root)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the workspace %s cannot be read: %w", j.root, err).
			WithFix("check that the directory exists on this computer, and that this user can read it")
	}
	defer root.Close()
	local := filepath.FromSlash(name)
	if j.rule.Exists != nil && !*j.rule.Exists {
		switch _, err := root.Lstat(local); {
		case errors.Is(err, fs.ErrNotExist):
			j.pass()
		case err != nil:
			j.giveUp(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		default:
			j.fail(fmt.Sprintf("the file %s exists, but must not", name))
		}
		return nil
	}
	info, err := root.Stat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		j.fail(fmt.Sprintf("the file %s does not exist", name))
	case err != nil:
		j.fail(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
	case info.IsDir() && !j.readsContent():
		j.pass()
	case !info.Mode().IsRegular():
		j.fail(fmt.Sprintf("%s is %s, not a regular file", name, safeopen.Kind(info.Mode())))
	default:
		j.checkContent(ctx, root, name)
	}
	return nil
}

// readsContent reports whether the rule requires more than a file's existence.
func (j *job) readsContent() bool {
	r := j.rule
	return r.MinBytes != nil || r.MaxBytes != nil || r.Matches != "" || r.Excludes != "" || r.Schema != nil
}

// checkContent checks the size and the content of a file.
func (j *job) checkContent(ctx context.Context, root *os.Root, name string) {
	file, err := safeopen.OpenIn(root, name)
	if err != nil {
		j.fail(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		j.giveUp(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		return
	}
	switch r := j.rule; {
	case r.MinBytes != nil && info.Size() < *r.MinBytes:
		j.fail(fmt.Sprintf("the file %s has %d bytes, fewer than %d", name, info.Size(), *r.MinBytes))
		return
	case r.MaxBytes != nil && info.Size() > *r.MaxBytes:
		j.fail(fmt.Sprintf("the file %s has %d bytes, more than %d", name, info.Size(), *r.MaxBytes))
		return
	case r.Matches == "" && r.Excludes == "" && r.Schema == nil:
		j.pass()
		return
	}
	content, err := safeopen.Read(ctx, file, maxFile)
	switch {
	case err != nil:
		j.giveUp(fmt.Sprintf("the file %s cannot be read: %v", name, safeopen.Cause(err)))
		return
	case len(content) > maxFile:
		j.giveUp(fmt.Sprintf("the file %s has more than %d bytes, so that its content cannot be checked", name, maxFile))
		return
	}
	j.result.OutputHash, j.result.OutputBytes = digest.Hex(string(content)), int64(len(content))
	if j.judgeText("the file "+name, text{[]string{string(content)}, true}); !j.result.Passed || j.rule.Schema == nil {
		return
	}
	issue, err := criteria.CheckSchema(j.rule.Schema, string(content))
	switch {
	case err != nil:
		j.giveUp(fmt.Sprintf("the file %s cannot be checked against its schema: %v", name, err))
	case issue != "":
		j.fail(fmt.Sprintf("the file %s does not conform to its schema: %s", name, issue))
	}
}

// maxNamed is the maximum number of paths in an issue.
const maxNamed = 20

// executeGit checks the commit and the changed files of the work tree.
func (j *job) executeGit(ctx context.Context) error {
	if err := j.readState(ctx); err != nil {
		return err
	}
	if !j.state.Git {
		j.giveUp(fmt.Sprintf("%s is not a work tree of Git", j.root))
		return nil
	}
	var issues []string
	if j.rule.Commit != "" {
		issue, err := j.reader.CheckCommit(ctx, j.state, j.rule.Commit)
		if err != nil {
			return err
		}
		issues = appendNonEmpty(issues, issue)
	}
	if dirty := j.state.Dirty(); j.rule.Clean && len(dirty) > 0 {
		issues = append(issues, "the work tree is not clean: these files differ from the checked out commit, or are not in it: "+joinPaths(dirty))
	}
	if len(j.rule.Inside) > 0 || len(j.rule.Outside) > 0 {
		changes, err := j.reader.Changes(ctx, j.state, j.request.Start, nil)
		if guideway.ErrorCode(err) == guideway.CodeInvalid {
			j.giveUp(err.Error())
			return nil
		}
		if err != nil {
			return err
		}
		issues = append(issues, j.checkPlaces(changes)...)
	}
	if len(issues) > 0 {
		j.fail(strings.Join(issues, "; "))
		return nil
	}
	j.pass()
	return nil
}

func appendNonEmpty(list []string, text string) []string {
	if text == "" {
		return list
	}
	return append(list, text)
}

// checkPlaces returns the issues of changed files that are not in the places of the rule.
func (j *job) checkPlaces(changes []worktree.Change) (issues []string) {
	var notInside, notOutside []string
	for _, c := range changes {
		if len(j.rule.Inside) > 0 && !worktree.MatchesAny(j.rule.Inside, c.Path) {
			notInside = append(notInside, c.String())
		}
		if worktree.MatchesAny(j.rule.Outside, c.Path) {
			notOutside = append(notOutside, c.String())
		}
	}
	if notInside != nil {
		issues = append(issues, fmt.Sprintf("files outside %s changed since the start of the run: %s", strings.Join(j.rule.Inside, ", "), joinPaths(notInside)))
	}
	if notOutside != nil {
		issues = append(issues, fmt.Sprintf("files in %s changed since the start of the run: %s", strings.Join(j.rule.Outside, ", "), joinPaths(notOutside)))
	}
	return issues
}

// joinPaths joins the first paths of a list.
func joinPaths(paths []string) string {
	text := strings.Join(paths[:min(len(paths), maxNamed)], ", ")
	if more := len(paths) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// executeProtect checks that no protected file changed since the start of the run without
// the approval of a person.
func (j *job) executeProtect(ctx context.Context) error {
	if err := j.readState(ctx); err != nil {
		return err
	}
	changes, err := j.listProtected(ctx, j.state, j.request.Start, j.rule)
	if guideway.ErrorCode(err) == guideway.CodeInvalid {
		j.giveUp(err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	var open []string
	approved := checksfile.ApprovedChanges(j.root, j.request.Run, j.approved)
	for _, c := range changes {
		if !c.HasVersion() || !slices.Contains(approved, approvableChange(c)) {
			open = append(open, c.String())
		}
	}
	if open == nil {
		j.pass()
		return nil
	}
	issue := "protected files differ from the start of the run: " + joinPaths(open)
	if start := j.request.Start; start.DirtyCount > len(start.Dirty) {
		issue += fmt.Sprintf(" (%d files were not committed at the start, and the content of only %d is known)", start.DirtyCount, len(start.Dirty))
	}
	j.fail(issue + "; restore them, or ask a person to review the changes in a terminal in " + j.root + ": guideway checks approve --run " + j.request.Run)
	return nil
}

// listProtected returns the changed files that a rule protects.
func (c *Checker) listProtected(ctx context.Context, s *worktree.State, start *evidence.Workspace, rule *criteria.CheckRule) ([]worktree.Change, error) {
	changes, err := c.reader.Changes(ctx, s, start, rule.Paths)
	if rule.AllowNew {
		changes = slices.DeleteFunc(changes, worktree.Change.IsAddition)
	}
	return changes, err
}

// ProtectedChange is a change of a protected file, which a person can approve for one run.
type ProtectedChange struct {
	checksfile.ProtectedChange
	// Words describe the change.
	Words string
	// Approvable is set if the content is known. The approval is valid for this content only.
	Approvable bool
	// Approved is set if a person approved exactly this change for the run.
	Approved bool
	// Diff is the difference from the start of the run, with visible characters only.
	Diff string
}

// approvableChange returns a change in the form of its approval.
func approvableChange(c worktree.Change) checksfile.ProtectedChange {
	return checksfile.ProtectedChange{Path: c.Path, Start: c.Start, Now: c.Now}
}

// ProtectedChanges returns the changes of the files that the rules of a run protect, with
// their differences. start is the workspace of the run at its start. A rule that names a check
// of the project is resolved with its checks file.
func (c *Checker) ProtectedChanges(ctx context.Context, run string, start *evidence.Workspace, rules []*criteria.CheckRule) ([]ProtectedChange, error) {
	root, err := c.locate(start, "")
	if err != nil {
		return nil, err
	}
	records, err := c.opts.Approvals()
	if err != nil {
		return nil, err
	}
	approved := checksfile.ApprovedChanges(root, run, records)
	s, err := c.reader.Read(ctx, root)
	if err != nil {
		return nil, err
	}
	var list []ProtectedChange
	for _, rule := range rules {
		if rule, err = findProtectRule(root, rule); err != nil || rule == nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		changes, err := c.listProtected(ctx, s, start, rule)
		if err != nil {
			return nil, err
		}
		for _, change := range changes {
			p := ProtectedChange{ProtectedChange: approvableChange(change), Words: change.String(), Approvable: change.HasVersion()}
			if slices.ContainsFunc(list, func(q ProtectedChange) bool { return q.ProtectedChange == p.ProtectedChange }) {
				continue
			}
			p.Approved = p.Approvable && slices.Contains(approved, p.ProtectedChange)
			if p.Diff, err = c.describeDiff(ctx, s, change); err != nil {
				return nil, err
			}
			list = append(list, p)
		}
	}
	return list, nil
}

// describeDiff returns the difference of a file as text.
func (c *Checker) describeDiff(ctx context.Context, s *worktree.State, change worktree.Change) (string, error) {
	before, now, err := c.reader.Content(ctx, s, change)
	if err != nil {
		return "", err
	}
	isText := func(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }
	unknown := before == nil && !change.IsAddition() || now == nil && !change.IsDeletion()
	versions := fmt.Sprintf("was %s\nnow %s\n", change.Start, change.Now)
	if unknown || !isText(before) || !isText(now) {
		return "the difference cannot be shown\n" + versions, nil
	}
	escape := func(content []byte) []byte { return []byte(visible.EscapeScript(string(content))) }
	_, text, _ := bytes.Cut(diff.Diff("start of the run", escape(before), "now", escape(now)), []byte("\n"))
	if len(text) == 0 { // for example, only the mode or the line ends differ
		return versions, nil
	}
	return string(text), nil
}

// findProtectRule returns the rule, or the rule of the project's check that it names, if it
// protects files, and nil otherwise.
func findProtectRule(root string, rule *criteria.CheckRule) (*criteria.CheckRule, error) {
	if rule.Type == criteria.NamedCheck {
		check, err := checksfile.Load(root).Find(rule.Check)
		if err != nil || check == nil {
			return nil, err
		}
		rule = &check.Command
	}
	if rule.Type != criteria.Protect {
		return nil, nil
	}
	return rule, nil
}
