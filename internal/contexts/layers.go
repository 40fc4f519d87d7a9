package contexts

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/run"
)

// Item is a variable of a run's context with its layer.
type Item struct {
	Key    string          `json:"key"`
	Layer  compress.Layer  `json:"layer"`
	Why    string          `json:"why"`
	Rule   compress.Source `json:"rule"`
	Tokens int             `json:"tokens"`
	Bytes  int             `json:"bytes"`
	// Age is the number of steps since the last change of the value.
	Age  int      `json:"age"`
	Tags []string `json:"tags,omitempty"`
	// Value is the value, or a string with its beginning if Cut is set.
	Value json.RawMessage `json:"value"`
	// Cut reports that the value is truncated.
	Cut bool `json:"cut,omitempty"`
}

// LayerTotal is the total size of a layer's items.
type LayerTotal struct {
	Layer  compress.Layer `json:"layer"`
	Share  float64        `json:"share"`
	Items  int            `json:"items"`
	Tokens int            `json:"tokens"`
	Bytes  int            `json:"bytes"`
}

// Layers is the context of a run by layer.
type Layers struct {
	RunID    string           `json:"runId"`
	Seq      int64            `json:"seq"`
	Layers   []LayerTotal     `json:"layers"`
	Items    []Item           `json:"items"`
	Tokens   int              `json:"tokens"`
	Bytes    int              `json:"bytes"`
	Limit    int              `json:"limitTokens"`
	Summary  *Summary         `json:"summary,omitempty"`
	Health   Health           `json:"automatic"`
	Store    checkpoint.Store `json:"store"`
	AnswerOf int              `json:"answerTokens"`
}

// shownBytes is the maximum length of a shown value in bytes.
const shownBytes = 400

// Layers returns a run's context by layer, for the dashboard.
func (s *Service) Layers(ctx context.Context, c run.Caller, ref run.Ref) (*Layers, error) {
	d, err := s.lookUpRun(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	m, err := s.materialOf(ctx, c, d)
	if err != nil {
		return nil, err
	}
	st, err := s.loadHistory(ctx, c, d)
	if err != nil {
		return nil, err
	}
	out := &Layers{
		RunID: d.ID, Seq: d.Seq, Items: []Item{}, Limit: s.o.LimitTokens, AnswerOf: s.o.AnswerTokens,
		Summary: s.runSummary(ctx, c, d, st), Health: s.Health(), Store: s.Store(),
	}
	at := map[compress.Layer]int{}
	for i, layer := range compress.Layers() {
		at[layer] = i
		out.Layers = append(out.Layers, LayerTotal{Layer: layer, Share: compress.DefaultShares()[layer]})
	}
	for _, item := range s.classifyItems(m) {
		total := &out.Layers[at[item.Layer]]
		total.Items++
		total.Tokens += item.Tokens
		total.Bytes += len(item.Value)
		out.Tokens += item.Tokens
		out.Bytes += len(item.Value)
		out.Items = append(out.Items, itemOf(item, d.Marks))
	}
	return out, nil
}

func itemOf(item compress.Item, marks []run.Mark) Item {
	out := Item{
		Key: item.Key, Layer: item.Layer, Why: item.Why, Rule: item.Rule, Tokens: item.Tokens, Bytes: len(item.Value),
		Age: item.Age, Value: item.Value,
	}
	for _, m := range marks {
		if m.Key == item.Key {
			out.Tags = m.Tags
		}
	}
	if len(item.Value) > shownBytes {
		if text, err := encodeJSON(truncateText(string(item.Value), shownBytes) + "…"); err == nil {
			out.Value, out.Cut = text, true
		}
	}
	return out
}
