package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/secret"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// content is a context in canonical form.
type content struct {
	// raw is JSON with sorted keys and without spaces; numbers are unchanged.
	raw []byte
	sum []byte
	// tree is the decoded raw; nil if it is not needed.
	tree map[string]any
}

// parseCanonical parses a context. Numbers keep their digits, such as 12345678901234567890.
// Of duplicate keys, the last one is used.
func parseCanonical(text []byte) (*content, error) {
	if !utf8.Valid(text) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context is not UTF-8").WithFix("encode the context as UTF-8")
	}
	tree, err := decodeObject(text)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context is not a JSON object: %w", err).
			WithFix("pass an object, such as {\"goal\": \"…\"}")
	}
	raw, err := jsontext.Marshal(tree)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the context cannot be encoded as JSON: %w", err)
	}
	return &content{raw: raw, sum: sumOf(raw), tree: tree}, nil
}

func sumOf(raw []byte) []byte {
	sum := sha256.Sum256(raw)
	return sum[:]
}

// decodeObject parses an object.
func decodeObject(text []byte) (map[string]any, error) {
	value, err := jsontext.Parse(text)
	if err != nil {
		return nil, err
	}
	tree, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("the value is " + jsontext.DescribeType(value))
	}
	return tree, nil
}

// Limits of the search terms of a context, in bytes. The terms are the largest part of an
// index.
const (
	maxWords    = 4 << 10
	maxFromText = 400
	// maxTurns is the number of entries read from each end of a list.
	maxTurns = 64
)

// contentTerms returns the search terms of a context: those of its keys and of the beginnings
// of its texts, without likely secrets. It reads the outer levels first and each
// list from both ends. It reads the lists in turn, so that a long list does not use up the
// limit.
func contentTerms(tree map[string]any, findings []secret.Finding) []string {
	hidden := map[string]bool{}
	for _, f := range findings {
		hidden[f.Path] = true
	}
	join, joinIndex := secret.Join, secret.JoinIndex
	if len(hidden) == 0 { // no path needs to be compared
		join, joinIndex = func(string, string) string { return "" }, func(string, int) string { return "" }
	}
	var terms words.Terms
	type place struct {
		path  string
		value any
		turn  int
	}
	level := []place{{"", tree, 0}}
	for len(level) > 0 && terms.Size() < maxWords {
		var next []place
		for _, p := range level {
			switch v := p.value.(type) {
			case map[string]any:
				for _, key := range slices.Sorted(maps.Keys(v)) {
					addText(&terms, key)
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
					addText(&terms, v)
				}
			}
			if terms.Size() >= maxWords {
				break
			}
		}
		slices.SortStableFunc(next, func(a, b place) int { return cmp.Compare(a.turn, b.turn) })
		level = next
	}
	return terms.List()
}

// addText adds the terms of the beginning of a text.
func addText(terms *words.Terms, text string) {
	if len(text) > maxFromText {
		text = strings.ToValidUTF8(text[:maxFromText], "")
	}
	terms.Add(text)
}

// searchTerms returns the terms that a checkpoint is found by: those of its content, name,
// tags and workflow. Those of an encrypted checkpoint are hashed.
func (s *Service) searchTerms(ctx context.Context, r Record, content []string) ([]string, error) {
	terms := slices.Concat(words.Of(append(slices.Clone(r.Tags), r.Name, r.Workflow)...), content)
	if r.Key == "" || s.o.Keys == nil {
		return terms, nil
	}
	hash, err := s.wordHash(ctx, true)
	if errors.Is(err, seal.ErrTampered) {
		// A save must not depend on the key of the search.
		s.o.Logger.WarnContext(ctx, "a checkpoint is saved without search terms", "checkpoint", r.ID, "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return hash.Terms(terms), nil
}

// wordHash returns the keyed hash of the terms of encrypted checkpoints, or nil if create is
// not set and no such checkpoint exists.
func (s *Service) wordHash(ctx context.Context, create bool) (words.Hash, error) {
	key, err := s.o.Keys.Named(ctx, seal.NamePrefix+"words-checkpoints", create)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return key.Hasher(), nil
}
