package server

import (
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/testutil/idserver"
)

// The settings lead a login to the provider and back to the public URL, give roles to groups,
// and are refused if one is missing.
func TestIdentitySettings(t *testing.T) {
	t.Parallel()
	provider := idserver.New(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	newConfig := func(change func(*config.Config)) *config.Config {
		c := &config.Config{
			PublicURL: "https://guideway.example.com", User: "operations", Store: config.StoreSQLite, AllowedHosts: []string{"other.example.com"},
			Identity: config.Identity{
				Issuer: provider.URL, ClientID: idserver.ClientID, ClientSecretFile: secret, UserClaim: "sub", RolesClaim: "groups", ResourceScope: "guideway",
				Roles: []string{"admin=platform", "operator=developers", "viewer=*"},
			},
		}
		change(c)
		return c
	}
	p, err := newIdentities(newConfig(func(*config.Config) {}))
	if err != nil {
		t.Fatal(err)
	}
	page, cookie, err := p.BeginLogin(httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	to, _ := url.Parse(page)
	if got := to.Query().Get("redirect_uri"); got != "https://guideway.example.com"+auth.CallbackPath || !cookie.Secure || !cookie.HttpOnly || p.Secret != "s3cret" || p.LocalUser != "operations" {
		t.Errorf("the login leads back to %q with the cookie %v", got, cookie)
	}
	if resource, scope, issuer := p.Audience(); resource != "https://guideway.example.com/mcp" || scope != "guideway" || issuer != provider.URL {
		t.Errorf("access tokens are for %s, %s of %s", resource, scope, issuer)
	}
	if got := p.RolesOf([]string{"developers", "platform"}); !slices.Equal(got, []guideway.Role{guideway.RoleAdmin, guideway.RoleOperator, guideway.RoleViewer}) {
		t.Errorf("the roles are %v", got)
	}
	if got := p.RolesOf(nil); !slices.Equal(got, []guideway.Role{guideway.RoleViewer}) {
		t.Errorf("without a group the roles are %v", got)
	}
	if got := allowedHosts(newConfig(func(*config.Config) {})); !slices.Equal(got, []string{"other.example.com", "guideway.example.com"}) {
		t.Errorf("the hosts are %v", got)
	}
	for name, change := range map[string]func(*config.Config){
		"no public URL":         func(c *config.Config) { c.PublicURL = "" },
		"no client id":          func(c *config.Config) { c.Identity.ClientID = "" },
		"no roles":              func(c *config.Config) { c.Identity.Roles = nil },
		"resource of ID tokens": func(c *config.Config) { c.Identity.Resource, c.Identity.ResourceScope = c.Identity.ClientID, "" },
		"no secret":             func(c *config.Config) { c.Identity.ClientSecretFile += "x" },
		"no local user":         func(c *config.Config) { c.Store, c.User = "postgres://db.example/guideway", "" },
	} {
		if p, err := newIdentities(newConfig(change)); err == nil || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if p, err := newIdentities(newConfig(func(c *config.Config) { c.Identity.Issuer = "" })); p != nil || err != nil {
		t.Errorf("without an issuer: %+v, %v", p, err)
	}
}
