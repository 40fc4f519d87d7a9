package compress

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// PassageGroup are consecutive passages below a title, which may be empty.
type PassageGroup struct {
	Title    string
	Passages []Passage
}

// Summary is the result of Summarize. Its sentences are sentences of the passages; only
// white space is changed, and the marks of Markdown before them are removed.
type Summary struct {
	Text        string
	TokensAfter int
}

const (
	// minSummaryTokens is the minimum budget of a summary: headings and a few sentences.
	minSummaryTokens = 60
	// wholePassages is the number of last passages that are kept whole if they fit into
	// wholeShare of the budget.
	wholePassages = 10
	wholeShare    = 0.5
	// headingTokens and titleTokens are the costs of the heading of a passage and of the
	// title of a group, summaryNoteTokens is that of the note about omitted sentences.
	headingTokens     = 8
	titleTokens       = 8
	summaryNoteTokens = 40
)

// Summarize summarizes the passages in their order within the budget of the options, or
// within minSummaryTokens if that is more. If the passages fit, they are kept whole. Otherwise
// the last of them are kept whole; then decisions, causes, demands, open questions, refused
// attempts and evidence are preferred to other sentences, and sentences with the same pattern
// are folded into the last of them. The rest of the budget is spent evenly on the others.
func Summarize(groups []PassageGroup, o Options) Summary {
	if o.Counter == nil {
		o.Counter = Estimator{}
	}
	o.Budget = max(o.Budget*9/10, minSummaryTokens) // an estimate may be 10 % too low
	d := newDigest(groups)
	f := Summary{}
	d.keepAll()
	for room := o.Budget; ; {
		f.Text = d.renderSummary(o.Ref)
		f.TokensAfter = o.Counter.Count(f.Text)
		if f.TokensAfter <= o.Budget || d.kept == 0 {
			return f
		}
		d.keepBest(room - summaryNoteTokens)
		room -= max(o.Budget/50, 4)
	}
}

// ThinPassages removes the statements of passages that a summary with the budget would not
// have. It does not change the passages, but returns copies.
func ThinPassages(passages []Passage, budget int) []Passage {
	d := newDigest([]PassageGroup{{Passages: passages}})
	d.keepBest(budget)
	var out []Passage
	for i, p := range passages {
		kept := p.Statements[:0:0]
		for at, s := range p.Statements {
			if c := d.of[i][at]; d.keep[c] {
				s.Like = d.like[c]
				kept = append(kept, s)
			}
		}
		if len(kept) > 0 {
			p.Omitted += len(p.Statements) - len(kept)
			p.Statements = kept
			out = append(out, p)
		}
	}
	return out
}

// SumTokens returns the estimated size of passages.
func SumTokens(passages []Passage) (tokens int) {
	for _, p := range passages {
		tokens += headingTokens
		for _, s := range p.Statements {
			tokens += s.tokens
		}
	}
	return tokens
}

// digest has the statements of the passages, and the choice for a summary.
type digest struct {
	groups   []PassageGroup
	passages []Passage
	// groupOf maps a passage to its group.
	groupOf []int
	// of has the candidates of a passage, in the order of its statements.
	of         [][]int
	candidates []candidate
	// order lists the candidates, the best first.
	order []int
	keep  []bool
	kept  int
	// folds are the candidates with the same pattern, like counts for each candidate those of
	// them that are not kept.
	folds [][]int
	like  []int
}

// candidate is a statement of a summary.
type candidate struct {
	passage, at int
	rank        int
	value       float64
}

func newDigest(groups []PassageGroup) *digest {
	d := &digest{groups: groups}
	for g, group := range groups {
		for _, p := range group.Passages {
			var own []int
			for at := range p.Statements {
				own = append(own, len(d.candidates))
				d.candidates = append(d.candidates, candidate{passage: len(d.passages), at: at})
			}
			d.of = append(d.of, own)
			d.passages, d.groupOf = append(d.passages, p), append(d.groupOf, g)
		}
	}
	d.keep, d.like = make([]bool, len(d.candidates)), make([]int, len(d.candidates))
	return d
}

func (d *digest) statement(c int) Statement {
	return d.passages[d.candidates[c].passage].Statements[d.candidates[c].at]
}

// keepAll keeps all statements.
func (d *digest) keepAll() {
	for c := range d.keep {
		d.keep[c], d.like[c] = true, d.statement(c).Like
	}
	d.kept = len(d.keep)
}

// keepBest keeps the best statements that fit into room.
func (d *digest) keepBest(room int) {
	if d.order == nil {
		d.rankStatements()
	}
	clear(d.keep)
	d.kept = 0
	opened := make([]bool, len(d.passages)+len(d.groups))
	keep := func(c, limit int) bool {
		p := d.candidates[c].passage
		cost := d.statement(c).tokens + 1
		if !opened[p] {
			cost += headingTokens
		}
		if g := len(d.passages) + d.groupOf[p]; !opened[g] && d.groups[d.groupOf[p]].Title != "" {
			cost += titleTokens
		}
		if cost > room-limit {
			return false
		}
		opened[p], opened[len(d.passages)+d.groupOf[p]] = true, true
		room -= cost
		d.keep[c] = true
		d.kept++
		return true
	}
	rest := int((1 - wholeShare) * float64(room))
	for p := len(d.passages) - 1; p >= max(len(d.passages)-wholePassages, 0); p-- {
		for _, c := range d.of[p] {
			keep(c, rest)
		}
	}
	for _, c := range d.order {
		if !d.keep[c] {
			keep(c, 0)
		}
	}
	d.countFolded()
}

// rankStatements ranks the candidates and orders them, the best first. Where they are about
// equal, the order spreads evenly over the run.
func (d *digest) rankStatements() {
	lists := make([][]cueWord, len(d.candidates))
	for c := range lists {
		lists[c] = words(d.statement(c).Text)
	}
	counts := countWords(lists)
	byPattern := map[string][]int{}
	d.order = make([]int, len(d.candidates))
	for c := range d.candidates {
		one, s := &d.candidates[c], d.statement(c)
		one.rank, one.value = counts.rankStatement(s, lists[c])
		if one.rank == plainRank && one.at == 0 {
			one.rank = topicRank
		}
		d.order[c] = c
		pattern := counts.patternOf(s, lists[c])
		byPattern[pattern] = append(byPattern[pattern], c)
	}
	for pattern, like := range byPattern {
		d.foldStatements(pattern, like)
	}
	width := bits.UintSize - bits.Len(uint(len(d.candidates)))
	even := func(c int) uint { return bits.Reverse(uint(c)) >> width }
	slices.SortStableFunc(d.order, func(a, b int) int {
		x, y := &d.candidates[a], &d.candidates[b]
		return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(int(y.value), int(x.value)), cmp.Compare(even(a), even(b)))
	})
}

// foldStatements lowers the rank of statements with the same pattern, except that of the last
// one, if they are many or equal.
func (d *digest) foldStatements(pattern string, like []int) {
	sum := 0
	for _, c := range like {
		sum += 1 + d.statement(c).Like
	}
	if sum < minLike && pattern != d.statement(like[0]).Text {
		return
	}
	for _, c := range like[:len(like)-1] {
		d.candidates[c].rank -= foldedRanks
		d.candidates[c].value = 0
	}
	d.folds = append(d.folds, like)
}

// countFolded counts the statements that are not kept for the last kept one with the same
// pattern.
func (d *digest) countFolded() {
	clear(d.like)
	for _, like := range d.folds {
		last, sum := -1, 0
		for _, c := range like {
			sum += d.statement(c).Like
			if d.keep[c] {
				last = c
			} else {
				sum++
			}
		}
		if last >= 0 {
			d.like[last] = sum
		}
	}
}

// renderSummary renders the kept statements, a line for each passage, below the titles of
// their groups.
func (d *digest) renderSummary(ref func(key string, value []byte) string) string {
	var b strings.Builder
	group, partial, all := -1, int64(0), 0
	for i, p := range d.passages {
		under, open, kept := "", false, 0
		for at, s := range p.Statements {
			c := d.of[i][at]
			if !d.keep[c] {
				continue
			}
			if title := d.groups[d.groupOf[i]].Title; group != d.groupOf[i] && title != "" {
				fmt.Fprintf(&b, "## %s\n", title)
			}
			group = d.groupOf[i]
			if !open {
				fmt.Fprintf(&b, "- %s:", p.Heading)
			}
			if s.Under != under && s.Under != "" {
				fmt.Fprintf(&b, " %s:", s.Under)
			}
			b.WriteString(" " + s.Text)
			if d.like[c] > 0 {
				fmt.Fprintf(&b, " (%d more like it)", d.like[c])
			}
			open, under = true, s.Under
			kept++
		}
		all += len(p.Statements) + p.Omitted
		if open && kept < len(p.Statements)+p.Omitted {
			partial = p.Seq
			fmt.Fprintf(&b, " [%s%d]", gapMark, p.Seq)
		}
		if open {
			b.WriteByte('\n')
		}
	}
	if left := all - d.kept; left > 0 {
		fmt.Fprintf(&b, "[%s %d of %d sentences omitted; ref of all outputs: %s", gapMark, left, all, ref("", nil))
		if partial > 0 {
			fmt.Fprintf(&b, "; of the step marked %s%d: %s", gapMark, partial, ref(strconv.FormatInt(partial, 10), nil))
		}
		b.WriteString("]\n")
	}
	return b.String()
}
