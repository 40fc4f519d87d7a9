// Package embed requests embedding vectors from a service with the OpenAI API. It is used
// only if the user has configured a service.
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

// Options configure a Client.
type Options struct {
	// URL is the URL of the API, with or without a trailing /embeddings.
	URL string
	// Model is the name of the model.
	Model string
	// Key is sent as a bearer token, unless it is empty.
	Key string
	// Timeout bounds a call; the default is 5 seconds.
	Timeout time.Duration
	// Client makes the calls; the default follows no redirects, since they could send the
	// key to another host.
	Client *http.Client
}

// Client requests vectors. It is safe for concurrent use.
type Client struct {
	o   Options
	url string
}

// maxAnswer bounds the size of an answer in bytes.
const maxAnswer = 8 << 20

// New returns a client.
func New(o Options) (*Client, error) {
	if o.URL == "" || o.Model == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the embeddings service needs a URL and a model; the URL is %q and the model is %q", o.URL, o.Model).
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

// Embed returns one vector per text, in the order of the texts. Errors have the code
// guideway.CodeUnavailable; they never contain the key.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": c.o.Model, "input": texts})
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeInternal, "request embeddings: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, newUnavailable(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	res, err := c.o.Client.Do(req)
	if err != nil {
		return nil, newUnavailable(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, newUnavailable(fmt.Errorf("the service responded with the status %d", res.StatusCode))
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&answer); err != nil {
		return nil, newUnavailable(fmt.Errorf("read the answer: %w", err))
	}
	out := make([][]float32, len(texts))
	for _, one := range answer.Data {
		if one.Index < 0 || one.Index >= len(out) {
			return nil, newUnavailable(fmt.Errorf("the answer contains a vector for text %d, but the number of texts is %d", one.Index, len(texts)))
		}
		out[one.Index] = one.Embedding
	}
	for i, vector := range out {
		if len(vector) == 0 {
			return nil, newUnavailable(fmt.Errorf("the answer has no vector for text %d", i))
		}
		if len(vector) != len(out[0]) {
			return nil, newUnavailable(fmt.Errorf("vector %d of the answer has the length %d, but vector 0 has the length %d", i, len(vector), len(out[0])))
		}
	}
	return out, nil
}

func newUnavailable(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "request embeddings: %w", err).
		WithFix("check context.embeddingsUrl, context.embeddingsModel and the key in the environment variable GUIDEWAY_EMBEDDINGS_KEY")
}
