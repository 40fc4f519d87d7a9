package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

// newActiveHooks returns the active hooks of a project's gateway.
func newActiveHooks(t *testing.T, d *hookProject) *server.ActiveHooks {
	t.Helper()
	a := &app.App{Host: &d.host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := a.OpenCatalog(t.Context(), cfg, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	pool, err := sandbox.NewPool(sandbox.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	h := server.NewActiveHooks(cfg, cat, pool, &hookstate.Memory{}, log, time.Now)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		h.Close(ctx)
		if err := pool.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return h
}

// callThroughHooks calls the tool read of the upstream files through the hooks. answer is
// the answer of the upstream, and sent contains the parameters that it received.
func callThroughHooks(h *server.ActiveHooks, t *testing.T, params, answer string) (result string, sent string, err error) {
	t.Helper()
	raw, err := h.Around(t.Context(), gateway.HookCall{
		Method: "tools/call", Upstream: "files", Tool: "read", Client: guideway.Principal{User: "me", Client: "editor"}, Params: json.RawMessage(params),
	}, func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
		sent = string(params)
		return json.RawMessage(answer), nil
	})
	return string(raw), sent, err
}

// No hook sees a call until a graph is enabled; a graph that another process enables takes
// effect soon after; and an edited approvals file blocks every call.
func TestActiveHooksOnCalls(t *testing.T) {
	t.Parallel()
	const params = `{"name":"read","arguments":{"path":"/home/u/.ssh/id_rsa"}}`
	d := newHookProject(t)
	h := newActiveHooks(t, d)
	if h.Applies("tools/call", "files", "read") {
		t.Error("Active returned a chain although no graph is enabled")
	}
	if _, sent, err := callThroughHooks(h, t, params, `{"content":[]}`); err != nil || sent != params {
		t.Errorf("sent %s, %v", sent, err)
	}
	d.wantCommand(app.ExitOK, "Enabled block-by-argument", "hooks enable block-by-argument")
	waitFor(t, func() bool { return h.Applies("tools/call", "files", "read") })
	if _, sent, err := callThroughHooks(h, t, params, ""); guideway.ErrorCode(err) != guideway.CodeRefused || sent != "" {
		t.Errorf("sent %s, %v", sent, err)
	}
	d.wantCommand(app.ExitOK, "", "hooks disable block-by-argument")
	d.wantCommand(app.ExitOK, "Enabled theirs", "hooks enable theirs", "theirs")
	waitFor(t, func() bool {
		_, sent, err := callThroughHooks(h, t, params, `{"content":[]}`)
		return err == nil && strings.Contains(sent, `"mark":1`)
	})
	if err := os.WriteFile(app.ApprovalsPath(h.Cfg), []byte(`{"form": 1, "records": [], "mac": ""}`), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		_, sent, err := callThroughHooks(h, t, params, `{"content":[]}`)
		return err != nil && sent == "" && strings.Contains(err.Error(), "was edited")
	})
}

// waitFor calls holds until it returns true. It fails the test after a minute.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("the condition did not become true")
		case <-tick.C:
		}
	}
}

// A graph that has handled a call under another name does not handle it again.
func TestHooksRunOnce(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	d.wantCommand(app.ExitOK, "Enabled audit-calls", "hooks enable audit-calls")
	d.wantCommand(app.ExitOK, "", `hooks import --template rename-tools-back --id back --tool say --set names={"read":"say"}`)
	for _, command := range []string{"hooks import --template block-by-argument --id guard --tool read", "hooks enable back", "hooks enable guard"} {
		d.wantCommand(app.ExitOK, "", command)
	}
	h := newActiveHooks(t, d)
	around := func(tool, path string) (sent []string, err error) {
		call := gateway.HookCall{Method: "tools/call", Upstream: "files", Tool: tool, Params: json.RawMessage(`{"name":"` + tool + `","arguments":{"path":"` + path + `"}}`)}
		_, err = h.Around(t.Context(), call, func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			sent = append(sent, string(params))
			call.Tool, call.Params = "read", params // as the gateway does for another tool
			return h.Around(ctx, call, func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
				sent = append(sent, string(params))
				return json.RawMessage(`{"content":[]}`), nil
			})
		})
		return sent, err
	}
	const renamed = `{"name":"read","arguments":{"path":"a"}}`
	if sent, err := around("say", "a"); err != nil || !slices.Equal(sent, []string{renamed, renamed}) {
		t.Errorf("sent %q, %v", sent, err)
	}
	var lines []string
	waitFor(t, func() bool {
		lines = auditLines(t, &d.host)
		return len(lines) > 0
	})
	if len(lines) != 1 {
		t.Errorf("the audit is %q, want one line", lines)
	}
	// A guard of the tool that is called applies to a call under another name.
	if sent, err := around("say", ".env"); guideway.ErrorCode(err) != guideway.CodeRefused || len(sent) != 1 {
		t.Errorf("sent %q, %v", sent, err)
	}
}

// The four bundled graphs work together on one call: the audit sees the call of the client
// and refusals, the block sees what is sent, and the response is redacted before it is cut.
func TestBundledGraphsFormChain(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	for _, graph := range []string{"redact-secrets", "audit-calls", "block-by-argument", "cap-result-size"} {
		d.wantCommand(app.ExitOK, "Enabled "+graph, "hooks enable "+graph)
	}
	const chain = "tools/call: client → audit-calls (10) → cap-result-size (20) → redact-secrets (30) → block-by-argument (90) → upstream"
	d.wantCommand(app.ExitOK, chain, "hooks list --active")
	h := newActiveHooks(t, d)
	// The secret crosses the limit: if the response was cut first, the rest of the secret
	// would not be recognized.
	text := strings.Repeat("a ", 9_995) + "AKIAABCDEFGHIJKLMNOP and " + strings.Repeat("b ", 20)
	result, sent, err := callThroughHooks(h, t, `{"name":"read","arguments":{"path":"notes"}}`, `{"content":[{"type":"text","text":"`+text+`"}]}`)
	if err != nil || sent == "" || strings.Contains(result, "AKIA") || !strings.Contains(result, "[redacted]") || strings.Contains(result, "b b b b b b b b b b b b b b b b b b b b") {
		t.Errorf("the result is …%s, %v", result[max(0, len(result)-300):], err)
	}
	if _, sent, err := callThroughHooks(h, t, `{"name":"read","arguments":{"path":".env"}}`, `{"content":[]}`); guideway.ErrorCode(err) != guideway.CodeRefused || sent != "" {
		t.Errorf("sent %s, %v", sent, err)
	}
	var lines []string
	waitFor(t, func() bool {
		lines = auditLines(t, &d.host)
		return len(lines) == 2
	})
	all := strings.Join(lines, "")
	if !strings.Contains(all, `"outcome":"ok"`) || !strings.Contains(all, `"outcome":"failed"`) {
		t.Errorf("the audit is %s", all)
	}
	// If a graph of the chain has changed since its approval, the chain refuses every call.
	d.wantCommand(app.ExitOK, "Enabled theirs", "hooks enable theirs --order 0", "theirs")
	waitFor(t, func() bool {
		_, sent, _ := callThroughHooks(h, t, `{"name":"read","arguments":{"path":"a"}}`, `{"content":[]}`)
		return strings.Contains(sent, `"mark":1`)
	})
	writeFile(t, d.file, strings.Replace(projectGraph, "mark = 1", "mark = 2", 1))
	waitFor(t, func() bool {
		_, sent, err := callThroughHooks(h, t, `{"name":"read","arguments":{"path":"a"}}`, `{"content":[]}`)
		return err != nil && sent == "" && strings.Contains(err.Error(), "theirs applies to this request and cannot run: changed since its approval")
	})
}

// Each audit entry is a JSON line, in a file that only this user can read.
func TestAuditFile(t *testing.T) {
	t.Parallel()
	d := newHookProject(t)
	d.wantCommand(app.ExitOK, "Enabled audit-calls", "hooks enable audit-calls")
	h := newActiveHooks(t, d)
	failing := errors.New("server unavailable")
	_, err := h.Around(t.Context(), gateway.HookCall{Method: "tools/call", Upstream: "files", Tool: "read", Params: json.RawMessage(`{"name":"read"}`)},
		func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, failing })
	if !errors.Is(err, failing) {
		t.Errorf("the error is %v, want that of the server", err)
	}
	path := filepath.Join(h.Cfg.DataDir, "hooks-audit.jsonl")
	var text []byte
	waitFor(t, func() bool {
		text, err = os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(text), "}\n")
	})
	var line struct {
		Graph, ServerName string
		Record            struct{ Tool, Outcome string }
	}
	if err := json.Unmarshal(text, &line); err != nil || line.Graph != "audit-calls" || line.ServerName != "files" || line.Record.Tool != "read" || line.Record.Outcome != "failed" {
		t.Errorf("%s: %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}
