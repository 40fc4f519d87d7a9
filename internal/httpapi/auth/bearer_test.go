package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

var secret = strings.Repeat("s3cret", 8)

func TestBearer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, query   string
		authorization []string
		ok            bool
		challenge     string
	}{
		{name: "right", authorization: []string{"Bearer " + secret}, ok: true},
		{name: "scheme in lower-case letters", authorization: []string{"bearer " + secret}, ok: true},
		{name: "two spaces", authorization: []string{"Bearer  " + secret}, ok: true},
		{name: "none"},
		{name: "in the query", query: "?access_token=" + secret},
		{name: "in the query by another name", query: "?token=" + secret},
		{name: "wrong", authorization: []string{"Bearer " + strings.Repeat("x", 48)}, challenge: "invalid_token"},
		{name: "the beginning of the token", authorization: []string{"Bearer " + secret[:40]}, challenge: "invalid_token"},
		{name: "the token with text appended", authorization: []string{"Bearer " + secret + "x"}, challenge: "invalid_token"},
		{name: "empty", authorization: []string{"Bearer "}, challenge: "invalid_token"},
		{name: "an empty header", authorization: []string{""}, challenge: "invalid_token"},
		{name: "without a scheme", authorization: []string{secret}, challenge: "invalid_token"},
		{name: "basic", authorization: []string{"Basic " + secret}, challenge: "invalid_token"},
		{name: "twice", authorization: []string{"Bearer " + secret, "Bearer " + secret}, challenge: "invalid_token"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, err := auth.NewBearer(auth.BearerOptions{Token: secret, User: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			var got guideway.Principal
			h := (&auth.Authenticator{Bearer: b}).Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got, _ = auth.PrincipalFrom(r.Context())
			}))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp"+tt.query, nil)
			if tt.authorization != nil {
				r.Header["Authorization"] = tt.authorization
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if tt.ok {
				if w.Code != http.StatusOK || got.User != "ann" {
					t.Errorf("%d, principal %+v, want 200 for ann", w.Code, got)
				}
				return
			}
			challenge := w.Header().Get("WWW-Authenticate")
			if w.Code != http.StatusUnauthorized || got.User != "" || !strings.HasPrefix(challenge, "Bearer") || !strings.Contains(challenge, tt.challenge) {
				t.Errorf("%d, principal %+v, challenge %q; want 401 with %q", w.Code, got, challenge, tt.challenge)
			}
			checkErrorBody(t, w, guideway.CodeUnauthorized)
			if body := w.Body.String(); strings.Contains(body, secret) || !strings.Contains(body, "guideway doctor") {
				t.Errorf("the body is %s, want instructions to find the token, and not the token", body)
			}
		})
	}
}

func TestNewBearerRequiresTokenAndUser(t *testing.T) {
	t.Parallel()
	for _, opts := range []auth.BearerOptions{
		{}, {User: "ann"}, {Token: "short", User: "ann"}, {Token: secret}, {Token: strings.Repeat(" ", 40), User: "ann"},
	} {
		if _, err := auth.NewBearer(opts); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("%+v: %v, want an error", opts, err)
		}
	}
}

func TestSystemUser(t *testing.T) {
	t.Parallel()
	if name, err := auth.SystemUser(); err != nil || name == "" {
		t.Errorf("%q, %v", name, err)
	}
}
