// Package conversation makes contexts as agents carry them, for tests and for
// benchmarks: they are made, the same for the same seed, and much of one is in the
// next.
package conversation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// Conversation makes the successive contexts of a session: a plan, findings, a
// transcript, logs with random ids, and source code, as agents carry them. From
// one to the next a share of it is new: statuses flip, the transcript and the logs
// move on, lines of code are edited.
type Conversation struct {
	rng *rand.Rand
	// fresh is the share of what is new, in bytes.
	fresh float64
	// size is about how large a context is.
	size int
	step int

	plan       []map[string]any
	findings   []string
	transcript []map[string]any
	logs       []string
	code       []string
}

// New makes the first context's parts. size is about how large a context is, in
// bytes, fresh the share of it that is new with each step.
func New(seed uint64, size int, fresh float64) *Conversation {
	c := &Conversation{rng: rand.New(rand.NewPCG(seed, 7)), fresh: fresh, size: size} //nolint:gosec // it is to be the same every time
	for i := range 12 {
		c.plan = append(c.plan, map[string]any{"id": fmt.Sprintf("step-%02d", i), "title": c.prose(6), "status": "pending", "evidence": ""})
	}
	for total := 0; total < size*15/100; {
		c.findings = append(c.findings, c.prose(30))
		total += len(c.findings[len(c.findings)-1])
	}
	for total := 0; total < size*25/100; {
		c.transcript = append(c.transcript, c.turn())
		total += len(c.transcript[len(c.transcript)-1]["text"].(string)) + 40
	}
	for total := 0; total < size*25/100; {
		c.logs = append(c.logs, c.log())
		total += len(c.logs[len(c.logs)-1]) + 3
	}
	for total := 0; total < size*33/100; {
		line := c.line()
		c.code = append(c.code, line)
		total += len(line) + 3
	}
	return c
}

// material is text that people and programs have written: the sources of Go's own
// library, which every machine that runs the tests has.
var material = sync.OnceValue(func() []string {
	var lines []string
	root := filepath.Join(runtime.GOROOT(), "src") //nolint:staticcheck // of the machine that runs the test, which is meant
	for _, dir := range []string{"net/http", "encoding/json", "database/sql", "text/template"} {
		files, _ := filepath.Glob(filepath.Join(root, dir, "*.go"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil || strings.HasSuffix(file, "_test.go") {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if len(strings.TrimSpace(line)) > 3 {
					lines = append(lines, strings.TrimRight(line, "\n"))
				}
			}
		}
	}
	return lines
})

// vocabulary is the words of the comments in the material.
var vocabulary = sync.OnceValue(func() []string {
	var words []string
	for _, line := range material() {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
			words = append(words, strings.Fields(comment)...)
		}
	}
	return words
})

// prose is a piece of running text.
func (c *Conversation) prose(words int) string {
	all := vocabulary()
	at := c.rng.IntN(len(all) - words - 1)
	return strings.Join(all[at:at+words], " ")
}

func (c *Conversation) line() string { return material()[c.rng.IntN(len(material()))] }

func (c *Conversation) log() string {
	return fmt.Sprintf("2026-11-20T%02d:%02d:%02d.%06dZ INFO request=%08x%08x path=/api/v1/%s/%d status=%d took=%dus",
		c.rng.IntN(24), c.rng.IntN(60), c.rng.IntN(60), c.rng.IntN(1e6), c.rng.Uint32(), c.rng.Uint32(),
		[]string{"users", "runs", "gates"}[c.rng.IntN(3)], c.rng.IntN(1e5), []int{200, 200, 201, 404, 500}[c.rng.IntN(5)], c.rng.IntN(1e6))
}

func (c *Conversation) turn() map[string]any {
	who := []string{"agent", "tool", "user"}[c.rng.IntN(3)]
	return map[string]any{"who": who, "text": c.prose(20 + c.rng.IntN(60)), "id": fmt.Sprintf("%012x", c.rng.Uint64()>>16)}
}

// Next gives the JSON of the next context.
func (c *Conversation) Next() json.RawMessage {
	if c.step > 0 {
		c.move(int(float64(c.size) * c.fresh))
	}
	c.step++
	text, err := json.Marshal(map[string]any{
		"goal": "carry the storage of checkpoints over to deltas", "step": c.step, "plan": c.plan, "findings": c.findings,
		"transcript": c.transcript, "logs": c.logs, "code": c.code,
	})
	if err != nil {
		panic(err) // plain values
	}
	return text
}

// move replaces so many bytes.
func (c *Conversation) move(bytes int) {
	c.plan[c.rng.IntN(len(c.plan))]["status"] = []string{"pending", "active", "done"}[c.rng.IntN(3)]
	for left := bytes * 35 / 100; left > 0; {
		turn := c.turn()
		left -= len(turn["text"].(string)) + 40
		c.transcript = append(c.transcript[1:], turn)
	}
	for left := bytes * 30 / 100; left > 0; {
		line := c.log()
		left -= len(line) + 3
		c.logs = append(c.logs[1:], line)
	}
	for left := bytes * 15 / 100; left > 0; {
		text := c.prose(30)
		left -= len(text)
		c.findings = append(c.findings[1:], text)
	}
	for left := bytes * 20 / 100; left > 0; {
		line := c.line()
		left -= len(line) + 3
		c.code[c.rng.IntN(len(c.code))] = line
	}
}
