// Package git brings the definitions of a git repository: over https, over ssh, or
// from a directory. It fetches one commit, without its history, takes the documents
// out of it and forgets the rest: no repository is kept, nothing is checked out,
// and nothing of what is fetched is ever executed. No program is started.
package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
)

// Options say what is followed; URL is needed.
type Options struct {
	// URL is https://host/path, ssh://user@host/path, git@host:path, file:///path or
	// an absolute path.
	URL string
	// Branch, Tag or Commit is what is followed; nothing is the default branch. A
	// branch "main" or "master" that is not there means the default branch, too.
	Branch, Tag, Commit string
	// Path is the directory of the definitions in the repository. Without it that is
	// "workflows", else ".guideway/workflows", else the repository.
	Path string
	// Hosts are allowed besides KnownHosts; see address.allowed.
	Hosts []string
	// Credentials gives the user and the token for a host of https; nil and an empty
	// token mean none. They are asked for at every fetch and kept nowhere.
	Credentials func(host string) (user, token string)
	// SSH says how hosts of ssh are reached.
	SSH SSH
	// Limits bound what a repository may have.
	Limits Limits
}

// Limits bound what a repository may have. A zero field means the default.
type Limits struct {
	// Bytes bounds what is transferred: 64 MiB.
	Bytes int64
	// Files bounds the documents: 1,000; FileBytes one of them: 1 MiB.
	Files     int
	FileBytes int64
}

// Fetcher brings what a repository has.
type Fetcher struct {
	opts    Options
	address address
}

var _ mirror.Fetcher = (*Fetcher)(nil)

// New checks what is to be followed. Nothing is reached yet.
func New(opts Options) (*Fetcher, error) {
	a, err := parseAddress(opts.URL)
	if err != nil {
		return nil, err
	}
	if err := a.allowed(opts.Hosts); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkRef("branch", opts.Branch), checkRef("tag", opts.Tag)); err != nil {
		return nil, err
	}
	if opts.Commit != "" && !commitPattern().MatchString(opts.Commit) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%q is not a commit", opts.Commit).WithFix("give all 40 digits of its hash")
	}
	if named := len(slices.DeleteFunc([]string{opts.Branch, opts.Tag, opts.Commit}, func(s string) bool { return s == "" })); named > 1 {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a repository is followed by a branch, a tag or a commit").WithFix("name one of the three")
	}
	opts.Path = strings.Trim(opts.Path, "/")
	if opts.Path == "." {
		opts.Path = ""
	}
	if opts.Path != "" && (path.Clean(opts.Path) != opts.Path || !mirror.IsSafe(opts.Path)) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "%q is not a directory of a repository", opts.Path).WithFix("name it from the root of the repository, such as \"team/workflows\"")
	}
	opts.Limits.Bytes = cmp.Or(opts.Limits.Bytes, 64<<20)
	opts.Limits.Files = cmp.Or(opts.Limits.Files, 1_000)
	opts.Limits.FileBytes = cmp.Or(opts.Limits.FileBytes, 1<<20)
	return &Fetcher{opts: opts, address: a}, nil
}

// Location is the address of the repository, without anything secret.
func (f *Fetcher) Location() string { return f.address.String() }

// Name is a name for the repository: the last part of its path.
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

// Origin says what is followed, so that a copy of something else is known as such.
func (f *Fetcher) Origin() string {
	text := strings.Join([]string{f.address.String(), f.opts.Branch, f.opts.Tag, f.opts.Commit, f.opts.Path}, "\n")
	sum := sha256.Sum256([]byte(text))
	return "git:" + hex.EncodeToString(sum[:])
}

// target is a commit that is to be brought.
type target struct {
	hash      plumbing.Hash
	reference string
	// advertised says that the other side names it itself.
	advertised bool
}

// Fetch implements mirror.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, have *mirror.Have, stage func() (*mirror.Stage, error)) (mirror.Fetched, error) {
	fetch := f.fetchRemote
	if f.address.scheme == schemeFile {
		fetch = f.fetchLocal
	}
	got, err := fetch(ctx, have, stage)
	if err != nil {
		return got, f.explain(err)
	}
	return got, nil
}

// seen says whether a commit is what is there.
func seen(have *mirror.Have, t target) (mirror.Fetched, bool) {
	got := mirror.Fetched{Revision: t.hash.String(), Reference: t.reference}
	return got, have != nil && have.Revision == got.Revision
}

// refs are the references of a repository.
type refs interface {
	// find gives the commit of a reference by its whole name.
	find(name string) (plumbing.Hash, bool)
	// head gives the commit and the name of the default branch.
	head() (plumbing.Hash, string, bool)
}

// choose finds what is followed.
func (f *Fetcher) choose(r refs) (target, error) {
	switch {
	case f.opts.Commit != "":
		return target{hash: plumbing.NewHash(f.opts.Commit), reference: "commit"}, nil
	case f.opts.Tag != "":
		if hash, ok := r.find("refs/tags/" + f.opts.Tag); ok {
			return target{hash: hash, reference: f.opts.Tag, advertised: true}, nil
		}
		return target{}, guideway.Errorf(guideway.CodeNotFound, "the repository has no tag %q", f.opts.Tag)
	case f.opts.Branch != "":
		if hash, ok := r.find("refs/heads/" + f.opts.Branch); ok {
			return target{hash: hash, reference: f.opts.Branch, advertised: true}, nil
		}
		if f.opts.Branch != "main" && f.opts.Branch != "master" {
			return target{}, guideway.Errorf(guideway.CodeNotFound, "the repository has no branch %q", f.opts.Branch)
		}
	}
	hash, name, ok := r.head()
	if !ok {
		return target{}, guideway.Errorf(guideway.CodeNotFound, "the repository has no default branch").WithFix("name a branch")
	}
	return target{hash: hash, reference: name, advertised: true}, nil
}

// explain turns what the libraries say into what a person can use. It never has
// more of an address than String shows.
func (f *Fetcher) explain(err error) error {
	if guideway.ErrorCode(err) != guideway.CodeInternal {
		return err
	}
	message := err.Error()
	for _, secret := range f.secrets() {
		message = strings.ReplaceAll(message, secret, "…")
	}
	return guideway.Errorf(guideway.CodeUnavailable, "fetch %s: %s", f.address, message)
}

// secrets are the texts that must not be shown.
func (f *Fetcher) secrets() []string {
	var all []string
	for _, s := range []string{f.address.secret, f.token()} {
		if len(s) > 3 {
			all = append(all, s)
		}
	}
	return all
}

// token is the secret for a host of https; "" is none.
func (f *Fetcher) token() string {
	_, token := f.credentials()
	return token
}

// credentials are the user and the token for a host of https.
func (f *Fetcher) credentials() (user, token string) {
	if f.address.secret != "" {
		return cmp.Or(f.address.user, userFor(f.address.host)), f.address.secret
	}
	if f.opts.Credentials == nil {
		return "", ""
	}
	user, token = f.opts.Credentials(f.address.hostPort())
	return cmp.Or(user, userFor(f.address.host)), token
}

// userFor is the name that a host wants beside a token.
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

// export takes the documents of a commit into a version.
func (f *Fetcher) export(ctx context.Context, s storer.EncodedObjectStorer, t target, filtered bool, stage *mirror.Stage) error {
	e := &export{storer: s, limits: f.opts.Limits, stage: stage, filtered: filtered}
	if err := e.run(ctx, t.hash, f.opts.Path); err != nil {
		return fmt.Errorf("read the commit %s: %w", t.hash.String()[:12], err)
	}
	return nil
}
