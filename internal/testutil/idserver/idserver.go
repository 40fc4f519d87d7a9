// Package idserver is an OpenID provider for tests. It is honest; tests change its tokens to
// make it hostile.
package idserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/guideway-dev/guideway/internal/testutil/authserver"
)

// ClientID is the registered client.
const ClientID = "guideway"

// Server is a provider whose person always agrees.
type Server struct {
	*authserver.Server

	mu sync.Mutex
	// claims are added to ID tokens; nil removes a claim. sign replaces the signature.
	claims map[string]any
	sign   func(claims map[string]any) string
	keys   []jose.JSONWebKey
	signer *ecdsa.PrivateKey
}

// New starts a provider until the test ends.
func New(t *testing.T) *Server {
	t.Helper()
	s := &Server{Server: authserver.New(http.NotFoundHandler())}
	t.Cleanup(s.Close)
	s.Rotate(t)
	s.AddClient(ClientID, "")
	s.Metadata = map[string]any{
		"jwks_uri": s.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256", "none", "HS256"},
		"subject_types_supported": []string{"public"}, "response_types_supported": []string{"code"},
	}
	s.Answer = s.answer
	s.IDToken = func(login url.Values) string {
		return s.Issue(map[string]any{"aud": ClientID, "nonce": login.Get("nonce")})
	}
	return s
}

// Rotate replaces the signing key.
func (s *Server) Rotate(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signer = key
	s.keys = []jose.JSONWebKey{{Key: key.Public(), KeyID: fmt.Sprintf("key-%p", key), Algorithm: "ES256", Use: "sig"}}
}

// SetClaims sets claims of the next tokens. A nil claim is removed.
func (s *Server) SetClaims(claims map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = claims
}

// SetSign replaces the signing of the next tokens.
func (s *Server) SetSign(sign func(claims map[string]any) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sign = sign
}

// Issue returns a signed token with claims.
func (s *Server) Issue(claims map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	all := map[string]any{"iss": s.URL, "sub": "bob", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.Copy(all, s.claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	if s.sign != nil {
		return s.sign(all)
	}
	return Sign(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.signer, KeyID: s.keys[0].KeyID}}, all)
}

// PublicKey returns the key that signs tokens, as a public JWK.
func (s *Server) PublicKey() jose.JSONWebKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[0]
}

// Sign returns a token that a key signs.
func Sign(key jose.SigningKey, claims map[string]any) string {
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		panic(err)
	}
	text, _ := json.Marshal(claims)
	signed, err := signer.Sign(text)
	if err != nil {
		panic(err)
	}
	token, _ := signed.CompactSerialize()
	return token
}

// Unsigned returns a token with the algorithm none.
func Unsigned(claims map[string]any) string {
	text, _ := json.Marshal(claims)
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(text) + "."
}

// answer serves the documents that an OAuth server does not have.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		r.URL.Path = "/.well-known/oauth-authorization-server"
		return false
	case "/keys":
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: s.keys})
		return true
	}
	return false
}
