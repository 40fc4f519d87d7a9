// Package secret finds and redacts likely secrets. A finding has the rule and the location,
// never the value. The rules match only credentials with a recognizable format or key, so
// that warnings are rarely false; values that only look random are ignored.
package secret

import (
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Detector detects credentials. Its zero value is ready to use.
type Detector struct {
	// Personal adds personal data: e-mail addresses, and the numbers of cards, bank accounts
	// (IBAN), phones and US social security.
	Personal bool
}

// lists returns the rules that cause warnings.
func (d Detector) lists() [][]rule {
	if d.Personal {
		return [][]rule{rules(), assigned(), personal()}
	}
	return [][]rule{rules(), assigned()}
}

// Finding is a likely secret.
type Finding struct {
	// Rule is the name of the matching rule.
	Rule string `json:"rule"`
	// Path is the RFC 6901 pointer to the text.
	Path string `json:"path"`
}

const (
	// maxFindings bounds the number of findings.
	maxFindings = 50
	// maxCached bounds the number of cached verdicts.
	maxCached = 32768
)

// Scanner scans contexts. It caches the verdicts on texts by their hashes, so that
// only the new parts of successive contexts are scanned. It is safe for concurrent use.
type Scanner struct {
	detector Detector
	mu       sync.Mutex
	seed     maphash.Seed
	verdicts map[uint64]string
}

// NewScanner returns a scanner with the rules of a detector.
func NewScanner(d Detector) *Scanner {
	return &Scanner{detector: d, seed: maphash.MakeSeed(), verdicts: map[uint64]string{}}
}

// Scan returns the likely secrets of a context, ordered by path.
func (s *Scanner) Scan(tree map[string]any) []Finding {
	var found []Finding
	s.scanValue("", "", tree, &found)
	return found
}

func (s *Scanner) scanValue(path, key string, value any, found *[]Finding) {
	if len(*found) >= maxFindings {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			s.scanValue(Join(path, k), k, v[k], found)
		}
	case []any:
		for i, item := range v {
			s.scanValue(JoinIndex(path, i), key, item, found)
		}
	case string:
		name := s.cachedVerdict(v)
		if name == "" && isAssignment(key, v) {
			name = "password"
		}
		if name != "" {
			*found = append(*found, Finding{Rule: name, Path: path})
		}
	}
}

// cachedVerdict returns the name of the rule that a text matches, or "".
func (s *Scanner) cachedVerdict(text string) string {
	hash := maphash.String(s.seed, text)
	s.mu.Lock()
	name, known := s.verdicts[hash]
	s.mu.Unlock()
	if known {
		return name
	}
	name = s.detector.matchRules(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.verdicts) >= maxCached {
		clear(s.verdicts)
	}
	s.verdicts[hash] = name
	return name
}

// matchRules returns the name of a rule that matches the text, or "".
func (d Detector) matchRules(text string) string {
	small := ""
	for _, list := range d.lists() {
		for i := range list {
			r, marked := &list[i], text
			if r.foldsCase {
				if small == "" {
					small = r.markedText(text)
				}
				marked = small
			}
			if r.detects(text, marked) {
				return r.name
			}
		}
	}
	return ""
}

// detects reports whether the text has a credential of the rule. marked is the text in which
// the marks are searched.
func (r *rule) detects(text, marked string) bool {
	for _, mark := range r.marks {
		for start, end := r.nextMatch(text, marked, mark, 0); end > 0; start, end = r.nextMatch(text, marked, mark, end) {
			if !r.isPlaceholder(text[:start], text[start:end]) {
				return true
			}
		}
	}
	return false
}

// Join adds a key to a pointer.
func Join(path, key string) string {
	if !strings.ContainsAny(key, "~/") {
		return path + "/" + key // no character needs an escape
	}
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// JoinIndex adds an index to a pointer.
func JoinIndex(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// NamesSecret reports whether a key names a credential, so that its value must not be
// shown. Tokens of pages are no credentials.
func NamesSecret(key string) bool {
	return namePattern().MatchString(key) && !pagePattern().MatchString(key)
}
