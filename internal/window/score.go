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
	// frequency is in how many pieces a term stands; rarities and recurrences follow
	// from it.
	frequency  []int32
	rarities   []float64
	recurrence []float64
	cues       map[int32]cue
	cueOf      []cue
	relevance  []float64 // by piece, 0 to 1
	stale      []bool    // a newer piece says something else of the same thing
	// kindWorth and cueWorth say how telling a kind of term and a cue are
	// here: next to nothing where every second sentence has one.
	kindWorth [termKinds]float64
	cueWorth  []float64 // by piece, of all its cues
	// messages is how many pieces there are, those that repeat another left out.
	messages int
}

// newScorer reads the terms of all pieces and judges each against the question.
func newScorer(pieces []piece, question string, stems *Stems) *scorer {
	s := &scorer{lexicon: newLexicon(stems), pieces: pieces, cues: make(map[int32]cue), cueOf: make([]cue, len(pieces))}
	for kind, words := range cueWords() {
		for _, word := range words {
			id := s.lexicon.id(s.lexicon.shared.of(word), wordTerm)
			s.lexicon.stems[word] = id
			s.cues[id] |= kind
		}
	}
	var buffer []term
	for i := range pieces {
		buffer = s.lexicon.read(buffer[:0], pieces[i].text)
		pieces[i].terms = slices.Clone(buffer)
		for _, t := range buffer {
			s.cueOf[i] |= s.cues[t.id]
		}
		if pieces[i].level == "error" {
			s.cueOf[i] |= failureCue
		}
	}
	asked := s.lexicon.read(nil, question)
	s.count()
	s.measure()
	s.weigh()
	s.relevance = bm25(pieces, asked, s.frequency)
	s.findStale()
	return s
}

// count fills in the frequencies.
func (s *scorer) count() {
	s.frequency = make([]int32, s.lexicon.size())
	last := make([]int32, s.lexicon.size())
	for i := range s.pieces {
		for _, t := range s.pieces[i].terms {
			if last[t.id] != int32(i+1) {
				last[t.id] = int32(i + 1)
				s.frequency[t.id]++
			}
		}
	}
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
	var seen []int32
	value := false
	for _, t := range s.pieces[i].terms {
		value = value || t.kind != wordTerm
		kinds := s.cues[t.id]
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

// measure fills in what follows from the frequencies. A rarity is 1 for a term that
// stands in one piece only, and nears 0 for one that stands in all. What came up again
// is likely to come up once more.
func (s *scorer) measure() {
	s.rarities, s.recurrence = make([]float64, len(s.frequency)), make([]float64, len(s.frequency))
	n := float64(len(s.pieces))
	whole := math.Log(1 + n)
	for id, f := range s.frequency {
		in := float64(max(f, 1))
		s.rarities[id] = math.Log(1+n/in) / whole
		s.recurrence[id] = 1 + recurFactor*min(math.Log2(in), 3)
	}
}

// nameWorth is what a name that nothing says yet tells.
func (s *scorer) nameWorth(t term) float64 {
	return s.rarities[t.id] * s.kindWorth[t.kind] * s.recurrence[t.id]
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
	weights := make(map[int32]float64, len(asked))
	for _, t := range asked {
		if int(t.id) < len(frequency) && frequency[t.id] > 0 {
			df := float64(frequency[t.id])
			weights[t.id] = math.Log(1 + (float64(len(pieces))-df+0.5)/(df+0.5))
		}
	}
	var total int
	for i := range pieces {
		total += len(pieces[i].terms)
	}
	mean := max(float64(total)/float64(len(pieces)), 1)
	best := 0.0
	counts := make(map[int32]float64, len(asked))
	for i := range pieces {
		clear(counts)
		for _, t := range pieces[i].terms {
			if _, ok := weights[t.id]; ok {
				counts[t.id]++
			}
		}
		if len(counts) == 0 {
			continue
		}
		norm := bm25K * (1 - bm25B + bm25B*float64(len(pieces[i].terms))/mean)
		for _, t := range asked { // in the question's order, so that sums are the same each time
			if n := counts[t.id]; n > 0 {
				scores[i] += weights[t.id] * n * (bm25K + 1) / (n + norm)
				counts[t.id] = 0
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

// Bounds of the search for facts that a newer one replaces.
const (
	staleTerms    = 40   // of a piece that states one fact
	staleShared   = 0.5  // of the words of both
	staleCommon   = 0.25 // a word that stands in more pieces than this names nothing
	staleCompared = 200  // pieces that one is compared with
)

// findStale marks pieces whose words a later piece says again with a word of
// change ("now", "renamed") and another number or name. Later is further down:
// items are in the order of their age, texts in their own.
func (s *scorer) findStale() {
	s.stale = make([]bool, len(s.pieces))
	holders := make(map[int32][]int32)
	for i := range s.pieces {
		if len(s.pieces[i].terms) > staleTerms || s.pieces[i].level != "" {
			continue
		}
		subject, values := s.subject(i)
		if s.cueOf[i]&changeCue != 0 && len(subject) >= 2 {
			rarest := subject[0]
			for _, id := range subject {
				if s.frequency[id] < s.frequency[rarest] && len(holders[id]) > 0 || len(holders[rarest]) == 0 {
					rarest = id
				}
			}
			older := holders[rarest]
			for _, j := range older[max(0, len(older)-staleCompared):] {
				before, was := s.subject(int(j))
				if overlap(subject, before) >= staleShared && len(values) > 0 && !sameValues(values, was) {
					s.stale[j] = true
				}
			}
		}
		for _, id := range subject {
			if float64(s.frequency[id]) <= max(staleCommon*float64(len(s.pieces)), 8) {
				holders[id] = append(holders[id], int32(i))
			}
		}
	}
}

// subject gives the plain words of a piece without those of change, and what
// it says of them: its numbers and names.
func (s *scorer) subject(i int) (words, values []int32) {
	for _, t := range s.pieces[i].terms {
		switch {
		case t.kind != wordTerm:
			values = append(values, t.id)
		case s.cues[t.id]&changeCue == 0 && !slices.Contains(words, t.id):
			words = append(words, t.id)
		}
	}
	return words, values
}

// overlap is the share of the smaller set's words that both have, bounded by
// how alike they are in size.
func overlap(a, b []int32) float64 {
	shared := 0
	for _, id := range a {
		if slices.Contains(b, id) {
			shared++
		}
	}
	return 2 * float64(shared) / float64(max(len(a)+len(b), 1))
}

func sameValues(a, b []int32) bool {
	for _, id := range a {
		if !slices.Contains(b, id) {
			return false
		}
	}
	return true
}
