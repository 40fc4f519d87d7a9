package embed_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/embed"
)

// TestEmbed checks the request to the OpenAI API and the order of the vectors.
func TestEmbed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer key" || json.NewDecoder(r.Body).Decode(&in) != nil || in.Model != "m" || len(in.Input) != 2 {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"data":[{"index":1,"embedding":[3,4]},{"index":0,"embedding":[1,2]}]}`)
	}))
	t.Cleanup(server.Close)
	for _, url := range []string{server.URL + "/v1", server.URL + "/v1/", server.URL + "/v1/embeddings"} {
		c, err := embed.New(embed.Options{URL: url, Model: "m", Key: "key"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Embed(t.Context(), []string{"a", "b"})
		if d := cmp.Diff([][]float32{{1, 2}, {3, 4}}, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", url, err, d)
		}
	}
}

// TestEmbedFailures checks that for invalid, missing and endless answers the client returns
// an error with a code that does not contain the key, and that incomplete options are
// refused.
func TestEmbedFailures(t *testing.T) {
	t.Parallel()
	hangs := make(chan struct{})
	answers := map[string]http.HandlerFunc{
		"an error":         func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sk-secret", http.StatusUnauthorized) },
		"no JSON":          func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"too few":          func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1]}]}`) },
		"an invalid index": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":[{"index":7,"embedding":[1]}]}`) },
		"odd lengths": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`)
		},
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-hangs },
		"no end": func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				fmt.Fprint(w, strings.Repeat(" ", 1<<20))
			}
		},
	}
	for name, answer := range answers {
		server := httptest.NewServer(answer)
		c, err := embed.New(embed.Options{URL: server.URL, Model: "m", Key: "sk-secret", Timeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Embed(t.Context(), []string{"a", "b"})
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: %v", name, err)
		}
		t.Cleanup(server.Close)
	}
	close(hangs)
	for _, o := range []embed.Options{{Model: "m"}, {URL: "http://localhost"}} {
		if _, err := embed.New(o); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
