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

// endpoint is where tokens are got, and for what.
type endpoint struct {
	url      string
	resource string
	scopes   []string
	style    oauth2.AuthStyle
}

// discover finds where tokens are got: from the configured issuer, or from the one that
// the server itself names (RFC 9728), if that is the server's own host. The secret is
// sent there: a server that names another host is not believed, but a person may say so.
func (a *authorizer) discover(ctx context.Context, challenge map[string]string) (*endpoint, error) {
	found := &endpoint{resource: a.spec.OAuth.Resource}
	issuer := a.spec.OAuth.Issuer
	if issuer == "" {
		said, err := a.resource(ctx, challenge["resource_metadata"])
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
	said, err := a.issuer(ctx, issuer)
	if err != nil {
		return nil, err
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
	return guideway.Errorf(guideway.CodeUnauthorized, "find out where tokens are got: "+format, args...).WithFix("%s", fix)
}

const giveTokenURL = `give the address by "tokenUrl" in the upstream's oauth (--oauth-token-url)`

// resourceMetadata is what a server says of itself (RFC 9728).
type resourceMetadata struct {
	Resource string   `json:"resource"`
	Issuers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
}

// resource reads what the server says of itself. said is where it says that this is;
// it is on the server's own host, or not read: what a server makes us fetch is no
// business of others.
func (a *authorizer) resource(ctx context.Context, said string) (*resourceMetadata, error) {
	var places []string
	if said != "" {
		if originOf(said) != originOf(a.spec.URL) {
			return nil, notDiscovered(giveTokenURL, "the server says that its metadata is on another host")
		}
		places = []string{said}
	} else {
		places = wellKnown(a.spec.URL, "oauth-protected-resource")
	}
	for _, place := range places {
		var m resourceMetadata
		ok, err := a.read(ctx, place, &m)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			continue
		case !within(a.spec.URL, m.Resource):
			return nil, notDiscovered(giveTokenURL, "the server's metadata is of another resource, %q", plain(m.Resource))
		case len(m.Issuers) == 0:
			return nil, notDiscovered(giveTokenURL, "the server's metadata names nobody who hands out tokens")
		case originOf(m.Issuers[0]) != originOf(a.spec.URL):
			issuer := plain(m.Issuers[0])
			return nil, notDiscovered(`if that is right, say so by "issuer" in the upstream's oauth (--oauth-issuer '`+issuer+`')`,
				"the server names another host for it, %s, which would get the secret", issuer)
		}
		return &m, nil
	}
	return nil, notDiscovered(giveTokenURL, "the server has no metadata that says so")
}

// issuerMetadata is what who hands out tokens says of itself (RFC 8414).
type issuerMetadata struct {
	Issuer        string   `json:"issuer"`
	TokenEndpoint string   `json:"token_endpoint"`
	Methods       []string `json:"token_endpoint_auth_methods_supported"`
	Grants        []string `json:"grant_types_supported"`
}

// issuer reads where an issuer hands out tokens.
func (a *authorizer) issuer(ctx context.Context, issuer string) (*issuerMetadata, error) {
	places := []string{wellKnown(issuer, "oauth-authorization-server")[0], wellKnown(issuer, "openid-configuration")[0]}
	if u, err := url.Parse(issuer); err == nil && strings.Trim(u.Path, "/") != "" {
		places = append(places, strings.TrimRight(withoutQuery(issuer), "/")+"/.well-known/openid-configuration")
	}
	for _, place := range places {
		var m issuerMetadata
		ok, err := a.read(ctx, place, &m)
		switch {
		case err != nil:
			return nil, err
		case !ok:
			continue
		case strings.TrimRight(m.Issuer, "/") != strings.TrimRight(issuer, "/"):
			return nil, notDiscovered(giveTokenURL, "the metadata of %s is of another issuer, %q", issuer, plain(m.Issuer))
		case len(m.Grants) > 0 && !slices.Contains(m.Grants, "client_credentials"):
			return nil, notDiscovered("ask who runs it for a bearer token", "%s hands out no tokens by client credentials", issuer)
		}
		// A secret goes over plain HTTP only where the person has named such an address.
		u, err := url.Parse(m.TokenEndpoint)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && originOf(m.TokenEndpoint) != originOf(issuer) {
			return nil, notDiscovered(giveTokenURL, "%s hands out tokens at %q, which is not an address of https", issuer, plain(m.TokenEndpoint))
		}
		return &m, nil
	}
	return nil, notDiscovered(giveTokenURL, "%s has no metadata", issuer)
}

// maxMetadata bounds a document of metadata.
const maxMetadata = 256 << 10

// read reads a document; ok is false where there is none.
func (a *authorizer) read(ctx context.Context, place string, into any) (ok bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return false, notDiscovered(giveTokenURL, "%q is no address", plain(place))
	}
	req.Header.Set("Accept", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		if errors.Is(err, ssrf.ErrPrivate) {
			return false, notDiscovered(giveTokenURL, "%s: %w", hostOf(place), rootCause(err))
		}
		return false, guideway.Errorf(guideway.CodeUnavailable, "find out where tokens are got: %w", rootCause(err)).WithFix(giveTokenURL)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	if err != nil || json.Unmarshal(text, into) != nil {
		return false, notDiscovered(giveTokenURL, "what is at %s is no metadata", plain(place))
	}
	return true, nil
}

// wellKnown are the places of a kind of metadata for an address: that of its path, and
// of its host.
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

// within tells whether an address is of a resource: the same, or below it.
func within(address, resource string) bool {
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

// originOf is scheme and host of an address; it is empty for what is none.
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

// careful reaches hosts that a person has named as they are, and others only where they
// are public: metadata of strangers leads nobody into the network around us.
type careful struct {
	base  http.RoundTripper
	named []string
	once  sync.Once
	other http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (c *careful) RoundTrip(req *http.Request) (*http.Response, error) {
	if slices.Contains(c.named, strings.ToLower(req.URL.Host)) {
		return c.base.RoundTrip(req)
	}
	c.once.Do(func() {
		c.other = c.base
		if t, ok := c.base.(*http.Transport); ok {
			t = t.Clone()
			t.DialContext = (&net.Dialer{Control: ssrf.Control(false)}).DialContext
			// A proxy would look the name up, and connect, in our place.
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
