// Package evidence measures the time that a check adds to its command in a repository.
package evidence

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
	evidencepkg "github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// budget is the time that a check may add to its command.
const budget = 20 * time.Millisecond

// settleTime is the time after which the times of changes identify versions of files.
const settleTime = 200 * time.Millisecond

// options are the command line.
type options struct {
	measure.Options
	files int
}

// Run measures and prints the table.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o := options{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	flags := flag.NewFlagSet("evidence", flag.ContinueOnError)
	flags.IntVar(&o.files, "files", 1000, "the number of files in the repository")
	remove, err := o.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	root, err := makeRepository(ctx, o.Dir, o.files)
	if err != nil {
		return err
	}
	machine := measure.DescribeMachine(ctx)
	rows, err := measureAll(ctx, &o, root)
	if err != nil {
		return err
	}
	machine.Finish()
	fmt.Fprintf(stdout, "%s\nA check of the command `true` in a repository of %d files:\n\n%s", machine.String(), o.files, formatTable(rows))
	return nil
}

// makeRepository creates a repository with a number of files in one commit.
func makeRepository(ctx context.Context, dir string, files int) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	root = filepath.Join(root, "repository")
	for i := range files {
		name := filepath.Join(root, fmt.Sprintf("dir%d/sub%d", i%20, i%50), fmt.Sprintf("file%d.go", i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(name, []byte(strings.Repeat(fmt.Sprintf("line %d of the file\n", i), 150)), 0o644); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first"},
	} {
		cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // G204: arguments of this function
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return root, nil
}

// row is one kind of check with its times, and those of its command alone.
type row struct {
	name         string
	alone, check []time.Duration
	budget       bool
}

// added returns the difference of the medians.
func (r *row) added() time.Duration { // the times are sorted
	return measure.Percentile(r.check, 50) - measure.Percentile(r.alone, 50)
}

// measureAll measures checks and their command in turns.
func measureAll(ctx context.Context, o *options, root string) ([]row, error) {
	truePath, err := exec.LookPath("true")
	if err != nil {
		return nil, err
	}
	var approved approval.Records
	opts := execute.Options{Approvals: func() (approval.Records, error) { return approved, nil }}
	command := &criteria.CheckRule{Type: criteria.Command, Argv: []string{truePath}}
	subject, err := checksfile.NewRuleSubject(root, command, command)
	if err != nil {
		return nil, err
	}
	record, err := subject.Record("bench")
	if err != nil {
		return nil, err
	}
	approved = approval.Records{record}
	checker := execute.New(opts)
	// The workspace is recorded when a run starts, so its files are known at the first check.
	if err := waitSettled(ctx); err != nil {
		return nil, err
	}
	start, err := checker.Workspace(ctx, root)
	if err != nil {
		return nil, err
	}
	protect := &criteria.CheckRule{Type: criteria.Protect, Paths: []string{"**/*_test.go"}}
	rows := []row{{name: "command", budget: true}, {name: "protect, without a command", budget: true}, {name: "command, first check of a process that did not start the run"}}
	for range o.Pick(60, 10) {
		for i, one := range []struct {
			checker *execute.Checker
			rule    *criteria.CheckRule
		}{{checker, command}, {checker, protect}, {execute.New(opts), command}} {
			alone, err := timeOf(func() error {
				if i == 1 {
					return nil
				}
				cmd := exec.CommandContext(ctx, truePath)
				cmd.Dir = root
				return cmd.Run()
			})
			if err != nil {
				return nil, err
			}
			took, err := timeOf(func() error { return runCheck(ctx, one.checker, one.rule, start) })
			if err != nil {
				return nil, err
			}
			rows[i].alone, rows[i].check = append(rows[i].alone, alone), append(rows[i].check, took)
		}
	}
	return rows, nil
}

// waitSettled waits until files that were just written are settled.
func waitSettled(ctx context.Context) error {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func timeOf(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// runCheck executes a rule, which must pass.
func runCheck(ctx context.Context, checker *execute.Checker, rule *criteria.CheckRule, start *evidencepkg.Workspace) error {
	result, err := checker.Check(ctx, evidencepkg.Request{Run: "run", Step: "step", Template: rule, Rule: rule, Start: start})
	if err != nil {
		return err
	}
	if !result.Passed {
		return fmt.Errorf("the check did not pass: %s", result.Issue)
	}
	return nil
}

func formatTable(rows []row) string {
	var b strings.Builder
	b.WriteString("| | command p50 ms | check p50 ms | check p99 ms | added p50 ms | added, fastest of each, ms | budget |\n|---|---|---|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		for _, times := range [][]time.Duration{r.alone, r.check} {
			slices.Sort(times)
		}
		verdict := "-"
		if r.budget {
			verdict = "<= 20 ms: kept"
			if r.added() > budget {
				verdict = "<= 20 ms: MISSED"
			}
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.1f | %.1f | %s |\n", r.name, measure.Milliseconds(measure.Percentile(r.alone, 50)),
			measure.Milliseconds(measure.Percentile(r.check, 50)), measure.Milliseconds(measure.Percentile(r.check, 99)), measure.Milliseconds(r.added()),
			measure.Milliseconds(r.check[0]-r.alone[0]), verdict)
	}
	return b.String()
}
