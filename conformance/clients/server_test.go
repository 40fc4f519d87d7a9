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

// Each client completes a run with a refusal and a human approval over HTTP, with the token of
// an environment variable, and calls two upstreams through the gateway. After the server was
// killed and started again, the clients that programs says continue.
func TestServerInClients(t *testing.T) {
	eachClient(t, func(r *rig) {
		r.write(filepath.Join("project", ".guideway", "workflows", "upload.json"), upload)
		r.writeUpstreams("server")
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
		script := append(callUpstreams(), wholeRun()...)
		script = append(script,
			step{name: "end", tool: "workflow_status", arguments: `{"runId": "RUN"}`, before: func() { r.approveRun("server") }},
			step{name: "restarted", tool: "workflow_status", arguments: `{"runId": "RUN"}`, before: restart})
		r.work(script, func() { r.runCommand(r.guideway, "install", r.client.name, "--url", url, "--token-env", "TEAM_TOKEN") })
		r.checkUpstreams()
		r.checkRun()
		r.checkTexts(map[string][]string{"end": {"completed"}})
		if seen := r.model.text("restarted"); strings.Contains(seen, "the run is completed") != r.client.reconnects {
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
