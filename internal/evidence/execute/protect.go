package execute

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
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
	for _, c := range changes {
		p := ProtectedChange{Run: j.request.Run, Root: j.root, Change: c}
		if !j.approved.Approves(p.Key(), p.Hash()) {
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
// The approval is valid for exactly this content.
type ProtectedChange struct {
	Run, Root string
	Change    worktree.Change
	// Diff is the difference from the start of the run, for the person.
	Diff string
}

// Key returns the key of the approval of the change.
func (p *ProtectedChange) Key() approval.Key {
	return approval.Key{Kind: approval.KindCheck, Source: p.Root, Subject: "change:" + p.Run + ":" + p.Change.Path}
}

// Hash returns the hash that a person approves.
func (p *ProtectedChange) Hash() string {
	return hashText("guideway protected change 1\x00" + p.Run + "\x00" + p.Change.Path + "\x00" + p.Change.Start + "\x00" + p.Change.Now)
}

// Record returns the approval of the change by a person.
func (p *ProtectedChange) Record(who string) (approval.Record, error) {
	scope, err := json.Marshal(map[string]string{"change": p.Change.String(), "start": p.Change.Start, "now": p.Change.Now})
	if err != nil {
		return approval.Record{}, guideway.Errorf(guideway.CodeInternal, "write an approval: %w", err)
	}
	k := p.Key()
	return approval.Record{Kind: k.Kind, Source: k.Source, Subject: k.Subject, Hash: p.Hash(), Who: who, Scope: scope}, nil
}

// ProtectedChanges returns the changes of the files that the rules of a run protect and that
// are not approved, with their differences. start is the workspace of the run at its start.
// A rule that names a check of the project is resolved with its checks file.
func (c *Checker) ProtectedChanges(ctx context.Context, run string, start *evidence.Workspace, rules []*criteria.CheckRule) ([]ProtectedChange, error) {
	root, err := c.locate(start, "")
	if err != nil {
		return nil, err
	}
	approved, err := c.opts.Approvals()
	if err != nil {
		return nil, err
	}
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
			p := ProtectedChange{Run: run, Root: root, Change: change}
			if approved.Approves(p.Key(), p.Hash()) || slices.ContainsFunc(list, func(q ProtectedChange) bool { return q.Change == change }) {
				continue
			}
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
	unknown := before == nil && !change.IsAddition()
	if unknown || !isText(before) || !isText(now) {
		return fmt.Sprintf("%s: the difference cannot be shown; it was %s and is %s\n", change, change.Start, change.Now), nil
	}
	_, text, _ := bytes.Cut(diff.Diff(change.Path+" (start of the run)", before, change.Path+" (now)", now), []byte("\n"))
	if len(text) == 0 {
		return change.String() + "\n", nil
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
