package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
)

// Transport is the transport of a server.
type Transport string

// The transports.
const (
	// TransportStdio starts a process.
	TransportStdio Transport = "stdio"
	// TransportHTTP is streamable HTTP.
	TransportHTTP Transport = "http"
	// TransportSSE is the HTTP transport of 2024-11-05.
	TransportSSE Transport = "sse"
)

// Spec is the configuration of a server. Texts may contain references to secrets,
// "${env:NAME}" and "${keychain:NAME}". They are resolved when the server is started, and
// never written to a log, cache or export.
type Spec struct {
	// Name is the server's name for people and tools.
	Name string `json:"-"`

	// Command, Args, Dir and Env start a server on stdio. The process gets the variables of
	// Env, and inherits only those that programs cannot work without.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Dir     string            `json:"dir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`

	// URL is the endpoint of a server over HTTP; Transport is TransportHTTP if empty.
	URL       string            `json:"url,omitempty"`
	Transport Transport         `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	// Bearer is a token for the server; OAuth requests one.
	Bearer string `json:"bearer,omitempty"`
	OAuth  *OAuth `json:"oauth,omitempty"`

	// Protocol pins the protocol version, such as "2025-11-25"; if empty, it is negotiated.
	Protocol string `json:"protocol,omitempty"`
	// Timeout is the maximum time of a call without progress, a minute if zero. MaxTime
	// limits it regardless of progress, an hour if zero.
	Timeout time.Duration `json:"timeout,omitempty"`
	MaxTime time.Duration `json:"maxTime,omitempty"`
}

// OAuth gets tokens by client credentials (RFC 6749, 4.4).
type OAuth struct {
	// TokenURL is the token endpoint. If empty, it is read from the metadata of Issuer (RFC
	// 8414). If that is empty too, the server's metadata names the issuer (RFC 9728), which
	// must be on the server's own host.
	TokenURL     string   `json:"tokenUrl,omitempty"`
	Issuer       string   `json:"issuer,omitempty"`
	ClientID     string   `json:"clientId"`
	ClientSecret string   `json:"clientSecret"`
	Scopes       []string `json:"scopes,omitempty"`
	// Resource is sent if it is set, or if TokenURL is not (RFC 8707).
	Resource string `json:"resource,omitempty"`
}

// MaxNameLength is the maximum length of a server's name, to leave room for the names of
// its tools.
const MaxNameLength = 40

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]|_[a-zA-Z0-9.-])*$`) })

// CheckName returns an error for a name that would make names of tools ambiguous.
func CheckName(name string) error {
	if len(name) > MaxNameLength || !nameForm().MatchString(name) {
		return guideway.Errorf(guideway.CodeInvalid, "invalid upstream name %q", name).
			WithFix("use at most %d letters, digits, dots, dashes and single underscores, such as \"github\"", MaxNameLength)
	}
	return nil
}

// Kind returns the transport.
func (s *Spec) Kind() Transport {
	switch {
	case s.Command != "":
		return TransportStdio
	case s.Transport == "":
		return TransportHTTP
	}
	return s.Transport
}

// Check returns an error for an invalid spec.
func (s *Spec) Check() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	if err := s.checkTransport(); err != nil {
		return err
	}
	if s.Timeout < 0 || s.MaxTime < 0 {
		return invalidSpec(`such as "90s"`, "a time limit is negative")
	}
	for key := range s.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return invalidSpec("use a name such as API_KEY", "invalid variable name %q", key)
		}
	}
	if err := CheckProtocol(s.Protocol); err != nil {
		return err
	}
	if err := checkURL(s.URL); err != nil {
		return err
	}
	if s.OAuth == nil {
		return nil
	}
	switch {
	case s.OAuth.ClientID == "" || s.OAuth.ClientSecret == "":
		return invalidSpec(`give "clientId" and "clientSecret"`, "OAuth is incomplete")
	case s.OAuth.TokenURL != "" && s.OAuth.Issuer != "":
		return invalidSpec("remove one of the two", "OAuth has both a token URL and an issuer")
	}
	if err := checkURL(s.OAuth.Issuer); err != nil {
		return err
	}
	return checkURL(s.OAuth.TokenURL)
}

func invalidSpec(fix, format string, args ...any) error {
	return guideway.Errorf(guideway.CodeInvalid, format, args...).WithFix("%s", fix)
}

// checkTransport returns an error for settings that do not fit the transport.
func (s *Spec) checkTransport() error {
	switch {
	case s.Command == "" && s.URL == "":
		return invalidSpec(`give "command" or "url"`, "it has neither a command nor a URL")
	case s.Command != "" && s.URL != "":
		return invalidSpec("remove one of the two", "it has both a command and a URL")
	case s.Bearer != "" && s.OAuth != nil:
		return invalidSpec("remove one of the two", "it has both a bearer token and OAuth")
	case s.Command != "":
		if s.Transport != "" && s.Transport != TransportStdio {
			return invalidSpec(`remove "transport"`, "a command uses stdio, not %s", s.Transport)
		}
		if len(s.Headers) > 0 || s.Bearer != "" || s.OAuth != nil {
			return invalidSpec(`pass secrets to a command in "env"`, "headers and tokens require a URL")
		}
	default:
		if s.Transport != "" && s.Transport != TransportHTTP && s.Transport != TransportSSE {
			return invalidSpec(`use "http" or "sse"`, "unknown transport %q for a URL", s.Transport)
		}
		if len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != "" {
			return invalidSpec("remove them", "args, env and dir require a command")
		}
	}
	return nil
}

// checkURL accepts http and https only, without a password: URLs end up in logs.
func checkURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return guideway.Errorf(guideway.CodeInvalid, "the URL is not an http or https URL").
			WithFix("such as https://example.com/mcp")
	}
	if u.User != nil {
		return guideway.Errorf(guideway.CodeInvalid, "the URL holds a password").
			WithFix(`use "headers" or "bearer" with a reference such as "${env:TOKEN}"`)
	}
	return nil
}

// Hash changes with every setting that identifies the server. Data of another server is not
// reused for it.
func (s *Spec) Hash() string {
	text, _ := json.Marshal(s) // strings, lists and maps always marshal
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
