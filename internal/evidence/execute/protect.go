package execute

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

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
