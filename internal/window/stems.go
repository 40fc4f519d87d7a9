package window

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"
)

// Stems remembers the stems of words from one call to the next: most words come back,
// and to stem one takes as long as all else that is done with it. The caller owns it;
// it is safe for concurrent use.
type Stems struct {
	// mu is held for reading while a lexicon is in use, so that numbers hold for all
	// of a call.
	mu sync.RWMutex
	// known has the number of the stem of a word as it stands in a text; noStem for
	// one that says nothing.
	known map[string]int32
	// numbers has those of stems.
	numbers map[string]int32
	cues    func() []cueStem
}

// noStem is the number of a word that says nothing.
const noStem = -1

// maxStems bounds what is remembered: some 2 MB.
const maxStems = 1 << 14

// NewStems makes an empty memory.
func NewStems() *Stems {
	return &Stems{known: map[string]int32{}, numbers: map[string]int32{}, cues: sync.OnceValue(cueStems)}
}

// stemOf gives the stem of a word as it stands in a text; "" for one that says nothing.
func stemOf(word string) string {
	lower := strings.ToLower(word)
	if len(lower) < 2 || english.IsStopWord(lower) {
		return ""
	}
	return english.Stem(lower, true)
}

// learn remembers the stems of words; "" for one that says nothing.
func (s *Stems) learn(stems map[string]string) {
	if len(stems) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known)+len(stems) > maxStems {
		clear(s.known)
		clear(s.numbers)
	}
	for word, stem := range stems {
		if len(s.known) >= maxStems {
			return
		}
		number := int32(noStem)
		if stem != "" {
			var ok bool
			if number, ok = s.numbers[stem]; !ok {
				number = int32(len(s.numbers))
				s.numbers[strings.Clone(stem)] = number
			}
		}
		s.known[strings.Clone(word)] = number
	}
}

// cueStem is the stem of a word of a cue, which is a term even where the word as such
// says nothing.
type cueStem struct {
	word, stem string
	kinds      cue
}

func cueStems() []cueStem {
	var out []cueStem
	table := cueWords()
	for _, kind := range slices.Sorted(maps.Keys(table)) {
		for _, word := range table[kind] {
			stem := stemOf(word)
			if stem == "" {
				stem = english.Stem(word, true)
			}
			out = append(out, cueStem{word, stem, kind})
		}
	}
	return out
}
