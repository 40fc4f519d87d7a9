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
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
	"golang.org/x/oauth2"
)

// discovery finds the authorization server of an upstream. Everything that it reads is
// untrusted.
type discovery struct {
	spec Spec
	// client connects to the authorization server.
	client *http.Client
}

// newDiscovery returns the discovery of a resolved spec.
func newDiscovery(spec Spec, base http.RoundTripper) discovery {
	named := []string{hostOf(spec.URL)}
	if spec.OAuth != nil {
		named = append(named, hostOf(spec.OAuth.Issuer), hostOf(spec.OAuth.TokenURL))
	}
	return discovery{spec: spec, client: &http.Client{
		Transport: &guardedTransport{base: base, named: named}, Timeout: tokenTime, CheckRedirect: sameHost,
	}}
}

// endpoint is the authorization server of an upstream, with the scopes and the resource to
// request.
type endpoint struct {
	issuerMetadata

	resource string
	scopes   []string
	style    oauth2.AuthStyle
}

// oauth returns the settings of OAuth, which may be empty.
func (d *discovery) oauth() config.UpstreamOAuth {
	if d.spec.OAuth == nil {
		return config.UpstreamOAuth{}
	}
	return *d.spec.OAuth
}

// sendsSecret reports whether the token endpoint gets a secret of the configuration.
func (d *discovery) sendsSecret() bool { return d.oauth().ClientSecret != "" }

// discoverEndpoint finds the configured issuer, or else the issuer that the server names
// (RFC 9728). If a secret is configured, that issuer and its token endpoint must be on the
// server's own host: another host gets the secret only if a person configures it.
func (d *discovery) discoverEndpoint(ctx context.Context, challenge map[string]string) (*endpoint, error) {
	found := &endpoint{resource: d.oauth().Resource}
	issuer := d.oauth().Issuer
	if issuer == "" {
		said, err := d.fetchResource(ctx, challenge["resource_metadata"])
		if err != nil {
			return nil, err
		}
		issuer, found.scopes = said.Issuers[0], said.Scopes
		if found.resource == "" {
			found.resource = said.Resource
		}
	}
	if found.resource == "" {
		found.resource = withoutQuery(d.spec.URL)
	}
	if scope := challenge["scope"]; scope != "" {
		found.scopes = strings.Fields(scope)
	}
	if configured := d.oauth().Scopes; len(configured) > 0 {
		found.scopes = configured
	}
	said, err := d.fetchIssuer(ctx, issuer)
	if err != nil {
		return nil, err
	}
	if d.sendsSecret() && d.oauth().Issuer == "" && originOf(said.TokenEndpoint) != originOf(d.spec.URL) {
		return nil, d.notFound(d.fix(), "the server names a token endpoint on another host, %s, which would receive the secret", plainChallenge(said.TokenEndpoint))
	}
	found.issuerMetadata = *said
	switch methods := said.Methods; {
	case slices.Contains(methods, "client_secret_basic"):
		found.style = oauth2.AuthStyleInHeader
	case slices.Contains(methods, "client_secret_post"):
		found.style = oauth2.AuthStyleInParams
	}
	return found, nil
}

func (d *discovery) notFound(fix, format string, args ...any) error {
	return guideway.Errorf(guideway.CodeUnauthorized, "find the token endpoint: "+format, args...).WithFix("%s", fix)
}

// fix returns the fix for a server whose authorization server cannot be used.
func (d *discovery) fix() string {
	if d.spec.grant() == config.GrantCode {
		return `set "issuer" in the upstream's oauth (--oauth-issuer), or use a bearer token (--bearer)`
	}
	return `set "tokenUrl" in the upstream's oauth (--oauth-token-url)`
}

// resourceMetadata is the protected resource metadata of a server (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// fetchResource fetches the protected resource metadata. said is the URL from the server's
// challenge. The URL must be on the server's own host, so that a server cannot cause
// requests to other hosts.
func (d *discovery) fetchResource(ctx context.Context, said string) (*resourceMetadata, error) {
	var places []string
	own := originOf(d.spec.URL)
	if said != "" {
		if originOf(said) != own {
			return nil, d.notFound(d.fix(), "the server names metadata on another host, %s", plainChallenge(said))
		}
		places = []string{said}
	} else {
		places = wellKnown(d.spec.URL, "oauth-protected-resource")
	}
	for _, place := range places {
		var m resourceMetadata
		ok, err := d.fetchJSON(ctx, place, &m)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			continue
		case !isWithin(d.spec.URL, m.Resource):
			return nil, d.notFound(d.fix(), "the server's metadata describes another resource, %q", plainChallenge(m.Resource))
		case len(m.Issuers) == 0:
			return nil, d.notFound(d.fix(), "the server's metadata names no authorization server")
		case d.sendsSecret() && originOf(m.Issuers[0]) != own:
			issuer := plainChallenge(m.Issuers[0])
			return nil, d.notFound(`if you trust that host, set "issuer" in the upstream's oauth (--oauth-issuer '`+shellSafe(m.Issuers[0], "URL")+`')`,
				"the server names an authorization server on another host, %s, which would receive the secret", issuer)
		}
		return &m, nil
	}
	if said == "" && d.spec.grant() == config.GrantCode { // servers of 2025-03-26 are their own authorization server
		return &resourceMetadata{Issuers: []string{own}}, nil
	}
	return nil, d.notFound(d.fix(), "no metadata was found on the server")
}

// issuerMetadata is the authorization server metadata (RFC 8414).
type issuerMetadata struct {
	Issuer        string   `json:"issuer"`
	AuthEndpoint  string   `json:"authorization_endpoint"`
	TokenEndpoint string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Grants        []string `json:"grant_types_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	Scopes        []string `json:"scopes_supported"`
	// SendsIssuer reports whether redirects contain the issuer (RFC 9207), and
	// ReadsDocuments whether a client id can be the URL of a metadata document.
	SendsIssuer    bool `json:"authorization_response_iss_parameter_supported"`
	ReadsDocuments bool `json:"client_id_metadata_document_supported"`
}

// fetchIssuer fetches the metadata of an authorization server.
func (d *discovery) fetchIssuer(ctx context.Context, issuer string) (*issuerMetadata, error) {
	if !d.isSafe(issuer, "") {
		return nil, d.notFound(d.fix(), "the URL %q of the authorization server is not https, contains a user name or a fragment, or is longer than 2048 bytes", plainChallenge(issuer))
	}
	places := []string{wellKnown(issuer, "oauth-authorization-server")[0], wellKnown(issuer, "openid-configuration")[0]}
	if u, err := url.Parse(issuer); err == nil && strings.Trim(u.Path, "/") != "" {
		places = append(places, strings.TrimRight(withoutQuery(issuer), "/")+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		var m issuerMetadata
		ok, err := d.fetchJSON(ctx, place, &m)
		if err != nil {
			return nil, err
		}
		if ok {
			return &m, d.checkIssuer(&m, issuer)
		}
	}
	return nil, d.notFound(d.fix(), "no metadata was found on %s", plainChallenge(issuer))
}

// checkIssuer returns an error if the metadata belongs to another issuer, or if tokens
// cannot be requested safely.
func (d *discovery) checkIssuer(m *issuerMetadata, issuer string) error {
	grant, name := d.spec.grant(), plainChallenge(issuer)
	switch {
	case strings.TrimRight(m.Issuer, "/") != strings.TrimRight(issuer, "/"):
		return d.notFound(d.fix(), "the metadata of %s describes another issuer, %q", name, plainChallenge(m.Issuer))
	case len(m.Grants) > 0 && !slices.Contains(m.Grants, grant):
		return d.notFound("ask the operator of the server for a bearer token", "%s does not support %s", name, map[string]string{config.GrantCredentials: "client credentials", config.GrantCode: "logins"}[grant])
	}
	urls := []string{m.TokenEndpoint}
	if grant == config.GrantCode {
		if !slices.Contains(m.Challenges, "S256") {
			return d.notFound("ask the operator of the server to support PKCE, or for a bearer token",
				"%s does not support PKCE with S256, which protects the login against stolen codes", name)
		}
		urls = append(urls, m.AuthEndpoint)
		for _, more := range []string{m.Registration, m.Revocation} {
			if more != "" {
				urls = append(urls, more)
			}
		}
	}
	for _, each := range urls {
		if !d.isSafe(each, issuer) {
			return d.notFound(d.fix(), "the endpoint %q of %s is not https, contains a user name or a fragment, or is longer than 2048 bytes", plainChallenge(each), name)
		}
	}
	return nil
}

// isSafe reports whether secrets may be sent to a URL: it uses https, or it has the origin of
// a URL that a person has configured. A login over http must stay on this machine.
func (d *discovery) isSafe(address, issuer string) bool {
	const longest = 2048
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(address) > longest:
		return false
	case u.Scheme == "https":
		return true
	case u.Scheme != "http" || d.spec.grant() == config.GrantCode && !ssrf.IsLoopback(u.Hostname()):
		return false
	}
	origin := originOf(address)
	return origin == originOf(d.spec.URL) || origin == originOf(d.oauth().Issuer) || issuer != "" && origin == originOf(issuer)
}

// maxMetadata is the maximum size of a metadata document.
const maxMetadata = 256 << 10

// fetchJSON fetches a document; ok reports whether the document exists.
func (d *discovery) fetchJSON(ctx context.Context, place string, into any) (ok bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return false, d.notFound(d.fix(), "%q is not a valid URL", plainChallenge(place))
	}
	req.Header.Set("Accept", "application/json")
	resp, err := d.client.Do(req)
	if err != nil {
		if errors.Is(err, ssrf.ErrPrivate) {
			return false, d.notFound(d.fix(), "%s: %w", hostOf(place), rootCause(err))
		}
		return false, guideway.Errorf(guideway.CodeUnavailable, "find the token endpoint: reach %s: %w", hostOf(place), rootCause(err)).WithFix("%s", d.fix())
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	if err != nil {
		return false, d.notFound(d.fix(), "read the metadata at %s: %w", plainChallenge(place), rootCause(err))
	}
	if json.Unmarshal(text, into) != nil {
		return false, d.notFound(d.fix(), "the document at %s is not valid metadata, or is larger than %d bytes", plainChallenge(place), maxMetadata)
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
