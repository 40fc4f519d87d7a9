package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/secret"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// content is a context in its canonical form.
type content struct {
	// raw is JSON with sorted keys, without spaces, with numbers as they were
	// given.
	raw []byte
	sum []byte
	// tree is what raw means; nil where it was not needed.
	tree map[string]any
}

// canonical reads a context. Numbers keep their digits: 12345678901234567890 comes
// back as it was. Of a key that is there twice the last one counts.
func canonical(text []byte) (*content, error) {
	if !utf8.Valid(text) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context is not UTF-8")
	}
	tree, err := decode(text)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context is not a JSON object: %w", err).
			WithFix("give an object, such as {\"goal\": \"…\"}")
	}
	raw, err := jsontext.Marshal(tree)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context cannot be written as JSON: %w", err)
	}
	return &content{raw: raw, sum: sumOf(raw), tree: tree}, nil
}

func sumOf(raw []byte) []byte {
	sum := sha256.Sum256(raw)
	return sum[:]
}

// decode reads an object and nothing behind it.
func decode(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree map[string]any
	var other *json.UnmarshalTypeError
	if err := decoder.Decode(&tree); errors.As(err, &other) {
		return nil, errors.New("it is of the type " + other.Value)
	} else if err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, errors.New("it is null")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return tree, nil
}

// Bounds of what a context adds to the words that it is found by. They are most of
// what an index has, so that each word is in it once.
const (
	maxWords    = 3 << 10
	maxFromText = 400
	maxWord     = 40
	// maxTurns is how many entries from either end of a list are looked at.
	maxTurns = 64
)

// words gives what a context is found by: its keys and the words at the beginning
// of its texts, from the outside in and, of lists, from both ends, each once and
// without what looks like a secret. Lists take turns: a long one leaves room for
// the others.
func words(tree map[string]any, findings []secret.Finding) string {
	hidden := map[string]bool{}
	for _, f := range findings {
		hidden[f.Path] = true
	}
	join, joinIndex := secret.Join, secret.JoinIndex
	if len(hidden) == 0 { // nothing to compare paths with
		join, joinIndex = func(string, string) string { return "" }, func(string, int) string { return "" }
	}
	w := wordList{seen: map[string]bool{}}
	type place struct {
		path  string
		value any
		turn  int
	}
	level := []place{{"", tree, 0}}
	for len(level) > 0 && w.text.Len() < maxWords {
		var next []place
		for _, p := range level {
			switch v := p.value.(type) {
			case map[string]any:
				for _, key := range slices.Sorted(maps.Keys(v)) {
					w.add(key)
					next = append(next, place{join(p.path, key), v[key], p.turn})
				}
			case []any:
				for i, item := range v {
					if min(i, len(v)-1-i) >= maxTurns {
						continue
					}
					next = append(next, place{joinIndex(p.path, i), item, p.turn + min(i, len(v)-1-i)})
				}
			case string:
				if !hidden[p.path] {
					w.add(v)
				}
			}
			if w.text.Len() >= maxWords {
				break
			}
		}
		slices.SortStableFunc(next, func(a, b place) int { return cmp.Compare(a.turn, b.turn) })
		level = next
	}
	return w.text.String()
}

// wordList collects words, each once.
type wordList struct {
	text strings.Builder
	seen map[string]bool
}

// add adds the words of the beginning of a text. What is too long for a word is a
// number, a hash or a token: nobody looks for a part of it.
func (w *wordList) add(text string) {
	if len(text) > maxFromText {
		text = strings.ToValidUTF8(text[:maxFromText], "")
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), notInWord) {
		if len(word) > maxWord || w.seen[word] {
			continue
		}
		w.seen[word] = true
		w.text.WriteString(word)
		w.text.WriteByte('\n')
	}
}
