package quality

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
)

// sessions times perKind results in 300 facts per kind.
const (
	sessions = 50
	perKind  = 6
)

func methodNames() []string {
	return []string{"guideway", "guideway, asked", "guideway, not asked", "random", "head", "tail", "head+tail"}
}

// cell identifies one cell of a table.
type cell struct {
	ratio        int
	method, kind string
}

// measureRecall compresses sessions and counts the recalled facts of each method.
func measureRecall(t *testing.T, kinds []string, ratios []int, seed uint64) map[cell]*tally {
	t.Helper()
	f := readFiller(t)
	counter := compress.NewTokenizer()
	table := map[cell]*tally{}
	for n := range sessions {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		s := makeSession(t, r, f, counter, kinds, perKind)
		text := plainText(t, s.items)
		for _, ratio := range ratios {
			blind := compress.Compress(s.items, compress.Options{Ratio: float64(ratio), Counter: counter})
			asked := compress.Compress(s.items, compress.Options{Ratio: float64(ratio), Counter: counter, Question: s.question})
			for _, result := range []compress.Result{blind, asked} {
				if result.TokensAfter > result.Budget {
					t.Fatalf("%d tokens, budget %d: %s", result.TokensAfter, result.Budget, result.OverReason)
				}
			}
			budget := blind.Budget
			withQuestion := contextText(t, asked.Context)
			outputs := map[string]string{
				"guideway": contextText(t, blind.Context),
				"random":   randomOf(r, counter, text, budget),
				"head":     headOf(counter, text, budget),
				"tail":     tailOf(counter, text, budget),
				"head+tail": headOf(counter, text, budget/2) + "\n" +
					tailOf(counter, text, budget-budget/2),
			}
			for i, f := range s.facts {
				for method, output := range outputs {
					countRecall(table, cell{ratio, method, f.kind}, f, output)
				}
				name := "guideway, not asked"
				if s.asked[i] {
					name = "guideway, asked"
				}
				countRecall(table, cell{ratio, name, f.kind}, f, withQuestion)
			}
		}
	}
	return table
}

func countRecall(table map[cell]*tally, c cell, f fact, output string) {
	if table[c] == nil {
		table[c] = &tally{}
	}
	found := !slices.ContainsFunc(f.keys, func(key string) bool { return !strings.Contains(output, key) })
	table[c].addFact(found, !found && f.stale != "" && strings.Contains(output, f.stale))
}

// logTable logs a table in the format of docs/context.md.
func logTable(t *testing.T, table map[cell]*tally, kinds []string, ratios []int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| ratio | method | " + strings.Join(kinds, " | ") + " |\n|---|---|" + strings.Repeat("---|", len(kinds)) + "\n")
	for _, ratio := range ratios {
		for _, method := range methodNames() {
			fmt.Fprintf(&b, "| %dx | %s |", ratio, method)
			for _, kind := range kinds {
				c := table[cell{ratio, method, kind}]
				low, high := c.wilsonInterval()
				fmt.Fprintf(&b, " %.0f (%.0f-%.0f)", 100*c.recallShare(), 100*low, 100*high)
				if c.stale > 0 {
					fmt.Fprintf(&b, ", stale %.0f", 100*float64(c.stale)/float64(c.all))
				}
				b.WriteString(" |")
			}
			b.WriteByte('\n')
		}
	}
	t.Log(b.String())
}

// TestQualityTuned measures the kinds that the weights were tuned on.
func TestQualityTuned(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	ratios := []int{2, 4, 10}
	table := measureRecall(t, tunedKinds(), ratios, 1)
	logTable(t, table, tunedKinds(), ratios)
	beatsAll(t, table, tunedKinds())
}

// TestQualityReported measures the kinds that no weight was tuned on. At a quarter of the
// tokens, the recall must exceed the recall of a random selection and of keeping only the
// beginning or the end, except for plain facts.
func TestQualityReported(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	ratios := []int{2, 4, 10}
	table := measureRecall(t, reportedKinds(), ratios, 2)
	logTable(t, table, reportedKinds(), ratios)
	beatsAll(t, table, []string{"identifier", "number", "superseded"})
}

// beatsAll checks that compression to a quarter, without a question, recalls more than the
// other methods.
func beatsAll(t *testing.T, table map[cell]*tally, kinds []string) {
	t.Helper()
	for _, kind := range kinds {
		ours := table[cell{4, "guideway", kind}]
		low, _ := ours.wilsonInterval()
		for _, method := range []string{"random", "head", "tail", "head+tail"} {
			other := table[cell{4, method, kind}]
			if _, high := other.wilsonInterval(); low <= high {
				t.Errorf("%s at 4x: %.0f percent, and %s has %.0f: the intervals overlap", kind, 100*ours.recallShare(), method, 100*other.recallShare())
			}
		}
	}
}
