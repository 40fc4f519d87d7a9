package compress

import (
	"math"
	"slices"
)

// cue is a set of kinds, such as decisions or errors, that the words of a piece indicate.
// Pieces with cues have a higher value.
type cue uint8

const (
	errorCue cue = 1 << iota
	decisionCue
	demandCue
	changeCue
)

// cueWords returns the unstemmed words of each cue.
func cueWords() map[cue][]string {
	return map[cue][]string{
		errorCue: {
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

// scorer computes the value of the pieces of a context.
type scorer struct {
	lexicon *lexicon
	pieces  []piece
	// frequency is the number of pieces that contain a term, indexed by term.
	frequency []int32
	// termValues is the value of a term that no kept piece contains, indexed by term.
	termValues []float64
	// cues are the cues of the first terms: the stems of cue words have the lowest numbers.
	cues      []cue
	cueOf     []cue
	relevance []float64 // indexed by piece, from 0 to 1
	stale     []bool    // indexed by piece; true if a newer piece contradicts it
	// kindBits is the information of a term kind in bits: near zero if nearly every
	// sentence has a term of that kind.
	kindBits  [termKinds]float64
	cueValues []float64 // indexed by piece, summed over its cues
	// messages is the number of pieces, where log lines with the same message count once.
	messages int
}

// newScorer reads the terms of all pieces and scores each piece against the question.
func newScorer(pieces []piece, question string, stems *StemCache) *scorer {
	s := &scorer{lexicon: newLexicon(stems), pieces: pieces, cueOf: make([]cue, len(pieces))}
	defer s.lexicon.unlockStems()
	s.readCues()
	s.readPieces()
	asked := s.lexicon.readTerms(nil, question)
	s.frequency = countFrequencies(pieces, s.lexicon.termCount())
	s.weighKinds()
	s.setTermValues()
	s.relevance = rankBM25(pieces, asked, s.frequency)
	s.findStale()
	return s
}

// readCues adds the cue words to the lexicon.
func (s *scorer) readCues() {
	for _, c := range s.lexicon.shared.cues() {
		id := s.lexicon.addStem(c.stem)
		s.lexicon.own[c.word] = id
		if int(id) == len(s.cues) {
			s.cues = append(s.cues, 0)
		}
		s.cues[id] |= c.kinds
	}
}

// cueKinds returns the cues of a term.
func (s *scorer) cueKinds(t term) cue {
	if int(t.id) < len(s.cues) {
		return s.cues[t.id]
	}
	return 0
}

// arenaTerms is the number of terms that are allocated at once.
const arenaTerms = 8 << 10

// readPieces reads the terms of the pieces. Their slices share a few large arrays.
func (s *scorer) readPieces() {
	var arena []term
	for i := range s.pieces {
		p := &s.pieces[i]
		if cap(arena)-len(arena) < arenaTerms/8 {
			arena = make([]term, 0, arenaTerms)
		}
		from := len(arena)
		all := s.lexicon.readTerms(s.lexicon.readTerms(arena[from:], p.key), p.text)
		p.terms = all[:len(all):len(all)]
		if len(all) <= cap(arena)-from {
			arena = arena[:from+len(all)]
		}
		for _, t := range all {
			s.cueOf[i] |= s.cueKinds(t)
		}
		if p.level == "error" {
			s.cueOf[i] |= errorCue
		}
	}
}

// countFrequencies returns the number of pieces that contain each term.
func countFrequencies(pieces []piece, terms int) []int32 {
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

// weighKinds sets the weights of the term kinds and the cues by the share of pieces that
// have them. For example, a path is rare in the notes of a run, but occurs in every line of
// a package's documentation, where a ticket number is rare.
func (s *scorer) weighKinds() {
	var kinds [termKinds]int
	for i := range s.pieces {
		if s.pieces[i].leader != i {
			continue // count a repeated log message only once
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
		s.kindBits[kind] = s.informationBits(n)
	}
	s.cueValues = make([]float64, len(s.pieces))
	for i := range s.pieces {
		s.cueValues[i] = s.cueValue(i)
	}
}

// cueValue returns the value of the cues of piece i: rare cue words have a higher value. A
// word of change has a value only together with a name or a number.
func (s *scorer) cueValue(i int) float64 {
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
		telling := s.informationBits(int(s.frequency[t.id]))
		for k := range told {
			if kinds&(1<<k) != 0 {
				told[k] = min(told[k]+telling, s.informationBits(1))
			}
		}
	}
	if s.pieces[i].level == "error" {
		told[0] = s.informationBits(1)
	}
	if !value {
		told[3] = 0
	}
	return errorWeight*told[0] + decisionWeight*told[1] + demandWeight*told[2] + changeWeight*told[3]
}

// smoothing reduces the weight of rare kinds if there are few pieces.
const smoothing = 5

// informationBits returns the information, in bits, of a property that n of the pieces have.
func (s *scorer) informationBits(n int) float64 {
	all := float64(s.messages)
	return math.Log2((all + smoothing) / (float64(n) + smoothing))
}

// setTermValues sets the value of each term by its frequency. The rarity is 1 for a term in
// a single piece and approaches 0 for a term in all pieces. For a name it is multiplied by
// the information of the name's kind, and by a factor that grows with the frequency, since
// a repeated name is likely to be needed again.
func (s *scorer) setTermValues() {
	s.termValues = make([]float64, len(s.frequency))
	n := float64(len(s.pieces))
	whole := math.Log(1 + n)
	type measured struct{ rarity, recurrence float64 }
	known := make([]measured, len(s.pieces)+1) // indexed by frequency, which has few distinct values
	for id, f := range s.frequency {
		f = max(f, 1)
		m := &known[min(int(f), len(s.pieces))]
		if m.recurrence == 0 {
			in := float64(f)
			*m = measured{math.Log(1+n/in) / whole, 1 + recurFactor*min(math.Log2(in), 3)}
		}
		s.termValues[id] = m.rarity
		if kind := s.lexicon.kinds[id]; kind != wordTerm {
			s.termValues[id] = m.rarity * s.kindBits[kind] * m.recurrence
		}
	}
}

// The usual constants of BM25.
const (
	bm25K = 1.2
	bm25B = 0.75
)

// rankBM25 returns the relevance of the pieces to the asked terms, about 1 for a piece with
// a term that no other piece has. The rarity of a term counts twice, so that a word that
// many pieces have, such as "customer" in a support chat, hardly moves a piece up.
func rankBM25(pieces []piece, asked []term, frequency []int32) []float64 {
	scores := make([]float64, len(pieces))
	if len(asked) == 0 || len(pieces) == 0 {
		return scores
	}
	// weights follow the order of the question, so that sums are deterministic; places maps
	// a term to 1 plus its index in weights.
	var weights []float64
	places := make([]int32, len(frequency))
	for _, t := range asked {
		if int(t.id) < len(frequency) && frequency[t.id] > 0 && places[t.id] == 0 {
			df := float64(frequency[t.id])
			rarity := math.Log(1 + (float64(len(pieces))-df+0.5)/(df+0.5))
			weights = append(weights, rarity*rarity)
			places[t.id] = int32(len(weights))
		}
	}
	var total int
	for i := range pieces {
		total += len(pieces[i].terms)
	}
	mean := max(float64(total)/float64(len(pieces)), 1)
	best := math.Pow(math.Log(1+(float64(len(pieces))-0.5)/1.5), 2) // of a term in a single piece
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
	for i := range scores {
		scores[i] /= best
	}
	return scores
}
