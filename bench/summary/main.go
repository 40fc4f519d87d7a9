// Package summary measures which planted facts the summary of a run keeps, its size, and
// the time of the first question about a run in a new process.
package summary

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/bench/measure"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// bench is one run of the measurement.
type bench struct {
	measure.Options
	corpus, print, outputs string
	variables              int
}

// Run measures and prints the tables.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{Options: measure.Options{Stdout: stdout, Stderr: stderr}}
	flags := flag.NewFlagSet("summary", flag.ContinueOnError)
	flags.StringVar(&b.corpus, "corpus", filepath.Join(measure.Root, "..", "shared", "corpus"), "plant facts in the texts of this `directory` too")
	flags.StringVar(&b.print, "print", "", "print the summary of the run with this `name` and the lost facts too")
	flags.IntVar(&b.variables, "variables", 0, "give each run variables of about this `number` of tokens")
	flags.StringVar(&b.outputs, "outputs", "", "print only the summary of a run with the outputs in this `file`, a JSON list of texts")
	remove, err := b.Parse(flags, args)
	if err != nil {
		return err
	}
	defer remove()
	if b.outputs != "" {
		return b.printSummary(ctx)
	}
	machine := measure.DescribeMachine(ctx)
	list, skipped := scenarios(b.corpus)
	columns := make([]column, len(list))
	for i, s := range list {
		if columns[i], err = b.measureScenario(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	latency, err := b.measureLatency(ctx)
	if err != nil {
		return err
	}
	machine.Finish()
	fmt.Fprintf(stdout, "%s\n%s\n%s", machine.String(), table(list, columns), latency)
	if skipped != "" {
		fmt.Fprintln(stdout, skipped)
	}
	return nil
}

// printSummary prints the summary of a run with the outputs of a file.
func (b *bench) printSummary(ctx context.Context) error {
	text, err := os.ReadFile(b.outputs)
	if err != nil {
		return fmt.Errorf("read the outputs: %w", err)
	}
	var s scenario
	if err := json.Unmarshal(text, &s.outputs); err != nil {
		return fmt.Errorf("read %s: %w", b.outputs, err)
	}
	dir, id, err := b.walk(ctx, s)
	if err != nil {
		return err
	}
	brief, _, err := b.ask(ctx, s, dir, id)
	if err == nil {
		fmt.Fprintln(b.Stdout, brief.Summary.Text)
	}
	return err
}

// column is the result of a scenario.
type column struct {
	kept, planted map[string]int
	// last counts the last ten steps whose outputs are whole.
	last, tokens int
	took         time.Duration
}

const (
	workflowID  = "summary"
	refusedMark = "Not so: "
)

// definition is a workflow of n steps, or of a loop with n steps in all, that refuses outputs that
// begin with refusedMark.
func definition(n int, loop bool) string {
	step := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"title":"Work","prompt":"Do the work.","validationCriteria":[{"type":"regex","pattern":"^(?!%s)","message":"the claim needs evidence"}]}`, id, refusedMark)
	}
	each := n
	if loop {
		const maxRounds = 1000
		each = (n + maxRounds - 1) / maxRounds
	}
	var list []string
	for i := range each {
		list = append(list, step(fmt.Sprintf("work-%d", i+1)))
	}
	steps := strings.Join(list, ",")
	if loop {
		steps = fmt.Sprintf(`{"id":"files","type":"loop","title":"Files","loop":{"type":"for","count":%d,"maxIterations":%[1]d},"body":[%s]}`, n/each, steps)
	}
	return `{"id":"` + workflowID + `","name":"S","description":"d","version":"1.0.0","steps":[` + steps + `,{"id":"end","title":"End","prompt":"Report."}]}`
}

// definitions is the source of one workflow.
type definitions string

// Startable implements run.Definitions.
func (d definitions) Startable(context.Context, string) (*workflow.Definition, error) {
	def, found := workflow.Check("", []byte(d))
	if def == nil {
		return nil, fmt.Errorf("read the workflow: %s", found[0].Message)
	}
	return def, nil
}

// process has the services of one process on a directory.
type process struct {
	runs   *run.Service
	memory *contexts.Service
	stop   []func() error
}

func (p *process) close() {
	for _, stop := range slices.Backward(p.stop) {
		_ = stop()
	}
}

func openProcess(ctx context.Context, dir string, defs definitions) (*process, error) {
	store, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(dir, "guideway.db")})
	if err != nil {
		return nil, err
	}
	p := &process{stop: []func() error{store.Close}}
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: filepath.Join(dir, "contexts")})
	if err != nil {
		return p, err
	}
	saved, err := checkpoint.New(checkpoint.Options{Index: store, Blobs: blobs, Store: checkpoint.Store{Mode: checkpoint.ModeSQLite}})
	if err != nil {
		return p, err
	}
	p.stop = append(p.stop, saved.Close)
	if p.runs, err = run.New(run.Options{Journal: store, Definitions: defs, Key: make([]byte, run.KeySize)}); err != nil {
		return p, err
	}
	p.memory, err = contexts.New(contexts.Options{Checkpoints: saved, Runs: p.runs})
	return p, err
}

func caller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "bench"}, Via: run.ViaAgent}
}

// walk starts a run in a new directory and submits the outputs of a scenario. It returns
// the directory and the run's id.
func (b *bench) walk(ctx context.Context, s scenario) (dir, id string, err error) {
	if dir, err = os.MkdirTemp(b.Dir, "run-"); err != nil {
		return "", "", err
	}
	p, err := openProcess(ctx, dir, definitions(definition(len(s.outputs), s.loop)))
	if p != nil {
		defer p.close()
	}
	if err != nil {
		return "", "", err
	}
	vars := map[string]any{}
	for i := range b.variables / 100 {
		vars[fmt.Sprint("note", i)] = strings.Repeat("a word or two ", 25)
	}
	a, err := p.runs.Start(ctx, caller(), run.StartRequest{WorkflowID: workflowID, Goal: "measure", Context: vars})
	if err != nil {
		return "", "", err
	}
	for i, output := range s.outputs {
		for _, refused := range s.refused[i] {
			if _, err := p.runs.Continue(ctx, caller(), run.ContinueRequest{Handle: a.Handle, Output: refused}); err == nil {
				return "", "", fmt.Errorf("the output %q was accepted", refused)
			}
		}
		if a, err = p.runs.Continue(ctx, caller(), run.ContinueRequest{Handle: a.Handle, Output: output}); err != nil {
			return "", "", err
		}
	}
	if a.Position.Kind == engine.PositionEnd {
		return "", "", fmt.Errorf("the run ended before its last step")
	}
	return dir, a.RunID, nil
}

// ask returns the brief of a run in a new process, and the time of the answer.
func (b *bench) ask(ctx context.Context, s scenario, dir, id string) (*contexts.Brief, time.Duration, error) {
	p, err := openProcess(ctx, dir, definitions(definition(len(s.outputs), s.loop)))
	if p != nil {
		defer p.close()
	}
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	brief, err := p.memory.Brief(ctx, caller(), id)
	took := time.Since(start)
	if err == nil && brief.Summary == nil {
		err = fmt.Errorf("the run has no summary")
	}
	return brief, took, err
}

func (b *bench) measureScenario(ctx context.Context, s scenario) (column, error) {
	c := column{kept: map[string]int{}, planted: map[string]int{}}
	dir, id, err := b.walk(ctx, s)
	if err != nil {
		return c, err
	}
	brief, took, err := b.ask(ctx, s, dir, id)
	if err != nil {
		return c, err
	}
	c.took, c.tokens = took, compress.NewTokenizer().Count(brief.Summary.Text)
	if b.print == s.name {
		fmt.Fprintf(b.Stdout, "%s\n", brief.Summary.Text)
	}
	text := joinFields(brief.Summary.Text)
	for _, f := range s.facts {
		c.planted[f.kind]++
		if !slices.ContainsFunc(f.marks, func(mark string) bool { return !strings.Contains(text, mark) }) {
			c.kept[f.kind]++
		} else if b.print == s.name {
			fmt.Fprintf(b.Stdout, "lost %s: %s\n", f.kind, f.text)
		}
	}
	for _, output := range s.outputs[len(s.outputs)-10:] {
		if isWhole(text, output) {
			c.last++
		}
	}
	return c, nil
}

func joinFields(text string) string { return strings.Join(strings.Fields(text), " ") }

// isWhole reports whether 19 of 20 lines or sentences of an output are in a summary, without
// the marks of Markdown at their beginnings and headings.
func isWhole(summary, output string) bool {
	kept, all := 0, 0
	for line := range strings.Lines(output) {
		for sentence := range strings.SplitSeq(strings.TrimSpace(line), ". ") {
			sentence = joinFields(strings.TrimLeft(sentence, "-*+>0123456789.) \t"))
			if strings.HasPrefix(sentence, "#") || len(sentence) < 4 {
				continue
			}
			all++
			if strings.Contains(summary, sentence) {
				kept++
			}
		}
	}
	return kept*20 >= all*19
}

// measureLatency returns the times of the first and the second question about long runs.
func (b *bench) measureLatency(ctx context.Context) (string, error) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "first question in a new process\tmedian of 7\tmax\tCPU\t")
	for _, steps := range []int{100, 500, b.Pick(5000, 1000)} {
		s := newScenario("", steps, roundOutput)
		s.loop = true
		dir, id, err := b.walk(ctx, s)
		if err != nil {
			return "", err
		}
		var times measure.Times
		clock := measure.StartCPU(os.Getpid())
		for range 7 {
			_, took, err := b.ask(ctx, s, dir, id)
			if err != nil {
				return "", err
			}
			times.Add(took)
		}
		sorted := times.Sorted()
		cpu := "not measured"
		if ms := clock.PerCall(len(sorted)); ms != nil {
			cpu = fmt.Sprintf("%.0f ms", *ms)
		}
		fmt.Fprintf(w, "%d steps\t%.1f ms\t%.1f ms\t%s\t\n", steps, measure.Milliseconds(measure.Percentile(sorted, 50)), measure.Milliseconds(sorted[len(sorted)-1]), cpu)
	}
	err := w.Flush()
	return out.String(), err
}

func table(list []scenario, columns []column) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "kept of planted\t")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t", s.name)
	}
	fmt.Fprintln(w)
	for _, k := range kinds() {
		fmt.Fprintf(w, "%s\t", k.name)
		for _, c := range columns {
			fmt.Fprintf(w, "%d/%d\t", c.kept[k.name], c.planted[k.name])
		}
		fmt.Fprintln(w)
	}
	for _, row := range []struct {
		name  string
		value func(column) string
	}{
		{"last ten whole", func(c column) string { return fmt.Sprintf("%d/10", c.last) }},
		{"tokens (o200k)", func(c column) string { return fmt.Sprint(c.tokens) }},
		{"answer", func(c column) string { return fmt.Sprintf("%.0f ms", measure.Milliseconds(c.took)) }},
	} {
		fmt.Fprintf(w, "%s\t", row.name)
		for _, c := range columns {
			fmt.Fprintf(w, "%s\t", row.value(c))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	return out.String()
}
