// Package embed asks a service with OpenAI's interface for the vectors of texts.
// It is used only where a person has configured one: nothing else sends a context
// anywhere.
package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
)

// Options name a service.
type Options struct {
	// URL is that of the API, with or without /embeddings at its end.
	URL string
	// Model is the service's name of a model.
	Model string
	// Key is sent as a bearer token; empty sends none.
	Key string
	// Timeout bounds a call; 0 is 5 seconds.
	Timeout time.Duration
	// Client makes the calls; nil is one that follows no redirects, which could
	// carry the key elsewhere.
	Client *http.Client
}

// Client asks a service. It is safe for concurrent use.
type Client struct {
	o   Options
	url string
}

// maxAnswer bounds what is read of an answer: 50 vectors of 4096 numbers.
const maxAnswer = 8 << 20

// New makes a client.
func New(o Options) (*Client, error) {
	if o.URL == "" || o.Model == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a service for embeddings needs a URL and a model").
			WithFix("set context.embeddingsUrl and context.embeddingsModel")
	}
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Client{o: o, url: strings.TrimSuffix(strings.TrimRight(o.URL, "/"), "/embeddings") + "/embeddings"}, nil
}

// Embed gives one vector for each text, in their order. What goes wrong is
// guideway.CodeUnavailable; the key is in no message.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": c.o.Model, "input": texts})
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "ask for embeddings: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, unavailable(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	res, err := c.o.Client.Do(req)
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, unavailable(fmt.Errorf("the service answers %d", res.StatusCode))
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&answer); err != nil {
		return nil, unavailable(fmt.Errorf("read the answer: %w", err))
	}
	out := make([][]float32, len(texts))
	for _, one := range answer.Data {
		if one.Index < 0 || one.Index >= len(out) {
			return nil, unavailable(fmt.Errorf("the answer has a vector %d for %d texts", one.Index, len(texts)))
		}
		out[one.Index] = one.Embedding
	}
	for i, vector := range out {
		if len(vector) == 0 || len(vector) != len(out[0]) {
			return nil, unavailable(fmt.Errorf("the answer has no vector for text %d, or one of another length", i))
		}
	}
	return out, nil
}

func unavailable(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "ask for embeddings: %w", err)
}
