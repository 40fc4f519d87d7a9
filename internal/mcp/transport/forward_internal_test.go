package transport

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fixedPeers are instances with addresses.
type fixedPeers struct {
	id        string
	addresses map[string]string
}

func (p fixedPeers) ID() string { return p.id }

func (p fixedPeers) Address(_ context.Context, id string) (string, error) {
	return p.addresses[id], nil
}

// Requests with the id of another instance, in the session or in the state of a parked call,
// reach that instance with their body, once; others stay here with their body.
func TestForward(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{}
	start := func(id string) *httptest.Server {
		f := newForwarder(fixedPeers{id, addresses}, 1<<20)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			done, err := f.tryForward(w, r)
			if err != nil {
				t.Error(err)
			}
			if !done {
				body, _ := io.ReadAll(r.Body)
				_, _ = io.WriteString(w, id+" "+string(body))
			}
		}))
		t.Cleanup(s.Close)
		addresses[id] = strings.TrimPrefix(s.URL, "http://")
		return s
	}
	here := start("here")
	start("there")
	addresses["reused"] = addresses["there"]
	ended := httptest.NewServer(http.NotFoundHandler())
	addresses["ended"] = strings.TrimPrefix(ended.URL, "http://")
	ended.Close()
	parked := func(id string) string {
		state := base64.RawURLEncoding.EncodeToString([]byte(`{"u":"ann","p":"`+id+`"}`)) + ".mac"
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","requestState":"` + state + `"}}`
	}
	for _, tt := range []struct {
		name, session, body string
		status              int
		at                  string
	}{
		{"a session of this instance", "here.1", "{}", 200, "here"},
		{"a session of another instance", "there.1", "{}", 200, "there"},
		{"a session of no instance", "none.1", "{}", 404, ""},
		{"a session of an instance that ended", "ended.1", "{}", 404, ""},
		{"a session of an instance whose address another one has", "reused.1", "{}", 404, ""},
		{"a parked call of this instance", "", parked("here.1"), 200, "here"},
		{"a parked call of another instance", "", parked("there.1"), 200, "there"},
		{"a parked call of a single instance", "", parked("1"), 200, "here"},
		{"a state that is no call", "", `{"params":{"requestState":"!"}}`, 200, "here"},
		{"no state", "", `{"method":"tools/list"}`, 200, "here"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, here.URL, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if tt.session != "" {
			r.Header.Set("Mcp-Session-Id", tt.session)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != tt.status || tt.at != "" && string(text) != tt.at+" "+tt.body {
			t.Errorf("%s: %d %q, %v", tt.name, answer.StatusCode, text, err)
		}
	}
}
