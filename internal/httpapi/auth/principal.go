// Package auth authenticates callers and refuses unauthorized ones: the token file, the
// bearer check, browser sessions, named tokens, and the guard of the Host and Origin
// headers that protects a server on loopback from web pages.
//
// Credentials of persons and agents are separate: the token of /mcp never counts as a
// person, and a credential of a person does not work on /mcp.
package auth

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/user"
	"strconv"

	"github.com/guideway-dev/guideway"
)

type principalKey struct{}

// WithPrincipal returns a context with the principal of a request.
func WithPrincipal(ctx context.Context, p guideway.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom returns the principal of a context. ok is false if the context has no
// principal.
func PrincipalFrom(ctx context.Context) (p guideway.Principal, ok bool) {
	p, ok = ctx.Value(principalKey{}).(guideway.Principal)
	return p, ok
}

type serverURLKey struct{}

// WithServerURL returns a context with the address at which the client of a request reaches
// the server. The host of the request can be trusted, because the guard or else the SDK
// checks it.
func WithServerURL(r *http.Request) context.Context {
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return context.WithValue(r.Context(), serverURLKey{}, scheme+"://"+r.Host)
}

// ServerURL returns the address at which a client over HTTP reaches the server, without a
// slash at the end, or "" for a client on stdio.
func ServerURL(ctx context.Context) string {
	text, _ := ctx.Value(serverURLKey{}).(string)
	return text
}

// SystemUser returns the name of the operating system user that runs this process. Clients
// on stdio and clients with the token from the token file act as this user. The name of a
// user without a name, as in a container that sets only a number, is "uid-" and the number.
func SystemUser() (string, error) {
	u, err := user.Current()
	return systemUserName(u, err, os.Getuid())
}

// systemUserName returns the name of a user, or a name made of uid if the user has none.
// uid is negative on Windows; without a name, systemUserName then returns an error.
func systemUserName(u *user.User, err error, uid int) (string, error) {
	switch {
	case err == nil && u.Username != "":
		return u.Username, nil
	case uid >= 0:
		return "uid-" + strconv.Itoa(uid), nil
	}
	if err == nil {
		err = errors.New("the name is empty")
	}
	return "", guideway.Errorf(guideway.CodeUnavailable, "the name of the operating system user cannot be determined: %w", err).
		WithFix("run this program as a user with a name")
}
