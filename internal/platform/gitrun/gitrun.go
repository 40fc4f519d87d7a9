// Package gitrun runs the git program with an environment and settings in which it executes
// nothing that a repository names.
package gitrun

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/procsession"
)

// maxMemory is the maximum memory of git, if the system supports it.
const maxMemory = 2 << 30

// Program is the git program. Its commands have no directory of a work tree.
type Program struct {
	Path string
	// Dir is the directory of the repository; os.DevNull means none, because it never
	// contains settings.
	Dir string
	Env []string
}

// SafeSettings returns settings that override the user's, the system's and a local
// repository's settings. Without them, git could execute a program of a repository's
// choice, fetch more than one commit, follow a redirect to another host, or need much
// memory.
func SafeSettings() [][2]string {
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

// MakeEnvironment returns the environment of git: that of this process, SafeSettings, and
// the settings in more. It omits the variables that begin with GIT_, except those whose
// name matches kept. Git uses only the given protocols, separated by colons.
func MakeEnvironment(kept *regexp.Regexp, protocols string, more [][2]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(entry), "=")
		return strings.HasPrefix(name, "GIT_") && (kept == nil || !kept.MatchString(name))
	})
	env = append(
		env, "LC_ALL=C", "LANGUAGE=", "GIT_ALLOW_PROTOCOL="+protocols, "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		// Git must not prompt: there may be no person, and several processes fetch.
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never",
	)
	all := append(SafeSettings(), more...)
	for i, s := range all {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
}

// Failure is the error of a git command that exited with an error. Messages is the
// beginning of its standard error.
type Failure struct {
	Messages string
	Err      error
}

// Error implements error.
func (f *Failure) Error() string {
	for line := range strings.Lines(f.Messages) {
		if line = strings.TrimSpace(line); line != "" && !regexp.MustCompile(`^(warning|remote|hint):`).MatchString(line) {
			// A user or a password in an address is not shown.
			return regexp.MustCompile(`://[^/@\s']*@`).ReplaceAllString(strings.TrimPrefix(line, "fatal: "), "://")
		}
	}
	return fmt.Sprintf("git failed without a message: %v", f.Err)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Run runs a git command with an input, and passes its output to read. If read fails or ctx
// ends, git is killed with all processes that it has started. If git exits with an error,
// the error is a *Failure.
func (p Program) Run(ctx context.Context, input io.Reader, read func(out *bufio.Reader) error, args ...string) error {
	killable, cancel := context.WithCancel(ctx)
	defer cancel()
	name, all := boundedCommand(p.Path, args)
	cmd := exec.CommandContext(killable, name, all...) //nolint:gosec // G204: git, with arguments that the callers make
	cmd.Env = append(slices.Clip(p.Env), "GIT_DIR="+p.Dir)
	cmd.Dir = os.TempDir()
	cmd.Stdin = input
	var messages head
	cmd.Stderr = &messages
	procsession.Own(cmd)
	cmd.Cancel = func() error { return procsession.Kill(cmd) }
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git: %w", err)
	}
	if err := boundMemory(cmd); err != nil {
		cancel()
		return errors.Join(fmt.Errorf("limit the memory of git: %w", err), cmd.Wait())
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
		return &Failure{Messages: messages.String(), Err: err}
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
