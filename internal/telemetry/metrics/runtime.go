package metrics

import (
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

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
