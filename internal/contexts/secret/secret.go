// Package secret finds and redacts likely secrets. A finding has the rule and the location,
// never the value. The rules match only credentials with a recognizable format or key, so
// that warnings are rarely false; values that only look random are ignored.
package secret

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

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
	maxCached = 8192
	// cacheFrom is the length from which a cache lookup is cheaper than a scan.
	cacheFrom = 64
)

// Scanner scans contexts. It caches the verdicts on longer texts by their hashes, so that
// only the new parts of successive contexts are scanned. It is safe for concurrent use.
type Scanner struct {
	rules []rule

	mu       sync.Mutex
	verdicts map[[16]byte]string
}

// NewScanner returns a scanner.
func NewScanner() *Scanner {
	return &Scanner{rules: rules(), verdicts: map[[16]byte]string{}}
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
	if len(text) < cacheFrom {
		return s.matchRules(text)
	}
	sum := sha256.Sum256([]byte(text))
	hash := [16]byte(sum[:16])
	s.mu.Lock()
	name, known := s.verdicts[hash]
	s.mu.Unlock()
	if known {
		return name
	}
	name = s.matchRules(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.verdicts) >= maxCached {
		clear(s.verdicts)
	}
	s.verdicts[hash] = name
	return name
}

// matchRules applies the rules whose mark is in the text.
func (s *Scanner) matchRules(text string) string {
	for _, r := range s.rules {
		for _, mark := range r.marks {
			if strings.Contains(text, mark) {
				if r.pattern().MatchString(text) {
					return r.name
				}
				break
			}
		}
	}
	return ""
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

// Redact returns the text without likely credentials, and reports whether there were any.
// The text around them is unchanged, but the text after the first header of a private key
// is removed.
func (s *Scanner) Redact(text string) (string, bool) {
	found := false
	for _, r := range s.rules {
		if !slices.ContainsFunc(r.marks, func(mark string) bool { return strings.Contains(text, mark) }) {
			continue
		}
		if r.name == "private-key" { // the private key follows the header that the pattern matches
			if at := r.pattern().FindStringIndex(text); at != nil {
				text, found = text[:at[0]]+"[redacted: "+r.name+"]", true
			}
			continue
		}
		// The separator between two credentials belongs to the first match, so a second
		// pass is needed.
		for range 2 {
			text = r.pattern().ReplaceAllStringFunc(text, func(match string) string {
				found = true
				return r.redactMatch(match)
			})
		}
	}
	text, hidden := redactHints(text)
	return text, found || hidden
}

// redactMatch returns the replacement of a match: the name of the rule between the boundary
// characters of the match.
func (r *rule) redactMatch(match string) string {
	const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	head, tail := "", ""
	if first, n := utf8.DecodeRuneInString(match); !strings.ContainsRune(word, first) {
		head = match[:n]
	}
	if last, n := utf8.DecodeLastRuneInString(match); last != '=' && !strings.ContainsRune(word, last) {
		tail = match[len(match)-n:]
	}
	return head + "[redacted: " + r.name + "]" + tail
}

// NamesSecret reports whether a key names a credential, so that its value must not be
// shown.
func NamesSecret(key string) bool { return namePattern().MatchString(key) }
