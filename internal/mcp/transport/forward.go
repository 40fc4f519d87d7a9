package transport

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Peers are the instances of a deployment. A session, and a call that waits for the answer to
// a question, belong to one instance, whose id is the part of their ids before the first dot.
type Peers interface {
	// ID returns the id of this instance.
	ID() string
	// Address returns the host and port at which another instance listens, or "" if there is
	// no such instance.
	Address(ctx context.Context, id string) (string, error)
}

const (
	// forwardedHeader names the instance for which a request was forwarded, so that it is
	// forwarded once.
	forwardedHeader = "Guideway-Forwarded-To"
	// resultRead is the tool of the gateway that reads a stored result. The reference has the
	// instance between two underscores.
	resultRead = "result_read"
	// connectTime is the time limit for the connection to another instance.
	connectTime = 3 * time.Second
)

// forwarder sends requests that belong to another instance there. The other instance checks
// the credential and the owner as it does for its own clients.
type forwarder struct {
	peers   Peers
	maxBody int64
	proxy   *httputil.ReverseProxy
}

// target is where a request is sent. missing answers it if the instance cannot be reached.
type target struct {
	id, address string
	missing     func(http.ResponseWriter)
}

type targetKey struct{}

func newForwarder(peers Peers, maxBody int64) *forwarder {
	direct := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is documented
	direct.Proxy, direct.ResponseHeaderTimeout = nil, 0
	dial := direct.DialContext
	direct.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		return dial(ctx, network, address)
	}
	return &forwarder{peers: peers, maxBody: maxBody, proxy: &httputil.ReverseProxy{
		Transport: direct, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, _ := r.In.Context().Value(targetKey{}).(target)
			r.SetURL(&url.URL{Scheme: "http", Host: to.address})
			r.Out.Host = r.In.Host
			r.Out.Header["X-Forwarded-Proto"] = r.In.Header["X-Forwarded-Proto"]
			r.Out.Header.Set(forwardedHeader, to.id)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			to, _ := r.Context().Value(targetKey{}).(target)
			to.missing(w)
		},
	}}
}

// writeGone answers a request for an instance that has ended, as the protocol requires: the
// client starts a new session.
func writeGone(w http.ResponseWriter) {
	writeError(w, http.StatusNotFound, jsonrpc.CodeInvalidRequest, "session not found: the instance of the server that had it has ended")
}

// tryForward forwards a request that belongs to another instance. It restores the body of
// other requests.
func (f *forwarder) tryForward(w http.ResponseWriter, r *http.Request) (done bool, err error) {
	if f == nil {
		return false, nil
	}
	id, stored, err := f.instanceOf(w, r)
	if err != nil || id == "" || id == f.peers.ID() || stored && r.Header.Get(forwardedHeader) != "" {
		return false, err
	}
	if r.Header.Get(forwardedHeader) != "" { // another process now has the address
		writeGone(w)
		return true, nil
	}
	address, err := f.peers.Address(r.Context(), id)
	if err != nil {
		writeError(w, http.StatusServiceUnavailable, jsonrpc.CodeInternalError, "cannot find the instance of the session: "+err.Error())
		return true, nil
	}
	if address == "" {
		if !stored {
			writeGone(w)
		}
		return !stored, nil
	}
	// The proxy fails if an answer begins before it has read the end of the body.
	body, err := f.readBody(w, r)
	if err != nil {
		return false, err
	}
	done = true
	f.send(w, r, target{id, address, func(w http.ResponseWriter) {
		if done = !stored; done {
			writeGone(w)
		}
	}})
	r.Body = io.NopCloser(bytes.NewReader(body))
	return done, nil
}

func (f *forwarder) send(w http.ResponseWriter, r *http.Request, to target) {
	f.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), targetKey{}, to)))
}

// ForwardTo sends a request without a body to another instance. It calls missing if there is no
// such instance, if it is this one, or if the request was forwarded to this one.
func (h *HTTPHandler) ForwardTo(w http.ResponseWriter, r *http.Request, instance string, missing func(http.ResponseWriter)) {
	f := h.forward
	if f == nil || instance == "" || instance == f.peers.ID() || r.Header.Get(forwardedHeader) != "" {
		missing(w)
		return
	}
	address, err := f.peers.Address(r.Context(), instance)
	if err != nil || address == "" {
		missing(w)
		return
	}
	f.send(w, r, target{instance, address, missing})
}

// readBody returns the body of a request, and restores it.
func (f *forwarder) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, f.maxBody))
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// instanceOf returns the instance to which a request belongs, or "". stored reports that it
// reads a stored result: without that instance, this one may have the result.
func (f *forwarder) instanceOf(w http.ResponseWriter, r *http.Request) (id string, stored bool, err error) {
	if session := r.Header.Get("Mcp-Session-Id"); session != "" {
		id, _, _ := strings.Cut(session, ".")
		return id, false, nil
	}
	if r.Method != http.MethodPost {
		return "", false, nil
	}
	body, err := f.readBody(w, r)
	if err != nil {
		return "", false, err
	}
	if !bytes.Contains(body, []byte(`"requestState"`)) && !bytes.Contains(body, []byte(resultRead)) {
		return "", false, nil
	}
	var message struct {
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			State     string          `json:"requestState"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &message) != nil {
		return "", false, nil
	}
	if message.Params.Name == resultRead {
		var query struct {
			Ref string `json:"ref"`
		}
		_ = json.Unmarshal(message.Params.Arguments, &query) // the gateway refuses invalid arguments
		if parts := strings.Split(query.Ref, "_"); len(parts) == 3 {
			id = parts[1]
		}
		return id, true, nil
	}
	return parkedAt(message.Params.State), false, nil
}

// parkedAt returns the instance of the parked call in a request state, or "".
func parkedAt(state string) string {
	payload, _, _ := strings.Cut(state, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "" // the gateway refuses the state
	}
	// The instance that gets the request verifies the state.
	var content struct {
		Parked string `json:"p"`
	}
	if json.Unmarshal(text, &content) != nil {
		return ""
	}
	id, _, ok := strings.Cut(content.Parked, ".")
	if !ok {
		return ""
	}
	return id
}
