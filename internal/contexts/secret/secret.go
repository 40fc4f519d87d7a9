// Package secret finds what is likely a secret in a context, to warn of it. It
// tells the rule and the place, never the value. Its rules know the shapes of
// credentials that say what they are, so that a warning is worth reading; what
// only looks random is left alone.
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
	// Rule names what it looks like.
	Rule string `json:"rule"`
	// Path is the RFC 6901 pointer to the text.
	Path string `json:"path"`
}

const (
	// maxFindings bounds an answer.
	maxFindings = 50
	// maxCached bounds the texts whose verdict is remembered.
	maxCached = 8192
	// cacheFrom is the length from which remembering is cheaper than looking.
	cacheFrom = 64
)

// Scanner scans contexts. It remembers the verdicts on longer texts by their
// hashes: of successive contexts only what is new is looked at. It may be used by
// many goroutines.
type Scanner struct {
	rules []rule

	mu       sync.Mutex
	verdicts map[[16]byte]string
}

// NewScanner makes a scanner.
func NewScanner() *Scanner {
	return &Scanner{rules: rules(), verdicts: map[[16]byte]string{}}
}

// Scan gives the likely secrets in a context, in the order of their paths.
func (s *Scanner) Scan(tree map[string]any) []Finding {
	var found []Finding
	s.walk("", "", tree, &found)
	return found
}

func (s *Scanner) walk(path, key string, value any, found *[]Finding) {
	if len(*found) >= maxFindings {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			s.walk(Join(path, k), k, v[k], found)
		}
	case []any:
		for i, item := range v {
			s.walk(JoinIndex(path, i), key, item, found)
		}
	case string:
		name := s.verdict(v)
		if name == "" && assigned(key, v) {
			name = "password"
		}
		if name != "" {
			*found = append(*found, Finding{Rule: name, Path: path})
		}
	}
}

// verdict names the rule that a text breaks, or "".
func (s *Scanner) verdict(text string) string {
	if len(text) < cacheFrom {
		return s.look(text)
	}
	sum := sha256.Sum256([]byte(text))
	hash := [16]byte(sum[:16])
	s.mu.Lock()
	name, known := s.verdicts[hash]
	s.mu.Unlock()
	if known {
		return name
	}
	name = s.look(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.verdicts) >= maxCached {
		clear(s.verdicts)
	}
	s.verdicts[hash] = name
	return name
}

// look applies the rules whose mark is in the text.
func (s *Scanner) look(text string) string {
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
		return path + "/" + key // nearly always
	}
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// JoinIndex adds an index to a pointer.
func JoinIndex(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// Redact gives a text without what looks like a credential, and says whether
// there was any. What stands before and behind it stays.
func (s *Scanner) Redact(text string) (string, bool) {
	found := false
	for _, r := range s.rules {
		if !slices.ContainsFunc(r.marks, func(mark string) bool { return strings.Contains(text, mark) }) {
			continue
		}
		if r.name == "private-key" { // the key is what follows
			if at := r.pattern().FindStringIndex(text); at != nil {
				text, found = text[:at[0]]+"[redacted: "+r.name+"]", true
			}
			continue
		}
		// What stands between two of them is taken by the first: so there is a second look.
		for range 2 {
			text = r.pattern().ReplaceAllStringFunc(text, func(match string) string {
				found = true
				return r.edges(match)
			})
		}
	}
	text, hidden := hide(text)
	return text, found || hidden
}

// edges gives what takes the place of a match: the rule's name, and what of the
// match only stood beside the credential.
func (r *rule) edges(match string) string {
	const word = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	head, tail := "", ""
	if first, n := utf8.DecodeRuneInString(match); !strings.ContainsRune(word, first) {
		head = match[:n]
	}
	if last, n := utf8.DecodeLastRuneInString(match); last != '=' && !strings.ContainsRune(word, last) && len(match) > n {
		tail = match[len(match)-n:]
	}
	return head + "[redacted: " + r.name + "]" + tail
}

// NamesSecret says whether a key is called after a credential, so that its value
// is best not shown, whatever it is.
func NamesSecret(key string) bool { return namePattern().MatchString(key) }
