package git_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog/git"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// userConfig writes a file with these lines and makes it git's configuration of the user.
func userConfig(t *testing.T, lines ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("this test needs shell scripts")
	}
	file := filepath.Join(t.TempDir(), "gitconfig")
	checkError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	t.Setenv("GIT_CONFIG_GLOBAL", file)
}

// writeScript writes a shell script, and returns its path.
func writeScript(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	checkError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	return path
}

// No process of a fetch has the token in its arguments, and no credential helper of the
// user is started.
func TestTokenNotInArguments(t *testing.T) {
	const token = "s3cret-token-of-the-team"
	r := newRepo(t)
	server := smartHTTP(t, filepath.Dir(r.dir), token)
	traces, asked := t.TempDir(), filepath.Join(t.TempDir(), "asked")
	userConfig(t, "[trace2]", "eventTarget = "+traces, "[credential]", "helper = !echo >"+asked)
	t.Setenv("GIT_TRACE_CURL", filepath.Join(traces, "curl"))
	s := newSource(t, t.TempDir(), git.Options{
		URL: server.URL + "/repo", Hosts: []string{"http://" + strings.TrimPrefix(server.URL, "http://")},
		Credentials: func(string) (string, string) { return "", token },
	})
	syncSource(t, s)
	if diff := cmp.Diff([]string{"one@1.0.0"}, servedNames(t, s)); diff != "" {
		t.Error(diff)
	}
	assertNowhere(t, traces, token)
	files, err := os.ReadDir(traces)
	if err != nil || len(files) < 5 {
		t.Errorf("the processes wrote %d files: %v", len(files), err)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("a credential helper of the user was started")
	}
}

// TestUserSettingsAreUsed fetches with the credential helper, the insteadOf and the ssh
// command of the user's git settings.
func TestUserSettingsAreUsed(t *testing.T) {
	const token = "s3cret-token-of-the-user"
	r := newRepo(t)
	server := smartHTTP(t, filepath.Dir(r.dir), token)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	checkError(t, err)
	key, err := ssh.NewPublicKey(public)
	checkError(t, err)
	address, host := sshServer(t, key)
	dir := t.TempDir()
	block, err := ssh.MarshalPrivateKey(private, "")
	checkError(t, err)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		checkError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	id := write("id", string(pem.EncodeToMemory(block)))
	known := write("known", knownhosts.Line([]string{address}, host)+"\n")
	name, port, _ := strings.Cut(address, ":")
	settings := write("config", "Host work_alias\n  HostName "+name+"\n  Port "+port+"\n  User git\n  IdentityFile "+id+"\n  UserKnownHostsFile "+known+"\n")
	userConfig(
		t, "[credential]", `helper = "!f() { echo username=x; echo password=`+token+`; }; f"`,
		"[core]", "sshCommand = ssh -F "+settings, `[url "ssh://work_alias/"]`, "insteadOf = https://github.com/",
	)
	for _, url := range []string{server.URL + "/repo", "work_alias:" + r.dir, "ssh://work_alias" + r.dir, "https://github.com" + r.dir} {
		s := newSource(t, t.TempDir(), git.Options{URL: url, Hosts: []string{"http://" + strings.TrimPrefix(server.URL, "http://")}})
		syncSource(t, s)
		if diff := cmp.Diff([]string{"one@1.0.0"}, servedNames(t, s)); diff != "" {
			t.Errorf("%s: %s", url, diff)
		}
	}
}

// TestNoHookIsExecuted checks that git starts no program that the user's settings or a
// local repository name.
func TestNoHookIsExecuted(t *testing.T) {
	r := newRepo(t)
	touched := filepath.Join(t.TempDir(), "touched")
	evil := writeScript(t, "evil", "touch "+touched+"; exit 1")
	hooks := filepath.Join(t.TempDir(), "hooks")
	checkError(t, os.MkdirAll(hooks, 0o755))
	for _, hook := range []string{"reference-transaction", "post-checkout", "post-merge", "pre-auto-gc", "post-index-change"} {
		checkError(t, os.Symlink(evil, filepath.Join(hooks, hook)))
	}
	userConfig(
		t, "[core]", "hooksPath = "+hooks, "fsmonitor = "+evil, "alternateRefsCommand = "+evil, "[init]", "templateDir = "+filepath.Dir(hooks),
		`[filter "evil"]`, "smudge = "+evil, "process = "+evil, "required = true", "[submodule]", "recurse = true", "[fetch]", "recurseSubmodules = true",
		`[protocol "ext"]`, "allow = always", "[protocol]", "allow = always",
	)
	r.writeFile(".gitattributes", "*.json filter=evil diff=evil\n")
	r.writeFile(".gitmodules", "[submodule \"x\"]\n\tpath = workflows/sub\n\turl = ext::"+evil+"\n")
	r.runGit("add", "-A")
	r.runGit("update-index", "--add", "--cacheinfo", "160000,"+r.runGit("rev-parse", "HEAD")+",workflows/sub")
	r.runGit("commit", "-q", "-m", "evil")
	for _, setting := range [][2]string{
		{"core.fsmonitor", evil},
		{"core.hooksPath", hooks},
		{"core.sshCommand", evil},
		{"core.pager", evil},
		{"filter.evil.smudge", evil},
		{"diff.evil.textconv", evil},
		{"remote.origin.url", "ext::" + evil},
		{"remote.origin.uploadpack", evil},
	} {
		r.runGit("config", setting[0], setting[1])
	}
	checkError(t, os.RemoveAll(filepath.Join(r.dir, ".git", "hooks")))
	checkError(t, os.Symlink(hooks, filepath.Join(r.dir, ".git", "hooks")))
	server := smartHTTP(t, filepath.Dir(r.dir), "")
	hosts := []string{"http://" + strings.TrimPrefix(server.URL, "http://")}
	for _, url := range []string{r.dir, server.URL + "/repo"} {
		s := newSource(t, t.TempDir(), git.Options{URL: url, Hosts: hosts})
		syncSource(t, s)
		if diff := cmp.Diff([]string{"one@1.0.0"}, servedNames(t, s)); diff != "" {
			t.Error(diff)
		}
	}

	// This local repository names a program as the source of missing objects.
	blob := r.runGit("rev-parse", "HEAD:workflows/one.json")
	checkError(t, os.Remove(filepath.Join(r.dir, ".git", "objects", blob[:2], blob[2:])))
	for _, setting := range [][2]string{
		{"extensions.partialClone", "origin"}, {"remote.origin.promisor", "true"}, {"protocol.ext.allow", "always"}, {"core.repositoryFormatVersion", "1"},
	} {
		r.runGit("config", setting[0], setting[1])
	}
	for _, url := range []string{"ext::" + evil, "/dev/null/x", "evil"} {
		r.runGit("config", "remote.origin.url", url)
		_, _ = newSource(t, t.TempDir(), git.Options{URL: r.dir}).Sync(t.Context())
	}

	// User settings that make git start a program.
	userConfig(t, `[url "ext::`+evil+` "]`, "insteadOf = "+server.URL, `[protocol "ext"]`, "allow = always")
	if _, err := newSource(t, t.TempDir(), git.Options{URL: server.URL + "/repo", Hosts: hosts}).Sync(t.Context()); guideway.ErrorCode(err) != guideway.CodeForbidden {
		t.Errorf("a program as transport returns %v", err)
	}
	if _, err := os.Stat(touched); err == nil {
		t.Error("a program was started")
	}
}

// TestWorkingDirectoryIsNotRead checks that a fetch ignores a hostile repository in the
// working directory, and the variables that its hooks would set.
func TestWorkingDirectoryIsNotRead(t *testing.T) {
	r := newRepo(t)
	server := smartHTTP(t, filepath.Dir(r.dir), "token")
	touched := filepath.Join(t.TempDir(), "touched")
	hostile := newRepo(t)
	hostile.runGit("config", "credential.helper", "!touch "+touched+";")
	hostile.runGit("config", "http.proxy", "http://127.0.0.1:1")
	t.Chdir(hostile.dir)
	t.Setenv("GIT_DIR", filepath.Join(hostile.dir, ".git"))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
	t.Setenv("GIT_CONFIG_VALUE_0", hostile.dir)
	t.Setenv("GIT_ALLOW_PROTOCOL", "ext:file")
	s := newSource(t, t.TempDir(), git.Options{
		URL: server.URL + "/repo", Hosts: []string{"http://" + strings.TrimPrefix(server.URL, "http://")},
		Credentials: func(string) (string, string) { return "", "token" },
	})
	syncSource(t, s)
	if _, err := os.Stat(touched); err == nil {
		t.Error("a program was started")
	}
}

// If the context is canceled while a host does not answer, git and the processes that it
// has started end.
func TestHangIsKilled(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	userConfig(t, "[core]", "sshCommand = "+writeScript(t, "ssh", "sleep 1000 & echo $! >"+pid+".new; mv "+pid+".new "+pid+"; wait"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	s := newSource(t, t.TempDir(), git.Options{URL: "ssh://git@host/x"})
	go func() {
		_, err := s.Sync(ctx)
		ended <- err
	}()
	var child int
	waitFor(t, func() bool {
		text, err := os.ReadFile(pid)
		child, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	waitFor(t, func() bool { return isGone(child) })
}

// isGone reports whether a process has ended, even if it has no exit status yet.
func isGone(pid int) bool {
	if p, err := os.FindProcess(pid); err != nil || p.Signal(syscall.Signal(0)) != nil {
		return true
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		if err := ctxsleep.For(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the expected state was not reached in time")
}

// If the git program is missing or too old, the error names it and has a fix.
func TestWithoutGit(t *testing.T) {
	r := newRepo(t)
	old := filepath.Dir(writeScript(t, "git", "echo git version 2.20.1"))
	for path, want := range map[string]string{t.TempDir(): "is not on PATH", old: "git 2.20.1 is too old"} {
		t.Setenv("PATH", path)
		_, err := newSource(t, t.TempDir(), git.Options{URL: r.dir}).Sync(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(guideway.ErrorFix(err), "install git") {
			t.Errorf("error is %v, fix %q", err, guideway.ErrorFix(err))
		}
	}
}
