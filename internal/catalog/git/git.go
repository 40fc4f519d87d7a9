// Package git fetches the definitions of a git repository: over https, http or ssh, or from
// a directory. The git program fetches one commit, without its history, with the
// credentials, proxies and ssh settings of the user. The package copies the documents out
// of the commit and removes the rest: no repository is kept, nothing is checked out, and
// nothing from the repository is ever executed.
package git

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
	"github.com/guideway-dev/guideway/internal/platform/digest"
)

// Options name a repository and a commit of it; URL is required.
type Options struct {
	// URL is https://host/path, http://host/path, ssh://user@host/path, git@host:path,
	// file:///path or an absolute path.
	URL string
	// Branch, Tag or Commit is followed; if all are empty, the default branch. A
	// branch "main" or "master" that does not exist means the default branch, too.
	Branch, Tag, Commit string
	// Path is the directory of the definitions in the repository. If it is empty,
	// "workflows" is used, or else ".guideway/workflows", or else the whole repository.
	Path string
	// Hosts are allowed in addition to KnownHosts; see address.checkAllowed.
	Hosts []string
	// Credentials returns the user and the token for a host. It is not used if URL contains
	// a token. If it is nil or returns no token, git uses the user's own credentials. The
	// results are not stored.
	Credentials func(host string) (user, token string)
	// SSH takes precedence over the user's ssh settings.
	SSH SSH
	// Limits bound the content of a repository.
	Limits mirror.Limits
}

// SSH names files for ssh hosts; "" means the user's ssh settings.
type SSH struct {
	// Key is the file of a private key, and KnownHosts is the file of the accepted host
	// keys.
	Key, KnownHosts string
}

// Fetcher fetches the definitions of a repository.
type Fetcher struct {
	opts    Options
	address address
}

var _ mirror.Fetcher = (*Fetcher)(nil)

// New returns a fetcher for checked options. It contacts no host.
func New(opts Options) (*Fetcher, error) {
	a, err := parseAddress(opts.URL)
	if err != nil {
		return nil, err
	}
	if err := a.checkAllowed(opts.Hosts); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkRef("branch", opts.Branch), checkRef("tag", opts.Tag)); err != nil {
		return nil, err
	}
	if opts.Commit != "" && !commitPattern().MatchString(opts.Commit) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%q is not a full commit hash", opts.Commit).WithFix("use all 40 lowercase hexadecimal digits of the hash")
	}
	if named := len(slices.DeleteFunc([]string{opts.Branch, opts.Tag, opts.Commit}, func(s string) bool { return s == "" })); named > 1 {
		return nil, guideway.Errorf(guideway.CodeInvalid, "only one of branch, tag and commit can be set").WithFix("set only one of branch, tag and commit")
	}
	opts.Path = strings.Trim(opts.Path, "/")
	if opts.Path == "." {
		opts.Path = ""
	}
	if opts.Path != "" && (path.Clean(opts.Path) != opts.Path || !mirror.IsSafe(opts.Path)) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%q is not a valid path of a directory in the repository", opts.Path).WithFix("use a path from the root of the repository such as \"team/workflows\", without . or .., and only with names that are valid on every system")
	}
	opts.Limits = opts.Limits.WithDefaults()
	return &Fetcher{opts: opts, address: a}, nil
}

// Location returns the address of the repository without secrets.
func (f *Fetcher) Location() string { return f.address.String() }

// Name returns a name for the repository, made from the last part of its path.
func (f *Fetcher) Name() string {
	name := strings.TrimSuffix(path.Base(strings.ReplaceAll(f.address.path, `\`, "/")), ".git")
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name))
	return cmp.Or(strings.Trim(name, "-"), "git")
}

// Origin returns a hash of the options that select a commit and a directory, so that a copy
// that was made with other options is recognized.
func (f *Fetcher) Origin() string {
	text := strings.Join([]string{f.address.String(), f.opts.Branch, f.opts.Tag, f.opts.Commit, f.opts.Path}, "\n")
	return "git:" + digest.Hex(text)
}

// Fetch implements mirror.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, have *mirror.Previous, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	got, err := f.fetchNewer(ctx, have, stage)
	if err != nil {
		return got, f.addAddress(err)
	}
	return got, nil
}

// addAddress adds the address, without secrets, to an internal error, and removes the token
// from the message.
func (f *Fetcher) addAddress(err error) error {
	if guideway.ErrorCode(err) != guideway.CodeInternal {
		return err
	}
	message := err.Error()
	if _, token := f.readCredentials(); len(token) > 3 {
		message = strings.ReplaceAll(message, token, "…")
	}
	said := guideway.Errorf(guideway.CodeUnavailable, "fetch %s: %s", f.address, message)
	if errors.Is(err, mirror.ErrTooMuch) {
		said = said.WithFix("set \"path\" of the source to a directory of the repository")
	}
	return said
}

// readCredentials returns the user and the token for the host; the token is "" if there is
// none.
func (f *Fetcher) readCredentials() (user, token string) {
	if f.address.secret != "" {
		return cmp.Or(f.address.user, userFor(f.address.host)), f.address.secret
	}
	if f.opts.Credentials == nil {
		return "", ""
	}
	user, token = f.opts.Credentials(f.address.hostPort())
	return cmp.Or(user, userFor(f.address.host)), token
}

// userFor returns the user that a host expects with a token.
func userFor(host string) string {
	switch host {
	case "gitlab.com":
		return "oauth2"
	case "bitbucket.org":
		return "x-token-auth"
	default:
		return "x-access-token"
	}
}
