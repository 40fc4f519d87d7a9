package window

import "slices"

// Bounds of the search for facts that a newer one replaces.
const (
	staleTerms    = 40   // of a piece that states one fact
	staleShared   = 0.5  // of the words of both
	staleCommon   = 0.25 // a word that stands in more pieces than this names nothing
	staleCompared = 200  // pieces that one is compared with
)

// fact is what a piece says: its plain words without those of change, and what it says
// of them, its numbers and names.
type fact struct{ words, values []int32 }

// history is what was read so far when looking for facts that a newer one replaces.
type history struct {
	facts []fact
	// holders lists the pieces that have a word, the newest first: heads has the last
	// one of each term, as its place among the holders and 1 more.
	heads   []int32
	holders []holder
	// said has which piece last said a word, and 1 more.
	said []int32
}

type holder struct{ piece, before int32 }

// findStale marks pieces whose words a later piece says again with a word of
// change ("now", "renamed") and another number or name. Later is further down:
// items are in the order of their age, texts in their own.
func (s *scorer) findStale() {
	s.stale = make([]bool, len(s.pieces))
	h := history{
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
		arena = s.state(&h, i, arena)
		if s.cueOf[i]&changeCue != 0 && len(h.facts[i].words) >= 2 && len(h.facts[i].values) > 0 {
			s.replace(&h, i)
		}
		for _, id := range h.facts[i].words {
			if f := s.frequency[id]; f > 1 && float64(f) <= common { // what stands once is not said again
				h.holders = append(h.holders, holder{int32(i), h.heads[id]})
				h.heads[id] = int32(len(h.holders))
			}
		}
	}
}

// state reads what a piece says, each word once, into the arena.
func (s *scorer) state(h *history, i int, arena []int32) []int32 {
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

// replace marks the pieces that a piece with a word of change takes the place of. They
// are looked for among those that have the rarest of its words.
func (s *scorer) replace(h *history, i int) {
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
		if h.overlap(i, int(j)) >= staleShared && !sameValues(now.values, h.facts[j].values) {
			s.stale[j] = true
		}
	}
}

// overlap is the share of the words of two pieces that both have, bounded by how alike
// they are in size. The first of them was read last.
func (h *history) overlap(last, before int) float64 {
	shared := 0
	for _, id := range h.facts[before].words {
		if h.said[id] == int32(last+1) {
			shared++
		}
	}
	return 2 * float64(shared) / float64(max(len(h.facts[last].words)+len(h.facts[before].words), 1))
}

func sameValues(a, b []int32) bool {
	for _, id := range a {
		if !slices.Contains(b, id) {
			return false
		}
	}
	return true
}
