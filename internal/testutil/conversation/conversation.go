// Package conversation generates contexts like the contexts of agents, for tests and
// benchmarks. They are deterministic for a seed, and successive contexts share most of
// their content.
package conversation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/testutil/gosource"
)

// Conversation generates the successive contexts of a session: a plan, findings, a
// transcript, logs with random ids, and source code. Each step replaces a share of the
// content: statuses change, the transcript and the logs advance, lines of code are edited.
type Conversation struct {
	rng *rand.Rand
	// fresh is the share of new content in each step.
	fresh float64
	// size is the approximate size of a context.
	size int
	step int

	plan       []map[string]any
	findings   []string
	transcript []map[string]any
	logs       []string
	code       []string
}

// New returns a conversation. size is the approximate size of a context in bytes, fresh the
// share of a context that each step replaces.
func New(seed uint64, size int, fresh float64) *Conversation {
	c := &Conversation{rng: rand.New(rand.NewPCG(seed, 7)), fresh: fresh, size: size} //nolint:gosec // it is to be the same every time
	for i := range 12 {
		c.plan = append(c.plan, map[string]any{"id": fmt.Sprintf("step-%02d", i), "title": c.randomProse(6), "status": "pending", "evidence": ""})
	}
	for total := 0; total < size*15/100; {
		c.findings = append(c.findings, c.randomProse(30))
		total += len(c.findings[len(c.findings)-1])
	}
	for total := 0; total < size*25/100; {
		c.transcript = append(c.transcript, c.randomTurn())
		total += len(c.transcript[len(c.transcript)-1]["text"].(string)) + 40
	}
	for total := 0; total < size*25/100; {
		c.logs = append(c.logs, c.randomLog())
		total += len(c.logs[len(c.logs)-1]) + 3
	}
	for total := 0; total < size*33/100; {
		line := c.randomLine()
		c.code = append(c.code, line)
		total += len(line) + 3
	}
	return c
}

// material returns real text: the sources of Go's standard library, which exist on every
// machine that runs the tests.
var material = sync.OnceValue(func() []string {
	var lines []string
	for _, dir := range []string{"net/http", "encoding/json", "database/sql", "text/template"} {
		files, _ := filepath.Glob(filepath.Join(gosource.Dir(), dir, "*.go"))
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
	if len(lines) == 0 {
		panic("the sources of the standard library are not in " + gosource.Dir())
	}
	return lines
})

// vocabulary returns the words in the comments of the material.
var vocabulary = sync.OnceValue(func() []string {
	var words []string
	for _, line := range material() {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
			words = append(words, strings.Fields(comment)...)
		}
	}
	return words
})

// randomProse returns running text.
func (c *Conversation) randomProse(words int) string {
	all := vocabulary()
	at := c.rng.IntN(len(all) - words - 1)
	return strings.Join(all[at:at+words], " ")
}

func (c *Conversation) randomLine() string { return material()[c.rng.IntN(len(material()))] }

func (c *Conversation) randomLog() string {
	return fmt.Sprintf("2026-11-20T%02d:%02d:%02d.%06dZ INFO request=%08x%08x path=/api/v1/%s/%d status=%d took=%dus",
		c.rng.IntN(24), c.rng.IntN(60), c.rng.IntN(60), c.rng.IntN(1e6), c.rng.Uint32(), c.rng.Uint32(),
		[]string{"users", "runs", "gates"}[c.rng.IntN(3)], c.rng.IntN(1e5), []int{200, 200, 201, 404, 500}[c.rng.IntN(5)], c.rng.IntN(1e6))
}

func (c *Conversation) randomTurn() map[string]any {
	who := []string{"agent", "tool", "user"}[c.rng.IntN(3)]
	return map[string]any{"who": who, "text": c.randomProse(20 + c.rng.IntN(60)), "id": fmt.Sprintf("%012x", c.rng.Uint64()>>16)}
}

// Next returns the JSON of the next context.
func (c *Conversation) Next() json.RawMessage {
	if c.step > 0 {
		c.replaceBytes(int(float64(c.size) * c.fresh))
	}
	c.step++
	text, err := json.Marshal(map[string]any{
		"goal": "carry the storage of checkpoints over to deltas", "step": c.step, "plan": c.plan, "findings": c.findings,
		"transcript": c.transcript, "logs": c.logs, "code": c.code,
	})
	if err != nil {
		panic(err) // cannot happen with plain values
	}
	return text
}

// replaceBytes replaces approximately the given number of bytes of the context.
func (c *Conversation) replaceBytes(bytes int) {
	c.plan[c.rng.IntN(len(c.plan))]["status"] = []string{"pending", "active", "done"}[c.rng.IntN(3)]
	for left := bytes * 35 / 100; left > 0; {
		turn := c.randomTurn()
		left -= len(turn["text"].(string)) + 40
		c.transcript = append(c.transcript[1:], turn)
	}
	for left := bytes * 30 / 100; left > 0; {
		line := c.randomLog()
		left -= len(line) + 3
		c.logs = append(c.logs[1:], line)
	}
	for left := bytes * 15 / 100; left > 0; {
		text := c.randomProse(30)
		left -= len(text)
		c.findings = append(c.findings[1:], text)
	}
	for left := bytes * 20 / 100; left > 0; {
		line := c.randomLine()
		left -= len(line) + 3
		c.code[c.rng.IntN(len(c.code))] = line
	}
}
