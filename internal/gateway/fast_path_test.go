package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// postRaw sends a message over HTTP unchanged.
func postRaw(t *testing.T, url string, header map[string]string, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("X-User", "ann")
	for key, value := range header {
		if value == "" {
			req.Header.Del(key)
			continue
		}
		req.Header.Set(key, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		var data []string
		for line := range strings.Lines(string(text)) {
			if d, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(d) != "" {
				data = append(data, strings.TrimSpace(d))
			}
		}
		text = []byte(strings.Join(data, "\n"))
	}
	return resp.StatusCode, string(text), resp.Header
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// openSession opens a legacy session and returns its headers.
func openSession(t *testing.T, r *fixture) map[string]string {
	t.Helper()
	_, _, h := postRaw(t, r.url, nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	header := map[string]string{"Mcp-Session-Id": h.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": legacy}
	postRaw(t, r.url, header, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	postRaw(t, r.url, header, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	return header
}

var serverInfo = regexp.MustCompile(`"_meta":\{"io.modelcontextprotocol/serverInfo":\{[^}]*\}\},?|,"_meta":\{"io.modelcontextprotocol/serverInfo":\{[^}]*\}\}`)

// normalizeAnswer returns an answer without the parts that may differ: white space, the
// order of members, the server's name, and the message of an error.
func normalizeAnswer(t *testing.T, status int, body string) string {
	t.Helper()
	body = serverInfo.ReplaceAllString(body, "")
	var v map[string]any
	if json.Unmarshal([]byte(body), &v) == nil {
		if failure, ok := v["error"].(map[string]any); ok {
			return fmt.Sprintf("%d error %v", status, failure["code"])
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		body = string(text)
	}
	return fmt.Sprint(status, " ", body)
}

// TestFastPathEqualsSDK checks that the fast path and the SDK answer the same messages
// equally, with and without hooks.
func TestFastPathEqualsSDK(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string]map[string][]string{
		"no hooks":                         nil,
		"a hook that changes nothing":      {"tools/call echo": {"no such text", ""}},
		"a hook that changes the call":     {"tools/call echo": {`"text":"`, `"text":"<changed>\n`}},
		"a hook that refuses":              {"tools/call echo": {"fail", ""}},
		"a hook that renames a tool":       {"tools/call echo": {`"name":"echo"`, `"name":"env"`}},
		"a hook on new names":              {"tools/call nothing": {`"name":"nothing"`, `"name":"echo"`}},
		"a hook that returns invalid JSON": {"tools/call echo": {`"content":[`, `"content":[[`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			comparePaths(t, pairs)
		})
	}
}

// comparePaths sends the same messages on both paths, and compares the answers and the
// calls that the hooks saw. pairs are the texts that the hooks replace; nil means no hooks.
func comparePaths(t *testing.T, pairs map[string][]string) {
	t.Helper()
	e := newEntry(t, "one")
	opts := gateway.Options{Upstreams: []gateway.Entry{e}}
	seenBy := map[*fixture]*replaceHooks{}
	make1 := func(change ...string) *fixture {
		opts := opts
		hooks := &replaceHooks{pairs: pairs}
		if pairs != nil {
			opts.Hooks = hooks
		}
		r := newFixture(t, opts, change...)
		seenBy[r] = hooks
		return r
	}
	fast, through := make1(), make1(slow)
	headers := map[*fixture]map[string]string{fast: openSession(t, fast), through: openSession(t, through)}
	modernHeader := map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "one__echo"}
	with := func(base map[string]string, pairs ...string) map[string]string {
		out := map[string]string{}
		for key, value := range base {
			out[key] = value
		}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	echo := `"name":"one__echo","arguments":{"text":"é \u0041 \"\\ <&>"}`
	for name, c := range map[string]struct {
		body   string
		modern bool
		header []string
	}{
		"plain":                  {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}}`},
		"white space":            {body: " {\n\"params\" : {" + echo + "\n},\"id\":\"x\" ,\"method\":\"tools/call\",\"jsonrpc\":\"2.0\"}\n"},
		"no arguments":           {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__echo"}}`},
		"arguments null":         {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__echo","arguments":null}}`},
		"name escaped":           {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n\u0061me":"one\u005f_echo","arguments":{"text":"x"}}}`},
		"id null":                {body: `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{` + echo + `}}`},
		"id a fraction":          {body: `{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{` + echo + `}}`},
		"no id":                  {body: `{"jsonrpc":"2.0","method":"tools/call","params":{` + echo + `}}`},
		"other case":             {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"Name":"one__env",` + echo + `}}`},
		"member in another case": {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"NAME":"one__echo"}}`},
		"own tool":               {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"own_tool"}}`},
		"unknown tool":           {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__nothing"}}`},
		"name a number":          {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":7}}`},
		"no params":              {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`},
		"params a list":          {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[]}`},
		"not JSON":               {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}`},
		"version 1":              {body: `{"jsonrpc":"1.0","id":7,"method":"tools/call","params":{` + echo + `}}`},
		"failing tool":           {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__fail"}}`},
		"refusing tool":          {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__refuse"}}`},
		"other session":          {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}}`, header: []string{"Mcp-Session-Id", "other"}},
		"other user":             {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}}`, header: []string{"X-User", "bob"}},
		"other version":          {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}}`, header: []string{"Mcp-Protocol-Version", "1999-01-01"}},
		"no accept":              {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}}`, header: []string{"Accept", "text/html"}},
		"plain text":             {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}}`, header: []string{"Content-Type", "text/plain"}},
		"modern":                 {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `,` + meta + `}}`, modern: true},
		"modern, wrong name":     {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `,` + meta + `}}`, modern: true, header: []string{"Mcp-Name", "one__env"}},
		"modern, wrong method":   {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `,` + meta + `}}`, modern: true, header: []string{"Mcp-Method", "tools/list"}},
		"modern, no name":        {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `,` + meta + `}}`, modern: true, header: []string{"Mcp-Name", ""}},
		"modern, no meta":        {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `}}`, modern: true},
		"modern, wrong state":    {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `,"requestState":"x",` + meta + `}}`, modern: true},
		"modern, bad meta":       {body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + echo + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, modern: true},
		"modern, other version":  {body: strings.ReplaceAll(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{`+echo+`,`+meta+`}}`, modern, "2027-01-01"), modern: true},
	} {
		outcomes := map[*fixture]string{}
		for _, r := range []*fixture{fast, through} {
			header := headers[r]
			if c.modern {
				header = modernHeader
			}
			status, body, _ := postRaw(t, r.url, with(header, c.header...), c.body)
			outcomes[r] = normalizeAnswer(t, status, body)
		}
		if diff := cmp.Diff(outcomes[through], outcomes[fast]); diff != "" {
			t.Errorf("%s (-SDK +fast path):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(seenBy[through].seenCalls(), seenBy[fast].seenCalls()); diff != "" {
		t.Errorf("calls seen by hooks (-SDK +fast path):\n%s", diff)
	}
	if len(pairs) > 0 && len(seenBy[fast].seenCalls()) == 0 {
		t.Error("no hook saw a call")
	}
}

// The fast path also rejects requests in an ended session.
func TestFastPathOfEndedSession(t *testing.T) {
	t.Parallel()
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}})
	header := openSession(t, r)
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"x"}}}`
	if status, body, _ := postRaw(t, r.url, header, call); status != http.StatusOK || !strings.Contains(body, `"x"`) {
		t.Fatalf("%d %s", status, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, r.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", header["Mcp-Session-Id"])
	req.Header.Set("X-User", "ann")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	waitFor(t, func() bool {
		status, _, _ := postRaw(t, r.url, header, call)
		return status == http.StatusNotFound
	})
}

// stdioClient is a client that writes and reads single messages on stdio.
type stdioClient struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
}

func (r *fixture) connectStdio(t *testing.T) *stdioClient {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx := auth.WithPrincipal(context.WithoutCancel(t.Context()), guideway.Principal{User: "ann"})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = transport.ServeStdio(ctx, r.server, r.Gateway, inR, outW)
	}()
	s := &stdioClient{t: t, in: inW, lines: make(chan string, 100)}
	go func() {
		defer close(s.lines)
		scan := bufio.NewScanner(outR)
		scan.Buffer(nil, 32<<20)
		for scan.Scan() {
			s.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() { inW.Close(); <-done; outR.Close() })
	return s
}

func (s *stdioClient) sendLine(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, text+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stdioClient) receiveLine() string {
	s.t.Helper()
	select {
	case line := <-s.lines:
		return line
	case <-time.After(10 * time.Second):
		s.t.Fatal("no answer within 10 s")
	}
	return ""
}

// TestFastPathOnStdio checks calls, questions, progress and cancellation on the fast path
// over stdio.
func TestFastPathOnStdio(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", upstreamtest.Modern} {
		e := newEntry(t, "one", mode)
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
		s := r.connectStdio(t)
		s.sendLine(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
		s.receiveLine()
		s.sendLine(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		s.sendLine(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		s.receiveLine()
		s.sendLine(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"one__echo","arguments":{"text":"hi"}}}`)
		if got, want := s.receiveLine(), `{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"hi"}]}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.sendLine(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"one__ask","arguments":{"text":"sure?"}}}`)
		var question struct {
			ID     string
			Method string
			Params struct{ Message string }
		}
		if err := json.Unmarshal([]byte(s.receiveLine()), &question); err != nil || !strings.HasPrefix(question.ID, "gateway-") ||
			question.Method != "elicitation/create" || question.Params.Message != `The MCP server "one" asks: sure?` {
			t.Fatalf("the question is %+v %v", question, err)
		}
		s.sendLine(`{"jsonrpc":"2.0","id":"` + question.ID + `","result":{"action":"accept","content":{"ok":"yes"}}}`)
		if got := s.receiveLine(); !strings.Contains(got, `"id":3`) || !strings.Contains(got, `\"yes\"`) {
			t.Errorf("the answer is %s", got)
		}
		s.sendLine(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"one__slow","arguments":{"ms":1,"text":"m"},"_meta":{"progressToken":"mine"}}}`)
		for i := range 4 {
			if got := s.receiveLine(); !strings.Contains(got, `"progressToken":"mine"`) || !strings.Contains(got, fmt.Sprintf(`"progress":%d`, i)) {
				t.Errorf("progress: %s", got)
			}
		}
		if got := s.receiveLine(); !strings.Contains(got, "done m") {
			t.Errorf("slow: %s", got)
		}
		s.sendLine(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"one__sleep","arguments":{"ms":60000},"_meta":{"progressToken":"begun"}}}`)
		if got := s.receiveLine(); !strings.Contains(got, `"begun"`) {
			t.Errorf("the upstream's first message is %s", got)
		}
		s.sendLine(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"meanwhile"}}}`)
		if got := s.receiveLine(); !strings.Contains(got, "meanwhile") {
			t.Errorf("meanwhile: %s", got)
		}
		s.sendLine(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		waitFor(t, func() bool { return countCalls(e) == 1 })
	}
}

// A cancelled call gets no answer over HTTP, with or without progress before. Its request
// ends.
func TestCancelledCallGetsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"", slow} {
		for _, meta := range []string{"", `,"_meta":{"progressToken":"p"}`} {
			e := newEntry(t, "one")
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}}, way)
			header := openSession(t, r)
			answer := make(chan string, 1)
			go func() {
				status, body, got := postRaw(t, r.url, header, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__work","arguments":{"ms":60000}`+meta+`}}`)
				answer <- fmt.Sprint(status, " ", got.Get("Content-Type"), " ", body)
			}()
			waitFor(t, func() bool { return countCalls(e) == 1 }) // The upstream has the call.
			postRaw(t, r.url, header, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
			if got := <-answer; !strings.HasPrefix(got, "200 text/event-stream ") || strings.Contains(got, `"id":7`) || strings.Contains(got, "progress") != (meta != "") {
				t.Errorf("%q %s: the answer is %s", way, meta, got)
			}
			waitFor(t, func() bool { return countCalls(e) == 2 }) // The upstream has the cancellation.
			if _, got, _ := postRaw(t, r.url, header, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"next"}}}`); !strings.Contains(got, "next") {
				t.Errorf("%q: the next call returned %s", way, got)
			}
		}
	}
}

// A cancellation that arrives before its call has started still cancels the call.
func TestCancelBeforeCallStarts(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one")
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}})
	openSession(t, r) // The tools are known once a session is open.
	session, err := r.server.Connect(auth.WithPrincipal(t.Context(), guideway.Principal{User: "ann"}),
		&mcp.IOTransport{Reader: io.NopCloser(strings.NewReader("")), Writer: discard{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	// A modern client identifies itself in the request.
	call := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"one__sleep","arguments":{"ms":60000},` + meta + `}}`
	var sent []string
	send := func(_ int, text ...[]byte) error { sent = append(sent, string(bytes.Join(text, nil))); return nil }
	work := r.Accept(t.Context(), session, nil, []byte(call), send)
	if work == nil {
		t.Fatal("the call was not accepted")
	}
	r.Accept(t.Context(), session, nil, []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`), send)
	work(t.Context())
	if len(sent) != 0 {
		t.Errorf("a cancelled call was answered: %s", sent)
	}
}

type discard struct{}

func (discard) Write(text []byte) (int, error) { return len(text), nil }
func (discard) Close() error                   { return nil }

// A plain call uses the fast path; the SDK would answer it with events.
func TestFastPathIsTaken(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one")
	for _, c := range []struct{ way, want string }{{"", "application/json"}, {slow, "text/event-stream"}} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}}, c.way)
		_, body, header := postRaw(t, r.url, openSession(t, r), `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"\u0041"}}}`)
		if got := header.Get("Content-Type"); got != c.want {
			t.Errorf("%q: answered by %s, want %s", c.way, got, c.want)
		}
		if want := `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"A"}]}}`; body != want {
			t.Errorf("got %s, want %s", body, want)
		}
	}
}
