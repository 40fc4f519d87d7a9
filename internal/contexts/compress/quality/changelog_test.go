package quality

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
)

// The test reads long changelogs, because they are the largest texts on a Debian machine
// that refer to earlier names.
const (
	changelogGlob   = "/usr/share/doc/*/changelog.Debian*.gz"
	leastEntries    = 20
	mostChangelogs  = 400
	mostLogBytes    = 60 << 10
	shareOfHistory  = 0.7
	entriesPerItem  = 4
	leastReferences = 3
)

// readChangelogs returns the entries of each changelog, the oldest first.
func readChangelogs(t *testing.T) [][]string {
	t.Helper()
	names, err := filepath.Glob(changelogGlob)
	if err != nil {
		t.Fatal(err)
	}
	start := regexp.MustCompile(`(?m)^[a-z0-9][a-z0-9+.-]* \([^)]+\) `)
	var logs [][]string
	seen := map[string]bool{}
	for _, name := range names {
		if len(logs) == mostChangelogs {
			break
		}
		text := readGzip(t, name)
		if len(text) < 4000 || seen[text] {
			continue // packages of the same source share a changelog
		}
		seen[text] = true
		text = text[:min(len(text), mostLogBytes)]
		var entries []string
		at := start.FindAllStringIndex(text, -1)
		for i, from := range at {
			to := len(text)
			if i+1 < len(at) {
				to = at[i+1][0]
			}
			entries = append(entries, strings.TrimSpace(text[from[0]:to]))
		}
		if len(entries) < leastEntries {
			continue
		}
		slices.Reverse(entries)
		logs = append(logs, entries)
	}
	return logs
}

func readGzip(t *testing.T, name string) string {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return "" // skip a broken package
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		return ""
	}
	return string(text)
}

// findEntities returns names that later text may refer to: vulnerabilities, bugs, files,
// identifiers, long options.
func findEntities(text string) map[string]bool {
	found := map[string]bool{}
	for _, e := range regexp.MustCompile(`CVE-\d{4}-\d+|#\d{4,}|(?:[\w.+-]+/)+[\w.+-]+|\b[a-z]\w*_\w+\b|--[a-z][\w-]+|\b[\w-]+\.(?:patch|diff|conf|c|h|py|service|so)\b`).FindAllString(text, -1) {
		found[strings.TrimRight(e, ".,")] = true
	}
	return found
}

// TestQualityFutureReferences measures how many of the names that a later text uses again
// are still present after the history before it was compressed to a half, a quarter and a
// tenth. It does not depend on an author's judgment.
func TestQualityFutureReferences(t *testing.T) {
	t.Parallel()
	// The weights were tuned on every second changelog.
	t.Run("tuned", func(t *testing.T) { t.Parallel(); futureReferences(t, 0) })
	t.Run("reported", func(t *testing.T) { t.Parallel(); futureReferences(t, 1) })
}

func futureReferences(t *testing.T, half int) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	logs := readChangelogs(t)
	if len(logs) < 10 {
		t.Skipf("%d changelogs at %s: not enough; Debian has them unless the image omits documentation", len(logs), changelogGlob)
	}
	counter := compress.NewTokenizer()
	ratios := []int{2, 4, 10}
	table := map[cell]*tally{}
	all, again := 0, 0
	for n, entries := range logs {
		if n%2 != half {
			continue
		}
		split := int(shareOfHistory * float64(len(entries)))
		items := historyItems(t, entries[:split], counter)
		text := plainText(t, items)
		future := findEntities(strings.Join(entries[split:], "\n"))
		var wanted []string
		history := findEntities(text)
		for e := range history {
			if future[e] {
				wanted = append(wanted, e)
			}
		}
		all, again = all+len(history), again+len(wanted)
		if len(wanted) < leastReferences {
			continue
		}
		slices.Sort(wanted)
		for _, ratio := range ratios {
			r := compress.Compress(items, compress.Options{Ratio: float64(ratio), Counter: counter})
			random := rand.New(rand.NewPCG(7, uint64(n)))
			for method, output := range map[string]string{
				"guideway":  contextText(t, r.Context),
				"random":    randomLines(random, counter, text, r.Budget),
				"head":      headOf(counter, text, r.Budget),
				"tail":      tailOf(counter, text, r.Budget),
				"head+tail": headOf(counter, text, r.Budget/2) + "\n" + tailOf(counter, text, r.Budget-r.Budget/2),
			} {
				kept := findEntities(output)
				for _, e := range wanted {
					c := cell{ratio, method, "references"}
					if table[c] == nil {
						table[c] = &tally{}
					}
					table[c].addFact(kept[e], false)
				}
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d names in the histories, %d of them occur again\n\n| method |", all, again)
	for _, ratio := range ratios {
		fmt.Fprintf(&b, " %dx |", ratio)
	}
	b.WriteString("\n|---|---|---|---|\n")
	for _, method := range []string{"guideway", "random", "head", "tail", "head+tail"} {
		fmt.Fprintf(&b, "| %s |", method)
		for _, ratio := range ratios {
			c := table[cell{ratio, method, "references"}]
			low, high := c.wilsonInterval()
			fmt.Fprintf(&b, " %.0f (%.0f-%.0f) |", 100*c.recallShare(), 100*low, 100*high)
		}
		b.WriteByte('\n')
	}
	t.Log(b.String())
	ours, chance := table[cell{4, "guideway", "references"}], table[cell{4, "random", "references"}]
	if low, _ := ours.wilsonInterval(); low <= chance.recallShare() {
		t.Errorf("at 4x %.0f percent of the names that occur again are kept, by chance %.0f", 100*ours.recallShare(), 100*chance.recallShare())
	}
}

// historyItems groups a few entries into each item, like the notes of the steps of a run.
func historyItems(t *testing.T, entries []string, counter compress.Counter) []compress.Item {
	t.Helper()
	c := compress.Context{}
	var keys []string
	for from := 0; from < len(entries); from += entriesPerItem {
		text, err := json.Marshal(strings.Join(entries[from:min(from+entriesPerItem, len(entries))], "\n\n"))
		if err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("notesOfStep%03d", from/entriesPerItem)
		keys = append(keys, key)
		c[key] = text
	}
	items := compress.Items(c, compress.NewClassifier(compress.Hints{}), counter)
	for i := range items {
		items[i].Age = len(keys) - 1 - i
	}
	return items
}

// randomLines returns random lines in their order.
func randomLines(r *rand.Rand, counter compress.Counter, text string, tokens int) string {
	lines := strings.SplitAfter(text, "\n")
	keep := make([]bool, len(lines))
	spent := 0
	for _, i := range r.Perm(len(lines)) {
		if cost := counter.Count(lines[i]); spent+cost <= tokens {
			spent += cost
			keep[i] = true
		}
	}
	var b strings.Builder
	for i, line := range lines {
		if keep[i] {
			b.WriteString(line)
		}
	}
	return b.String()
}
