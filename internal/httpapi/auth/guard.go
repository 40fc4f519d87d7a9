package auth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
)

// GuardOptions are the options of NewGuard. The zero value accepts loopback clients other
// than web pages of another origin.
type GuardOptions struct {
	// AllowedHosts are names that the header Host may have in addition to the names of
	// loopback: "name" for any port, or "name:port".
	AllowedHosts []string
	// AllowOrigins are origins of web pages, in addition to the server's own, that may
	// call: "scheme://host[:port]". Only these get CORS headers.
	AllowOrigins []string
}

// Guard refuses requests of foreign web pages. A page can make a browser send requests to
// loopback and, with DNS rebinding, even read the answers. The headers Host, Origin and
// Sec-Fetch-Site reveal such requests. Guard checks them for every method.
type Guard struct {
	hosts   []string
	origins []string
}

// NewGuard returns an error if an entry is not a host or an origin. Wildcards are not
// supported.
func NewGuard(opts GuardOptions) (*Guard, error) {
	g := &Guard{}
	for _, h := range opts.AllowedHosts {
		if h == "" || strings.ContainsAny(h, "/*@ ,") {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the allowed host %q is neither a name nor name:port", h).
				WithFix("write the host as in the address bar, such as guideway.example.com or 192.0.2.7:3000")
		}
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	for _, o := range opts.AllowOrigins {
		u, err := url.Parse(o)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || strings.Contains(u.Host, "*") || u.Scheme+"://"+u.Host != o {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the allowed origin %q is not of the form scheme://host[:port]", o).
				WithFix("write the origin as the browser sends it, such as https://inspector.example.com or http://localhost:6274")
		}
		g.origins = append(g.origins, strings.ToLower(o))
	}
	return g, nil
}

// Handler wraps next. A request with a foreign Host or Origin, or that a browser sends for
// another page, gets 403 and a JSON body with a fix; any Host may ask for the status. Handler
// answers a preflight of an allowed origin, because it carries no credential.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.checkRequest(r); err != nil {
			refuseRequest(w, http.StatusForbidden, err)
			return
		}
		if len(g.origins) > 0 {
			w.Header().Add("Vary", "Origin")
		}
		if origin := r.Header.Get("Origin"); g.allowsOrigin(origin) {
			allowCORS(w.Header(), origin)
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				answerPreflight(w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Guard) checkRequest(r *http.Request) *guideway.Error {
	if !g.allowsHost(r.Host) && !isProbe(r) {
		return guideway.Errorf(guideway.CodeForbidden, "the host %q is not allowed", clipText(r.Host)).
			WithFix("use a loopback address, or start the server with --allowed-host HOST")
	}
	origins := r.Header.Values("Origin")
	if len(origins) > 1 {
		return guideway.Errorf(guideway.CodeForbidden, "the request has %d Origin headers", len(origins)).
			WithFix("send at most one Origin header")
	}
	if len(origins) == 1 {
		if g.allowsOrigin(origins[0]) {
			return nil
		}
		if !sameOrigin(origins[0], r.Host) {
			return guideway.Errorf(guideway.CodeForbidden, "pages of the origin %q may not call this server", clipText(origins[0])).
				WithFix("if you trust this origin, start the server with --allow-origin ORIGIN")
		}
	}
	// A browser sends no Origin with a plain GET, but Sec-Fetch-Site states where the
	// request comes from. Another port of the same machine is "same-site".
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default:
		if isCallback(r) {
			return nil
		}
		return guideway.Errorf(guideway.CodeForbidden, "a browser sends this request for another page (Sec-Fetch-Site: %s)", clipText(site)).
			WithFix("open the address directly, not by a link from another page")
	}
}

// isProbe reports whether a request asks for a status alone, as a balancer does by the address
// of an instance. The answer is the same for everyone.
func isProbe(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.RawQuery == "" &&
		(r.URL.Path == "/api/health" || r.URL.Path == "/api/ready")
}

// isCallback reports whether an identity provider or the authorization server of an upstream
// sends the browser back after a login. The login is bound to the browser by its cookie, or by
// the key of its pages.
func isCallback(r *http.Request) bool {
	return r.Method == http.MethodGet && (r.URL.Path == CallbackPath || r.URL.Path == UpstreamCallbackPath) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// allowsHost reports whether the header Host names this server.
func (g *Guard) allowsHost(hostport string) bool {
	hostport = strings.ToLower(hostport)
	host := stripPort(hostport)
	return ssrf.IsLoopback(host) || slices.Contains(g.hosts, hostport) || slices.Contains(g.hosts, host) ||
		slices.Contains(g.hosts, strings.Trim(host, "[]"))
}

func (g *Guard) allowsOrigin(origin string) bool {
	return slices.Contains(g.origins, strings.ToLower(origin))
}

// sameOrigin reports whether the origin of a page is the host that the request is for. The
// guard has checked the host. The scheme is not compared, because a proxy may terminate
// TLS.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Scheme+"://"+u.Host != strings.ToLower(origin) {
		return false
	}
	return u.Host != "" && u.Host == strings.ToLower(host)
}

// stripPort removes the port. Brackets around an IPv6 address stay.
func stripPort(hostport string) string {
	if i := strings.LastIndexByte(hostport, ':'); i >= 0 && !strings.HasSuffix(hostport, "]") &&
		(strings.HasPrefix(hostport, "[") || strings.Count(hostport, ":") == 1) {
		return hostport[:i]
	}
	return hostport
}

// clipText shortens the header that a refusal repeats.
func clipText(s string) string { return textpart.Shorten(s, 100) }

// corsHeaders returns the request headers that an MCP client in a page sends. Headers of
// x-mcp-header parameters are allowed by their prefix.
func corsHeaders() []string {
	return []string{
		"accept", "authorization", "content-type", "last-event-id",
		"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id",
		"baggage", "traceparent", "tracestate",
	}
}

func allowCORS(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate")
}

func answerPreflight(w http.ResponseWriter, r *http.Request) {
	known := corsHeaders()
	allowed := slices.Clone(known)
	for _, name := range strings.Split(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if strings.HasPrefix(name, "mcp-param-") && !strings.ContainsAny(name, "\r\n:") {
			allowed = append(allowed, name)
		}
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", strings.Join(allowed, ", "))
	h.Set("Access-Control-Max-Age", "600")
	h.Add("Vary", "Access-Control-Request-Headers")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	w.WriteHeader(http.StatusNoContent)
}
