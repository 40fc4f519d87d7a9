package checks

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the hash of Git's objects
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/rogpeppe/go-internal/diff"
)

// changesAnswer is the answer of guideway checks approve --run --json.
type changesAnswer struct {
	Workspace string `json:"workspace"`
	Run       string `json:"runId"`
	Changed   bool   `json:"changed"`
	// Changes are the changes of protected files since the start of the run.
	Changes []checksfile.ProtectedChange `json:"changes"`
}

// approveChanges reviews and approves the changes of the protected files of a run.
func approveChanges(ctx context.Context, o *approveOptions) error {
	w, err := loadChecks(o.app)
	if err != nil {
		return err
	}
	start, rules, err := readProtection(ctx, o.app, w, o.Run)
	if err != nil {
		return err
	}
	reader := worktree.NewReader(o.app.Host.CurrentTime)
	state, err := reader.Read(ctx, w.Root)
	if err != nil {
		return err
	}
	changes, err := findChanges(ctx, reader, state, start, rules)
	if err != nil {
		return err
	}
	answer := changesAnswer{Workspace: w.Root, Run: o.Run, Changes: []checksfile.ProtectedChange{}}
	approved := checksfile.ApprovedChanges(w.Root, o.Run, w.approved)
	waiting := 0
	for _, c := range changes {
		one := checksfile.ProtectedChange{Path: c.Path, Start: c.Start, Now: c.Now}
		answer.Changes = append(answer.Changes, one)
		if !slices.Contains(approved, one) {
			waiting++
		}
	}
	if waiting == 0 {
		return o.app.Host.WriteChange(o.JSON, answer, "No change of a protected file waits for approval.")
	}
	person := newApprover(o.app, w, o.JSON)
	fmt.Fprintf(person.Out, "Changes of protected files in %s since the start of the run %s:\n", app.OneLine(w.Root), o.Run)
	for i, c := range changes {
		text, err := describeChange(ctx, reader, state, c)
		if err != nil {
			return err
		}
		note := ""
		if slices.Contains(approved, answer.Changes[i]) {
			note = ", approved before"
		}
		fmt.Fprintf(person.Out, "\n%s%s\n%s", person.Styles.Bold(app.OneLine(c.String())), note, text)
	}
	if err := confirmChanges(ctx, person, len(changes)); err != nil {
		return err
	}
	who, err := auth.SystemUser()
	if err != nil {
		return err
	}
	record, err := checksfile.NewChangesRecord(w.Root, o.Run, who, answer.Changes)
	if err != nil {
		return err
	}
	store, err := app.OpenApprovals(w.cfg, o.app.Host.CurrentTime)
	if err != nil {
		return err
	}
	if _, err := store.Put(ctx, record); err != nil {
		return err
	}
	answer.Changed = true
	return o.app.Host.WriteChange(o.JSON, answer, "Approved "+app.Plural(len(changes), "change", "changes")+" for this run.")
}

// confirmChanges asks the person to confirm all changes.
func confirmChanges(ctx context.Context, person *app.Approver, n int) error {
	said, err := person.AskLine(ctx, fmt.Sprintf("Approve %s for this run? Type yes: ", app.Plural(n, "change", "changes")))
	switch {
	case errors.Is(err, io.EOF):
		return app.StoppedError()
	case err != nil:
		return err
	case strings.TrimSpace(said) != "yes":
		return nothingApproved()
	}
	return person.CheckPassphraseIfSet(ctx)
}

// readProtection returns the workspace at the start of a run and the rules that protect its
// files.
func readProtection(ctx context.Context, a *app.App, w *workspace, id string) (start *evidence.Workspace, rules []*criteria.CheckRule, err error) {
	err = a.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		details, err := d.Runs.GetWithEvents(ctx, d.Caller, run.Ref{RunID: id})
		if err != nil {
			return err
		}
		var created run.Created
		if len(details.Events) == 0 || json.Unmarshal(details.Events[0].Data, &created) != nil || created.Workspace == nil {
			return guideway.Errorf(guideway.CodeConflict, "the workspace of the run %s at its start is unknown", id).WithFix("start a new run in the work tree")
		}
		start = created.Workspace
		if start.Root != w.Root {
			return guideway.Errorf(guideway.CodeConflict, "the run %s is of another workspace, %s", id, start.Root).WithFix("run the command in %s", start.Root)
		}
		definition, _ := workflow.Parse("definition.json", []byte(details.Definition))
		if definition == nil {
			return guideway.Errorf(guideway.CodeInternal, "the definition of the run %s cannot be read", id)
		}
		for _, rule := range definition.CheckRules() {
			if rule.Type == criteria.NamedCheck {
				if c, _ := w.file.Find(rule.Check); c != nil {
					rule = &c.Command
				}
			}
			if rule.Type == criteria.Protect {
				rules = append(rules, rule)
			}
		}
		return nil
	})
	return start, rules, err
}

// findChanges returns the changes that violate a rule, in the order of their paths.
func findChanges(ctx context.Context, reader *worktree.Reader, state *worktree.State, start *evidence.Workspace, rules []*criteria.CheckRule) ([]worktree.Change, error) {
	var all []worktree.Change
	for _, rule := range rules {
		changes, err := reader.Changes(ctx, state, start, rule.Paths)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			if !slices.Contains(all, c) && !(rule.AllowNew && c.Start == (worktree.Entry{}).String()) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b worktree.Change) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// describeChange returns the difference of a file. The content must be that of the version
// that is approved: the file could change while it is read.
func describeChange(ctx context.Context, reader *worktree.Reader, state *worktree.State, c worktree.Change) (string, error) {
	before, now, err := reader.Content(ctx, state, c)
	if err != nil {
		return "", err
	}
	_, digest, isFile := strings.Cut(c.Now, " ")
	if now != nil && isFile && hashBlob(now, len(digest)) != digest {
		return "", guideway.Errorf(guideway.CodeConflict, "%s changes while it is read", c.Path).WithFix("end the programs that write to it, and run the command again")
	}
	if bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(now, 0) >= 0 || before == nil && now == nil {
		return fmt.Sprintf("  was %s\n  now %s\n", c.Start, c.Now), nil
	}
	text := diff.Diff("start", []byte(visible.EscapeScript(string(before))), "now", []byte(visible.EscapeScript(string(now))))
	_, text, _ = bytes.Cut(text, []byte("\n"))
	if len(text) == 0 || before == nil && c.Start != (worktree.Entry{}).String() {
		return fmt.Sprintf("  was %s\n  now %s\n%s", c.Start, c.Now, text), nil
	}
	return string(text), nil
}

// hashBlob returns the hash of a content as an object of Git with hexadecimal hashes of a
// length.
func hashBlob(content []byte, length int) string {
	h := hash.Hash(sha1.New()) //nolint:gosec // see above
	if length == hex.EncodedLen(sha256.Size) {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}
