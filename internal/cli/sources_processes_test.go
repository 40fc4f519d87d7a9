package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// machineOfTeam is the bundled machine that writeMachine copies. It has all four files of a
// machine.
const machineOfTeam = "code-and-review"

// sourceUser is one user on one machine, whose commands are separate processes.
type sourceUser struct {
	*testing.T
	home string
	env  []string
}

// newSourceUser returns a user with an empty home, which is also the working directory.
func newSourceUser(t *testing.T, env ...string) *sourceUser {
	t.Helper()
	return &sourceUser{T: t, home: t.TempDir(), env: env}
}

// newCommand prepares a command; more is added to the environment.
func (h *sourceUser) newCommand(args []string, more ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.Context(), "guideway", args...)
	cmd.Dir = h.home
	// PATH contains the directory of this program, and no node, which could have packages
	// next to it.
	cmd.Env = append([]string{"HOME=" + h.home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "GUIDEWAY_INCLUDE_PLUGINS=false"}, h.env...)
	cmd.Env = append(cmd.Env, more...)
	return cmd
}

// runCommand runs a command, and returns its output and whether it succeeded.
func (h *sourceUser) runCommand(args []string, more ...string) (string, bool) {
	h.Helper()
	out, err := h.newCommand(args, more...).CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		h.Fatalf("%v: %v", args, err)
	}
	return string(out), err == nil
}

// mustRun runs a command that must succeed, and returns its output.
func (h *sourceUser) mustRun(args ...string) string {
	h.Helper()
	out, good := h.runCommand(args)
	if !good {
		h.Fatalf("%v: %s", args, out)
	}
	return out
}

// listVersions returns the versions of the definitions of a source, by their ids.
func (h *sourceUser) listVersions(source string) map[string]string {
	h.Helper()
	out, err := h.newCommand([]string{"list", "--json", "--source", source}).Output()
	if err != nil {
		h.Fatal(err)
	}
	var list struct {
		Definitions []struct{ ID, Version string }
	}
	if err := json.Unmarshal(out, &list); err != nil {
		h.Fatal(err)
	}
	versions := map[string]string{}
	for _, d := range list.Definitions {
		versions[d.ID] = d.Version
	}
	return versions
}

// workflowText returns a workflow with a version.
func workflowText(id, version string) string {
	return fmt.Sprintf(`{"id": %q, "name": "N", "description": "D", "version": %q, "steps": [{"id": "step", "title": "T", "prompt": "P"}]}`, id, version)
}

// writeMachine writes a bundled machine, under another name, into a directory of
// definitions.
func writeMachine(t *testing.T, workflows, name string) {
	t.Helper()
	bundled := filepath.Join("..", "..", "workflows", "machines", machineOfTeam)
	for _, file := range []string{"machine.json", "script.js", "roles.json", "recording.json"} {
		data, err := os.ReadFile(filepath.Join(bundled, file))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), `"workflow_name": "`+machineOfTeam+`"`, `"workflow_name": "`+name+`"`, 1)
		writeFile(t, filepath.Join(workflows, "machines", name, file), text)
	}
}

// gitRepo creates a repository in a directory, and returns a function that commits
// everything.
func gitRepo(t *testing.T, dir string) (commit func()) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this test needs git")
	}
	git := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=T", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	return func() {
		git("add", "-A")
		git("commit", "-q", "-m", "a change")
	}
}

// TestProcessesShareSourceCopy has two processes update one copy at the same time. In every
// other round one of them is killed while it writes: the other one still fetches the newest
// version, and each reader gets all files of one version.
func TestProcessesShareSourceCopy(t *testing.T) {
	t.Parallel()
	const flows = 60
	repo := filepath.Join(t.TempDir(), "repo")
	commit := gitRepo(t, repo)
	h := newSourceUser(t, "WORKFLOW_GIT_REPOS="+repo)
	h.env = append(h.env, "GUIDEWAY_SOURCE_CACHE="+filepath.Join(h.home, "copies"))
	rounds, killed := 6, 0
	for round := range rounds {
		version := fmt.Sprintf("1.0.%d", round)
		for i := range flows {
			writeFile(t, filepath.Join(repo, "workflows", fmt.Sprintf("flow-%02d.json", i)), workflowText(fmt.Sprintf("flow-%02d", i), version))
		}
		commit()
		one, other := h.newCommand([]string{"sources", "sync"}), h.newCommand([]string{"sources", "sync"})
		for _, cmd := range []*exec.Cmd{one, other} {
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan error, 1)
		go func() { ended <- one.Wait() }()
		if round%2 == 1 {
			killed += h.killAtWork(one, ended)
		} else if err := <-ended; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if err := other.Wait(); err != nil {
			t.Errorf("round %d: the second process: %v", round, err)
		}
		versions := h.listVersions("repo")
		for id, got := range versions {
			if got != version {
				t.Errorf("round %d: %s has the version %s", round, id, got)
			}
		}
		if len(versions) != flows {
			t.Errorf("round %d: %d definitions", round, len(versions))
		}
	}
	t.Logf("%d processes were killed while writing", killed)
	left, err := filepath.Glob(filepath.Join(h.home, "copies", "*", "stage-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("files left over: %v (%v)", left, err)
	}
}

// killAtWork kills a process while it writes a version. It returns 1, or 0 if the process
// ended before.
func (h *sourceUser) killAtWork(cmd *exec.Cmd, ended <-chan error) int {
	h.Helper()
	for {
		at, err := filepath.Glob(filepath.Join(h.home, "copies", "*", "stage-*"))
		if err != nil {
			h.Fatal(err)
		}
		if len(at) > 0 {
			_ = cmd.Process.Kill() // the process may have exited
			if err := <-ended; err != nil {
				return 1
			}
			return 0
		}
		select {
		case err := <-ended:
			if err != nil {
				h.Errorf("the server ended before it was stopped: %v", err)
			}
			return 0
		default:
		}
	}
}

var registryAt = regexp.MustCompile(`^ *registry +(\S+)$`)

// serveRegistry starts a server that publishes definitions, and returns its address.
func (h *sourceUser) serveRegistry() *url.URL {
	h.Helper()
	cmd := h.newCommand([]string{"serve", "--registry", "--listen", "127.0.0.1:0"})
	said, err := cmd.StderrPipe()
	if err != nil {
		h.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if found := registryAt.FindStringSubmatch(lines.Text()); found != nil {
			read := make(chan struct{})
			go func() { // otherwise the server blocks when the pipe is full
				defer close(read)
				for lines.Scan() {
				}
			}()
			h.Cleanup(func() { _ = cmd.Process.Kill(); <-read; _ = cmd.Wait() })
			address, err := url.Parse(found[1])
			if err != nil {
				h.Fatal(err)
			}
			return address
		}
	}
	h.Fatalf("the server serves no registry: %v", cmd.Wait())
	return nil
}

// startProxy starts a proxy in front of a registry. unchanged receives a value after a
// response that the index has not changed, and fetched counts the documents.
func startProxy(t *testing.T, registry *url.URL) (address string, unchanged <-chan struct{}, fetched *atomic.Int64) {
	t.Helper()
	told, fetched := make(chan struct{}, 1), new(atomic.Int64)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: registry.Scheme, Host: registry.Host})
			r.Out.Host = registry.Host
		},
		ModifyResponse: func(r *http.Response) error {
			switch {
			case r.StatusCode == http.StatusNotModified:
				select {
				case told <- struct{}{}:
				default:
				}
			case strings.Contains(r.Request.URL.Path, "/documents/"):
				fetched.Add(1)
			}
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL + registry.Path, told, fetched
}

// TestServerAsRegistry checks the registry of a team: a server with the definitions, and a
// server on a laptop that follows it, both as processes.
func TestServerAsRegistry(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	team := newSourceUser(t)
	workflows := filepath.Join(team.home, "workflows")
	writeFile(t, filepath.Join(workflows, "team-task.json"), workflowText("team-task", "1.0.0"))
	writeFile(t, filepath.Join(workflows, "other-task.json"), workflowText("other-task", "1.0.0"))
	writeMachine(t, workflows, "team-desk")
	token := func(scope string, more ...string) string {
		out, err := team.newCommand(append([]string{"token", "create", scope, "--scope", scope}, more...)).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	reads, calls := token("registry"), token("mcp", "--all")
	address, unchanged, fetched := startProxy(t, team.serveRegistry())

	laptop := newSourceUser(t, "GUIDEWAY_REGISTRY_URL="+address, "GUIDEWAY_REGISTRY_ALLOW_PRIVATE=true", "GUIDEWAY_SYNC_INTERVAL=1s")
	for name, key := range map[string]string{"without a token": "", "wrong token": "gdn_wrong", "token with a different scope": calls} {
		out, good := laptop.runCommand([]string{"sources", "sync"}, "GUIDEWAY_REGISTRY_KEY="+key)
		if good || !strings.Contains(out, "registry failed") || key != "" && strings.Contains(out, key) {
			t.Errorf("%s: %v %s", name, good, out)
		}
	}
	if n := fetched.Load(); n > 0 {
		t.Errorf("%d documents were sent without authorization", n)
	}
	laptop.env = append(laptop.env, "GUIDEWAY_REGISTRY_KEY="+reads)
	laptop.mustRun("sources", "sync")

	changed := make(chan struct{}, 1)
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) {
			select {
			case changed <- struct{}{}:
			default:
			}
		},
	})
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: laptop.newCommand([]string{"mcp"})}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	wait := func(what string, told <-chan struct{}) {
		t.Helper()
		select {
		case <-told:
		case <-ctx.Done():
			t.Fatalf("no %s in time", what)
		}
	}
	select { // discard a report from before the change
	case <-unchanged:
	default:
	}
	wait("nothing new", unchanged)
	before := fetched.Load()
	writeFile(t, filepath.Join(workflows, "team-task.json"), workflowText("team-task", "1.0.1"))
	wait("a changed definition", changed)
	if got := laptop.listVersions("registry"); got["team-task"] != "1.0.1" || got["other-task"] != "1.0.0" {
		t.Errorf("the versions after the change are %v", got)
	}
	if n := fetched.Load() - before; n != 1 {
		t.Errorf("%d documents were fetched for one change", n)
	}
	answer, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_get", Arguments: map[string]any{"id": "team-task"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(answer.StructuredContent); answer.IsError || !strings.Contains(text, "1.0.1") {
		t.Errorf("the workflow on the laptop is %s", text)
	}
	wait("the current version after the change", unchanged)
	laptop.wantApproval("team-desk", "registry")
}

// wantApproval checks that a machine of a source has all its files, and needs approval.
func (h *sourceUser) wantApproval(machine, source string) {
	h.Helper()
	out, good := h.runCommand([]string{"machine", "run", machine, "--demo"})
	if good || !strings.Contains(out, "its current version is not approved") {
		h.Errorf("the machine %s of %s: %v %s", machine, source, good, out)
	}
	// The demonstration needs configuration, script, roles and recording.
	out, good = h.runCommand([]string{"machine", "run", machine, "--demo", "--source-trust", source + "=trusted"})
	if !good || !strings.Contains(out, "is completed") {
		h.Errorf("the machine %s of %s, trusted: %v %s", machine, source, good, out)
	}
}

// TestSyncedMachinesAreComplete checks that machines from a repository and from a package
// have all their files, and need approval.
func TestSyncedMachinesAreComplete(t *testing.T) {
	t.Parallel()
	repo := filepath.Join(t.TempDir(), "repo")
	commit := gitRepo(t, repo)
	writeMachine(t, filepath.Join(repo, "workflows"), "git-desk")
	commit()
	h := newSourceUser(t, "WORKFLOW_GIT_REPOS="+repo, "GUIDEWAY_INCLUDE_PLUGINS=true")
	pack := filepath.Join(h.home, "node_modules", "guideway-workflows-acme")
	writeFile(t, filepath.Join(pack, "package.json"), `{"name": "guideway-workflows-acme", "version": "1.0.0"}`)
	writeMachine(t, filepath.Join(pack, "workflows"), "npm-desk")
	h.wantApproval("git-desk", "repo")
	h.wantApproval("npm-desk", "guideway-workflows-acme")
}
