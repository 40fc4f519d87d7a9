package git

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
)

// scheme is the transport of a repository address.
type scheme string

const (
	schemeHTTPS scheme = "https"
	schemeHTTP  scheme = "http"
	schemeSSH   scheme = "ssh"
	schemeFile  scheme = "file"
)

// address is the parsed address of a repository.
type address struct {
	scheme scheme
	// host has no port; port is "" if the address has none.
	host, port string
	// path is the path on the host, or the directory.
	path string
	// user and secret come from the address. The secret is never shown, and the user only
	// in ssh addresses.
	user, secret string
}

// KnownHosts are public hosts. They and their subdomains are always allowed over https at
// the default port, because such a request cannot reach a private network.
func KnownHosts() []string {
	return []string{"github.com", "gitlab.com", "bitbucket.org", "dev.azure.com", "codeberg.org", "sourceforge.net"}
}

// scpLike matches host:path and user@host:path, the short forms of an ssh address.
var scpLike = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:([A-Za-z0-9_.-]+)@)?([A-Za-z0-9._-]+):([^/\\].*|/.*)$`)
})

// hostPattern matches a valid host.
var hostPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`) })

// parseAddress parses the address of a repository. Its errors omit parts that may be
// secret.
func parseAddress(text string) (address, error) {
	text = strings.TrimSpace(text)
	if strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return address{}, badAddress("the address of the repository has control characters")
	}
	if strings.Contains(text, "::") && !strings.Contains(text, "[") {
		return address{}, badAddress("an address with :: would start a program, which is not allowed")
	}
	if strings.HasPrefix(text, "-") {
		return address{}, badAddress("the address of the repository starts with a dash")
	}
	if filepath.IsAbs(text) {
		return address{scheme: schemeFile, path: filepath.Clean(text)}, nil
	}
	if !strings.Contains(text, "://") {
		if m := scpLike().FindStringSubmatch(text); m != nil && !strings.Contains(m[2], "..") && !strings.HasPrefix(m[2], "-") {
			return checkSSH(address{scheme: schemeSSH, user: m[1], host: strings.ToLower(m[2]), path: m[3]})
		}
		return address{}, badAddress("the address of the repository does not begin with https://, http://, ssh:// or file://, and is neither user@host:path nor an absolute path")
	}
	u, err := url.Parse(text)
	if err != nil {
		return address{}, badAddress("the address of the repository is not a valid URL")
	}
	return fromURL(u)
}

func badAddress(message string) error {
	return guideway.Errorf(guideway.CodeInvalid, "%s", message).WithFix("write https://host/owner/repository, ssh://git@host/path, or an absolute path")
}

func fromURL(u *url.URL) (address, error) {
	a := address{scheme: scheme(strings.ToLower(u.Scheme)), host: strings.ToLower(u.Hostname()), port: u.Port(), path: u.Path}
	a.user = u.User.Username()
	a.secret, _ = u.User.Password()
	switch {
	case u.RawQuery != "" || u.Fragment != "":
		return address{}, badAddress("the address of the repository has a query or a fragment")
	case slices.Contains(strings.Split(a.path, "/"), ".."):
		return address{}, badAddress("the path of the repository contains ..")
	case a.scheme == schemeFile:
		if a.host != "" && a.host != "localhost" {
			return address{}, badAddress("a file:// address must not have a host")
		}
		return address{scheme: schemeFile, path: filepath.Clean(filepath.FromSlash(a.path))}, nil
	case a.scheme != schemeHTTPS && a.scheme != schemeHTTP && a.scheme != schemeSSH:
		return address{}, badAddress(fmt.Sprintf("the scheme %q of the address is not one of https, http, ssh and file", a.scheme))
	case !isHost(a.host):
		return address{}, badAddress("the address of the repository has no valid host")
	case a.path == "" || a.path == "/":
		return address{}, badAddress("the address of the repository has no path")
	case a.scheme == schemeSSH:
		return checkSSH(a)
	case a.secret == "" && a.user != "":
		a.secret, a.user = a.user, "" // The form https://TOKEN@host has the token as its user.
	}
	return a, nil
}

// isHost reports whether a text can be the name or address of a host.
func isHost(host string) bool { return hostPattern().MatchString(host) || net.ParseIP(host) != nil }

// checkSSH refuses a password, and a path or a user that ssh or a remote shell could
// misinterpret.
func checkSSH(a address) (address, error) {
	if a.secret != "" {
		return address{}, badAddress("an SSH address must not contain a password; use a key")
	}
	if strings.HasPrefix(a.path, "-") {
		return address{}, badAddress("the path of the SSH address starts with a dash")
	}
	if a.user != "" && !regexp.MustCompile(`^[A-Za-z0-9_.-]+$`).MatchString(a.user) {
		return address{}, badAddress("the user of the SSH address has a character other than letters, digits, _, . and -")
	}
	return a, nil
}

// hostPort returns the host, with the port if the address has one.
func (a address) hostPort() string {
	switch {
	case a.port != "":
		return net.JoinHostPort(a.host, a.port)
	case strings.Contains(a.host, ":"):
		return "[" + a.host + "]"
	default:
		return a.host
	}
}

// String returns the address without secrets.
func (a address) String() string {
	switch a.scheme {
	case schemeFile:
		return "file://" + filepath.ToSlash(a.path)
	case schemeSSH:
		return "ssh://" + a.userHost() + "/" + strings.TrimPrefix(escapePath(a.path), "/")
	default:
		return string(a.scheme) + "://" + a.hostPort() + escapePath(a.path)
	}
}

func escapePath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// userHost returns the ssh host, with the user if the address names one.
func (a address) userHost() string {
	if a.user == "" {
		return a.hostPort()
	}
	return a.user + "@" + a.hostPort()
}

// gitURL returns the address for the git program, without secrets. A path of the short form
// is relative to the home directory on the host.
func (a address) gitURL() string {
	if a.scheme == schemeSSH && !strings.HasPrefix(a.path, "/") {
		return a.userHost() + ":" + a.path
	}
	return a.String()
}

// checkAllowed returns an error if a repository must not be fetched. Hosts are names, or
// names with a port; the prefix "http://" allows a host without encryption.
func (a address) checkAllowed(hosts []string) error {
	if a.scheme == schemeFile || a.scheme == schemeSSH {
		return nil // A directory sends no data to a host, and an ssh host is known by its key.
	}
	plain := a.scheme == schemeHTTP
	if !plain && slices.ContainsFunc(KnownHosts(), func(known string) bool { return a.host == known || strings.HasSuffix(a.host, "."+known) }) && a.port == "" {
		return nil
	}
	for _, host := range hosts {
		bare, allowsPlain := strings.CutPrefix(strings.ToLower(host), "http://")
		if (bare == a.hostPort() || bare == a.host) && (!plain || allowsPlain) {
			return nil
		}
	}
	if plain {
		return guideway.Errorf(guideway.CodeForbidden, "the connection to %s would not be encrypted, which is not allowed", a.hostPort()).
			WithFix("use https, or put \"http://%s\" into workflows.hosts", a.hostPort())
	}
	return guideway.Errorf(guideway.CodeForbidden, "fetching repositories from the host %s is not allowed", a.hostPort()).
		WithFix("if you trust the host, add %q to workflows.hosts", a.hostPort())
}

// refPattern matches names of ASCII letters, digits and a few other characters. git allows
// more.
var refPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9/_.+@#-]*$`) })

// checkRef refuses names of branches and tags that git does not accept, and those that
// refPattern does not match.
func checkRef(what, name string) error {
	ok := name == "" || refPattern().MatchString(name) && len(name) <= 250 && !strings.Contains(name, "..") && !strings.Contains(name, "@{") &&
		!strings.Contains(name, "//") && !strings.HasSuffix(name, "/") && !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, ".lock")
	if ok {
		return nil
	}
	return guideway.Errorf(guideway.CodeInvalid, "%q is not a valid %s name", name, what).WithFix("use a name such as \"main\": at most 250 ASCII letters, digits and / _ . + @ # -, without .., // and @{, and not ending with /, . or .lock")
}

var commitPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}$`) })

// TokenVariables are the names of the variables that may hold the token for a host. The
// first one that is set is used.
func TokenVariables(host string) []string {
	special := map[string]string{"github.com": "GITHUB_TOKEN", "gitlab.com": "GITLAB_TOKEN", "bitbucket.org": "BITBUCKET_TOKEN"}
	if name := special[host]; name != "" {
		return []string{name}
	}
	own := "GIT_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_", ":", "_").Replace(host)) + "_TOKEN"
	return []string{own, "WORKFLOW_GIT_AUTH_TOKEN", "GIT_TOKEN"}
}
