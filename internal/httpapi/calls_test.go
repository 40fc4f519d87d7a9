package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/holds"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

// holdCall creates a held call of a user.
func (s *rig) holdCall(t *testing.T, user, text string, runs ...string) holds.Call {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"password": text, "n": json.Number("12345678901234567890")})
	if err != nil {
		t.Fatal(err)
	}
	canonical, hash, err := holds.EncodeArguments(raw)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.calls.Claim(t.Context(), holds.Request{
		Binding: holds.Binding{User: user, Client: "claude", Upstream: "git", Tool: "push", Hash: hash}, Name: "git__push", Arguments: canonical, Reason: "it pushes", Runs: runs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHeldCalls checks that users see only their own held calls, that lists redact secrets
// but the page of a call shows all arguments, and that only a person can answer a call, and
// only once.
func TestHeldCalls(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, person := s.loginBrowser(t, "ann")
	mine, other := s.holdCall(t, "ann", "geheim-und-lang"), s.holdCall(t, "bob", "theirs")
	list := s.wantStatus(t, http.StatusOK, asAgent, "GET", "/api/calls?status=waiting", "").body
	if text := string(list); !strings.Contains(text, mine.ID) || strings.Contains(text, other.ID) || strings.Contains(text, "geheim") || !strings.Contains(text, "redacted") {
		t.Errorf("the list is %s", text)
	}
	s.wantStatus(t, http.StatusBadRequest, asAgent, "GET", "/api/calls?status=held", "")
	var details struct {
		Call holds.Call
		Text string
	}
	s.wantStatus(t, http.StatusOK, person, "GET", "/api/calls/"+mine.ID, "").decodeInto(t, &details)
	if !strings.Contains(details.Text, "geheim-und-lang") || !strings.Contains(details.Text, "12345678901234567890") {
		t.Errorf("the call is %+v", details)
	}
	read := s.newToken(t, "monitor", auth.ScopeRead)
	s.wantStatus(t, http.StatusForbidden, read, "GET", "/api/calls/"+mine.ID, "")
	for _, who := range []credential{asAgent, read} {
		s.wantStatus(t, http.StatusForbidden, who, "POST", "/api/calls/"+mine.ID+"/answer", `{"approve":true}`)
	}
	s.wantStatus(t, http.StatusNotFound, person, "POST", "/api/calls/"+other.ID+"/answer", `{"approve":true}`)
	s.wantStatus(t, http.StatusNotFound, person, "GET", "/api/calls/"+other.ID, "")
	s.wantStatus(t, http.StatusBadRequest, person, "POST", "/api/calls/"+mine.ID+"/answer", `{"note":"hm"}`)
	if c, err := s.calls.Get("ann", mine.ID); err != nil || c.Status != holds.Waiting {
		t.Fatalf("the call is %+v %v", c, err)
	}
	s.wantStatus(t, http.StatusOK, person, "POST", "/api/calls/"+mine.ID+"/answer", `{"approve":true,"note":"fine"}`)
	for _, body := range []string{`{"approve":true}`, `{"approve":false}`} {
		s.wantStatus(t, http.StatusConflict, person, "POST", "/api/calls/"+mine.ID+"/answer", body)
	}
	if c, err := s.calls.Get("ann", mine.ID); err != nil || c.Status != holds.Approved || c.Answer.Via != "browser" || c.Answer.Note != "fine" {
		t.Errorf("the call is %+v %v", c, err)
	}
	next := s.holdCall(t, "ann", "second")
	s.wantStatus(t, http.StatusOK, s.newToken(t, "phone", auth.ScopeApprove), "POST", "/api/calls/"+next.ID+"/answer", `{"approve":false}`)
	if c, err := s.calls.Get("ann", next.ID); err != nil || c.Status != holds.Denied || c.Answer.Via != "token" {
		t.Errorf("the call is %+v %v", c, err)
	}
}

// newToken creates a token of ann with a scope.
func (s *rig) newToken(t *testing.T, name string, scope auth.Scope) credential {
	t.Helper()
	secret, err := s.tokens.Create(auth.NamedToken{Name: name, User: "ann", Scopes: []auth.Scope{scope}})
	if err != nil {
		t.Fatal(err)
	}
	return withBearer(secret)
}
