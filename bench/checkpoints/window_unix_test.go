//go:build unix

package checkpoints

import (
	"syscall"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
)

// BenchmarkCompress measures the CPU time and the allocations of the report's row "compress
// to a quarter, one client".
func BenchmarkCompress(b *testing.B) {
	tokenizer := compress.NewTokenizer()
	tokenizer.Count("loaded")
	classifier, stems := compress.NewClassifier(compress.Hints{}), compress.NewStemCache()
	var contexts []compress.Context
	for seed := range 4 {
		for _, text := range contextsOf(uint64(seed), 11, newShare) {
			c, err := spreadLists(text)
			if err != nil {
				b.Fatal(err)
			}
			contexts = append(contexts, c)
		}
	}
	b.ReportAllocs()
	before := cpuTime()
	for i := 0; b.Loop(); i++ {
		items := compress.Items(contexts[i%len(contexts)], classifier, tokenizer)
		compress.Compress(items, compress.Options{Ratio: 4, Counter: tokenizer, Stems: stems, Question: "which test fails and why"})
	}
	reportCPU(b, before)
}

// cpuTime returns the CPU time of the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportCPU adds the average CPU time of a call to a benchmark, including garbage
// collection.
func reportCPU(b *testing.B, before time.Duration) {
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
}
