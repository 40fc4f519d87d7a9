package server

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth/sso"
)

// allowedHosts returns the names of this server, with that of the public URL.
func allowedHosts(cfg *config.Config) []string {
	if cfg.PublicURL == "" {
		return cfg.AllowedHosts
	}
	_, host, _ := strings.Cut(cfg.PublicURL, "://")
	return append(slices.Clone(cfg.AllowedHosts), host)
}

// newIdentities returns the identity provider, or nil if there is none.
func newIdentities(cfg *config.Config) (*sso.Provider, error) {
	i := cfg.Identity
	if i.Issuer == "" {
		return nil, nil
	}
	if err := i.Check(cfg); err != nil {
		return nil, err
	}
	user, err := app.LocalUser(cfg)
	if err != nil {
		return nil, err
	}
	secret := ""
	if i.ClientSecretFile != "" {
		text, err := os.ReadFile(i.ClientSecretFile)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "read the client secret: %w", err).WithFix("set identity.clientSecretFile to a file that this user can read")
		}
		secret = strings.TrimSpace(string(text))
	}
	return sso.New(sso.Options{
		Issuer: i.Issuer, ClientID: i.ClientID, Secret: secret, Scopes: i.Scopes, UserClaim: i.UserClaim, RolesClaim: i.RolesClaim, RolesOf: i.RolesOf,
		PublicURL: cfg.PublicURL, Resource: cmp.Or(i.Resource, cfg.PublicURL+"/mcp"), ResourceScope: i.ResourceScope, LocalUser: user,
	}), nil
}
