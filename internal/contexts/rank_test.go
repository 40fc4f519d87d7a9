package contexts_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// meaning is an embedder whose vectors depend on the number of the words "password" and
// "login".
type meaning struct {
	err   error
	calls int
	texts int
}

func (m *meaning) Embed(_ context.Context, texts []string) ([][]float32, error) {
	m.calls++
	m.texts += len(texts)
	if m.err != nil {
		return nil, m.err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{float32(strings.Count(text, "password") + strings.Count(text, "login")), 1}
	}
	return out, nil
}

// TestRanking checks that word matches are ranked by meaning, that each checkpoint is
// embedded once, and that a failing endpoint keeps the order and sets a note.
func TestRanking(t *testing.T) {
	t.Parallel()
	m := &meaning{}
	r := setupRig(t, func(p *parts) { p.memory.Embedder = m })
	save := func(name, text string) {
		_, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Name: name, Context: map[string]any{"note": text}})
		mustSucceed(t, err)
	}
	save("secrets", "the server mends a password of the login")
	save("trees", "the server mends a tree")
	save("lakes", "the server mends a lake")
	list := func(limit int) (names []string, page *contexts.Page) {
		page, err := r.List(t.Context(), testCaller(), checkpoint.ListRequest{Query: "server login", Limit: limit})
		mustSucceed(t, err)
		for _, rec := range page.Checkpoints {
			names = append(names, rec.Name)
		}
		return names, page
	}
	if names, page := list(0); len(names) != 1 || page.Ranked != "meaning" {
		t.Errorf("matches of all words: %v, ranked by %s", names, page.Ranked)
	}
	query := checkpoint.ListRequest{Query: "mend server", Limit: 2}
	page, err := r.List(t.Context(), testCaller(), query)
	mustSucceed(t, err)
	before := m.texts
	if _, err = r.List(t.Context(), testCaller(), query); err != nil || m.texts-before != 1 {
		t.Errorf("the second list sends %d texts, %v", m.texts-before, err)
	}
	if len(page.Checkpoints) != 2 || page.Ranked != "meaning" || !strings.Contains(page.Note, "more") || page.Next != "" {
		t.Errorf("page %+v", page)
	}
	m.err = errors.New("the endpoint is unreachable")
	page, err = r.List(t.Context(), testCaller(), checkpoint.ListRequest{Query: "mend server"})
	mustSucceed(t, err)
	var names []string
	for _, rec := range page.Checkpoints {
		names = append(names, rec.Name)
	}
	if d := cmp.Diff([]string{"lakes", "trees", "secrets"}, names); d != "" || page.Ranked != "newest" || !strings.Contains(page.Note, "keywords only") {
		t.Errorf("the matches of any word (-want +got):\n%s%+v", d, page)
	}
	calls := m.calls
	if _, err = r.List(t.Context(), testCaller(), checkpoint.ListRequest{}); err != nil || m.calls != calls {
		t.Errorf("a list without a query was sent, %v", err)
	}
}

// TestSearchOfEncrypted checks that a word search finds encrypted checkpoints.
func TestSearchOfEncrypted(t *testing.T) {
	t.Parallel()
	r := setupRig(t, func(p *parts) {
		keys, err := seal.Open(t.Context(), p.checkpoint.Blobs, seal.File{Path: filepath.Join(t.TempDir(), "key")})
		mustSucceed(t, err)
		p.checkpoint.Keys = keys
	})
	_, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "s", Context: map[string]any{"goal": "parse"}})
	mustSucceed(t, err)
	for query, found := range map[string]int{"parse": 1, "parsing": 1, "pars": 1, "": 1, "zeppelin": 0} {
		page, err := r.List(t.Context(), testCaller(), checkpoint.ListRequest{Query: query})
		mustSucceed(t, err)
		if page.Note != "" || len(page.Checkpoints) != found {
			t.Errorf("%q finds %d with the note %q", query, len(page.Checkpoints), page.Note)
		}
	}
}
