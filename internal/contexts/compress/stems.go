package compress

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"
)

// StemCache caches the stems of words between calls: most words repeat, and stemming takes as
// long as all other work on a word. It is safe for concurrent use.
type StemCache struct {
	// mu is read-locked while a lexicon is in use, so that the numbers of stems do not
	// change during a call.
	mu sync.RWMutex
	// known maps a word to the number of its stem, or to noStem for a stop word.
	known map[string]int32
	// numbers maps a stem to its number.
	numbers map[string]int32
	cues    func() []cueStem
}

// noStem is the number of a stop word.
const noStem = -1

// maxStems bounds the cache to about 2 MB.
const maxStems = 1 << 14

// NewStemCache returns an empty cache.
func NewStemCache() *StemCache {
	return &StemCache{known: map[string]int32{}, numbers: map[string]int32{}, cues: sync.OnceValue(cueStems)}
}

// stemOf returns the stem of a word; "" for a stop word.
func stemOf(word string) string {
	lower := strings.ToLower(word)
	if len(lower) < 2 || english.IsStopWord(lower) {
		return ""
	}
	return english.Stem(lower, true)
}

// storeStems stores stems; "" marks a stop word.
func (s *StemCache) storeStems(stems map[string]string) {
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

// cueStem is the stem of a cue word, which is a term even if the word is a stop word.
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
