package git

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/gitrun"
)

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
