package contexts

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// Embedder returns embedding vectors: texts with similar meanings have similar vectors. See
// package embed.
type Embedder interface {
	// Embed returns one vector per text, in their order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// vectorCache caches the vectors of checkpoints, which are immutable.
type vectorCache struct {
	mu   sync.Mutex
	byID map[string][]float32
}

const (
	maxVectors = 1000
	// embeddedBytes is the maximum length of the text of a checkpoint that is sent to the
	// embedder.
	embeddedBytes = 2000
)

func (v *vectorCache) getVector(id string) []float32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byID[id]
}

func (v *vectorCache) putVector(id string, vector []float32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byID == nil || len(v.byID) >= maxVectors {
		v.byID = map[string][]float32{}
	}
	v.byID[id] = vector
}

// rankByMeaning sorts checkpoints in place by similarity to the query. The contents of
// encrypted checkpoints are not sent to the embedder.
func (s *Service) rankByMeaning(ctx context.Context, c run.Caller, query string, list []checkpoint.Record) error {
	texts, ids := []string{query}, []string{}
	for _, rec := range list {
		if rec.Key != "" || s.vectors.getVector(rec.ID) != nil {
			continue
		}
		text, err := s.embeddingText(ctx, c, rec)
		if err != nil {
			return err
		}
		texts, ids = append(texts, text), append(ids, rec.ID)
	}
	found, err := s.o.Embedder.Embed(ctx, texts)
	if err != nil {
		return err
	}
	if len(found) != len(texts) {
		return fmt.Errorf("the embedder returned %d vectors for %d texts", len(found), len(texts))
	}
	for i, id := range ids {
		s.vectors.putVector(id, found[i+1])
	}
	near := make(map[string]float64, len(list))
	for _, rec := range list {
		near[rec.ID] = cosineSimilarity(found[0], s.vectors.getVector(rec.ID))
	}
	slices.SortStableFunc(list, func(a, b checkpoint.Record) int { return cmp.Compare(near[b.ID], near[a.ID]) })
	return nil
}

// embeddingText returns the text of a checkpoint that represents its meaning.
func (s *Service) embeddingText(ctx context.Context, c run.Caller, rec checkpoint.Record) (string, error) {
	loaded, err := s.o.Checkpoints.Load(ctx, c.Principal, checkpoint.LoadRequest{ID: rec.ID})
	if err != nil {
		return "", err
	}
	return truncateText(strings.Join([]string{rec.Name, strings.Join(rec.Tags, " "), rec.Workflow, string(loaded.Context)}, "\n"), embeddedBytes), nil
}

// cosineSimilarity returns the cosine similarity of two vectors; 0 if they cannot be compared.
func cosineSimilarity(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
