package httpapi_test

import (
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestCredentialsAtEveryEndpoint tries each credential at /mcp, at the API and at gates. A
// credential that works on /mcp cannot answer a human approval, and a credential that can
// answer one does not work on /mcp.
func TestCredentialsAtEveryEndpoint(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	cookie, page := s.loginBrowser(t, "ann")
	approve, err := s.tokens.Create(auth.NamedToken{Name: "phone", User: "ann", Scopes: []auth.Scope{auth.ScopeApprove}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := s.tokens.Create(auth.NamedToken{Name: "monitor", User: "ann", Scopes: []auth.Scope{auth.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := s.tokens.Create(auth.NamedToken{Name: "lost", User: "ann", Scopes: []auth.Scope{auth.ScopeApprove}})
	if err == nil {
		err = s.tokens.Revoke("ann", "lost")
	}
	if err != nil {
		t.Fatal(err)
	}
	with := func(c credential, header ...string) credential {
		return func(r *http.Request) {
			c(r)
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
		}
	}
	otherPort := []string{"Origin", allowedOrigin, "Sec-Fetch-Site", "same-site"}
	tests := []struct {
		name string
		who  credential
		// The expected statuses of POST /mcp, GET /api/runs, POST /api/runs, an answer to a
		// human approval and an answer to any other gate.
		mcp, look, work, person, gate int
		via                           run.Via
	}{
		{"nothing", withoutCredential, 401, 401, 401, 401, 401, ""},
		{"the token of /mcp", asAgent, 200, 200, 201, 403, 200, ""},
		{"the token of /mcp from an allowed origin", with(asAgent, otherPort...), 200, 200, 201, 403, 200, ""},
		{"the token of /mcp with headers of a browser", with(asAgent, "Sec-Fetch-Site", "same-origin", "Origin", s.url), 200, 200, 201, 403, 200, ""},
		{"a wrong token", withBearer(strings.Repeat("x", 48)), 401, 401, 401, 401, 401, ""},
		{"a browser", page, 401, 200, 201, 200, 200, run.ViaBrowser},
		{"a browser without the page's key", cookie, 401, 401, 401, 401, 401, ""},
		{"a browser with a wrong key", withKey(cookie, strings.Repeat("k", 43)), 401, 401, 401, 401, 401, ""},
		{"a browser and the token of /mcp", func(r *http.Request) { page(r); asAgent(r) }, 200, 200, 201, 403, 200, ""},
		{"a browser and a wrong token", with(page, "Authorization", "Bearer "+strings.Repeat("x", 48)), 401, 401, 401, 401, 401, ""},
		{"a browser's cookie from an allowed origin", with(page, otherPort...), 401, 403, 403, 403, 403, ""},
		{"a browser's cookie from an allowed origin, old browser", with(page, "Origin", allowedOrigin, "Sec-Fetch-Site", ""), 401, 403, 403, 403, 403, ""},
		{"a browser's cookie from another origin", with(page, "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"), 403, 403, 403, 403, 403, ""},
		{"a token of scope approve", withBearer(approve), 401, 200, 403, 200, 200, run.ViaToken},
		{"a token of scope read", withBearer(read), 401, 200, 403, 403, 403, ""},
		{"a revoked token", withBearer(revoked), 401, 401, 401, 401, 401, ""},
		{"a token of scope approve and a browser", func(r *http.Request) { page(r); withBearer(read)(r) }, 401, 200, 403, 403, 403, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.sendRequest(t, tt.who, "POST", "/mcp", `{}`); got.StatusCode != tt.mcp {
				t.Errorf("POST /mcp: %d %s, want %d", got.StatusCode, got.body, tt.mcp)
			}
			if got := s.sendRequest(t, tt.who, "GET", "/api/runs", ""); got.StatusCode != tt.look {
				t.Errorf("GET /api/runs: %d %s, want %d", got.StatusCode, got.body, tt.look)
			}
			if got := s.sendRequest(t, tt.who, "POST", "/api/runs", `{"workflowId":"plain"}`); got.StatusCode != tt.work {
				t.Errorf("POST /api/runs: %d %s, want %d", got.StatusCode, got.body, tt.work)
			}
			s.tryGate(t, tt.who, "person", tt.person, tt.via)
			s.tryGate(t, tt.who, "plain", tt.gate, tt.via)
		})
	}
}

// tryGate sends an answer to a gate and checks the status. If the answer is accepted, it
// must be recorded with via. Otherwise the gate must still wait.
func (s *rig) tryGate(t *testing.T, who credential, workflow string, status int, via run.Via) {
	t.Helper()
	a := s.startAtGate(t, callerAnn(), workflow, "")
	got := s.sendRequest(t, who, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"confirm"}`)
	if got.StatusCode != status {
		t.Errorf("the gate of %s returns %d %s, want %d", workflow, got.StatusCode, got.body, status)
	}
	details, err := s.runs.GetWithEvents(t.Context(), callerAnn(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	opened := details.Position.Kind != engine.PositionGate
	if opened != (status == http.StatusOK) {
		t.Errorf("status %d, but the run is at %+v", got.StatusCode, details.Position)
	}
	if want := via; opened {
		if want == "" {
			want = run.ViaAgent
		}
		for _, e := range details.Events {
			if e.Kind == string(engine.EventGateAnswered) && e.By.Via != want {
				t.Errorf("the answer is recorded as %+v, want via %s", e.By, want)
			}
		}
	}
	var p struct{ Rule, Code string }
	if got.decodeInto(t, &p); status == http.StatusForbidden && strings.Contains(string(got.body), "rule") && p.Rule != engine.RulePerson {
		t.Errorf("the refusal is %+v", p)
	}
}

// The refusal of a human approval names its rule and explains how a person answers: at the
// terminal and, if there is one, in the dashboard.
func TestHumanApprovalRefusalNamesRule(t *testing.T) {
	t.Parallel()
	for name, ui := range map[string]fs.FS{"without a dashboard": nil, "with a dashboard": newAppFiles()} {
		s := newRig(t, func(o *httpapi.Options) { o.UI = ui })
		a := s.startAtGate(t, callerAnn(), "person", "")
		p := s.wantCode(t, 403, guideway.CodeRefused, asAgent, "POST", "/api/runs/"+a.RunID+"/answer", `{"optionId":"confirm"}`)
		if p.Rule != engine.RulePerson || !strings.Contains(p.Fix, "guideway runs approve "+a.RunID) {
			t.Errorf("%s the refusal is %+v", name, p)
		}
		if strings.Contains(p.Fix, s.url+"/runs/"+a.RunID) != (ui != nil) {
			t.Errorf("%s the fix is %q", name, p.Fix)
		}
	}
}

func TestMe(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	_, page := s.loginBrowser(t, "ann")
	for _, tt := range []struct {
		who    credential
		proof  string
		person bool
	}{{asAgent, "bearer", false}, {page, "browser", true}} {
		var me struct {
			User, Proof string
			Person      bool
		}
		s.wantStatus(t, 200, tt.who, "GET", "/api/me", "").decodeInto(t, &me)
		if me.User != "ann" || me.Proof != tt.proof || me.Person != tt.person {
			t.Errorf("%+v, want %s, %v", me, tt.proof, tt.person)
		}
	}
}

// A page from an origin that --allow-origin allows can read answers with a token of its
// own. CORS never allows the page to send the cookie or the key of a login.
func TestCORS(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	got := s.wantStatus(t, 200, asAgent, "GET", "/api/runs", "", "Origin", allowedOrigin)
	if o := got.Header.Get("Access-Control-Allow-Origin"); o != allowedOrigin {
		t.Errorf("Access-Control-Allow-Origin %q", o)
	}
	preflight := s.wantStatus(t, 204, withoutCredential, "OPTIONS", "/api/runs", "", "Origin", allowedOrigin,
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,"+strings.ToLower(auth.KeyHeader))
	for _, r := range []reply{got, preflight} {
		if c := r.Header.Get("Access-Control-Allow-Credentials"); c != "" {
			t.Errorf("Access-Control-Allow-Credentials %q", c)
		}
	}
	if h := preflight.Header.Get("Access-Control-Allow-Headers"); strings.Contains(strings.ToLower(h), "guideway-key") {
		t.Errorf("a foreign page may send the key: %q", h)
	}
	same := s.wantStatus(t, 200, asAgent, "GET", "/api/runs", "")
	if o := same.Header.Get("Access-Control-Allow-Origin"); o != "" {
		t.Errorf("without an origin the headers are %q", o)
	}
}
