package compress

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// eventRef is the reference of an event, or of all events.
func eventRef(event string, _ []byte) string { return "r_1." + event }

// summarizeAll summarizes passages without titles.
func summarizeAll(passages []Passage, budget int) string {
	return Summarize([]PassageGroup{{Passages: passages}}, Options{Budget: budget, Ref: eventRef}).Text
}

// TestSummaryOfShortRun checks that passages that fit are kept whole, and that the marks of
// Markdown, numbers of lists and headings are not sentences.
func TestSummaryOfShortRun(t *testing.T) {
	t.Parallel()
	groups := []PassageGroup{
		{Title: "prepare", Passages: []Passage{
			ReadPassage("plan", 3, "# Plan\n\n1. Look at the importer.\n2. Move it.\n\n---\n\n- **Bold** claim\n\n| a | b |\n|---|---|\n| 1 | 2 |"),
			ReadPassage("choose", 5, "## Decisions\n* We use pgx. It has batches.\n\n## Notes\n> None, e.g. of this.\n\n```go\nx := 1\n```"),
		}},
		{Title: "under way", Passages: []Passage{ReadPassage("build, round 1", 7, "The build took 40 s.")}},
	}
	want := `## prepare
- plan: Look at the importer. Move it. **Bold** claim | a | b | | 1 | 2 |
- choose: Decisions: We use pgx. It has batches. None, e.g. of this. x := 1
## under way
- build, round 1: The build took 40 s.
`
	if d := cmp.Diff(want, Summarize(groups, Options{Budget: 400, Ref: eventRef}).Text); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCodeEndsNoSentence checks that code in a sentence is not split, and that code with a
// mark at its end, or a single backtick, does not prevent the end of the sentence.
func TestCodeEndsNoSentence(t *testing.T) {
	t.Parallel()
	want := []string{"The query `SELECT ... FROM a. WHERE B` was slow.", "ANALYZE fixed it, see `a.b!`.", "Run `make.`", "One ` mark.", "The end."}
	var got []string
	for _, s := range ReadPassage("s", 1, strings.Join(want, " ")).Statements {
		got = append(got, s.Text)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestSummaryOfLongRun checks what a summary keeps of a run that does not fit: the last steps,
// and each sentence with a decision, a cause, a demand, an open question, a refusal or
// evidence, with the references of what it omits.
func TestSummaryOfLongRun(t *testing.T) {
	t.Parallel()
	told := map[int]string{
		5: "We decided to use zstd instead of gzip.", 40: "The cause is a missing flush in tail.go.",
		90: "The user wants no new dependency.", 130: "It is unclear who rotates the key.",
		170: "Refused: the claim needs evidence.", 210: "Exit code 137 and an OOM line in dmesg.", 260: "Does node 9 use the old importer?",
	}
	subjects := strings.Fields("importer scheduler mailer index store page view table parser queue")
	var passages []Passage
	for i := range 300 {
		text := fmt.Sprintf("There was some talk about the %s and part %d of the %s.", subjects[i%10], i, subjects[i/10%10])
		if told[i] != "" {
			text += " " + told[i] + " Then it went on as usual with tea."
		}
		passages = append(passages, ReadPassage(fmt.Sprint("step-", i), int64(i+1), text))
	}
	got := summarizeAll(passages, 800)
	for i, want := range told {
		if !strings.Contains(got, fmt.Sprintf("- step-%d: %s", i, want)) && !strings.Contains(got, want) {
			t.Errorf("the summary lacks %q", want)
		}
	}
	for i := 290; i < 300; i++ {
		if !strings.Contains(got, passages[i].Statements[0].Text) {
			t.Errorf("the summary lacks step %d", i)
		}
	}
	for _, want := range []string{"ref of all outputs: r_1.;", "[…6]", "sentences omitted"} {
		if !strings.Contains(got, want) {
			t.Errorf("the summary lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestSummaryOfDecisionLabels checks that a statement with the label "Decision:" is kept in a run
// about decisions, in which the word alone says little.
func TestSummaryOfDecisionLabels(t *testing.T) {
	t.Parallel()
	told := map[int]string{70: "Decision: seven retries.", 140: "**Design decision:** one writer for each shard.", 210: "Our decision: no cache at the edge."}
	subjects := strings.Fields("importer scheduler mailer index store page view table parser queue")
	var passages []Passage
	for i := range 300 {
		text := fmt.Sprintf("Option %d of the %s needs a decision of the %s before the %s.", i, subjects[i%10], subjects[i/10%10], subjects[i/7%10])
		passages = append(passages, ReadPassage(fmt.Sprint("step-", i), int64(i+1), text+" "+told[i]+" Who measures the outcome of it?"))
	}
	got := summarizeAll(passages, 800)
	for _, want := range told {
		if !strings.Contains(got, want) {
			t.Errorf("the summary lacks %q", want)
		}
	}
}

// TestSummaryOfLoop checks that rounds with the same pattern are folded with their number, that
// the rounds that stay are spread over the loop, and that a sentence of one round stays.
func TestSummaryOfLoop(t *testing.T) {
	t.Parallel()
	var passages []Passage
	for i := range 400 {
		text := fmt.Sprintf("Migrated file_%03d.go to the new client and ran the tests.", i)
		if i == 137 {
			text += " The cause of the hang was a lost wakeup."
		}
		passages = append(passages, ReadPassage(fmt.Sprintf("migrate, round %d", i+1), int64(i+1), text))
	}
	for name, list := range map[string][]Passage{"at once": passages, "thinned": ThinPassages(passages, 2000)} {
		got := summarizeAll(list, 600)
		quarter := make([]int, 4)
		for i, p := range passages {
			if strings.Contains(got, strings.TrimSuffix(p.Statements[0].Text, ".")) {
				quarter[i/100]++
			}
		}
		lines := strings.Split(strings.TrimSpace(got), "\n")
		more := fmt.Sprintf("file_399.go to the new client and ran the tests. (%d more like it)", 400-quarter[0]-quarter[1]-quarter[2]-quarter[3])
		if !strings.Contains(got, more) || !strings.Contains(got, "a lost wakeup") || !strings.Contains(lines[len(lines)-2], "round 400") {
			t.Errorf("%s: want %q in\n%s", name, more, got)
		}
		if min(quarter[0], quarter[1], quarter[2]) == 0 {
			t.Errorf("%s: the rounds that are kept by quarter are %v", name, quarter)
		}
	}
}

// TestSummaryFitsBudget checks for any passages that the summary fits the budget and that each of
// its statements is a part of a passage.
func TestSummaryFitsBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var passages []Passage
		var all strings.Builder
		for i := range rapid.IntRange(0, 30).Draw(t, "n") {
			text, _ := drawValue(t, 9).(string)
			all.WriteString(strings.Join(strings.Fields(text), " ") + "\n")
			passages = append(passages, ReadPassage("s", int64(i), text))
		}
		for _, p := range passages {
			for _, s := range p.Statements {
				if !strings.Contains(all.String(), s.Text) {
					t.Fatalf("%q is not in %q", s.Text, all.String())
				}
			}
		}
		budget := rapid.IntRange(60, 2000).Draw(t, "budget")
		f := Summarize([]PassageGroup{{Passages: passages}}, Options{Budget: budget, Ref: eventRef})
		if f.TokensAfter > budget && strings.Count(f.Text, "\n") > 1 {
			t.Fatalf("%d of %d tokens:\n%s", f.TokensAfter, budget, f.Text)
		}
	})
}
