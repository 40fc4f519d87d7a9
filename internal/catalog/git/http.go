package git

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/guideway-dev/guideway"
)

// maxAdvertised bounds what a host says of its references.
const maxAdvertised = 32 << 20

// overHTTP is a conversation over https.
type overHTTP struct {
	transport.UploadPackSession
	client *http.Transport
}

// connectHTTP prepares a conversation. What a redirect leads to must be the same
// host: nothing is fetched from one that nobody allowed.
func (f *Fetcher) connectHTTP() (session, error) {
	plain := &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 15 * time.Second}).DialContext, TLSHandshakeTimeout: 15 * time.Second,
		ResponseHeaderTimeout: 60 * time.Second, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 1 << 16,
	}
	client := &http.Client{
		Transport: bounding{plain, f.opts.Limits.Bytes + f.opts.Limits.Bytes/16 + 1<<20},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
				return errRedirect
			}
			return nil
		},
	}
	endpoint := &transport.Endpoint{Protocol: string(f.address.scheme), Host: f.address.host, Path: f.address.path}
	if f.address.port != "" {
		port, err := strconv.Atoi(f.address.port)
		if err != nil {
			return nil, badAddress("the port of the address is no number")
		}
		endpoint.Port = port
	}
	var auth transport.AuthMethod
	if user, token := f.credentials(); token != "" {
		auth = &githttp.BasicAuth{Username: user, Password: token}
	}
	s, err := githttp.NewClient(client).NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, err
	}
	return &overHTTP{UploadPackSession: s, client: plain}, nil
}

var errRedirect = errors.New("it redirects to another host, which is not followed")

func (s *overHTTP) refs(ctx context.Context) (*packp.AdvRefs, error) {
	adv, err := s.AdvertisedReferencesContext(ctx)
	return adv, explainHTTP(err)
}

func (s *overHTTP) pack(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	answer, err := s.UploadPack(ctx, req)
	if err != nil {
		return nil, explainHTTP(err)
	}
	return answer, nil
}

// Close ends the conversation and its connections.
func (s *overHTTP) Close() error {
	defer s.client.CloseIdleConnections()
	return s.UploadPackSession.Close()
}

// explainHTTP says what to do about the common failures.
func explainHTTP(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errRedirect):
		return guideway.Errorf(guideway.CodeForbidden, "the repository has moved: %s", errRedirect).WithFix("name the new address")
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return guideway.Errorf(guideway.CodeForbidden, "the host wants another token, or has no such repository").
			WithFix("set the variable of its token; see docs/sources.md")
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return guideway.Errorf(guideway.CodeNotFound, "the host has no such repository").WithFix("look at the address; a private one wants a token")
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return guideway.Errorf(guideway.CodeNotFound, "the repository has no commit yet")
	default:
		return err
	}
}

// bounding bounds the answers of a host.
type bounding struct {
	next *http.Transport
	most int64
}

// RoundTrip implements http.RoundTripper.
func (b bounding) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	most := b.most
	if req.Method == http.MethodGet {
		most = maxAdvertised
	}
	answer.Body = &bounded{ReadCloser: answer.Body, left: most}
	return answer, nil
}
