package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
	"golang.org/x/oauth2"
)

// endpoint is a token endpoint and the requested scopes and resource.
type endpoint struct {
	url      string
	resource string
	scopes   []string
	style    oauth2.AuthStyle
}

// discoverEndpoint finds the token endpoint of the configured issuer, or else of the issuer
// that the server names (RFC 9728). That issuer and its endpoint must be on the server's own
// host: the endpoint gets the secret, so another host is used only if a person configures it.
func (a *authorizer) discoverEndpoint(ctx context.Context, challenge map[string]string) (*endpoint, error) {
	found := &endpoint{resource: a.spec.OAuth.Resource}
	issuer := a.spec.OAuth.Issuer
	if issuer == "" {
		said, err := a.fetchResource(ctx, challenge["resource_metadata"])
		if err != nil {
			return nil, err
		}
		issuer, found.scopes = said.Issuers[0], said.Scopes
		if found.resource == "" {
			found.resource = said.Resource
		}
	}
	if found.resource == "" {
		found.resource = withoutQuery(a.spec.URL)
	}
	if scope := challenge["scope"]; scope != "" {
		found.scopes = strings.Fields(scope)
	}
	said, err := a.fetchIssuer(ctx, issuer)
	if err != nil {
		return nil, err
	}
	if a.spec.OAuth.Issuer == "" && originOf(said.TokenEndpoint) != originOf(a.spec.URL) {
		return nil, notDiscovered(giveTokenURL, "the server names a token endpoint on another host, %s, which would receive the secret", plainChallenge(said.TokenEndpoint))
	}
	found.url = said.TokenEndpoint
	switch methods := said.Methods; {
	case slices.Contains(methods, "client_secret_basic"):
		found.style = oauth2.AuthStyleInHeader
	case slices.Contains(methods, "client_secret_post"):
		found.style = oauth2.AuthStyleInParams
	}
	return found, nil
}

func notDiscovered(fix, format string, args ...any) error {
	return guideway.Errorf(guideway.CodeUnauthorized, "find the token endpoint: "+format, args...).WithFix("%s", fix)
}

const giveTokenURL = `set "tokenUrl" in the upstream's oauth (--oauth-token-url)` //nolint:gosec // G101: it is a fix, without a credential

// resourceMetadata is the protected resource metadata of a server (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// fetchResource fetches the protected resource metadata. said is the URL from the server's
// challenge. The URL must be on the server's own host, so that a server cannot cause
// requests to other hosts.
func (a *authorizer) fetchResource(ctx context.Context, said string) (*resourceMetadata, error) {
	var places []string
	if said != "" {
		if originOf(said) != originOf(a.spec.URL) {
			return nil, notDiscovered(giveTokenURL, "the server names metadata on another host")
		}
		places = []string{said}
	} else {
		places = wellKnown(a.spec.URL, "oauth-protected-resource")
	}
	for _, place := range places {
		var m resourceMetadata
		ok, err := a.fetchJSON(ctx, place, &m)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			continue
		case !isWithin(a.spec.URL, m.Resource):
			return nil, notDiscovered(giveTokenURL, "the server's metadata describes another resource, %q", plainChallenge(m.Resource))
		case len(m.Issuers) == 0:
			return nil, notDiscovered(giveTokenURL, "the server's metadata names no authorization server")
		case originOf(m.Issuers[0]) != originOf(a.spec.URL):
			issuer := plainChallenge(m.Issuers[0])
			return nil, notDiscovered(`if you trust that host, set "issuer" in the upstream's oauth (--oauth-issuer '`+issuer+`')`,
				"the server names an authorization server on another host, %s, which would receive the secret", issuer)
		}
		return &m, nil
	}
	return nil, notDiscovered(giveTokenURL, "no metadata was found on the server")
}

// issuerMetadata is the authorization server metadata (RFC 8414).
type issuerMetadata struct {
	Issuer        string   `json:"issuer"`
	TokenEndpoint string   `json:"token_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Grants        []string `json:"grant_types_supported"`
}

// fetchIssuer fetches the metadata of an authorization server.
func (a *authorizer) fetchIssuer(ctx context.Context, issuer string) (*issuerMetadata, error) {
	places := []string{wellKnown(issuer, "oauth-authorization-server")[0], wellKnown(issuer, "openid-configuration")[0]}
	if u, err := url.Parse(issuer); err == nil && strings.Trim(u.Path, "/") != "" {
		places = append(places, strings.TrimRight(withoutQuery(issuer), "/")+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		var m issuerMetadata
		ok, err := a.fetchJSON(ctx, place, &m)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			continue
		case strings.TrimRight(m.Issuer, "/") != strings.TrimRight(issuer, "/"):
			return nil, notDiscovered(giveTokenURL, "the metadata of %s describes another issuer, %q", issuer, plainChallenge(m.Issuer))
		case len(m.Grants) > 0 && !slices.Contains(m.Grants, "client_credentials"):
			return nil, notDiscovered("ask the operator of the server for a bearer token", "%s does not support client credentials", issuer)
		}
		// A secret is sent over plain HTTP only if a person has configured such a URL.
		u, err := url.Parse(m.TokenEndpoint)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && originOf(m.TokenEndpoint) != originOf(issuer) {
			return nil, notDiscovered(giveTokenURL, "the token endpoint of %s, %q, is not an https URL without a user name", issuer, plainChallenge(m.TokenEndpoint))
		}
		return &m, nil
	}
	return nil, notDiscovered(giveTokenURL, "no metadata was found on %s", issuer)
}

// maxMetadata is the maximum size of a metadata document.
const maxMetadata = 256 << 10

// fetchJSON fetches a document; ok reports whether the document exists.
func (a *authorizer) fetchJSON(ctx context.Context, place string, into any) (ok bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return false, notDiscovered(giveTokenURL, "%q is not a valid URL", plainChallenge(place))
	}
	req.Header.Set("Accept", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		if errors.Is(err, ssrf.ErrPrivate) {
			return false, notDiscovered(giveTokenURL, "%s: %w", hostOf(place), rootCause(err))
		}
		return false, guideway.Errorf(guideway.CodeUnavailable, "find the token endpoint: %w", rootCause(err)).WithFix(giveTokenURL)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	if err != nil {
		return false, notDiscovered(giveTokenURL, "read the metadata at %s: %w", plainChallenge(place), rootCause(err))
	}
	if json.Unmarshal(text, into) != nil {
		return false, notDiscovered(giveTokenURL, "the document at %s is not valid metadata", plainChallenge(place))
	}
	return true, nil
}

// wellKnown returns the well-known URLs of a kind of metadata: for the path of the address,
// and for its host.
func wellKnown(address, kind string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return []string{""}
	}
	root := u.Scheme + "://" + u.Host + "/.well-known/" + kind
	if path := strings.Trim(u.EscapedPath(), "/"); path != "" {
		return []string{root + "/" + path, root}
	}
	return []string{root}
}

// isWithin reports whether a URL is equal to the URL of a resource or below it.
func isWithin(address, resource string) bool {
	a, err := url.Parse(address)
	if err != nil {
		return false
	}
	r, err := url.Parse(resource)
	if err != nil || originOf(address) != originOf(resource) || r.RawQuery != "" || r.Fragment != "" {
		return false
	}
	path, above := strings.TrimRight(a.Path, "/"), strings.TrimRight(r.Path, "/")
	return path == above || strings.HasPrefix(path, above+"/")
}

func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// originOf returns the scheme and host of a URL; "" for an invalid one.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// guardedTransport connects to configured hosts without restrictions, and to other hosts
// only if they are public: metadata of a server must not lead into the private network.
type guardedTransport struct {
	base  http.RoundTripper
	named []string
	once  sync.Once
	other http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if slices.Contains(c.named, strings.ToLower(req.URL.Host)) {
		return c.base.RoundTrip(req)
	}
	c.once.Do(func() {
		c.other = c.base
		if t, ok := c.base.(*http.Transport); ok {
			t = t.Clone()
			t.DialContext = (&net.Dialer{Control: ssrf.Control(false)}).DialContext
			// A proxy would resolve the name and connect instead of this transport.
			t.Proxy, t.DisableKeepAlives = nil, true
			c.other = t
		}
	})
	resp, err := c.other.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", req.URL.Host, err)
	}
	return resp, nil
}
