package config

import (
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
)

// Identity is the settings of logins through an OpenID provider.
type Identity struct {
	// Issuer is the URL of the provider. Empty means that only the local user logs in.
	Issuer string
	// ClientID and ClientSecretFile are the registration of this server at the provider. The
	// file is empty for a public client.
	ClientID, ClientSecretFile string
	// Scopes are requested in addition to openid.
	Scopes []string
	// UserClaim is the claim that names the user, and RolesClaim the claim with the groups.
	UserClaim, RolesClaim string
	// Roles are the roles of groups, each "ROLE=GROUP". The group * is every user.
	Roles []string
	// Resource is the audience of access tokens at /mcp, and ResourceScope the scope that
	// they need.
	Resource, ResourceScope string
}

// Projects are the settings of shared projects.
type Projects struct {
	// Members are the members of the projects, each "PROJECT=USER".
	Members []string
}

// RolesOf returns the roles of a user with groups. It is empty if the user has none.
func (i Identity) RolesOf(groups []string) []guideway.Role {
	roles := []guideway.Role{}
	for _, entry := range i.Roles {
		role, group, _ := strings.Cut(entry, "=")
		if (group == "*" || slices.Contains(groups, group)) && !slices.Contains(roles, guideway.Role(role)) {
			roles = append(roles, guideway.Role(role))
		}
	}
	return roles
}

// Check returns an error if settings are missing that logins require.
func (i Identity) Check(c *Config) error {
	for _, needed := range []struct {
		name  string
		isSet bool
	}{{"publicUrl", c.PublicURL != ""}, {"identity.clientId", i.ClientID != ""}, {"identity.roles", len(i.Roles) > 0}} {
		if !needed.isSet {
			return guideway.Errorf(guideway.CodeInvalid, "%s is not set, but logins through identity.issuer require it", needed.name).WithFix("set %s", needed.name)
		}
	}
	if i.Resource == i.ClientID && i.ResourceScope == "" {
		return guideway.Errorf(guideway.CodeInvalid, "identity.resource is identity.clientId, so ID tokens would be access tokens").WithFix("set identity.resourceScope")
	}
	return nil
}

// maxUserName is the maximum number of bytes of a user's name.
const maxUserName = 200

// ValidUserName reports whether a text can be the name of a user.
func ValidUserName(text string) bool {
	return text != "" && len(text) <= maxUserName && strings.TrimSpace(text) == text && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f || c == '=' || c == ',' })
}

func checkUserName(text string) *settingError {
	if !ValidUserName(text) {
		return newError(`write a name without "=" and commas, of at most 200 bytes, such as "ada"`, "%q is not a valid user name", text)
	}
	return nil
}

// checkIssuer requires https, except for a provider on this computer.
func checkIssuer(text string) *settingError {
	const fix = `write the issuer as the provider does, such as "https://id.example.com/realms/team"`
	scheme, rest, _ := strings.Cut(text, "://")
	host, _, _ := strings.Cut(rest, "/")
	name, _, _ := strings.Cut(host, ":")
	switch {
	case host == "" || strings.ContainsAny(rest, "?#@ "):
		return newError(fix, "%q is not the URL of an issuer", text)
	case scheme != "https" && (scheme != "http" || !ssrf.IsLoopback(name)):
		return newError(fix, "%q does not start with https://", text)
	}
	return nil
}

func checkRoleEntry(text string) *settingError {
	role, group, _ := strings.Cut(text, "=")
	if group == "" || !slices.Contains(guideway.Roles(), guideway.Role(role)) {
		return newError(`write ROLE=GROUP with one of the roles viewer, operator, approver, admin, such as "admin=platform"`, "%q is not a role and a group", text)
	}
	return nil
}

func checkMember(text string) *settingError {
	at := strings.LastIndex(text, "=")
	if at < 1 || !ValidUserName(text[at+1:]) {
		return newError(`write PROJECT=USER, such as "/src/shop=ada"`, "%q is not a project and a user", text)
	}
	return nil
}
