package auth

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/guideway-dev/guideway"
)

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
