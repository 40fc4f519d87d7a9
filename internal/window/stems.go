package window

import (
	"strings"
	"sync"

	"github.com/kljensen/snowball/english"
)

// Stems remembers the stems of words from one call to the next: most words come back,
// and to stem one takes as long as all else that is done with it. The caller owns it;
// it is safe for concurrent use.
type Stems struct {
	mu    sync.RWMutex
	known map[string]string
}

// maxStems bounds what is remembered: some 2 MB.
const maxStems = 1 << 14

// NewStems makes an empty memory.
func NewStems() *Stems { return &Stems{known: map[string]string{}} }

// find gives the stem of a word as it stands in a text; "" for one that says nothing.
func (s *Stems) find(word string) string {
	s.mu.RLock()
	stem, ok := s.known[word]
	s.mu.RUnlock()
	if ok {
		return stem
	}
	lower := strings.ToLower(word)
	if len(lower) > 1 && !english.IsStopWord(lower) {
		stem = english.Stem(lower, true)
	}
	s.keep(word, stem)
	return stem
}

// of gives the stem of a word, whether it says something or not.
func (s *Stems) of(word string) string {
	if stem := s.find(word); stem != "" {
		return stem
	}
	return english.Stem(word, true)
}

func (s *Stems) keep(word, stem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxStems {
		clear(s.known)
	}
	s.known[strings.Clone(word)] = strings.Clone(stem)
}
