package workflow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// httpServer is the program serving over HTTP, with one client session.
type httpServer struct {
	cmd     *exec.Cmd
	client  *http.Client
	url     string
	token   string
	session string
	version protocolVersion
	lastID  int
}

// serveHTTP starts the program on a free port of the loopback interface.
func (w *workplace) serveHTTP(ctx context.Context, ours *target) (*httpServer, error) {
	tokenFile := filepath.Join(w.dir, "token")
	ours = ours.withEnv("GUIDEWAY_TOKEN_FILE=" + tokenFile)
	cmd := exec.CommandContext(ctx, ours.command[0], "serve", "--listen", "127.0.0.1:0") //nolint:gosec // the program to measure
	cmd.Dir, cmd.Env = ours.dir, ours.env
	said, err := cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("serve over HTTP: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("serve over HTTP: %w", err)
	}
	h := &httpServer{cmd: cmd, client: &http.Client{}}
	if h.url, err = findURL(said); err != nil {
		h.stop()
		return nil, err
	}
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		h.stop()
		return nil, fmt.Errorf("read the token: %w", err)
	}
	h.token = string(bytes.TrimSpace(token))
	return h, nil
}

// findURL reads the line with the address and discards all later lines.
func findURL(said io.Reader) (string, error) {
	address := regexp.MustCompile(`http://[0-9.:]+/mcp`)
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if url := address.FindString(lines.Text()); url != "" {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return url, nil
		}
	}
	return "", fmt.Errorf("serve over HTTP: the program does not print its address (%w)", lines.Err())
}

func (h *httpServer) stop() {
	h.client.CloseIdleConnections()
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// openSession opens a session with the legacy protocol version. The modern one has no
// sessions.
func (h *httpServer) openSession(ctx context.Context, v protocolVersion) error {
	h.version, h.session = v, ""
	if v == modern {
		return nil
	}
	if _, _, err := h.callTool(ctx, "initialize", initializeParams()); err != nil {
		return err
	}
	line, err := newNotification("notifications/initialized")
	if err != nil {
		return err
	}
	_, _, err = h.postMessage(ctx, line, "notifications/initialized", "")
	return err
}

func (h *httpServer) callTool(ctx context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error) {
	h.lastID++
	body, err := newRequest(h.version, h.lastID, method, params)
	if err != nil {
		return nil, 0, err
	}
	name, _ := params["name"].(string)
	answer, took, err := h.postMessage(ctx, body, method, name)
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(answer) {
		line = bytes.TrimPrefix(line, []byte("data: "))
		if result, ok, err := readAnswer(line, h.lastID); ok || err != nil {
			return result, took, err
		}
	}
	return nil, 0, fmt.Errorf("%s over HTTP: no answer in %.200s", method, answer)
}

// postMessage sends a message and returns the body of the answer.
func (h *httpServer) postMessage(ctx context.Context, body []byte, method, name string) ([]byte, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, fmt.Errorf("%s over HTTP: %w", method, err)
	}
	req.Header.Set("Authorization", "Bearer "+h.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case h.version == modern:
		req.Header.Set("Mcp-Protocol-Version", string(modern))
		req.Header.Set("Mcp-Method", method)
		if name != "" {
			req.Header.Set("Mcp-Name", name)
		}
	case h.session != "":
		req.Header.Set("Mcp-Protocol-Version", string(legacy))
		req.Header.Set("Mcp-Session-Id", h.session)
	}
	began := time.Now()
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("%s over HTTP: %w", method, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	if err != nil {
		return nil, 0, fmt.Errorf("%s over HTTP: %w", method, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, 0, fmt.Errorf("%s over HTTP: %s: %.400s", method, resp.Status, answer)
	}
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		h.session = id
	}
	return answer, took, nil
}
