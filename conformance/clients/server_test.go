//go:build unix

package clients

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// Each client works on a run over HTTP, with the token of an environment variable. After the
// server was killed and started again, the clients that programs says continue.
func TestServerInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
		r.write(filepath.Join("project", ".guideway", "workflows", "upload.json"), upload)
		tokenFile := filepath.Join(r.home, "token")
		url, kill := r.serve("127.0.0.1:0", tokenFile)
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			r.Fatal(err)
		}
		r.env = []string{"TEAM_TOKEN=" + strings.TrimSpace(string(token))}
		restart := func() {
			kill()
			r.serve(strings.TrimPrefix(strings.TrimSuffix(url, "/mcp"), "http://"), tokenFile)
		}
		r.work([]step{
			{name: "list", tool: "workflow_list", arguments: `{}`},
			{name: "start", tool: "workflow_start", arguments: `{"workflowId": "upload", "goal": "upload files again"}`},
			{name: "refusal", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "did it"}`},
			{name: "step", tool: "workflow_continue", arguments: `{"handle": "HANDLE", "output": "Plan: count, then upload."}`, before: restart},
		}, func() { r.runCommand(r.guideway, "install", r.client.name, "--url", url, "--token-env", "TEAM_TOKEN") })
		if seen := r.model.text("refusal"); !strings.Contains(seen, "Begin with Plan:.") {
			r.Errorf("the model receives %s at the refusal", seen)
		}
		if seen := r.model.text("step"); strings.Contains(seen, "Build it, and test it.") != r.client.reconnects {
			r.Errorf("the model of a client that reconnects (%t) receives %s after the server was started again", r.client.reconnects, seen)
		}
	})
}

// serve starts a server, and returns its URL and a function that kills it.
func (r *rig) serve(listen, tokenFile string) (url string, kill func()) {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), r.guideway, "serve", "--listen", listen, "--token-file", tokenFile)
	// Another home directory, because killDaemons kills the processes with that of the client.
	cmd.Dir, cmd.Env = r.project, []string{"HOME=" + filepath.Join(r.home, "server"), "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	kill = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}
	r.Cleanup(kill)
	lines := bufio.NewScanner(stderr)
	var log strings.Builder
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if found := regexp.MustCompile(`^ *MCP +(\S+)$`).FindStringSubmatch(lines.Text()); found != nil {
			go func() {
				for lines.Scan() { // the server must not wait for a reader
				}
			}()
			return found[1], kill
		}
	}
	r.Fatalf("the server has ended: %s", log.String())
	return "", nil
}
