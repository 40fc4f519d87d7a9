package window

import (
	"fmt"
	"strings"
)

// Passage is a text with a heading: what one step of a phase gave, or the
// summary of a phase.
type Passage struct {
	Heading string
	Text    string
}

// Folded is a summary for people and agents to read. It holds sentences of the
// passages as they stood, never new ones.
type Folded struct {
	Text                      string
	TokensBefore, TokensAfter int
	// Kept and Of count the sentences.
	Kept, Of int
	// Ref reads the passages back, as Blob has them.
	Ref  string
	Blob Blob
}

// leastFold is the smallest budget of a summary: headings and a few sentences.
const leastFold = 60

// Fold makes one readable text of the passages, in their order and within the
// options' budget or ratio. The first sentence of each passage is its topic and
// comes before others; for the rest the same is worth keeping as in Compress.
// A summary of a run is a Fold of the summaries of its phases.
func Fold(heading string, passages []Passage, options Options) Folded {
	if options.Counter == nil {
		options.Counter = Estimator{}
	}
	whole := joinPassages(passages)
	f := Folded{TokensBefore: options.Counter.Count(whole)}
	o := options.withDefaults(f.TokensBefore)
	f.Ref = o.Ref("", []byte(whole))
	f.Blob = Blob{Ref: f.Ref, Key: heading, Bytes: []byte(whole)}
	o.Budget = max(o.Budget, leastFold)
	d := newDigest(passages, o)
	f.Of = len(d.pieces)
	room := float64(o.Budget)
	for range 6 {
		d.choose(room)
		f.Text, f.Kept = d.write(heading, f.Ref)
		f.TokensAfter = o.Counter.Count(f.Text)
		if f.TokensAfter <= o.Budget || f.Kept == 0 {
			break
		}
		room -= float64(f.TokensAfter-o.Budget) + 4
	}
	return f
}

// joinPassages is what the blob of a summary holds.
func joinPassages(passages []Passage) string {
	var b strings.Builder
	for _, p := range passages {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", p.Heading, p.Text)
	}
	return b.String()
}

// digest chooses the sentences of a summary.
type digest struct {
	passages []Passage
	pieces   []piece
	// under has the heading within its passage that each piece stands below.
	under   []string
	chooser *chooser
	all     []int
	counter Counter
}

func newDigest(passages []Passage, o Options) *digest {
	d := &digest{passages: passages, counter: o.Counter}
	for i, p := range passages {
		under := ""
		for _, s := range cut(p.Text, kindOfText(p.Text)) {
			text := strings.Join(strings.Fields(p.Text[s.from:s.to]), " ")
			if heading, ok := headingOf(p.Text[s.from:s.to]); ok {
				under = heading
				continue
			}
			if text == "" {
				continue
			}
			at := len(d.pieces)
			d.under = append(d.under, under)
			d.pieces = append(d.pieces, piece{item: i, text: text, tokens: float64(Estimate(text)) + 1, leader: at})
			d.all = append(d.all, at)
		}
	}
	s := newScorer(d.pieces, o.Question, o.Stems)
	d.chooser = newChooser(s, len(passages), headingTokens)
	for _, own := range d.chooser.of {
		if len(own) > 0 {
			d.chooser.factor[own[0]] = topicFactor
		}
	}
	return d
}

const (
	headingTokens = 12
	topicFactor   = 2
	noteOfFold    = 30
)

func (d *digest) choose(room float64) {
	d.chooser.restart(noteOfFold)
	d.chooser.take(d.all, room)
}

// headingOf reads a part that is a heading, of the second level or below, as folds
// write them: it says what the sentences below it are about, and is none itself.
func headingOf(part string) (heading string, ok bool) {
	part = strings.TrimSpace(part)
	rest := strings.TrimLeft(part, "#")
	heading, spaced := strings.CutPrefix(rest, " ")
	depth := len(part) - len(rest)
	return strings.TrimSpace(heading), spaced && depth >= 2 && depth <= 6 && !strings.Contains(part, "\n")
}

// write puts the kept sentences below the headings of their passages.
func (d *digest) write(heading, ref string) (text string, kept int) {
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
			if within := d.under[at]; within != "" && within != under {
				fmt.Fprintf(&b, "### %s\n", within)
				under = within
			}
			kept++
			fmt.Fprintf(&b, "- %s\n", strings.TrimPrefix(piece.text, "- "))
		}
	}
	if left := len(d.pieces) - kept; left > 0 {
		fmt.Fprintf(&b, "[%s %d of %d sentences left out; %s]\n", gap, left, len(d.pieces), ref)
	}
	return b.String(), kept
}
