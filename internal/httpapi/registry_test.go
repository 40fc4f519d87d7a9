package httpapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// The registry can only be read, by GET and with the right to read the API, and is off
// without the option.
func TestRegistry(t *testing.T) {
	t.Parallel()
	guard, err := auth.NewGuard(auth.GuardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const token = "0123456789abcdef0123456789abcdef0123456789abcdef"
	bearer, err := auth.NewBearer(auth.BearerOptions{Token: token, User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	shelf := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "shelf "+r.URL.Path) })
	with, err := httpapi.NewHandler(httpapi.Options{Guard: guard, Bearer: bearer, Registry: shelf})
	if err != nil {
		t.Fatal(err)
	}
	without, err := httpapi.NewHandler(httpapi.Options{Guard: guard, Bearer: bearer})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		handler http.Handler
		method  string
		header  map[string]string
		status  int
	}{
		{"with the token", with, "GET", map[string]string{"Authorization": "Bearer " + token}, 200},
		{"a write", with, "POST", map[string]string{"Authorization": "Bearer " + token}, 400},
		{"a stranger", with, "GET", nil, 401},
		{"a wrong token", with, "GET", map[string]string{"Authorization": "Bearer x"}, 401},
		{"a page of another origin", with, "GET", map[string]string{"Authorization": "Bearer " + token, "Origin": "https://evil.example"}, 403},
		{"another name of the host", with, "GET", map[string]string{"Authorization": "Bearer " + token, "Host": "evil.example"}, 403},
		{"no registry", without, "GET", map[string]string{"Authorization": "Bearer " + token}, 404},
	}
	for _, tt := range tests {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "http://localhost/registry/index", nil)
		for name, value := range tt.header {
			r.Header.Set(name, value)
			if name == "Host" {
				r.Host = value
			}
		}
		w := httptest.NewRecorder()
		tt.handler.ServeHTTP(w, r)
		if w.Code != tt.status || w.Code == 200 && w.Body.String() != "shelf /index" {
			t.Errorf("%s: %d %s", tt.name, w.Code, w.Body)
		}
	}
}
