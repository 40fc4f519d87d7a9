// Package git fetches the definitions of a git repository: over https, http or ssh, or from
// a directory. The git program fetches one commit, without its history, with the
// credentials, proxies and ssh settings of the user. The package copies the documents out
// of the commit and removes the rest: no repository is kept, nothing is checked out, and
// nothing from the repository is ever executed.
package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/mirror"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/gitrun"
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

// readCredentials returns the user and the token for the host; the token is "" if no
// variable or setting has one.
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

// program runs git with an environment and settings in which it executes nothing
// that a repository names.
type program struct {
	path string
	// dir is the directory of the repository's objects; os.DevNull means none, because it
	// never contains settings.
	dir string
	env []string
}

// Version returns the version of the git program on PATH. It returns an error with
// a fix if git is missing, or too old to take settings from its environment.
func Version(ctx context.Context) (string, error) {
	p, err := findProgram()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var text string
	err = p.runCommand(ctx, "", func(out *bufio.Reader) error {
		text, err = out.ReadString('\n')
		return err
	}, "version")
	if err != nil {
		return "", err
	}
	version := strings.TrimSpace(strings.TrimPrefix(text, "git version "))
	m := regexp.MustCompile(`^(\d{1,4})\.(\d{1,4})`).FindStringSubmatch(version)
	if m == nil {
		return "", guideway.Errorf(guideway.CodeUnavailable, "the program %s did not print a git version", p.path).WithFix(installFix)
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	if major < 2 || major == 2 && minor < 31 {
		return "", guideway.Errorf(guideway.CodeUnavailable, "git %s is too old to fetch repositories", version).WithFix(installFix)
	}
	return version, nil
}

const installFix = "install git 2.31 or newer (https://git-scm.com/downloads) and put it on PATH"

// findProgram looks for git on PATH.
func findProgram() (program, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return program{}, guideway.Errorf(guideway.CodeUnavailable, "git is required to fetch repositories, but is not on PATH").WithFix(installFix)
	}
	return program{path: path, dir: os.DevNull, env: makeEnvironment("", nil)}, nil
}

// makeEnvironment returns the environment of git with the settings of package gitrun and
// the settings in more. It omits the variables that begin with GIT_, except those for ssh,
// TLS and HTTP, for the directory of git's programs, and for the files of the user's and
// the system's settings.
func makeEnvironment(protocols string, more [][2]string) []string {
	kept := regexp.MustCompile(`^GIT_(SSH|SSL_|PROXY_SSL_|HTTP_|EXEC_PATH$|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$)`)
	return gitrun.MakeEnvironment(kept, protocols, more)
}

// runCommand runs a git command with a text as its input, and passes its output to read. If
// read fails or ctx ends, git is killed with all processes that it has started.
func (p program) runCommand(ctx context.Context, input string, read func(out *bufio.Reader) error, args ...string) error {
	err := gitrun.Program{Path: p.path, Dir: p.dir, Env: p.env}.Run(ctx, strings.NewReader(input), read, args...)
	var failure *gitrun.Failure
	if errors.As(err, &failure) {
		return explainFailure(failure)
	}
	return err
}

// explanations are the common failures, by the output of git and ssh.
var explanations = sync.OnceValue(func() []explanation {
	return []explanation{
		{`REMOTE HOST IDENTIFICATION HAS CHANGED`, guideway.CodeForbidden, "the host's key differs from the known key", "find out why before you change known_hosts"},
		{`Host key verification failed|No \S+ host key is known`, guideway.CodeForbidden, "the key of the host is not known", "log in once with ssh, which adds the key to known_hosts, or add it to the file that \"knownHosts\" of the source names"},
		{`Permission denied \(`, guideway.CodeForbidden, "the host accepts none of your keys", "add your public key to your account on the host; load the private key into ssh-agent, or set \"sshKey\" of the source to its file"},
		{`returned error: 30\d`, guideway.CodeForbidden, errRedirect, "use the new address of the repository"},
		{
			`Authentication failed|could not read (Username|Password)|returned error: 40[13]`, guideway.CodeForbidden,
			"the host denied access, or the repository does not exist", "set the variable of the host's token, such as GITHUB_TOKEN for github.com, or give git a credential; see docs/sources.md",
		},
		{`(?i)repository .*not found|does not appear to be a git repository|returned error: 404`, guideway.CodeNotFound, "the repository does not exist on the host", "check the address; a private repository requires a token"},
		{`not our ref|unadvertised object`, guideway.CodeUnavailable, "the host does not serve the requested commit: it does not exist, or the host serves only the newest commits of branches and tags", "check the hash in \"commit\" of the source, or set \"branch\" or \"tag\" instead"},
		{`transport '.*' not allowed`, guideway.CodeForbidden, "your git settings select a protocol that is not allowed", "remove or change url.*.insteadOf in your git settings"},
	}
})

const errRedirect = "the repository has moved: the host redirects to another address, which is not followed"

type explanation struct {
	pattern      string
	code         guideway.Code
	message, fix string
}

// explainFailure converts a failure of git to an error with a fix. The error shows no user
// and no password of an address.
func explainFailure(failure *gitrun.Failure) error {
	for _, e := range explanations() {
		if regexp.MustCompile(e.pattern).MatchString(failure.Messages) {
			return guideway.Errorf(e.code, "%s", e.message).WithFix("%s", e.fix)
		}
	}
	return errors.New(failure.Error())
}
