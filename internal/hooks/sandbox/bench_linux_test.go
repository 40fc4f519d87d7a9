package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// redactingHook is a hook of 1 KB that redacts secrets in the arguments.
const redactingHook = `// Redact secrets in the arguments of every call, before it leaves.
// What was found is noted in the metadata, and in a line of the console.

const secret = /\b(?:sk-[A-Za-z0-9]{16,}|ghp_[A-Za-z0-9]{20,}|password=\S+)/g;

// redact replaces the secrets in one text and counts them.
function redact(text, found) {
  return text.replace(secret, (match) => {
    found.push(match.slice(0, 3));
    return "[redacted]";
  });
}

export default async function (context) {
  const { method, params } = context.request;
  if (method !== "tools/call" || !params) {
    return { continue: true, context };
  }
  const found = [];
  for (const [key, value] of Object.entries(params.arguments ?? {})) {
    if (typeof value === "string") {
      params.arguments[key] = redact(value, found);
    }
  }
  if (found.length > 0) {
    console.log("redacted", found.length, "secrets in a call of", params.name);
    context.metadata.redacted = found;
  }
  return { continue: true, context };
}
`

// hookContext returns a call of size bytes, with a secret in a long text.
func hookContext(size int) json.RawMessage {
	const head = `{"request":{"method":"tools/call","params":{"name":"files__write","arguments":` +
		`{"path":"/a/b","mode":"append","content":"the password=hunter2 is in here`
	const tail = `"}}},"metadata":{"clientId":"c","serverName":"files","workflowId":"w","nodeId":"n"}}`
	var b bytes.Buffer
	b.WriteString(head)
	for b.Len()+len(tail) < size {
		b.WriteString(" and some more text")
	}
	b.WriteString(tail)
	return b.Bytes()
}

// BenchmarkHook measures the overhead of a hook: from the JSON of its context to the JSON
// of its result. The benchmark pauses between calls, like an agent, so caches are cold and
// processors are idle; worker-cpu-us/op includes the restore of the engine.
func BenchmarkHook(b *testing.B) {
	benchmarkHooks(b, 3*time.Millisecond)
}

// BenchmarkHookAtOnce measures the same hook without pauses between calls.
func BenchmarkHookAtOnce(b *testing.B) { benchmarkHooks(b, 0) }

func benchmarkHooks(b *testing.B, pause time.Duration) {
	b.Helper()
	for _, hook := range []struct{ name, source string }{
		{"NoOp", "export default () => ({ continue: true })"},
		{"Redact", redactingHook},
	} {
		for _, size := range []int{1 << 10, 64 << 10} {
			b.Run(fmt.Sprintf("%s/%dKB", hook.name, size>>10), func(b *testing.B) { benchmarkHook(b, hook.source, size, pause) })
		}
	}
}

func benchmarkHook(b *testing.B, source string, size int, pause time.Duration) {
	p, err := NewPool(Options{Command: benchCommand()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	c := Call{
		Module: Module{Name: "redact.js", Source: source, Hash: Hash(source)},
		Args:   []json.RawMessage{hookContext(size)},
	}
	var inside []time.Duration // wall times of the calls, as measured by the worker
	run := func() time.Duration {
		began := time.Now()
		r, err := p.Run(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		inside = append(inside, r.Wall)
		return time.Since(began)
	}
	for range 20 {
		run()
	}
	before, own := poolCPU(b, p), ownCPU(b)
	var walls []time.Duration
	for b.Loop() {
		walls = append(walls, run())
		if pause > 0 {
			<-time.After(pause)
		}
	}
	n := float64(len(walls))
	slices.Sort(walls)
	slices.Sort(inside)
	b.ReportMetric(float64(inside[len(inside)/2].Microseconds()), "p50-inside-us")
	b.ReportMetric(0, "ns/op") // ns/op would include the pauses
	b.ReportMetric(float64(walls[len(walls)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(walls[len(walls)*99/100].Microseconds()), "p99-us")
	b.ReportMetric(float64((poolCPU(b, p)-before).Microseconds())/n, "worker-cpu-us/op")
	b.ReportMetric(float64((ownCPU(b)-own).Microseconds())/n, "own-cpu-us/op")
	b.ReportMetric(poolMemory(b, p, "VmRSS:"), "worker-MB")
	b.ReportMetric(poolMemory(b, p, "RssAnon:"), "worker-own-MB")
}

// BenchmarkSpawn measures the start of a worker.
func BenchmarkSpawn(b *testing.B) {
	p, err := NewPool(Options{Command: benchCommand()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	for b.Loop() {
		w, err := startProcess(b.Context(), &p.options)
		if err != nil {
			b.Fatal(err)
		}
		w.killAndWait()
	}
}

// forEachIdle calls f with the /proc directory of every idle worker.
func (p *Pool) forEachIdle(f func(proc string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.idle {
		f("/proc/" + strconv.Itoa(w.cmd.Process.Pid))
	}
}

func poolCPU(tb testing.TB, p *Pool) time.Duration {
	tb.Helper()
	waitForVMs(p)
	var sum time.Duration
	p.forEachIdle(func(proc string) { sum += schedCPU(tb, proc) })
	return sum
}

// waitForVMs waits until the workers have created their VMs.
func waitForVMs(p *Pool) {
	for {
		p.mu.Lock()
		done := len(p.busy) == 0
		p.mu.Unlock()
		if done {
			return
		}
		runtime.Gosched()
	}
}

func ownCPU(tb testing.TB) time.Duration {
	tb.Helper()
	return schedCPU(tb, "/proc/self")
}

// schedCPU returns the CPU time of a process's threads.
func schedCPU(tb testing.TB, proc string) time.Duration {
	tb.Helper()
	tasks, err := os.ReadDir(proc + "/task")
	if err != nil {
		tb.Fatal(err)
	}
	var sum time.Duration
	for _, task := range tasks {
		text, err := os.ReadFile(proc + "/task/" + task.Name() + "/schedstat")
		if err != nil {
			continue // the thread has exited
		}
		ns, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(n)
	}
	return sum
}

// poolMemory returns the value of a memory field in /proc/PID/status, in MB: the largest
// one of all workers.
func poolMemory(tb testing.TB, p *Pool, figure string) float64 {
	tb.Helper()
	var most int64
	p.forEachIdle(func(proc string) {
		text, err := os.ReadFile(proc + "/status")
		if err != nil {
			tb.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, figure); ok {
				n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				if err != nil {
					tb.Fatal(err)
				}
				most = max(most, n)
			}
		}
	})
	return float64(most) / 1024
}

// benchCommand returns the worker to measure: the program in an environment variable, or
// this test binary.
func benchCommand() []string {
	if program := os.Getenv("GUIDEWAY_BENCH_BINARY"); program != "" {
		return []string{program, "script-worker"}
	}
	return nil
}
