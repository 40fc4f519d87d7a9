package workflow

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

func TestLatency(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for i := range 200 {
		times = append(times, time.Duration(200-i)*time.Millisecond)
	}
	f := latencyFigure(times)
	if f.Value != 101 || *f.P99 != 199 || *f.Max != 200 || f.N != 200 {
		t.Errorf("median %v, p99 %v, max %v of %d", f.Value, *f.P99, *f.Max, f.N)
	}
	if f := latencyFigure(times[:15]); f.P99 != nil {
		t.Errorf("latencyFigure of 15 measurements has a 99th percentile: %v", *f.P99)
	}
	if f := latencyFigure(nil); f != (figure{}) {
		t.Errorf("latencyFigure without measurements: %+v", f)
	}
}

func TestReportCells(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		line line
		ran  bool
		want string
	}{
		{
			"kept",
			line{Unit: "ms", Budget: 0.3, Ours: &figure{Value: 0.25, CPU: new(0.1)}, Earlier: &span{1.6, 6.4}},
			false,
			"<= 0.300 ms|0.250 ms|-|0.100 ms|1.60-6.40 ms *|6.4x *|kept",
		},
		{
			"missed",
			line{Unit: "MB", Budget: 30, Ours: &figure{Value: 30.01, Peak: new(41.0), Own: new(11.0)}},
			false,
			"<= 30.0 MB|30.0 MB|own 11.0 MB|-|-|-|MISSED",
		},
		{"not measured", line{Unit: "MB", Budget: 30}, false, "<= 30.0 MB|not measured|-|-|-|-|"},
		{
			"the reference ran",
			line{Unit: "ms", Ours: &figure{Value: 2}, Reference: &figure{Value: 7}, Earlier: &span{1, 2}},
			true,
			"-|2 ms|-|not measured|7 ms|3.5x|",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := tt.line
			got := strings.Join([]string{l.budgetCell(), l.valueCell(), l.spreadCell(), l.cpuCell(), l.referenceCell(tt.ran), l.ratioCell(), l.verdictCell()}, "|")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestReportWithoutFigures checks that the table of a platform without figures marks its
// rows as not measured.
func TestReportWithoutFigures(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := newReport(measure.Machine{Date: "2026-01-01", Platform: "plan9/arm"}, false).writeTable(&out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "not measured"); got < int(rowBinary) {
		t.Errorf("only %d rows are marked as not measured:\n%s", got, out.String())
	}
}
