package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// message is a message of the protocol, as a client receives it.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params json.RawMessage `json:"params"`
}

// wire is the connection of a client to the program.
type wire interface {
	// exchange sends messages and returns the responses to the requests among them, by id.
	// answer returns the message that answers a request of the server.
	exchange(frames []string, answer func(message) string) map[string]json.RawMessage
	// end disconnects, and waits until the program has ended.
	end()
}

// requestID returns the id of a request that has a response before the connection ends, or
// "" for another message.
func requestID(t *testing.T, frame string) string {
	t.Helper()
	var m message
	if err := json.Unmarshal([]byte(frame), &m); err != nil {
		t.Fatalf("%s: %v", frame, err)
	}
	if m.Method == "" || m.Method == "subscriptions/listen" {
		return ""
	}
	return string(m.ID)
}

// receive handles a message of the server. It returns the client's answer to a request, or
// "" for another message.
func receive(t *testing.T, line []byte, into map[string]json.RawMessage, answer func(message) string) string {
	t.Helper()
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	switch {
	case m.Error != nil:
		t.Fatalf("the program answered with an error: %s", line)
	case m.Method == "" && m.Result != nil:
		into[string(m.ID)] = m.Result
	case m.Method != "" && m.ID != nil:
		return answer(m)
	}
	return ""
}

// personalDirectories returns the environment of a process whose files are below home.
func personalDirectories(home string) map[string]string {
	return map[string]string{
		"HOME": home, "USERPROFILE": home, "APPDATA": filepath.Join(home, "AppData", "Roaming"),
		"LOCALAPPDATA": filepath.Join(home, "AppData", "Local"), "GUIDEWAY_LISTEN": "127.0.0.1:0", "NO_COLOR": "1",
		"PATH": os.Getenv("PATH"), "SystemRoot": os.Getenv("SystemRoot"),
	}
}

// longestConversation bounds the conversation of a client, whose requests wait for answers.
const longestConversation = 2 * time.Minute

// newProcess returns a command of the program as a process, which is killed after
// longestConversation.
func newProcess(t *testing.T, home string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), longestConversation)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "guideway", args...)
	cmd.Dir = home
	cmd.Env = append(cmd.Env, clockVariable+"="+clockFile(home))
	for name, value := range personalDirectories(home) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// clockFile returns the file that sets the clock of a process.
func clockFile(home string) string { return filepath.Join(home, "clock") }

// stdioWire is a process of `guideway mcp`.
type stdioWire struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer
}

func connectStdio(t *testing.T, home string) *stdioWire {
	t.Helper()
	w := &stdioWire{t: t, cmd: newProcess(t, home, "mcp")}
	w.cmd.Stderr = &w.err
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.in, w.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	return w
}

func (w *stdioWire) writeLine(line string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		w.t.Fatalf("%v: %s", err, &w.err)
	}
}

func (w *stdioWire) exchange(frames []string, answer func(message) string) map[string]json.RawMessage {
	w.t.Helper()
	var wanted []string
	for _, frame := range frames {
		if id := requestID(w.t, frame); id != "" {
			wanted = append(wanted, id)
		}
	}
	w.writeLine(strings.Join(frames, "\n"))
	got := map[string]json.RawMessage{}
	for _, id := range wanted {
		for got[id] == nil {
			line, err := w.out.ReadBytes('\n')
			if err != nil {
				w.t.Fatalf("no answer to %s: %v: %s", id, err, &w.err)
			}
			if reply := receive(w.t, line, got, answer); reply != "" {
				w.writeLine(reply)
			}
		}
	}
	return got
}

func (w *stdioWire) end() {
	_ = w.in.Close()
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("the program ended with %v: %s", err, &w.err)
	}
}

// httpWire is a process of `guideway serve`, with the headers of a client.
type httpWire struct {
	t       *testing.T
	cmd     *exec.Cmd
	profile *clientProfile
	// url is the address of the endpoint, and page the address of the dashboard.
	url, page, token string
	session          string
	client           http.Client
	streams          sync.WaitGroup
	ctx              context.Context
	cancel           context.CancelFunc
}

func connectHTTP(t *testing.T, home string, profile *clientProfile) *httpWire {
	t.Helper()
	w := &httpWire{t: t, profile: profile, client: http.Client{Transport: &http.Transport{}}}
	w.ctx, w.cancel = context.WithTimeout(t.Context(), longestConversation)
	file := filepath.Join(home, "token")
	w.cmd = newProcess(t, home, "serve", "--token-file", file)
	said, err := w.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.end)
	lines := bufio.NewScanner(said)
	for w.url == "" && lines.Scan() {
		if fields := strings.Fields(lines.Text()); len(fields) == 2 && fields[0] == "MCP" {
			w.url = fields[1]
		}
	}
	w.streams.Go(func() {
		for lines.Scan() { // keep reading: otherwise the server blocks when the pipe is full
		}
	})
	token, err := os.ReadFile(file)
	if err != nil || w.url == "" {
		t.Fatalf("the server did not start: %v", err)
	}
	w.token, w.page = strings.TrimSpace(string(token)), strings.TrimSuffix(w.url, "/mcp")
	return w
}

// send sends a request with the headers of a section of the profile.
func (w *httpWire) send(method, section, frame string) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, w.url, strings.NewReader(frame))
	if err != nil {
		w.t.Fatal(err)
	}
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	if frame != "" {
		if err := json.Unmarshal([]byte(frame), &m); err != nil {
			w.t.Fatal(err)
		}
	}
	values := strings.NewReplacer("SESSION", w.session, "METHOD", m.Method, "NAME", m.Params.Name)
	for line := range strings.Lines(w.profile.parts[section]) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if value = values.Replace(value); value != "" {
			req.Header.Set(name, value)
		}
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	res, err := w.client.Do(req)
	if err != nil {
		w.t.Fatalf("%s: %v", frame, err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(res.Body)
		w.t.Fatalf("%s %s: %s: %s", method, frame, res.Status, text)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		w.session = id
	}
	return res
}

func (w *httpWire) exchange(frames []string, answer func(message) string) map[string]json.RawMessage {
	w.t.Helper()
	got := map[string]json.RawMessage{}
	for _, frame := range frames {
		section := "later"
		if w.session == "" && !strings.Contains(frame, `"tools/call"`) {
			section = "first"
		}
		res := w.send(http.MethodPost, section, frame)
		id := requestID(w.t, frame)
		if id == "" {
			w.drain(res)
			continue
		}
		w.readEvents(res, id, got, answer)
		if strings.Contains(frame, `"initialize"`) && w.profile.parts["stream"] != "" {
			w.drain(w.send(http.MethodGet, "stream", ""))
		}
	}
	return got
}

// readEvents reads a stream until it has the response to a request. The client answers a
// question of the server in a separate request while the stream is open.
func (w *httpWire) readEvents(res *http.Response, id string, got map[string]json.RawMessage, answer func(message) string) {
	w.t.Helper()
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<22)
	for got[id] == nil && lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "" {
			continue
		}
		if reply := receive(w.t, []byte(data), got, answer); reply != "" {
			_ = w.send(http.MethodPost, "later", reply).Body.Close()
		}
	}
	if got[id] == nil {
		w.t.Fatalf("the stream ended without an answer to %s: %v", id, lines.Err())
	}
}

// drain reads a stream without a response until it ends.
func (w *httpWire) drain(res *http.Response) {
	w.streams.Go(func() {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	})
}

func (w *httpWire) end() {
	if w.cmd.ProcessState != nil {
		return
	}
	if method := w.profile.settings["ends"]; method != "" {
		_ = w.send(method, "stream", "").Body.Close()
	}
	w.cancel()
	_ = w.cmd.Process.Kill() // Windows cannot send a process any other signal.
	w.streams.Wait()
	_ = w.cmd.Wait()
}
