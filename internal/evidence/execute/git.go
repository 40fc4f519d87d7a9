package execute

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
)

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
