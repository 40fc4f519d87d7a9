package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/bench/measure"
)

// The names of the subjects that the budgets compare.
const (
	direct = "direct, no gateway"
	plain  = "Guideway, no graph"
	// sameVersion is Guideway with the protocol version that the peers use with the server.
	sameVersion = "Guideway, no graph, 2025-11-25"
)

// subject is one way to the server.
type subject struct {
	name string
	// start returns the command, and the endpoint if the command does not print it.
	start func(ctx context.Context) (cmd *exec.Cmd, endpoint string, err error)
	tool  string
	token string
	// peer reports whether the subject is another gateway.
	peer bool
	// others are the paths where the endpoint may be besides that of start.
	others []string

	cmd *exec.Cmd
	url string
}

func (b *bench) allSubjects() []*subject {
	var http string
	first := &subject{name: direct, tool: "echo"}
	first.start = func(ctx context.Context) (*exec.Cmd, string, error) {
		return b.roleCommand(ctx, "http"), "", nil
	}
	proxy := &subject{name: "byte-level reverse proxy", tool: "echo"}
	proxy.start = func(ctx context.Context) (*exec.Cmd, string, error) {
		http = first.url
		return b.roleCommand(ctx, "bytes", "-to", http), "", nil
	}
	list := []*subject{
		first, proxy, b.guidewaySubject(plain, "", ""), b.guidewaySubject(sameVersion, "", "2025-11-25"),
		b.guidewaySubject("Guideway, a hook that does nothing", noop, ""), b.guidewaySubject("Guideway, a hook that redacts", redacting, ""),
	}
	list = append(list, b.npmSubject("mcp-proxy (npm)", "mcp-proxy/dist/bin/mcp-proxy.mjs", func(port string) []string {
		return []string{"--port", port, "--", b.self, "gateway", "-role", "stdio"}
	}))
	list = append(list, b.npmSubject("supergateway (npm)", "supergateway/dist/index.js", func(port string) []string {
		return []string{"--stdio", b.self + " gateway -role stdio", "--outputTransport", "streamableHttp", "--stateful", "--port", port, "--logLevel", "none"}
	}))
	for _, p := range b.peers {
		list = append(list, b.peerSubject(p))
	}
	return list
}

// roleCommand returns the command of a role.
func (b *bench) roleCommand(ctx context.Context, role string, more ...string) *exec.Cmd {
	return exec.CommandContext(ctx, b.self, append([]string{"gateway", "-role", role}, more...)...) //nolint:gosec // G204: this program
}

const (
	noop      = `"context.metadata"`
	redacting = `"const walk = (s) => s.replace(/\\b(?:sk-[A-Za-z0-9]{16,}|ghp_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16})\\b/g, '[redacted]'); context.request.params.arguments = mapStrings(context.request.params.arguments, walk);"`
	graph     = `{"id": "hook", "name": "Hook", "workflowType": "tools/call", "bindings": [{"upstream": "echo", "tool": "echo"}],
"nodes": [{"id": "start", "type": "start"}, {"id": "h", "type": "hook", "data": {"hook": {"script": %s}}}, {"id": "call", "type": "mcp-call"}, {"id": "end", "type": "end"}],
"edges": [{"source": "start", "target": "h"}, {"source": "h", "target": "call"}, {"source": "call", "target": "end"}]}`
)

// guidewaySubject returns Guideway's gateway, with a hook if script is not empty. protocol is
// the version to use with the server; if empty, it is the latest one that both support.
func (b *bench) guidewaySubject(name, script, protocol string) *subject {
	s := &subject{name: name, tool: "echo__echo"}
	s.start = func(ctx context.Context) (*exec.Cmd, string, error) {
		home := filepath.Join(b.Dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, "", fmt.Errorf("make a home: %w", err)
		}
		own := func(args ...string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, b.program, args...) //nolint:gosec // G204: the program to measure
			cmd.Env, cmd.Dir = []string{"HOME=" + home, "GUIDEWAY_CONFIG=" + filepath.Join(home, "guideway.json"), "PATH=" + os.Getenv("PATH")}, home
			return cmd
		}
		config, err := json.Marshal(map[string]any{"upstreams": map[string]any{
			"echo": map[string]any{"command": b.self, "args": []string{"gateway", "-role", "stdio"}, "protocol": protocol},
		}})
		if err != nil {
			return nil, "", fmt.Errorf("write the configuration: %w", err)
		}
		if err := os.WriteFile(filepath.Join(home, "guideway.json"), config, 0o600); err != nil {
			return nil, "", fmt.Errorf("write the configuration: %w", err)
		}
		var steps [][]string
		if script != "" {
			file := filepath.Join(home, "hook.json")
			if err := os.WriteFile(file, fmt.Appendf(nil, graph, script), 0o600); err != nil {
				return nil, "", fmt.Errorf("write a graph: %w", err)
			}
			steps = append(steps, []string{"hooks", "import", file}, []string{"hooks", "enable", "hook"})
		}
		for _, args := range steps {
			if out, err := own(args...).CombinedOutput(); err != nil {
				return nil, "", fmt.Errorf("guideway %s: %w\n%s", args[0], err, out)
			}
		}
		const token = "bench-token-of-thirty-two-characters-and-more"
		if err := os.WriteFile(filepath.Join(home, "token"), []byte(token+"\n"), 0o600); err != nil {
			return nil, "", fmt.Errorf("write a token: %w", err)
		}
		s.token = token
		return own("serve", "--listen", "127.0.0.1:0", "--toolsets", "gateway", "--token-file", filepath.Join(home, "token")), "", nil
	}
	return s
}

// npmSubject returns a proxy from npm.
func (b *bench) npmSubject(name, script string, args func(port string) []string) *subject {
	return &subject{name: name, tool: "echo", peer: true, start: func(ctx context.Context) (*exec.Cmd, string, error) {
		path, err := filepath.Abs(filepath.Join("proxies", "node_modules", filepath.FromSlash(script)))
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return nil, "", errors.New("not installed: npm ci --ignore-scripts in proxies")
		}
		port, err := findPort(ctx)
		if err != nil {
			return nil, "", err
		}
		node := filepath.Join(measure.Root, "conformance", "node_modules", ".bin", "node") // this version of node is new enough for all packages
		if _, err := os.Stat(node); err != nil {
			node = "node"
		}
		return exec.CommandContext(ctx, node, append([]string{path}, args(port)...)...), "http://127.0.0.1:" + port + "/mcp", nil //nolint:gosec // G204: pinned programs
	}}
}

// peer is a gateway of -peer: a name, and a command with placeholders.
type peer struct{ name, command string }

// parsePeer reads NAME=COMMAND.
func parsePeer(text string) (peer, error) {
	name, command, found := strings.Cut(text, "=")
	if !found || name == "" || len(strings.Fields(command)) == 0 {
		return peer{}, fmt.Errorf("%q is not NAME=COMMAND", text)
	}
	return peer{name, command}, nil
}

// peerSubject returns a gateway of -peer in front of the server. In the arguments of its
// command, {port} is the port that it must listen on, {server} the command of the server, and
// {config} a file that names both: "mcpServers" as clients write it, and "mcpProxy" with the
// address, as TBXark/mcp-proxy reads it.
func (b *bench) peerSubject(p peer) *subject {
	s := &subject{name: p.name, tool: "echo", peer: true}
	s.start = func(ctx context.Context) (*exec.Cmd, string, error) {
		port, err := findPort(ctx)
		if err != nil {
			return nil, "", err
		}
		config, err := json.Marshal(map[string]any{
			"mcpProxy": map[string]any{
				"baseURL": "http://127.0.0.1:" + port, "addr": "127.0.0.1:" + port, "name": "bench", "version": "1",
				"type": "streamable-http", "options": map[string]any{"logEnabled": false},
			},
			"mcpServers": map[string]any{"echo": map[string]any{"command": b.self, "args": []string{"gateway", "-role", "stdio"}}},
		})
		if err != nil {
			return nil, "", fmt.Errorf("write the configuration of the peer: %w", err)
		}
		file := filepath.Join(b.Dir, "peer-"+port+".json")
		if err := os.WriteFile(file, config, 0o600); err != nil {
			return nil, "", fmt.Errorf("write the configuration of the peer: %w", err)
		}
		args := strings.Fields(p.command)
		fill := strings.NewReplacer("{port}", port, "{config}", file, "{server}", b.self+" gateway -role stdio")
		for i := range args {
			args[i] = fill.Replace(args[i])
		}
		s.others = []string{"/echo/", "/echo/mcp", "/servers/echo/mcp", "/"}
		return exec.CommandContext(ctx, args[0], args[1:]...), "http://127.0.0.1:" + port + "/mcp", nil //nolint:gosec // G204: the program of -peer
	}
	return s
}

// findPort returns a free port of the loopback interface.
func findPort(ctx context.Context) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

var announces = regexp.MustCompile(`MCP +(http\S+)`)

// startProcess starts a subject and waits until it answers.
func (s *subject) startProcess(ctx context.Context) error {
	cmd, endpoint, err := s.start(ctx)
	if err != nil {
		return err
	}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	s.cmd, s.url = cmd, endpoint
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the process: %w", err)
	}
	said := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if found := announces.FindStringSubmatch(lines.Text()); found != nil {
				said <- found[1]
				break
			}
		}
		_, _ = io.Copy(io.Discard, out)
	}()
	if endpoint == "" {
		select {
		case s.url = <-said:
		case <-time.After(20 * time.Second):
			s.stopProcess()
			return errors.New("the process does not print its address")
		}
	}
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		if err = s.findEndpoint(ctx); err == nil {
			return nil
		}
		if wait > 8*time.Second {
			s.stopProcess()
			return fmt.Errorf("the process does not answer: %w", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// findEndpoint sets the address to the first one that answers.
func (s *subject) findEndpoint(ctx context.Context) error {
	first := newCaller(s).openSession(ctx)
	if first == nil {
		return nil
	}
	declared := s.url
	for _, path := range s.others {
		s.url = strings.TrimSuffix(declared, "/mcp") + path
		if newCaller(s).openSession(ctx) == nil {
			return nil
		}
	}
	s.url = declared
	return first
}

func (s *subject) stopProcess() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// treeUsage returns the CPU time and the memory of the subject and its descendants, but
// without the server that is called.
func (s *subject) treeUsage() (cpu time.Duration, memory int64) {
	return measure.TreeUsage(s.cmd.Process.Pid, func(command []byte) bool {
		return bytes.Contains(command, []byte("-role\x00stdio")) && !bytes.Contains(command, []byte("node"))
	})
}
