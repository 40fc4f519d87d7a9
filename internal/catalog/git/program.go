package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
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

// safeSettings returns settings that override the user's, the system's and a local
// repository's settings. Without them, git could execute a program of a repository's
// choice, fetch more than one commit, follow a redirect to another host, or need much
// memory.
func safeSettings() [][2]string {
	return [][2]string{
		{"core.hooksPath", os.DevNull},
		{"core.fsmonitor", "false"},
		{"core.alternateRefsCommand", "false"},
		{"submodule.recurse", "false"},
		{"fetch.recurseSubmodules", "false"},
		{"fetch.uriProtocols", ""},
		{"transfer.bundleURI", "false"},
		{"http.followRedirects", "false"},
		{"credential.interactive", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"fetch.writeCommitGraph", "false"},
		{"fetch.unpackLimit", "1"}, // The fetched objects stay in one file, whose size is watched.
		{"pack.threads", "1"},
		{"core.bigFileThreshold", "1m"},
		{"core.packedGitLimit", "256m"},
		{"core.packedGitWindowSize", "16m"},
	}
}

// makeEnvironment returns the environment of git: that of this process, safeSettings, and
// the settings in more. It omits the variables that begin with GIT_, except those for ssh,
// TLS and HTTP, for the directory of git's programs, and for the files of the user's and
// the system's settings.
func makeEnvironment(protocols string, more [][2]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		kept := regexp.MustCompile(`^GIT_(SSH|SSL_|PROXY_SSL_|HTTP_|EXEC_PATH$|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)$)`)
		return strings.HasPrefix(name, "GIT_") && !kept.MatchString(name)
	})
	env = append(
		env, "LC_ALL=C", "LANGUAGE=", "GIT_ALLOW_PROTOCOL="+protocols, "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		// Git must not prompt: there may be no person, and several processes fetch.
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never",
	)
	all := append(safeSettings(), more...)
	for i, s := range all {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
}

// runCommand runs a git command with a text as its input, and passes its output to read. If
// read fails or ctx ends, git is killed with all processes that it has started.
func (p program) runCommand(ctx context.Context, input string, read func(out *bufio.Reader) error, args ...string) error {
	killable, cancel := context.WithCancel(ctx)
	defer cancel()
	name, all := boundMemory(p.path, args)
	cmd := exec.CommandContext(killable, name, all...) //nolint:gosec // G204: git, with arguments that this package makes
	cmd.Env = append(slices.Clip(p.env), "GIT_DIR="+p.dir)
	cmd.Dir = os.TempDir()
	cmd.Stdin = strings.NewReader(input)
	var messages head
	cmd.Stderr = &messages
	ownSession(cmd)
	cmd.Cancel = func() error { return killSession(cmd) }
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	readErr := read(bufio.NewReader(out))
	if readErr != nil {
		cancel()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &exit) && exit.Exited():
		return explainMessages(messages.String())
	case readErr != nil:
		return fmt.Errorf("read from git %s: %w", args[0], readErr)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil // Processes that outlive git, such as a credential cache, keep its output open.
	default:
		return err
	}
}

// head keeps the first 16 KiB written to it.
type head struct{ bytes.Buffer }

// Write implements io.Writer.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, 16<<10-h.Len()))])
	return len(p), nil
}

// explanations are the common failures, by the output of git and ssh.
var explanations = sync.OnceValue(func() []explanation {
	return []explanation{
		{`REMOTE HOST IDENTIFICATION HAS CHANGED`, guideway.CodeForbidden, "the host's key differs from the known key", "find out why before you change known_hosts"},
		{`Host key verification failed|No \S+ host key is known`, guideway.CodeForbidden, "the key of the host is not known", "log in once with ssh, which adds the key to known_hosts"},
		{`Permission denied \(`, guideway.CodeForbidden, "the host accepts none of your keys", "start ssh-agent and add a key, or set sshKey"},
		{`returned error: 30\d`, guideway.CodeForbidden, errRedirect, "use the new address of the repository"},
		{
			`Authentication failed|could not read (Username|Password)|returned error: 40[13]`, guideway.CodeForbidden,
			"the host denied access, or the repository does not exist", "set the environment variable of the host's token, or give git a credential; see docs/sources.md",
		},
		{`(?i)repository .*not found|does not appear to be a git repository|returned error: 404`, guideway.CodeNotFound, "the repository does not exist on the host", "check the address; a private repository requires a token"},
		{`not our ref|unadvertised object`, guideway.CodeUnavailable, "the host serves only commits of branches and tags, and the requested commit is not one of them", "set branch or tag instead of commit"},
		{`transport '.*' not allowed`, guideway.CodeForbidden, "your git settings select a protocol that is not allowed", "remove or change url.*.insteadOf in your git settings"},
	}
})

const errRedirect = "the repository has moved: the host redirects to another address, which is not followed"

type explanation struct {
	pattern      string
	code         guideway.Code
	message, fix string
}

// explainMessages converts the output of git to an error with a fix. The error shows no
// user and no password of an address.
func explainMessages(text string) error {
	for _, e := range explanations() {
		if regexp.MustCompile(e.pattern).MatchString(text) {
			return guideway.Errorf(e.code, "%s", e.message).WithFix("%s", e.fix)
		}
	}
	message := "git failed"
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !regexp.MustCompile(`^(warning|remote|hint):`).MatchString(line) {
			message = strings.TrimPrefix(line, "fatal: ")
			break
		}
	}
	return errors.New(regexp.MustCompile(`://[^/@\s']*@`).ReplaceAllString(message, "://"))
}
