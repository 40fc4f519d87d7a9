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

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	// TransportStdio is a process of ours.
	TransportStdio Transport = "stdio"
	// TransportHTTP is streamable HTTP.
	TransportHTTP Transport = "http"
	// TransportSSE is the HTTP transport of 2024-11-05.
	TransportSSE Transport = "sse"
)

// Spec says what a server is and how it is reached. Texts may hold references to
// secrets, "${env:NAME}" and "${keychain:NAME}", which are looked up when the
// server is reached and stand in no log, cache or export.
type Spec struct {
	// Name is the name that people and tools know the server by.
	Name string `json:"-"`

	// Command, Args, Dir and Env start a server on stdio. The process gets the
	// variables of Env, and of ours only those that no program can do without.
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Dir     string            `json:"dir,omitempty"`
	Env     map[string]string `json:"env,omitempty"`

	// URL is where a server over HTTP is; Transport is TransportHTTP if empty.
	URL       string            `json:"url,omitempty"`
	Transport Transport         `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	// Bearer is a token for the server; OAuth gets one.
	Bearer string `json:"bearer,omitempty"`
	OAuth  *OAuth `json:"oauth,omitempty"`

	// Protocol pins the version that is spoken, such as "2025-11-25"; empty
	// means the newest that the server knows.
	Protocol string `json:"protocol,omitempty"`
	// Timeout is how long a call may take without a sign of progress, a minute
	// if zero. MaxTime bounds it whatever it signals, an hour if zero.
	Timeout time.Duration `json:"timeout,omitempty"`
	MaxTime time.Duration `json:"maxTime,omitempty"`
}

// OAuth gets tokens by client credentials (RFC 6749, 4.4).
type OAuth struct {
	// TokenURL is where tokens are got. Where it is empty, Issuer says who hands
	// them out (RFC 8414), and where that is empty too, the server does (RFC 9728),
	// as long as it names its own host.
	TokenURL     string   `json:"tokenUrl,omitempty"`
	Issuer       string   `json:"issuer,omitempty"`
	ClientID     string   `json:"clientId"`
	ClientSecret string   `json:"clientSecret"`
	Scopes       []string `json:"scopes,omitempty"`
	// Resource goes along where it is set, or TokenURL is not (RFC 8707).
	Resource string `json:"resource,omitempty"`
}

// MaxNameLength bounds the name of a server, so that its tools have room.
const MaxNameLength = 40

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]|_[a-zA-Z0-9.-])*$`) })

// CheckName refuses a name from which a tool's name could be made in two ways.
func CheckName(name string) error {
	if len(name) > MaxNameLength || !nameForm().MatchString(name) {
		return guideway.Errorf(guideway.CodeInvalid, "%q is not a name for an upstream", name).
			WithFix("use up to %d letters, digits, dots, dashes and single underscores, such as \"github\"", MaxNameLength)
	}
	return nil
}

// Kind gives the transport.
func (s *Spec) Kind() Transport {
	switch {
	case s.Command != "":
		return TransportStdio
	case s.Transport == "":
		return TransportHTTP
	}
	return s.Transport
}

// Check refuses a server that cannot be reached as it is described.
func (s *Spec) Check() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	if err := s.checkWay(); err != nil {
		return err
	}
	if s.Timeout < 0 || s.MaxTime < 0 {
		return invalid(`such as "90s"`, "a time limit is negative")
	}
	for key := range s.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return invalid("use a name such as API_KEY", "%q is not a name for a variable", key)
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
		return invalid(`give "clientId" and "clientSecret"`, "OAuth is not complete")
	case s.OAuth.TokenURL != "" && s.OAuth.Issuer != "":
		return invalid("remove one of the two", "OAuth has the address of tokens and an issuer")
	}
	if err := checkURL(s.OAuth.Issuer); err != nil {
		return err
	}
	return checkURL(s.OAuth.TokenURL)
}

func invalid(fix, format string, args ...any) error {
	return guideway.Errorf(guideway.CodeInvalid, format, args...).WithFix("%s", fix)
}

// checkWay refuses what does not go with a command or with a URL.
func (s *Spec) checkWay() error {
	switch {
	case s.Command == "" && s.URL == "":
		return invalid(`give "command" or "url"`, "it has neither a command nor a URL")
	case s.Command != "" && s.URL != "":
		return invalid("remove one of the two", "it has a command and a URL")
	case s.Bearer != "" && s.OAuth != nil:
		return invalid("remove one of the two", "it has a bearer token and OAuth")
	case s.Command != "":
		if s.Transport != "" && s.Transport != TransportStdio {
			return invalid(`remove "transport"`, "a command is reached by stdio, not by %s", s.Transport)
		}
		if len(s.Headers) > 0 || s.Bearer != "" || s.OAuth != nil {
			return invalid(`hand secrets to a command by "env"`, "headers and tokens are for servers over HTTP")
		}
	default:
		if s.Transport != "" && s.Transport != TransportHTTP && s.Transport != TransportSSE {
			return invalid(`use "http" or "sse"`, "%q is not a transport for a URL", s.Transport)
		}
		if len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != "" {
			return invalid("remove them", "args, env and dir are for servers that are started")
		}
	}
	return nil
}

// checkURL takes http and https alone, without a password in it: URLs end up in
// logs.
func checkURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return guideway.Errorf(guideway.CodeInvalid, "the URL is not one of http or https").
			WithFix("such as https://example.com/mcp")
	}
	if u.User != nil {
		return guideway.Errorf(guideway.CodeInvalid, "the URL holds a password").
			WithFix(`use "headers" or "bearer" with a reference such as "${env:TOKEN}"`)
	}
	return nil
}

// Hash changes with everything that says which server this is. What it was told
// by another server is not used for it.
func (s *Spec) Hash() string {
	text, _ := json.Marshal(s) // texts, lists and maps always marshal
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
