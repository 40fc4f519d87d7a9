// Package authn tells who calls and refuses those who may not: the token file,
// the bearer check, a person's browser, named tokens, and the guard of the Host
// and Origin headers that keeps web pages away from a server on loopback.
//
// What stands for a person is kept apart from what an agent may hold: the token
// of /mcp proves no person, and what proves one does not work on /mcp.
package authn

import (
	"context"
	"os/user"

	"github.com/guideway-dev/guideway"
)

type principalKey struct{}

// WithPrincipal gives a context that says who calls.
func WithPrincipal(ctx context.Context, p guideway.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom gives who calls; ok is false if nothing in front has said so.
func PrincipalFrom(ctx context.Context) (p guideway.Principal, ok bool) {
	p, ok = ctx.Value(principalKey{}).(guideway.Principal)
	return p, ok
}

// SystemUser names the user of the operating system that the process runs as:
// the owner of everything on stdio, and of the token in the token file.
func SystemUser() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "find the name of the system's user: %w", err).
			WithFix("set the environment variable USER")
	}
	return u.Username, nil
}
