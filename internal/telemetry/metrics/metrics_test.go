package metrics_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/telemetry/metrics"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// parseMetrics parses the output of a set with the Prometheus parser.
func parseMetrics(t *testing.T, s *metrics.Set) map[string]*dto.MetricFamily {
	t.Helper()
	var text strings.Builder
	if err := s.Write(&text); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text.String()))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text.String())
	}
	return families
}

// TestPrometheusFormat checks that the Prometheus parser reads each kind of metric, and
// label values with special characters.
func TestPrometheusFormat(t *testing.T) {
	t.Parallel()
	var s metrics.Set
	c := s.Counter("calls_total", "Calls.\nTwo lines with a \\.", "tool", "status")
	odd := "a \"quoted\"\nname with \\ and \xff"
	c.Add(1, odd, "ok")
	c.Add(2, odd, "ok")
	c.Add(1, "b", "ok")
	g := s.Gauge("open", "Open.")
	g.Add(3)
	g.Add(-1)
	h := s.Histogram("seconds", "Seconds.", []float64{0.1, 1}, "tool")
	for _, v := range []float64{0.05, 0.1, 0.5, 7} {
		h.Observe(v, "x")
	}
	s.Collect("gauge", "asked", "Asked.", []string{"name"}, func(emit func(float64, ...string)) { emit(4, "one"); emit(5, "two") })
	s.AddRuntime(time.Unix(1_700_000_000, 0))
	got := parseMetrics(t, &s)
	calls := got["calls_total"]
	if calls.GetType() != dto.MetricType_COUNTER || calls.GetHelp() != "Calls.\nTwo lines with a \\." || len(calls.Metric) != 2 {
		t.Errorf("%v", calls)
	}
	if m := calls.Metric[0]; m.GetCounter().GetValue() != 3 || m.Label[0].GetValue() != strings.ToValidUTF8(odd, "�") {
		t.Errorf("%v", m)
	}
	if v := got["open"].Metric[0].GetGauge().GetValue(); v != 2 {
		t.Errorf("the gauge is %v", v)
	}
	hist := got["seconds"].Metric[0].GetHistogram()
	if hist.GetSampleCount() != 4 || hist.GetSampleSum() != 7.65 || hist.Bucket[0].GetCumulativeCount() != 2 || hist.Bucket[1].GetCumulativeCount() != 3 || hist.Bucket[2].GetCumulativeCount() != 4 {
		t.Errorf("%v", hist)
	}
	if len(got["asked"].Metric) != 2 || got["go_goroutines"].Metric[0].GetGauge().GetValue() < 1 || got["go_memstats_sys_bytes"].Metric[0].GetGauge().GetValue() < 1<<20 ||
		got["process_start_time_seconds"].Metric[0].GetGauge().GetValue() != 1_700_000_000 {
		t.Errorf("%v", got)
	}
}

// Label values of clients cannot exhaust the memory, and values beyond the limit are still
// counted.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	var s metrics.Set
	c := s.Counter("calls_total", "Calls.", "tool")
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 1000 {
				c.Add(1, fmt.Sprint(g, "-", i))
			}
		})
	}
	group.Wait()
	sum, others := 0.0, 0.0
	list := parseMetrics(t, &s)["calls_total"].Metric
	for _, m := range list {
		sum += m.GetCounter().GetValue()
		if m.Label[0].GetValue() == metrics.Other {
			others = m.GetCounter().GetValue()
		}
	}
	if sum != 4000 || len(list) > 1001 || others < 2999 {
		t.Errorf("%v in %d series, %v of them others", sum, len(list), others)
	}
}
