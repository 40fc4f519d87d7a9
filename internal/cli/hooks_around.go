package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/approval"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/definition/hooks"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/hookgraph"
	"github.com/guideway-dev/guideway/internal/hookgraph/sandbox"
	"github.com/guideway-dev/guideway/internal/script"
)

// approvalsPoll is how often the file of approvals is looked at: what another
// process enables or disables is in force soon after.
const approvalsPoll = time.Second

// hooksAround has the active hook graphs stand around the calls of a gateway. It
// keeps up with the catalog and with what is enabled.
type hooksAround struct {
	cfg    *config.Config
	cat    *catalog.Catalog
	log    *slog.Logger
	now    func() time.Time
	pool   *script.Pool
	engine *hookgraph.Engine
	set    atomic.Pointer[hookgraph.Set]

	refreshing sync.Mutex
	seen       fs.FileInfo // the file of approvals, as it was read last
	stop       func()
	done       sync.WaitGroup
}

var _ gateway.Hooks = (*hooksAround)(nil)

// newHooksAround reads what is active and follows it until close. The catalog must
// be open as long.
func newHooksAround(cfg *config.Config, cat *catalog.Catalog, log *slog.Logger, now func() time.Time) (*hooksAround, error) {
	pool, err := script.NewPool(script.Options{Log: log})
	if err != nil {
		return nil, err
	}
	h := &hooksAround{cfg: cfg, cat: cat, log: log, now: now, pool: pool}
	h.engine = hookgraph.New(hookgraph.Options{
		Scripts: &sandbox.Scripts{Runner: pool}, Audit: &auditFile{path: filepath.Join(cfg.DataDir, "hooks-audit.jsonl")}, OnAside: h.onAside, Now: now,
	})
	h.refresh()
	ctx, cancel := context.WithCancel(context.Background())
	unsubscribe := cat.OnChange(func(change catalog.Change) {
		if change.Hooks {
			h.done.Go(h.refresh) // the call must be short
		}
	})
	h.done.Go(func() { h.follow(ctx) })
	h.stop = func() { unsubscribe(); cancel() }
	return h, nil
}

// close waits for the hooks that run aside, until ctx is done, and ends the
// workers.
func (h *hooksAround) close(ctx context.Context) error {
	h.stop()
	h.done.Wait()
	h.engine.Close(ctx)
	return h.pool.Close(ctx)
}

// follow looks at the file of approvals now and then.
func (h *hooksAround) follow(ctx context.Context) {
	ticker := time.NewTicker(approvalsPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			info, _ := os.Stat(approvalsPath(h.cfg)) // none is as good as another
			h.refreshing.Lock()
			same := sameFile(h.seen, info)
			h.refreshing.Unlock()
			if !same {
				h.refresh()
			}
		}
	}
}

// sameFile says whether a file is as it was.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// refresh puts in force what is active now. Where that cannot be known, nothing
// passes: a guard may be among what cannot be read.
func (h *hooksAround) refresh() {
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	h.seen, _ = os.Stat(approvalsPath(h.cfg))
	records, err := readApprovals(h.cfg, h.now)
	if err != nil {
		h.log.Error("the approvals of hook graphs cannot be read; no call of an upstream passes", "error", err)
		h.set.Store(hookgraph.NewSet(nil, []hookgraph.Blocked{
			{ID: "(unknown)", Type: hooks.ToolsCall, Why: err.Error(), Fix: guideway.ErrorFix(err)},
			{ID: "(unknown)", Type: hooks.ToolsList, Why: err.Error(), Fix: guideway.ErrorFix(err)},
		}))
		return
	}
	h.set.Store(activateHooks(h.cat.Snapshot(), records).Set)
}

// readApprovals reads what is approved. Where there is no file, no key is made.
func readApprovals(cfg *config.Config, now func() time.Time) (approval.Records, error) {
	if _, err := os.Lstat(approvalsPath(cfg)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	store, err := openApprovals(cfg, now)
	if err != nil {
		return nil, err
	}
	return store.List()
}

// Looks implements gateway.Hooks.
func (h *hooksAround) Looks(method, upstream, tool string) bool {
	p, err := h.set.Load().For(hooks.Type(method), upstream, tool)
	return p != nil || err != nil
}

// Around implements gateway.Hooks.
func (h *hooksAround) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	p, err := h.set.Load().For(hooks.Type(call.Method), call.Upstream, call.Tool)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return send(ctx, call.Params)
	}
	out := h.engine.Run(ctx, p, hookgraph.Request{
		Params:   call.Params,
		Metadata: hookgraph.Metadata{ClientID: call.Client.Client, ClientName: call.Client.Client, ServerID: call.Upstream, ServerName: call.Upstream},
	}, hookgraph.CallerFunc(func(ctx context.Context, c hookgraph.Call) (json.RawMessage, error) {
		if err := sameTool(call, c.Params); err != nil {
			return nil, err
		}
		return send(ctx, c.Params)
	}))
	if h.log.Enabled(ctx, slog.LevelDebug) {
		h.log.DebugContext(ctx, "a call went through a hook graph", "graph", p.Graph().ID, "upstream", call.Upstream, "tool", call.Tool, "outcome", out.Status)
	}
	return out.Response, out.Err
}

// sameTool refuses a call that a hook has made one of another tool: what this
// client may call was judged for the one that it chose.
func sameTool(call gateway.HookCall, params json.RawMessage) error {
	if hooks.Type(call.Method) != hooks.ToolsCall {
		return nil
	}
	var members map[string]json.RawMessage // keys in their exact case
	var name string
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members["name"], &name) != nil || name != call.Tool {
		return guideway.Errorf(guideway.CodeRefused, "a hook changed the tool that is called from %q to %q, which this gateway does not do", call.Tool, name).
			WithFix("rename tools in the configuration of the upstream")
	}
	return nil
}

// onAside logs the errors of fire-and-forget hooks.
func (h *hooksAround) onAside(graph string, node hookgraph.NodeTrace) {
	if node.Error != nil {
		h.log.Warn("a fire-and-forget hook has failed", "graph", graph, "node", node.ID, "code", node.Error.Code, "error", node.Error.Message)
	}
}

// auditFile appends what hooks hand to the audit to a file, a line of JSON each.
type auditFile struct {
	path string
	mu   sync.Mutex
}

// Audit implements hookgraph.Auditor.
func (a *auditFile) Audit(_ context.Context, entry hookgraph.AuditEntry) (err error) {
	line, err := json.Marshal(entry)
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalid, "write a record for the audit: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "open the audit: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// One write for a line: several processes may append.
	_, err = file.Write(append(line, '\n'))
	return err
}
