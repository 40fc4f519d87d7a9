package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/httpapi"
)

type fakeMetrics struct{}

func (fakeMetrics) Metrics(w io.Writer) error {
	_, err := fmt.Fprintln(w, "one_total 1")
	return err
}

// /metrics names upstreams and tools, so it requires the right to read the API even on
// loopback, and refuses pages of other origins.
func TestMetricsAreGuarded(t *testing.T) {
	t.Parallel()
	s := newRig(t, func(o *httpapi.Options) { o.Metrics = fakeMetrics{} })
	cookie, page := s.loginBrowser(t, "ann")
	for _, tt := range []struct {
		name   string
		who    credential
		status int
	}{
		{"no credential", withoutCredential, 401},
		{"a wrong token", withBearer(strings.Repeat("x", 48)), 401},
		{"the token of the token file", asAgent, 200},
		{"a browser", page, 200},
		{"a browser without the page's key", cookie, 401},
		{"a page of another origin", func(r *http.Request) {
			asAgent(r)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "http://evil.example")
		}, 403},
		{"a rebound host name", func(r *http.Request) { asAgent(r); r.Host = "evil.example" }, 403},
	} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		tt.who(r)
		resp, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tt.status || (tt.status == 200) != (string(body) == "one_total 1\n") {
			t.Errorf("%s gets %d: %s", tt.name, resp.StatusCode, body)
		}
	}
}
