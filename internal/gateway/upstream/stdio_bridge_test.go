package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// bridgedCall is a client of a bridge.
type bridgedCall struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
}

func openBridge(t *testing.T, opts upstream.BridgeOptions) *bridgedCall {
	t.Helper()
	in, inEnd := io.Pipe()
	outEnd, out := io.Pipe()
	done := make(chan error, 1)
	b := upstream.NewBridge(opts, out)
	go func() { done <- b.Run(context.Background(), in) }()
	t.Cleanup(func() {
		_ = inEnd.Close()
		_ = outEnd.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &bridgedCall{t, inEnd, bufio.NewReader(outEnd)}
}

// exchangeMessages sends a message and returns the next one that arrives.
func (b *bridgedCall) exchangeMessages(text string) string {
	b.t.Helper()
	if _, err := io.WriteString(b.in, text+"\n"); err != nil {
		b.t.Fatal(err)
	}
	line, err := b.out.ReadString('\n')
	if err != nil {
		b.t.Fatal(err)
	}
	return line
}

// The errors that a bridge returns instead of a server's answer are accurate. A message
// that the server refuses is not reported as a wrong URL, and a call to an unreachable
// server is reported as not carried out.
func TestBridgeErrorsAreAccurate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(scriptedServer(func(w http.ResponseWriter, r *http.Request, method, id string) {
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case method == "no/such":
			http.Error(w, "not handled", http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		}
	}))
	defer srv.Close()
	// Without keep-alive, a request to a server that has ended is refused instead of lost.
	srv.Config.SetKeepAlivesEnabled(false)
	b := openBridge(t, upstream.BridgeOptions{URL: srv.URL, Start: "start it"})
	b.exchangeMessages(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":2,"method":"ping"}`:     `{"jsonrpc":"2.0","id":2,"result":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"no/such"}`:  "did not accept the message: the server answered 400",
		`{"jsonrpc":"2.0","id":4.5,"method":"ping"}`:   "neither a string nor an integer",
		`{"jsonrpc":"2.0","id":1e1,"method":"ping"}`:   "neither a string nor an integer",
		`{"jsonrpc":"2.0","id":"4.5","method":"ping"}`: `"id":"4.5","result":{}`,
	} {
		if got := b.exchangeMessages(message); !strings.Contains(got, want) {
			t.Errorf("%s returned %s", message, got)
		}
	}
	srv.Close()
	if got := b.exchangeMessages(`{"jsonrpc":"2.0","id":5,"method":"ping"}`); !strings.Contains(got, "no server can be reached") || strings.Contains(got, "unknown") || !strings.Contains(got, "start it") {
		t.Errorf("without a server: %s", got)
	}
}

// If a client writes its first messages without waiting, as scripts do, they are sent one
// after the other: no message is sent before the handshake is answered.
func TestBridgeKeepsTheOrderOfTheHandshake(t *testing.T) {
	t.Parallel()
	written := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		method, id := m.Method, m.ID
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case method == "initialize":
			<-written
			w.Header().Set("Mcp-Session-Id", "s1")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, id)
		case r.Header.Get("Mcp-Session-Id") != "s1":
			t.Errorf("%s was sent before the handshake was answered", method)
			w.WriteHeader(http.StatusBadRequest)
		case method == "ping":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer srv.Close()
	b := openBridge(t, upstream.BridgeOptions{URL: srv.URL})
	if _, err := io.WriteString(b.in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	close(written)
	for _, want := range []string{`"id":1,"result"`, `"id":2,"result"`} {
		line, err := b.out.ReadString('\n')
		if err != nil || !strings.Contains(line, want) {
			t.Errorf("want %s, got %s, %v", want, line, err)
		}
	}
}

// checkServer is a server that requests checks for each call without an answer.
func checkServer(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments json.RawMessage
				Meta      map[string]json.RawMessage `json:"_meta"`
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		switch answer := m.Params.Meta["dev.guideway/checks"]; {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Method == "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "ping" || answer != nil:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"answer":%s,"arguments":%s,"host":%q}}`, m.ID, orNull(answer), orNull(m.Params.Arguments), r.Header.Get("Guideway-Checks"))
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"_meta":{"dev.guideway/checks":"sealed"}}}`, m.ID)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func orNull(text json.RawMessage) string {
	if text == nil {
		return "null"
	}
	return string(text)
}

// TestBridgeAnswersChecks checks that the bridge answers the server's request for checks by
// repeating the call, that the client does not see the request, and that the bridge answers no
// request in the result of another tool, which can belong to an upstream of the server.
func TestBridgeAnswersChecks(t *testing.T) {
	t.Parallel()
	b := openBridge(t, upstream.BridgeOptions{URL: checkServer(t).URL, Host: "laptop", AnswerChecks: func(_ context.Context, sealed string, progress func(string)) json.RawMessage {
		progress("testing")
		return json.RawMessage(`"the answer to ` + sealed + `"`)
	}})
	b.exchangeMessages(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"workflow_continue","arguments":{"a": 1},"_meta":{"progressToken":"p"}}}`
	if got, want := b.exchangeMessages(call), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1,"message":"testing"}}`+"\n"; got != want {
		t.Errorf("the progress is %s, want %s", got, want)
	}
	got, err := b.out.ReadString('\n')
	if want := `{"jsonrpc":"2.0","id":2,"result":{"answer":"the answer to sealed","arguments":{"a": 1},"host":"laptop"}}` + "\n"; err != nil || got != want {
		t.Errorf("the answer is %s, want %s", got, want)
	}
	if got := b.exchangeMessages(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"other__workflow_continue"}}`); !strings.Contains(got, `"dev.guideway/checks":"sealed"`) {
		t.Errorf("the result of another tool is %s", got)
	}
}

// TestBridgeCancelsChecks checks that a client that cancels a call also ends its checks.
func TestBridgeCancelsChecks(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	b := openBridge(t, upstream.BridgeOptions{URL: checkServer(t).URL, Host: "laptop", AnswerChecks: func(ctx context.Context, _ string, progress func(string)) json.RawMessage {
		progress("testing")
		<-ctx.Done()
		close(ended)
		return json.RawMessage(`"late"`)
	}})
	b.exchangeMessages(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	b.exchangeMessages(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"workflow_continue","_meta":{"progressToken":1}}}`)
	if got := b.exchangeMessages(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}` + "\n" + `{"jsonrpc":"2.0","id":3,"method":"ping"}`); !strings.Contains(got, `"id":3`) {
		t.Errorf("after the cancellation the client received %s", got)
	}
	<-ended
}
