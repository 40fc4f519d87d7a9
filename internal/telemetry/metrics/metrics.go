// Package metrics counts events and writes metrics in the text format of Prometheus. It is
// small on purpose: the usual library would use more memory than all metrics together (ADR
// 16).
package metrics

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxSeries is the maximum number of series of a metric, because label values come from
// clients. Further series are counted as Other.
const maxSeries = 1000

// Other is the value of all labels in the series that counts the values beyond maxSeries.
const Other = "(other)"

// Set is a set of metrics. The zero Set is empty. It is safe for concurrent use.
type Set struct {
	mu       sync.Mutex
	families []*family
}

// family is a metric with its series.
type family struct {
	name, help, kind string
	labels           []string
	buckets          []float64
	// collect, if set, emits the series for a read.
	collect func(emit func(value float64, values ...string))

	mu     sync.Mutex
	series map[string]*series
}

type series struct {
	values []string
	value  float64 // the sum of the values for a histogram
	counts []uint64
	count  uint64
}

func (s *Set) addFamily(f *family) *family {
	f.series = map[string]*series{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.families = append(s.families, f)
	return f
}

// Counter is a counter, which only increases, or a gauge, which may also decrease.
type Counter struct{ f *family }

// Counter adds a counter. By convention its name ends in _total.
func (s *Set) Counter(name, help string, labels ...string) *Counter {
	return &Counter{s.addFamily(&family{name: name, help: help, kind: "counter", labels: labels})}
}

// Add adds n to a series. values are the values of the labels in their order.
func (c *Counter) Add(n float64, values ...string) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.findSeries(values).value += n
}

// Gauge adds a gauge, which may also decrease.
func (s *Set) Gauge(name, help string, labels ...string) *Counter {
	return &Counter{s.addFamily(&family{name: name, help: help, kind: "gauge", labels: labels})}
}

// Histogram is a metric of the distribution of values.
type Histogram struct{ f *family }

// Histogram adds a histogram. buckets are the upper bounds in ascending order.
func (s *Set) Histogram(name, help string, buckets []float64, labels ...string) *Histogram {
	return &Histogram{s.addFamily(&family{name: name, help: help, kind: "histogram", labels: labels, buckets: buckets})}
}

// Observe counts a value.
func (h *Histogram) Observe(value float64, values ...string) {
	h.f.mu.Lock()
	defer h.f.mu.Unlock()
	of := h.f.findSeries(values)
	if of.counts == nil {
		of.counts = make([]uint64, len(h.f.buckets))
	}
	of.value += value
	of.count++
	if i, _ := slices.BinarySearch(h.f.buckets, value); i < len(of.counts) {
		of.counts[i]++
	}
}

// Collect adds a metric of the kind "gauge" or "counter". Each read calls collect for its
// series.
func (s *Set) Collect(kind, name, help string, labels []string, collect func(emit func(value float64, values ...string))) {
	s.addFamily(&family{name: name, help: help, kind: kind, labels: labels, collect: collect})
}

// findSeries returns the series with these label values, and adds it if it does not exist.
// The caller must hold mu.
func (f *family) findSeries(values []string) *series {
	key := strings.Join(values, "\xff")
	found := f.series[key]
	if found != nil {
		return found
	}
	if len(f.series) >= maxSeries {
		values = slices.Repeat([]string{Other}, len(f.labels))
		key = strings.Join(values, "\xff")
		if found = f.series[key]; found != nil {
			return found
		}
	}
	found = &series{values: slices.Clone(values)}
	f.series[key] = found
	return found
}

// Write writes all metrics.
func (s *Set) Write(w io.Writer) error {
	s.mu.Lock()
	families := slices.Clone(s.families)
	s.mu.Unlock()
	out := bufio.NewWriter(w)
	for _, f := range families {
		f.writeFamily(out)
	}
	return out.Flush()
}

func (f *family) writeFamily(out *bufio.Writer) {
	fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", f.name, escapeHelp(f.help), f.name, f.kind)
	if f.collect != nil {
		f.collect(func(value float64, values ...string) {
			fmt.Fprintf(out, "%s%s %s\n", f.name, f.labelText(values, ""), formatNumber(value))
		})
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(f.series)) {
		of := f.series[key]
		if f.kind != "histogram" {
			fmt.Fprintf(out, "%s%s %s\n", f.name, f.labelText(of.values, ""), formatNumber(of.value))
			continue
		}
		sum := uint64(0)
		for i, bound := range f.buckets {
			sum += of.counts[i]
			fmt.Fprintf(out, "%s_bucket%s %d\n", f.name, f.labelText(of.values, formatNumber(bound)), sum)
		}
		fmt.Fprintf(out, "%s_bucket%s %d\n", f.name, f.labelText(of.values, "+Inf"), of.count)
		fmt.Fprintf(out, "%s_sum%s %s\n%s_count%s %d\n", f.name, f.labelText(of.values, ""), formatNumber(of.value), f.name, f.labelText(of.values, ""), of.count)
	}
}

// labelText formats the labels of a series. le is the upper bound of a histogram's bucket;
// empty for other series.
func (f *family) labelText(values []string, le string) string {
	var parts []string
	for i, label := range f.labels {
		value := ""
		if i < len(values) {
			value = values[i]
		}
		parts = append(parts, label+`="`+escapeLabel(value)+`"`)
	}
	if le != "" {
		parts = append(parts, `le="`+le+`"`)
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func escapeLabel(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(text, "�"))
}

func escapeHelp(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(text)
}

func formatNumber(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }

// AddRuntime adds metrics of the process and of the Go runtime, with the names that
// dashboards for Go programs expect. began is the start of the process.
func (s *Set) AddRuntime(began time.Time) {
	simple := func(kind, name, help string, value func() float64) {
		s.Collect(kind, name, help, nil, func(emit func(float64, ...string)) { emit(value()) })
	}
	s.Collect("gauge", "go_info", "Go version.", []string{"version"}, func(emit func(float64, ...string)) { emit(1, runtime.Version()) })
	simple("gauge", "go_goroutines", "Goroutines.", func() float64 { return float64(runtime.NumGoroutine()) })
	for _, m := range []struct{ kind, name, help, source string }{
		{"gauge", "go_memstats_heap_alloc_bytes", "Bytes of objects on the heap.", "/memory/classes/heap/objects:bytes"},
		{"gauge", "go_memstats_sys_bytes", "Bytes obtained from the system.", "/memory/classes/total:bytes"},
		{"counter", "go_memstats_alloc_bytes_total", "Bytes allocated for objects on the heap, including freed ones.", "/gc/heap/allocs:bytes"},
		{"counter", "go_gc_cycles_total", "Completed garbage collections.", "/gc/cycles/total:gc-cycles"},
	} {
		simple(m.kind, m.name, m.help, func() float64 {
			sample := []metrics.Sample{{Name: m.source}}
			metrics.Read(sample)
			if sample[0].Value.Kind() != metrics.KindUint64 {
				return 0
			}
			return float64(sample[0].Value.Uint64())
		})
	}
	simple("gauge", "process_start_time_seconds", "Start time of the process, in seconds since 1970.", func() float64 {
		return float64(began.UnixMilli()) / 1000
	})
	if _, ok := residentBytes(); ok {
		simple("gauge", "process_resident_memory_bytes", "Resident memory of the process, in bytes.", func() float64 {
			bytes, _ := residentBytes()
			return bytes
		})
	}
}

// residentBytes returns the resident memory. ok is false if it is unknown, as on systems
// other than Linux.
func residentBytes() (bytes float64, ok bool) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return float64(pages) * float64(os.Getpagesize()), err == nil
}
