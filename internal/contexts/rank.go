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

// Embedder gives the vectors of texts: texts that mean the like have like ones.
// See package embed.
type Embedder interface {
	// Embed gives one vector for each text, in their order.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// vectors remembers those of checkpoints, which never change.
type vectors struct {
	mu   sync.Mutex
	byID map[string][]float32
}

const (
	maxVectors = 1000
	// embeddedBytes is how much of a checkpoint is sent.
	embeddedBytes = 2000
)

func (v *vectors) get(id string) []float32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byID[id]
}

func (v *vectors) keep(id string, vector []float32) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byID == nil || len(v.byID) >= maxVectors {
		v.byID = map[string][]float32{}
	}
	v.byID[id] = vector
}

// rank orders checkpoints in place by how near they are to the query. What is
// encrypted is sent to nobody.
func (s *Service) rank(ctx context.Context, c run.Caller, query string, list []checkpoint.Record) error {
	texts, ids := []string{query}, []string{}
	for _, rec := range list {
		if rec.Key != "" || s.vectors.get(rec.ID) != nil {
			continue
		}
		text, err := s.embeddable(ctx, c, rec)
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
		return fmt.Errorf("%d vectors for %d texts", len(found), len(texts))
	}
	for i, id := range ids {
		s.vectors.keep(id, found[i+1])
	}
	near := make(map[string]float64, len(list))
	for _, rec := range list {
		near[rec.ID] = cosine(found[0], s.vectors.get(rec.ID))
	}
	slices.SortStableFunc(list, func(a, b checkpoint.Record) int { return cmp.Compare(near[b.ID], near[a.ID]) })
	return nil
}

// embeddable is what of a checkpoint says what it is about.
func (s *Service) embeddable(ctx context.Context, c run.Caller, rec checkpoint.Record) (string, error) {
	loaded, err := s.o.Checkpoints.Load(ctx, c.Principal, checkpoint.LoadRequest{ID: rec.ID})
	if err != nil {
		return "", err
	}
	return first(strings.Join([]string{rec.Name, strings.Join(rec.Tags, " "), rec.Workflow, string(loaded.Context)}, "\n"), embeddedBytes), nil
}

// cosine is how like two vectors are; 0 where they cannot be compared.
func cosine(a, b []float32) float64 {
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
