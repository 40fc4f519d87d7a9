package compress

import (
	"fmt"
	"strings"
)

// Passage is a text with a heading: the output of a step, or the summary of a phase.
type Passage struct {
	Heading string
	Text    string
}

// Summary is the result of Summarize. Its sentences are sentences of the passages; only
// white space is changed.
type Summary struct {
	Text        string
	TokensAfter int
	// Ref is the reference of the passages.
	Ref string
}

// minSummaryTokens is the minimum budget of a summary: headings and a few sentences.
const minSummaryTokens = 60

// Summarize summarizes the passages in their order. It aims at the budget or ratio of the
// options, but at minSummaryTokens or more. The first sentence of each passage is its topic
// and is preferred; the other sentences are valued as in Compress. The summary of a run is
// made from the summaries of its phases.
func Summarize(heading string, passages []Passage, options Options) Summary {
	if options.Counter == nil {
		options.Counter = Estimator{}
	}
	whole := joinPassages(passages)
	o := options.withDefaults(options.Counter.Count(whole))
	f := Summary{Ref: o.Ref("", []byte(whole))}
	o.Budget = max(o.Budget, minSummaryTokens)
	d := newDigest(passages, o)
	room := float64(o.Budget)
	for range 6 {
		d.chooseSentences(room)
		var kept int
		f.Text, kept = d.renderSummary(heading, f.Ref)
		f.TokensAfter = o.Counter.Count(f.Text)
		if f.TokensAfter <= o.Budget || kept == 0 {
			break
		}
		room -= float64(f.TokensAfter-o.Budget) + 4
	}
	return f
}

// joinPassages returns the text that a summary refers to.
func joinPassages(passages []Passage) string {
	var b strings.Builder
	for _, p := range passages {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", p.Heading, p.Text)
	}
	return b.String()
}

// sentenceChooser has the sentences of the passages, and the choice for a summary.
type sentenceChooser struct {
	passages []Passage
	pieces   []piece
	// headings has for each piece the heading inside its passage that precedes it.
	headings []string
	chooser  *chooser
	all      []int
}

func newDigest(passages []Passage, o Options) *sentenceChooser {
	d := &sentenceChooser{passages: passages}
	for i, p := range passages {
		under := ""
		for _, s := range splitSpans(p.Text, kindOfText(p.Text)) {
			text := strings.Join(strings.Fields(p.Text[s.from:s.to]), " ")
			if heading, ok := headingOf(p.Text[s.from:s.to]); ok {
				under = heading
				continue
			}
			if text == "" {
				continue
			}
			at := len(d.pieces)
			d.headings = append(d.headings, under)
			d.pieces = append(d.pieces, piece{item: i, text: text, tokens: float64(Estimate(text)) + 1, leader: at})
			d.all = append(d.all, at)
		}
	}
	s := newScorer(d.pieces, o.Question, o.Stems)
	d.chooser = newChooser(s, len(passages), headingTokens)
	for _, own := range d.chooser.piecesOf {
		if len(own) > 0 {
			d.chooser.factor[own[0]] = topicFactor
		}
	}
	return d
}

const (
	headingTokens     = 12
	topicFactor       = 2
	summaryNoteTokens = 30
)

func (d *sentenceChooser) chooseSentences(room float64) {
	d.chooser.resetChoice(summaryNoteTokens)
	d.chooser.keepBest(d.all, room)
}

// headingOf parses a heading of the second level or below, such as those in earlier
// summaries. A heading is not counted as a sentence.
func headingOf(part string) (heading string, ok bool) {
	part = strings.TrimSpace(part)
	rest := strings.TrimLeft(part, "#")
	heading, spaced := strings.CutPrefix(rest, " ")
	depth := len(part) - len(rest)
	return strings.TrimSpace(heading), spaced && depth >= 2 && depth <= 6 && !strings.Contains(part, "\n")
}

// renderSummary renders the kept sentences below the headings of their passages.
func (d *sentenceChooser) renderSummary(heading, ref string) (text string, kept int) {
	var b strings.Builder
	if heading != "" {
		fmt.Fprintf(&b, "# %s\n", heading)
	}
	for i, p := range d.passages {
		open, under := false, p.Heading
		for at, piece := range d.pieces {
			if piece.item != i || !d.chooser.keep[at] {
				continue
			}
			if !open && p.Heading != "" {
				fmt.Fprintf(&b, "## %s\n", p.Heading)
			}
			open = true
			if within := d.headings[at]; within != "" && within != under {
				fmt.Fprintf(&b, "### %s\n", within)
				under = within
			}
			kept++
			fmt.Fprintf(&b, "- %s\n", strings.TrimPrefix(piece.text, "- "))
		}
	}
	if left := len(d.pieces) - kept; left > 0 {
		fmt.Fprintf(&b, "[%s %d of %d sentences omitted; %s]\n", gapMark, left, len(d.pieces), ref)
	}
	return b.String(), kept
}
