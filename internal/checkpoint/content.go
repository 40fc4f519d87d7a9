package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/checkpoint/secret"
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
	raw, err := encode(tree)
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
	if err := decoder.Decode(&tree); err != nil {
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

// encode writes JSON without escapes that need not be. Maps are written with
// sorted keys.
func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// Bounds of what a context adds to the words that it is found by.
const (
	maxWords    = 6 << 10
	maxFromText = 400
)

// words gives what a context is found by: its keys and the beginnings of its
// texts, from the outside in, without what looks like a secret.
func words(tree map[string]any, findings []secret.Finding) string {
	hidden := map[string]bool{}
	for _, f := range findings {
		hidden[f.Path] = true
	}
	var b strings.Builder
	type place struct {
		path  string
		value any
	}
	level := []place{{"", tree}}
	for len(level) > 0 && b.Len() < maxWords {
		var next []place
		for _, p := range level {
			switch v := p.value.(type) {
			case map[string]any:
				for _, key := range slices.Sorted(maps.Keys(v)) {
					addWords(&b, key)
					next = append(next, place{secret.Join(p.path, key), v[key]})
				}
			case []any:
				for i, item := range v {
					next = append(next, place{secret.JoinIndex(p.path, i), item})
				}
			case string:
				if !hidden[p.path] {
					addWords(&b, v)
				}
			}
			if b.Len() >= maxWords {
				break
			}
		}
		level = next
	}
	return b.String()
}

func addWords(b *strings.Builder, text string) {
	if len(text) > maxFromText {
		text = strings.ToValidUTF8(text[:maxFromText], "")
	}
	b.WriteString(strings.ReplaceAll(text, "\x00", " "))
	b.WriteByte('\n')
}
