package upstream

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// The transports.
const (
	// TransportStdio starts a process.
	TransportStdio = "stdio"
	// TransportHTTP is streamable HTTP.
	TransportHTTP = "http"
	// TransportSSE is the HTTP transport of 2024-11-05.
	TransportSSE = "sse"
)

// Spec is the configuration of a server.
type Spec config.UpstreamServer

// MaxNameLength is the maximum length of a server's name, to leave room for the names of
// its tools.
const MaxNameLength = 40

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]|_[a-zA-Z0-9.-])*$`) })

// CheckName returns an error unless a name has at most MaxNameLength letters, digits, dots,
// dashes and single underscores, and begins with a letter or a digit. A double underscore
// would make the names of tools ambiguous.
func CheckName(name string) error {
	if len(name) > MaxNameLength || !nameForm().MatchString(name) {
		return guideway.Errorf(guideway.CodeInvalid, "invalid upstream name %q", name).
			WithFix("use at most %d letters, digits, dots, dashes and single underscores, such as \"github\"; begin with a letter or a digit, and do not end with an underscore", MaxNameLength)
	}
	return nil
}

// Kind returns the transport.
func (s *Spec) Kind() string {
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
		return invalidSpec(`use a positive duration, such as "90s"`, `"timeout" is %s and "maxTime" is %s; neither may be negative`, time.Duration(s.Timeout), time.Duration(s.MaxTime))
	}
	for key := range s.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return invalidSpec("use a name such as API_KEY", "invalid name of an environment variable: %q", key)
		}
	}
	if err := CheckProtocol(s.Protocol); err != nil {
		return err
	}
	if err := checkURL("url", s.URL); err != nil {
		return err
	}
	if s.OAuth == nil {
		return nil
	}
	return s.checkOAuth()
}

// checkOAuth returns an error if settings of OAuth are missing or do not fit together.
func (s *Spec) checkOAuth() error {
	o := s.OAuth
	switch grant := s.grant(); {
	case grant != config.GrantCredentials && grant != config.GrantCode:
		return invalidSpec(fmt.Sprintf("use %q or %q", config.GrantCredentials, config.GrantCode), "unknown OAuth grant %q", grant)
	case o.ClientSecret != "" && o.ClientID == "":
		return invalidSpec(`set "clientId" and "clientSecret" in "oauth"`, "\"oauth\" has a client secret but no client id")
	case grant == config.GrantCredentials && o.ClientSecret == "":
		return invalidSpec(`set "clientId" and "clientSecret" in "oauth"`, "\"oauth\" has no client secret, which the grant %q needs", grant)
	case grant == config.GrantCode && o.TokenURL != "":
		return invalidSpec(`set "issuer" instead of "tokenUrl", or "clientId" and "clientSecret"`, "a token URL is not enough for a login")
	case o.TokenURL != "" && o.Issuer != "":
		return invalidSpec(`remove "tokenUrl" or "issuer"`, "\"oauth\" has both a token URL and an issuer")
	}
	if err := checkURL("oauth.issuer", o.Issuer); err != nil {
		return err
	}
	return checkURL("oauth.tokenUrl", o.TokenURL)
}

// grant returns the OAuth grant of the server.
func (s *Spec) grant() string {
	switch {
	case s.OAuth != nil && s.OAuth.Grant != "":
		return s.OAuth.Grant
	case s.OAuth != nil && s.OAuth.ClientSecret != "":
		return config.GrantCredentials
	}
	return config.GrantCode
}

// CanLogIn reports whether a person can log in to the server: it has a URL and no other
// credential.
func (s *Spec) CanLogIn() bool {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return s.URL != "" && s.Bearer == "" && s.grant() == config.GrantCode
}

func invalidSpec(fix, format string, args ...any) error {
	return guideway.Errorf(guideway.CodeInvalid, format, args...).WithFix("%s", fix)
}

// checkTransport returns an error if settings of the transport are missing or do not fit
// together.
func (s *Spec) checkTransport() error {
	switch {
	case s.Command == "" && s.URL == "":
		return invalidSpec(`set "command" or "url"`, "neither a command nor a URL is set")
	case s.Command != "" && s.URL != "":
		return invalidSpec(`remove "command" or "url"`, "both a command and a URL are set")
	case s.Bearer != "" && s.OAuth != nil:
		return invalidSpec(`remove "bearer" or "oauth"`, "both a bearer token and \"oauth\" are set")
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
			return invalidSpec(`remove "args", "env" and "dir"`, "args, env and dir require a command")
		}
	}
	return nil
}

// checkURL returns an error unless the text of a setting is empty, or an http or https URL
// without a user name and a password: URLs are logged.
func checkURL(setting, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return guideway.Errorf(guideway.CodeInvalid, "the value of %q is not an http or https URL", setting).
			WithFix("use a URL such as https://example.com/mcp")
	}
	if u.User != nil {
		return guideway.Errorf(guideway.CodeInvalid, "the URL in %q contains a user name or a password", setting).
			WithFix(`remove the user name and the password from the URL, and use "headers" or "bearer" with a reference such as "${env:TOKEN}"`)
	}
	return nil
}

// Hash returns a hash of all settings of the server. Data that was stored for a different
// hash is not reused.
func (s *Spec) Hash() string {
	text, _ := json.Marshal(s) // strings, lists and maps always marshal
	return digest.Hex(text)
}
