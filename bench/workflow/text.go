package workflow

import (
	"fmt"
	"strings"
)

// sampleSentences are the sentences of prompts.
func sampleSentences() []string {
	return []string{
		"Read the request and the code that it lands in before you write anything.",
		"Name each place that you will edit as path:line, after reading it.",
		"Run the narrowest check that this change could break, and quote its exit code.",
		"Write down what the request leaves open, with the reading that you chose.",
		"Do not change what the task does not need; note it for the hand-over instead.",
		"If a check was red before your change, list it as such and go on.",
		"Compare the result with the acceptance checks, one by one.",
		"Ask the person only where two readings lead to different code.",
		"Look for callers of what you changed, and tell how many there are.",
		"Keep each slice small enough to be reverted separately.",
		"Quote the lines of output that decide, and leave out the rest.",
		"When an earlier result turns out to be wrong, say so and repair it first.",
		"Prefer the boring way: it is read more often than it is written.",
		"State the risk in one sentence, and how you would notice it.",
	}
}

// randomText returns sentences of at most the given number of characters in total.
func (g *generator) randomText(most int) string {
	all := sampleSentences()
	var b strings.Builder
	for {
		s := all[g.random.IntN(len(all))]
		if b.Len() > 0 {
			s = " " + s
		}
		if b.Len()+len(s) > most {
			break
		}
		b.WriteString(s)
	}
	if b.Len() == 0 {
		return all[0]
	}
	return b.String()
}

// randomSentences returns n different sentences.
func (g *generator) randomSentences(n int) []string {
	all := sampleSentences()
	var chosen []string
	for _, i := range g.random.Perm(len(all))[:n] {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// sampleHeadings are headings of outputs; there are many, so that few steps have the same
// pattern.
func sampleHeadings() []string {
	return []string{
		"Acceptance", "Assumed", "Baseline", "Callers", "Changed", "Decision", "Evidence", "Findings",
		"Goal", "Open questions", "Risk", "Slices",
	}
}

func (g *generator) randomHeading() string {
	return sampleHeadings()[g.random.IntN(len(sampleHeadings()))]
}

// goodOutput returns an output that meets the criteria of every generated step.
func goodOutput() string {
	var b strings.Builder
	for _, heading := range sampleHeadings() {
		fmt.Fprintf(&b, "- %s: internal/run/store.go:42, the retry that had no bound\n", heading)
	}
	b.WriteString("- Checked: go test ./internal/run, exit 0, 31 tests passed\n")
	return b.String()
}
