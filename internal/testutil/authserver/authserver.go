// Package authserver is an OAuth authorization server for tests, together with a server that
// accepts its tokens. It is honest and strict; tests change its answers to make it hostile.
package authserver

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Server is an authorization server whose person always agrees, and the protected server at
// /mcp. Set the fields before it is used, or within Do.
type Server struct {
	URL string
	// Protected gets the requests to /mcp with a valid token.
	Protected http.Handler
	// Resource and Metadata replace members of the two metadata documents; nil removes one.
	Resource, Metadata map[string]any
	// Answer, if set, can answer a request instead of the server.
	Answer func(w http.ResponseWriter, r *http.Request) bool
	// Redirect, if set, changes the parameters of the redirect of a login.
	Redirect func(url.Values)
	// Token, if set, changes a token response.
	Token map[string]any
	// IDToken, if set, returns the ID token for the parameters of a login.
	IDToken func(login url.Values) string
	// Expires is the lifetime of a token in seconds, 3600 if zero.
	Expires int
	// ClientID and Secret are the credentials of a registered client.
	ClientID, Secret string

	mu      sync.Mutex
	http    *httptest.Server
	clients map[string][]string
	codes   map[string]url.Values
	// access maps valid tokens to their resource, and refresh valid refresh tokens to their
	// client.
	access, refresh map[string]string
	// used are the refresh tokens that were replaced. Their reuse revokes all tokens, and reused
	// counts it.
	used   map[string]bool
	reused int
	next   int
	// asked counts the requests by path, and by grant type for /token.
	asked map[string]int
	forms []url.Values
}

// New starts a server. Close must be called.
func New(protected http.Handler) *Server {
	s := &Server{
		Protected: protected, clients: map[string][]string{}, codes: map[string]url.Values{},
		access: map[string]string{}, refresh: map[string]string{}, used: map[string]bool{}, asked: map[string]int{},
	}
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL
	return s
}

// Close stops the server.
func (s *Server) Close() { s.http.Close() }

// Do calls f while no request is served.
func (s *Server) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Asked returns the number of requests to a path, or with a grant type.
func (s *Server) Asked(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

// Reused returns how often a replaced refresh token was used.
func (s *Server) Reused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reused
}

// Forms returns the parameters of all requests to /authorize and /token.
func (s *Server) Forms() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms)
}

// Revoke makes all access tokens invalid, and with all set also the refresh tokens.
func (s *Server) Revoke(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
	if all {
		clear(s.refresh)
	}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	s.mu.Lock()
	s.asked[r.URL.Path]++
	answer := s.Answer
	s.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	if r.URL.Path == "/mcp" {
		s.serveProtected(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource/mcp":
		s.write(w, http.StatusOK, map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}, "scopes_supported": []string{"read"}}, s.Resource)
	case "/.well-known/oauth-authorization-server":
		s.write(w, http.StatusOK, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
			"registration_endpoint": s.URL + "/register", "revocation_endpoint": s.URL + "/revoke",
			"code_challenge_methods_supported": []string{"S256"}, "grant_types_supported": []string{"authorization_code", "refresh_token"},
			"authorization_response_iss_parameter_supported": true, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"},
			"scopes_supported": []string{"read", "offline_access"},
		}, s.Metadata)
	case "/register":
		s.serveRegister(w, r)
	case "/authorize":
		s.serveAuthorize(w, r)
	case "/token":
		s.serveToken(w, r)
	case "/revoke":
		delete(s.refresh, r.Form.Get("token"))
		clear(s.access)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// write writes an object with some members replaced.
func (s *Server) write(w http.ResponseWriter, status int, object, replaced map[string]any) {
	maps.Copy(object, replaced)
	maps.DeleteFunc(object, func(_ string, v any) bool { return v == nil })
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object)
}

func (s *Server) refuse(w http.ResponseWriter, code, why string) {
	s.write(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": why}, nil)
}

func (s *Server) serveProtected(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	resource := s.access[token]
	s.mu.Unlock()
	if token == "" || resource != s.URL+"/mcp" {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, s.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.Protected.ServeHTTP(w, r)
}

func (s *Server) serveRegister(w http.ResponseWriter, r *http.Request) {
	var about struct {
		Redirects []string `json:"redirect_uris"`
	}
	if json.NewDecoder(r.Body).Decode(&about) != nil || len(about.Redirects) != 1 {
		s.refuse(w, "invalid_redirect_uri", "one redirect is required")
		return
	}
	id := s.mint("client")
	s.clients[id] = about.Redirects
	s.write(w, http.StatusCreated, map[string]any{"client_id": id, "redirect_uris": about.Redirects, "token_endpoint_auth_method": "none"}, nil)
}

// AddClient registers a client, which may use any redirect.
func (s *Server) AddClient(id, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ClientID, s.Secret = id, secret
}

func (s *Server) mint(what string) string {
	s.next++
	return fmt.Sprint(what, "-", s.next)
}

func (s *Server) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.forms = append(s.forms, q)
	id, redirect := q.Get("client_id"), q.Get("redirect_uri")
	if id != s.ClientID && !slices.Contains(s.clients[id], redirect) {
		http.Error(w, "unknown client or redirect", http.StatusBadRequest)
		return
	}
	if q.Get("code_challenge") == "" || q.Get("code_challenge_method") != "S256" || q.Get("response_type") != "code" {
		http.Error(w, "PKCE is required", http.StatusBadRequest)
		return
	}
	code := s.mint("code")
	s.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.URL}}
	if s.Redirect != nil {
		s.Redirect(back)
	}
	http.Redirect(w, r, redirect+"?"+back.Encode(), http.StatusFound) //nolint:gosec // G710: the redirect was registered
}

// checkClient reports whether a token request comes from a client, with its secret if it has
// one.
func (s *Server) checkClient(r *http.Request) (id string, ok bool) {
	id, secret := r.Form.Get("client_id"), r.Form.Get("client_secret")
	if name, password, basic := r.BasicAuth(); basic {
		id, secret = name, password
	}
	if id == s.ClientID {
		return id, secret == s.Secret
	}
	return id, s.clients[id] != nil && secret == ""
}

func (s *Server) serveToken(w http.ResponseWriter, r *http.Request) {
	grant := r.Form.Get("grant_type")
	s.asked[grant]++
	s.forms = append(s.forms, r.Form)
	id, ok := s.checkClient(r)
	if !ok {
		s.refuse(w, "invalid_client", "unknown client")
		return
	}
	resource, identity := r.Form.Get("resource"), ""
	switch grant {
	case "authorization_code":
		code := s.codes[r.Form.Get("code")]
		delete(s.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if code.Get("client_id") != id || code.Get("redirect_uri") != r.Form.Get("redirect_uri") || code.Get("resource") != resource ||
			code.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			s.refuse(w, "invalid_grant", "the code belongs to another login")
			return
		}
		if s.IDToken != nil {
			identity = s.IDToken(code)
		}
	case "refresh_token":
		given := r.Form.Get("refresh_token")
		if s.used[given] {
			s.reused++
			clear(s.access)
			clear(s.refresh)
		}
		if s.refresh[given] != id {
			s.refuse(w, "invalid_grant", "the refresh token was already used")
			return
		}
		delete(s.refresh, given)
		s.used[given] = true
	default:
		s.refuse(w, "unsupported_grant_type", grant)
		return
	}
	access, refresh := s.mint("access"), s.mint("refresh")
	s.access[access], s.refresh[refresh] = resource, id
	expires := s.Expires
	if expires == 0 {
		expires = 3600
	}
	answer := map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": expires}
	if identity != "" {
		answer["id_token"] = identity
	}
	s.write(w, http.StatusOK, answer, s.Token)
}
