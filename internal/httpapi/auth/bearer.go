package auth

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// BearerOptions are the options of NewBearer.
type BearerOptions struct {
	// Token is the one valid token; required.
	Token string
	// User is the user that the token belongs to; required.
	User string
}

// Bearer accepts requests with a valid token in the header Authorization, and adds the
// token's user to the request's context. It never accepts the browser's cookie
// (BrowserSessions); an Authenticator accepts named tokens.
type Bearer struct {
	digest [sha256.Size]byte
	user   string
}

// NewBearer returns an error if the token is malformed or a named token, or if the user is
// missing.
func NewBearer(opts BearerOptions) (*Bearer, error) {
	if !validToken(opts.Token) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the bearer token of the server is not valid").
			WithFix("use a token of 32 to 512 letters, digits and -._~+/")
	}
	if isNamed(opts.Token) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a named token cannot be the bearer token of the server").
			WithFix("use a token of 32 to 512 letters, digits and -._~+/ that does not begin with %s", namedPrefix)
	}
	if opts.User == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the bearer token has no user").WithFix("set the user of the token")
	}
	return &Bearer{digest: sha256.Sum256([]byte(opts.Token)), user: opts.User}, nil
}

// checkRequest returns the principal of a request.
func (b *Bearer) checkRequest(r *http.Request) (guideway.Principal, *guideway.Error) {
	refused := func(why string) *guideway.Error {
		return guideway.Errorf(guideway.CodeUnauthorized, "%s", why).
			WithFix("send the token as the header Authorization: Bearer TOKEN; on the computer of this server, guideway doctor shows the path of the token file")
	}
	given := r.Header.Values("Authorization")
	switch {
	case len(given) == 0 && hasQueryToken(r):
		return guideway.Principal{}, refused("a token in the URL is not accepted: URLs end up in logs and histories")
	case len(given) == 0:
		return guideway.Principal{}, refused("the request needs a bearer token")
	case len(given) > 1:
		return guideway.Principal{}, refused(fmt.Sprintf("the request has %d Authorization headers", len(given)))
	}
	token, ok := bearerToken(r)
	if !ok {
		return guideway.Principal{}, refused("the Authorization header does not use the scheme Bearer")
	}
	if isNamed(token) {
		return guideway.Principal{}, refused("the server does not accept named tokens")
	}
	// Digests have equal length, so that the time of the comparison does not depend on the
	// token.
	digest := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(digest[:], b.digest[:]) != 1 {
		return guideway.Principal{}, refused("the bearer token does not belong to this server")
	}
	return guideway.Principal{User: b.user}, nil
}

// principalOf returns the principal of a named token. The token of a user other than the
// local one has the roles of its scopes.
func (b *Bearer) principalOf(t NamedToken) guideway.Principal {
	p := guideway.Principal{User: t.User, Client: t.Name}
	if t.User == b.user {
		return p
	}
	p.Roles = []guideway.Role{}
	for _, s := range t.Scopes {
		p.Roles = append(p.Roles, s.Role())
	}
	return p
}

// bearerToken returns the token of the Authorization header. ok is false if there is not
// exactly one header or its scheme is not Bearer.
func bearerToken(r *http.Request) (token string, ok bool) {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

func hasQueryToken(r *http.Request) bool {
	q := r.URL.Query()
	return q.Has("access_token") || q.Has("token")
}

const (
	// minChallenge and maxChallenge are the limits of the length of a challenge.
	minChallenge = 16
	maxChallenge = 128
	// challengeBytes are 256 bits.
	challengeBytes = 32
	// proofTime is the time limit for a proof.
	proofTime = 5 * time.Second
	// maxProof is the maximum size of the response with a proof.
	maxProof = 16 << 10
)

// Prove returns the proof that this server has the token: a MAC of the challenge and of the
// address at which the server has accepted the connection. A program that forwards a
// challenge from another address gets a proof for the wrong address.
func (b *Bearer) Prove(challenge string, local net.Addr) (string, error) {
	if len(challenge) < minChallenge || len(challenge) > maxChallenge {
		return "", guideway.Errorf(guideway.CodeInvalid, "the challenge has %d bytes; it must have %d to %d", len(challenge), minChallenge, maxChallenge)
	}
	return computeProof(b.digest, challenge, local)
}

func computeProof(key [sha256.Size]byte, challenge string, server net.Addr) (string, error) {
	if server == nil {
		return "", guideway.Errorf(guideway.CodeInternal, "a proof needs the address of the server")
	}
	address, err := netip.ParseAddrPort(server.String())
	if err != nil {
		return "", guideway.Errorf(guideway.CodeInternal, "a proof needs an IP address and a port: %w", err)
	}
	mac := hmac.New(sha256.New, key[:])
	fmt.Fprintf(mac, "guideway server\x00%s\x00%s", challenge, netip.AddrPortFrom(address.Addr().Unmap(), address.Port()))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// DialProven returns a function for http.Transport.DialContext. Its connections lead to a
// server that has proven that it has the token; nothing secret is sent before the proof.
// The error is CodeForbidden if the server does not prove that it has the token.
func DialProven(token string) func(ctx context.Context, network, address string) (net.Conn, error) {
	key := sha256.Sum256([]byte(token))
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if err := checkServer(ctx, conn, key, address); err != nil {
			_ = conn.Close()
			return nil, guideway.Errorf(guideway.CodeForbidden, "the program at %s does not prove that it is the server of this data directory: %w", address, err).
				WithFix("start the server with guideway serve, or stop the other program; for a server with another data directory, pass its token and its URL: GUIDEWAY_TOKEN=TOKEN guideway connect --url URL")
		}
		return conn, nil
	}
}

// checkServer requests a proof on a new connection and checks it.
func checkServer(ctx context.Context, conn net.Conn, key [sha256.Size]byte, host string) error {
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	challenge := newSecret("", challengeBytes)
	want, err := computeProof(key, challenge, conn.RemoteAddr())
	if err != nil {
		return err
	}
	given, err := requestProof(ctx, conn, host, challenge)
	switch {
	case err != nil:
		return err
	case !hmac.Equal([]byte(given), []byte(want)):
		return guideway.Errorf(guideway.CodeForbidden, "the server's proof is missing or wrong")
	case !stop():
		return ctx.Err()
	}
	return nil
}

// requestProof requests the proof of a challenge and reads exactly one response.
func requestProof(ctx context.Context, conn net.Conn, host, challenge string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/api/health?challenge="+url.QueryEscape(challenge), nil)
	if err != nil {
		return "", err
	}
	if err := r.Write(conn); err != nil {
		return "", err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxProof))
	resp, err := http.ReadResponse(in, r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	var health struct {
		Proof string `json:"proof"`
	}
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode != http.StatusOK || resp.Close || in.Buffered() > 0 || json.Unmarshal(text, &health) != nil:
		return "", guideway.Errorf(guideway.CodeForbidden, "the server does not answer as a Guideway server")
	}
	return health.Proof, nil
}

const (
	// tokenPrefix lets secret scanners recognize the token.
	tokenPrefix = "gdw_"
	// tokenBytes is 256 bits.
	tokenBytes = 32
	// maxTokenFile is the maximum size of a token file.
	maxTokenFile = 4 << 10
)

// validToken reports whether a line can be a token: it matches the header field's grammar
// and is long enough not to be guessed. A person may have written the token.
func validToken(s string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9._~+/-]{32,512}=*$`).MatchString(s)
}

// LoadOrCreateToken reads the bearer token from the file at path. If there is no file, it
// creates one and created is true. The file is private to the operating system user (0600,
// its directory 0700). Several processes that start at the same time agree on one token.
//
// It returns an error with a fix, and leaves the file as it is, if the file cannot be read,
// if others may read it, or if it does not contain a token. It never replaces a token
// because a read failed.
func LoadOrCreateToken(path string) (token string, created bool, err error) {
	file := atomicfile.File{
		Path: path, What: "token file", MaxBytes: maxTokenFile, IfSeen: "delete the file to create a new token",
	}
	text, created, err := file.ReadOrCreate(func() string { return newSecret(tokenPrefix, tokenBytes) + "\n" })
	if err != nil {
		return "", false, err
	}
	token = strings.TrimSpace(text)
	if token == "" {
		return "", false, guideway.Errorf(guideway.CodeInvalid, "the token file %s is empty", path).
			WithFix("delete the file to create a new token; clients then need the new token")
	}
	if !validToken(token) {
		return "", false, guideway.Errorf(guideway.CodeInvalid,
			"the token file %s does not contain one token: 32 to 512 letters, digits and -._~+/ on one line", path).
			WithFix("restore the file, or delete it to create a new token; clients then need the new token")
	}
	return token, created, nil
}
