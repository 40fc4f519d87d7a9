package compress

import "slices"

// Limits of the search for replaced facts.
const (
	staleTerms    = 40   // maximum number of terms of a piece that states one fact
	staleShared   = 0.5  // minimum share of common words
	staleCommon   = 0.25 // a word in a larger share of the pieces, and in more than 8, is ignored
	staleCompared = 200  // maximum comparisons per piece
)

// fact is the content of a piece: its plain words, except words of change such as "now",
// and its values, which are numbers and names.
type fact struct{ words, values []int32 }

// factIndex indexes the pieces that were already read in the search for replaced facts.
type factIndex struct {
	facts []fact
	// holders lists the pieces that contain a word, the newest first; heads maps a term to
	// 1 plus the index in holders of the newest piece that contains it.
	heads   []int32
	holders []holder
	// said maps a term to 1 plus the index of the last piece that was read and contains it.
	said []int32
}

type holder struct{ piece, before int32 }

// findStale marks pieces that a later piece replaces: the later piece repeats their words
// together with a word of change ("now", "renamed") and another number or name. Items are
// ordered by age, pieces by position.
func (s *scorer) findStale() {
	s.stale = make([]bool, len(s.pieces))
	h := factIndex{
		facts: make([]fact, len(s.pieces)), heads: make([]int32, len(s.frequency)), said: make([]int32, len(s.frequency)),
	}
	var arena []int32
	common := max(staleCommon*float64(len(s.pieces)), 8)
	for i := range s.pieces {
		p := &s.pieces[i]
		if len(p.terms) > staleTerms || p.level != "" {
			continue
		}
		if cap(arena)-len(arena) < staleTerms {
			arena = make([]int32, 0, arenaTerms)
		}
		arena = s.readFact(&h, i, arena)
		if s.cueOf[i]&changeCue != 0 && len(h.facts[i].words) >= 2 && len(h.facts[i].values) > 0 {
			s.markReplaced(&h, i)
		}
		for _, id := range h.facts[i].words {
			if f := s.frequency[id]; f > 1 && float64(f) <= common { // a word that occurs in a single piece is not repeated
				h.holders = append(h.holders, holder{int32(i), h.heads[id]})
				h.heads[id] = int32(len(h.holders))
			}
		}
	}
}

// readFact reads the fact of piece i and appends its terms to the arena, each word once.
func (s *scorer) readFact(h *factIndex, i int, arena []int32) []int32 {
	from := len(arena)
	for _, t := range s.pieces[i].terms {
		if t.kind == wordTerm && s.cueKinds(t)&changeCue == 0 && h.said[t.id] != int32(i+1) {
			h.said[t.id] = int32(i + 1)
			arena = append(arena, t.id)
		}
	}
	to := len(arena)
	for _, t := range s.pieces[i].terms {
		if t.kind != wordTerm {
			arena = append(arena, t.id)
		}
	}
	h.facts[i] = fact{arena[from:to:to], arena[to:len(arena):len(arena)]}
	return arena
}

// markReplaced marks the pieces that piece i, which contains a word of change, replaces. It
// searches the pieces that contain the rarest of the words of piece i.
func (s *scorer) markReplaced(h *factIndex, i int) {
	now := h.facts[i]
	rarest := now.words[0]
	for _, id := range now.words {
		if s.frequency[id] < s.frequency[rarest] && h.heads[id] > 0 || h.heads[rarest] == 0 {
			rarest = id
		}
	}
	compared := 0
	for at := h.heads[rarest]; at > 0 && compared < staleCompared; at = h.holders[at-1].before {
		j := h.holders[at-1].piece
		compared++
		if h.wordOverlap(i, int(j)) >= staleShared && !sameValues(now.values, h.facts[j].values) {
			s.stale[j] = true
		}
	}
}

// wordOverlap returns the share of words that two pieces have in common, scaled by the
// ratio of their sizes. The first piece must be the piece that was read last.
func (h *factIndex) wordOverlap(last, before int) float64 {
	shared := 0
	for _, id := range h.facts[before].words {
		if h.said[id] == int32(last+1) {
			shared++
		}
	}
	return 2 * float64(shared) / float64(max(len(h.facts[last].words)+len(h.facts[before].words), 1))
}

func sameValues(a, b []int32) bool {
	return !slices.ContainsFunc(a, func(id int32) bool { return !slices.Contains(b, id) })
}
