package window

import (
	"math"
	"slices"
)

// cue is what a piece's words say it is: a kind that is protected whatever its
// words are worth.
type cue uint8

const (
	failureCue cue = 1 << iota
	decisionCue
	demandCue
	changeCue
)

// cueWords are words by which a kind is known, unstemmed.
func cueWords() map[cue][]string {
	return map[cue][]string{
		failureCue: {
			"error", "errors", "failed", "fails", "failure", "panic", "fatal", "exception", "crash", "crashed", "refused",
			"denied", "timeout", "corrupt", "broken", "ENOENT", "traceback", "overflow", "deadlock", "leak",
		},
		decisionCue: {
			"decided", "decision", "agreed", "chose", "chosen", "rejected", "instead", "settled", "prefer", "ruled", "adopt",
			"opted", "picked",
		},
		demandCue: {"must", "never", "required", "requires", "requirement", "forbidden", "insists", "demands", "shall", "only"},
		changeCue: {"now", "anymore", "longer", "changed", "renamed", "moved", "switched", "superseded", "replaced", "updated", "raised", "lowered", "since"},
	}
}

// scorer tells what the pieces of a context are worth.
type scorer struct {
	lexicon *lexicon
	pieces  []piece
	// frequency is in how many pieces a term stands.
	frequency []int32
	// worth is what a term tells that nothing says yet.
	worth []float64
	// cues are those of the first terms: the stems of the words of cues come first.
	cues      []cue
	cueOf     []cue
	relevance []float64 // by piece, 0 to 1
	stale     []bool    // a newer piece says something else of the same thing
	// kindWorth and cueWorth say how telling a kind of term and a cue are
	// here: next to nothing where every second sentence has one.
	kindWorth [termKinds]float64
	cueWorth  []float64 // by piece, of all its cues
	// messages is how many pieces there are, those that repeat another left out.
	messages int
}

// newScorer reads the terms of all pieces and judges each against the question.
func newScorer(pieces []piece, question string, stems *Stems) *scorer {
	s := &scorer{lexicon: newLexicon(stems), pieces: pieces, cueOf: make([]cue, len(pieces))}
	defer s.lexicon.close()
	s.readCues()
	s.readPieces()
	asked := s.lexicon.read(nil, question)
	s.frequency = frequencies(pieces, s.lexicon.size())
	s.weigh()
	s.measure()
	s.relevance = bm25(pieces, asked, s.frequency)
	s.findStale()
	return s
}

// readCues makes terms of the words of cues.
func (s *scorer) readCues() {
	for _, c := range s.lexicon.shared.cues() {
		id := s.lexicon.stem(c.stem)
		s.lexicon.own[c.word] = id
		if int(id) == len(s.cues) {
			s.cues = append(s.cues, 0)
		}
		s.cues[id] |= c.kinds
	}
}

// cueKinds are the cues of a term.
func (s *scorer) cueKinds(t term) cue {
	if int(t.id) < len(s.cues) {
		return s.cues[t.id]
	}
	return 0
}

// arenaTerms is how many terms are made room for at once.
const arenaTerms = 8 << 10

// readPieces reads the terms of the pieces. They lie one behind the other in few
// arrays.
func (s *scorer) readPieces() {
	var arena []term
	for i := range s.pieces {
		p := &s.pieces[i]
		if cap(arena)-len(arena) < arenaTerms/8 {
			arena = make([]term, 0, arenaTerms)
		}
		from := len(arena)
		all := s.lexicon.read(s.lexicon.read(arena[from:], p.key), p.text)
		p.terms = all[:len(all):len(all)]
		if len(all) <= cap(arena)-from {
			arena = arena[:from+len(all)]
		}
		for _, t := range all {
			s.cueOf[i] |= s.cueKinds(t)
		}
		if p.level == "error" {
			s.cueOf[i] |= failureCue
		}
	}
}

// frequencies counts in how many pieces each term stands.
func frequencies(pieces []piece, terms int) []int32 {
	frequency := make([]int32, terms)
	last := make([]int32, terms)
	for i := range pieces {
		for _, t := range pieces[i].terms {
			if last[t.id] != int32(i+1) {
				last[t.id] = int32(i + 1)
				frequency[t.id]++
			}
		}
	}
	return frequency
}

// weigh judges the kinds of terms and the cues by the share of pieces that have
// one. In the notes of a run a path stands out; in the documentation of a
// package every line has one, and a ticket's number stands out.
func (s *scorer) weigh() {
	var kinds [termKinds]int
	for i := range s.pieces {
		if s.pieces[i].leader != i {
			continue // a log says the same thing a thousand times
		}
		s.messages++
		var has [termKinds]bool
		for _, t := range s.pieces[i].terms {
			has[t.kind] = true
		}
		for kind, is := range has {
			if is {
				kinds[kind]++
			}
		}
	}
	for kind, n := range kinds {
		s.kindWorth[kind] = s.telling(n)
	}
	s.cueWorth = make([]float64, len(s.pieces))
	for i := range s.pieces {
		s.cueWorth[i] = s.cueWorthOf(i)
	}
}

// cueWorthOf is what the cues of a piece tell: of each kind the words, the
// rarer here the more. A change tells something only together with what is so now.
func (s *scorer) cueWorthOf(i int) float64 {
	var told [4]float64
	seen := make([]int32, 0, 16)
	value := false
	for _, t := range s.pieces[i].terms {
		value = value || t.kind != wordTerm
		kinds := s.cueKinds(t)
		if kinds == 0 || slices.Contains(seen, t.id) {
			continue
		}
		seen = append(seen, t.id)
		telling := s.telling(int(s.frequency[t.id]))
		for k := range told {
			if kinds&(1<<k) != 0 {
				told[k] = min(told[k]+telling, s.telling(1))
			}
		}
	}
	if s.pieces[i].level == "error" {
		told[0] = s.telling(1)
	}
	if !value {
		told[3] = 0
	}
	return failureWeight*told[0] + decisionWeight*told[1] + demandWeight*told[2] + changeWeight*told[3]
}

// smoothing keeps a kind that stands in one piece of few from counting as if it
// were one of thousands.
const smoothing = 5

// telling is the information, in bits, of what n of the pieces have.
func (s *scorer) telling(n int) float64 {
	all := float64(s.messages)
	return math.Log2((all + smoothing) / (float64(n) + smoothing))
}

// measure fills in what terms are worth by their frequency. A rarity is 1 for a term
// that stands in one piece only, and nears 0 for one that stands in all. A name also
// tells something by its kind, and by having come up again: what did is likely to come
// up once more.
func (s *scorer) measure() {
	s.worth = make([]float64, len(s.frequency))
	n := float64(len(s.pieces))
	whole := math.Log(1 + n)
	type measured struct{ rarity, recurrence float64 }
	known := make([]measured, len(s.pieces)+1) // by frequency: few are different
	for id, f := range s.frequency {
		f = max(f, 1)
		m := &known[min(int(f), len(s.pieces))]
		if m.recurrence == 0 {
			in := float64(f)
			*m = measured{math.Log(1+n/in) / whole, 1 + recurFactor*min(math.Log2(in), 3)}
		}
		s.worth[id] = m.rarity
		if kind := s.lexicon.kinds[id]; kind != wordTerm {
			s.worth[id] = m.rarity * s.kindWorth[kind] * m.recurrence
		}
	}
}

// The constants of BM25, as usual.
const (
	bm25K = 1.2
	bm25B = 0.75
)

// bm25 ranks the pieces by the words asked for, the best as 1; all are 0 if
// nothing is asked or nothing fits.
func bm25(pieces []piece, asked []term, frequency []int32) []float64 {
	scores := make([]float64, len(pieces))
	if len(asked) == 0 || len(pieces) == 0 {
		return scores
	}
	// Those that are asked for, in the question's order, so that sums are the same
	// each time; by term their place among them, and 1 more.
	var weights []float64
	places := make([]int32, len(frequency))
	for _, t := range asked {
		if int(t.id) < len(frequency) && frequency[t.id] > 0 && places[t.id] == 0 {
			df := float64(frequency[t.id])
			weights = append(weights, math.Log(1+(float64(len(pieces))-df+0.5)/(df+0.5)))
			places[t.id] = int32(len(weights))
		}
	}
	var total int
	for i := range pieces {
		total += len(pieces[i].terms)
	}
	mean := max(float64(total)/float64(len(pieces)), 1)
	best := 0.0
	counts := make([]float64, len(weights))
	for i := range pieces {
		fits := false
		for _, t := range pieces[i].terms {
			if at := places[t.id]; at > 0 {
				counts[at-1]++
				fits = true
			}
		}
		if !fits {
			continue
		}
		norm := bm25K * (1 - bm25B + bm25B*float64(len(pieces[i].terms))/mean)
		for at, n := range counts {
			if n > 0 {
				scores[i] += weights[at] * n * (bm25K + 1) / (n + norm)
				counts[at] = 0
			}
		}
		best = max(best, scores[i])
	}
	if best > 0 {
		for i := range scores {
			scores[i] /= best
		}
	}
	return scores
}
