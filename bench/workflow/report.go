package workflow

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// row names a line of the table.
type row int

// The rows, in the order of the table.
const (
	rowStart row = iota
	rowStartYAML
	rowStartModern
	rowIdle
	rowWorked
	rowTools
	rowNext
	rowNextLate
	rowNextModern
	rowHTTPModern
	rowHTTPLegacy
	rowContinue
	rowContinueLate
	rowContinuePlain
	rowContinueSealed
	rowSealedRatio
	rowAppend
	rowCrowd
	rowContinued
	rowStartRun
	rowHook
	rowHookLong
	rowHookFree
	rowVersion
	rowBinary
)

// figure is a measurement in the unit of its row.
type figure struct {
	// Value is the median of a latency, another percentile of it if P50 is set, or a size.
	Value float64 `json:"value"`
	// N is the number of samples of a latency.
	N   int      `json:"n,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// P50 is the median if Value is another percentile.
	P50 *float64 `json:"p50,omitempty"`
	// CPU is the server's CPU time per call, in milliseconds.
	CPU *float64 `json:"cpu,omitempty"`
	// Peak and Own are VmHWM and RssAnon of a process.
	Peak *float64 `json:"peak,omitempty"`
	Own  *float64 `json:"own,omitempty"`
}

// minSamples is the number of samples from which a 99th percentile is reported.
const minSamples = 100

// latencyFigure returns the figure of durations, in milliseconds.
func latencyFigure(times []time.Duration) figure {
	sorted := slices.Sorted(slices.Values(times))
	n := len(sorted)
	if n == 0 {
		return figure{}
	}
	f := figure{Value: measure.Milliseconds(measure.Percentile(sorted, 50)), N: n, Max: new(measure.Milliseconds(sorted[n-1]))}
	if n >= minSamples {
		f.P99 = new(measure.Milliseconds(measure.Percentile(sorted, 99)))
	}
	return f
}

func toMegabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

// line is a row with its figures.
type line struct {
	What string `json:"what"`
	Unit string `json:"unit"`
	// Budget is the maximum allowed value; 0 means no budget.
	Budget float64 `json:"budget,omitempty"`
	Ours   *figure `json:"ours,omitempty"`
	// Reference was measured in the same run, and Earlier in a previous one.
	Reference *figure `json:"reference,omitempty"`
	Earlier   *span   `json:"referenceMeasuredEarlier,omitempty"`
}

// span is a range of measured values.
type span struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

type report struct {
	Machine measure.Machine `json:"machine"`
	// ReferenceRan is set if the reference was measured in the same run.
	ReferenceRan bool    `json:"referenceRan"`
	Lines        []*line `json:"lines"`
}

func newReport(m measure.Machine, referenceRan bool) *report {
	return &report{Machine: m, ReferenceRan: referenceRan, Lines: []*line{
		rowStart:          {What: "start to first answer, 50 workflows in JSON", Unit: "ms", Budget: 60, Earlier: &span{370, 1300}},
		rowStartYAML:      {What: "  the same in YAML", Unit: "ms", Budget: 60},
		rowStartModern:    {What: "  in JSON, protocol 2026-07-28", Unit: "ms", Budget: 60},
		rowIdle:           {What: "memory, idle", Unit: "MB", Budget: 35, Earlier: &span{77, 83}},
		rowWorked:         {What: "memory, after 1,000 calls", Unit: "MB", Budget: 50, Earlier: &span{102, 199}},
		rowTools:          {What: "tools/list, default toolsets", Unit: "kB", Budget: 20},
		rowNext:           {What: "workflow_next over stdio", Unit: "ms", Budget: 0.6, Earlier: &span{1.6, 6.4}},
		rowNextLate:       {What: "  step 302 of a walk, round 100 of a loop", Unit: "ms", Budget: 0.6},
		rowNextModern:     {What: "  protocol 2026-07-28", Unit: "ms", Budget: 0.6},
		rowHTTPModern:     {What: "workflow_next over HTTP with token, 2026-07-28", Unit: "ms"},
		rowHTTPLegacy:     {What: "  protocol 2025-11-25", Unit: "ms"},
		rowContinue:       {What: "workflow_continue over stdio, durable, at step 10", Unit: "ms", Budget: 5, Earlier: &span{55, 465}},
		rowContinueLate:   {What: "  at step 5,000 of one run", Unit: "ms", Budget: 5},
		rowContinuePlain:  {What: "  at step 10, in turns with the next row", Unit: "ms"},
		rowContinueSealed: {What: "  at step 10, with encryption", Unit: "ms"},
		rowSealedRatio:    {What: "  medians: with encryption / without", Unit: "x", Budget: 1.3},
		rowAppend:         {What: "  its part in the journal, in process", Unit: "ms"},
		rowCrowd:          {What: "  4 processes x 8 clients on one journal, p99", Unit: "ms", Budget: 60},
		rowContinued:      {What: "  memory, after 6,000 durable steps", Unit: "MB", Budget: 50},
		rowStartRun:       {What: "start to first answer about that run", Unit: "ms"},
		rowHook:           {What: "client hook before a tool, process start included, at step 10", Unit: "ms", Budget: 60},
		rowHookLong:       {What: "  at step 5,000 of one run", Unit: "ms"},
		rowHookFree:       {What: "  in a session without a run", Unit: "ms"},
		rowVersion:        {What: "  the program without work (guideway version)", Unit: "ms"},
		rowBinary:         {What: "size of the program", Unit: "MB"},
	}}
}

func (r *report) setOurs(to row, f figure)      { r.Lines[to].Ours = &f }
func (r *report) setReference(to row, f figure) { r.Lines[to].Reference = &f }

// writeTable writes the table.
func (r *report) writeTable(out io.Writer) error {
	fmt.Fprintln(out, r.Machine.String())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "what\tbudget\tours\tspread\tCPU\treference\tratio\tbudget is")
	for _, l := range r.Lines {
		cells := []string{l.What, l.budgetCell(), l.valueCell(), l.spreadCell(), l.cpuCell(), l.referenceCell(r.ReferenceRan), l.ratioCell(), l.verdictCell()}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, err := fmt.Fprint(out, r.notesText())
	if err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func (r *report) notesText() string {
	if r.ReferenceRan {
		return ""
	}
	return "\n* The reference was not run; measured earlier, see bench/README.md.\n" +
		"  To measure it now: go run . workflow -reference DIR, or -install-reference\n"
}

func (l *line) budgetCell() string {
	if l.Budget == 0 {
		return "-"
	}
	return "<= " + l.formatAmount(l.Budget)
}

func (l *line) valueCell() string {
	if l.Ours == nil {
		return "not measured"
	}
	return l.formatAmount(l.Ours.Value)
}

func (l *line) spreadCell() string {
	switch {
	case l.Ours == nil:
		return "-"
	case l.Ours.P50 != nil:
		return "p50 " + l.formatAmount(*l.Ours.P50)
	case l.Ours.P99 != nil:
		return "p99 " + l.formatAmount(*l.Ours.P99)
	case l.Ours.Max != nil:
		return "max " + l.formatAmount(*l.Ours.Max)
	case l.Ours.Own != nil:
		return "own " + l.formatAmount(*l.Ours.Own)
	default:
		return "-"
	}
}

func (l *line) cpuCell() string {
	switch {
	case l.Ours == nil || l.Unit != "ms":
		return "-"
	case l.Ours.CPU == nil:
		return "not measured"
	default:
		return l.formatAmount(*l.Ours.CPU)
	}
}

func (l *line) referenceCell(ran bool) string {
	switch {
	case ran && l.Reference != nil:
		return l.formatAmount(l.Reference.Value)
	case ran || l.Earlier == nil:
		return "-"
	default:
		return fmt.Sprintf("%s-%s *", formatNumber(l.Earlier.Least), l.formatAmount(l.Earlier.Most))
	}
}

func (l *line) ratioCell() string {
	switch {
	case l.Ours == nil || l.Ours.Value == 0:
		return "-"
	case l.Reference != nil:
		return fmt.Sprintf("%.1fx", l.Reference.Value/l.Ours.Value)
	case l.Earlier != nil:
		return fmt.Sprintf("%.1fx *", l.Earlier.Least/l.Ours.Value)
	default:
		return "-"
	}
}

func (l *line) verdictCell() string {
	switch {
	case l.Budget == 0 || l.Ours == nil:
		return ""
	case l.Ours.Value <= l.Budget:
		return "kept"
	default:
		return "MISSED"
	}
}

func (l *line) formatAmount(v float64) string { return formatNumber(v) + " " + l.Unit }

// formatNumber formats a number with three significant digits.
func formatNumber(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}
