package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// approvalsPoll is the interval at which the approvals file is checked, so that changes of
// another process take effect soon.
const approvalsPoll = time.Second

// ActiveHooks runs the active hook graphs around the requests of a gateway. It follows changes of the catalog and of the approvals.
type ActiveHooks struct {
	Cfg    *config.Config
	cat    *catalog.Catalog
	log    *slog.Logger
	clock  func() time.Time
	engine *hookengine.Engine
	// onToolsListChange is called after a change of the graphs that may affect tools/list.
	onToolsListChange atomic.Pointer[func()]
	active            atomic.Pointer[hookengine.Set]

	refreshLock    sync.Mutex
	approvalsStamp string // of the approvals when they were last read
	stop           func()
	done           sync.WaitGroup
}

var _ gateway.Hooks = (*ActiveHooks)(nil)

// NewActiveHooks loads the active graphs and follows changes until Close. The catalog, the
// pool and the store of the state must stay open until then.
func NewActiveHooks(cfg *config.Config, cat *catalog.Catalog, pool *sandbox.Pool, state hookstate.Store, log *slog.Logger, now func() time.Time) *ActiveHooks {
	h := &ActiveHooks{Cfg: cfg, cat: cat, log: log, clock: now}
	h.engine = hookengine.New(hookengine.Options{
		Scripts: &runner.Scripts{Runner: pool, Owner: callUser, State: state, Now: now}, Audit: &auditFile{path: filepath.Join(cfg.DataDir, "hooks-audit.jsonl")}, OnBackground: h.logBackgroundError, Now: now,
	})
	h.refreshSet()
	ctx, cancel := context.WithCancel(context.Background())
	unsubscribe := cat.OnChange(func(change catalog.Change) {
		if change.Hooks {
			h.done.Go(h.refreshSet) // the callback must return fast
		}
	})
	h.done.Go(func() { h.pollApprovals(ctx) })
	h.stop = func() { unsubscribe(); cancel() }
	return h
}

// callUser returns the user of a call, so that the scripts of one user do not delay the
// calls of another.
func callUser(ctx context.Context) string {
	principal, _ := auth.PrincipalFrom(ctx)
	return principal.User
}

// Close stops following changes, and waits for fire-and-forget hooks until ctx is done.
func (h *ActiveHooks) Close(ctx context.Context) {
	h.stop()
	h.done.Wait()
	h.engine.Close(ctx)
}

// pollApprovals reloads the graphs after the approvals file has changed.
func (h *ActiveHooks) pollApprovals(ctx context.Context) {
	ticker := time.NewTicker(approvalsPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			stamp := app.ApprovalsStamp(h.Cfg)
			h.refreshLock.Lock()
			same := h.approvalsStamp == stamp
			h.refreshLock.Unlock()
			if !same {
				h.refreshSet()
			}
		}
	}
}

// refreshSet activates the currently approved graphs. If the approvals cannot be read, all
// calls are blocked, because one of the graphs may be a guard.
func (h *ActiveHooks) refreshSet() {
	h.refreshLock.Lock()
	defer h.refreshLock.Unlock()
	h.approvalsStamp = app.ApprovalsStamp(h.Cfg)
	records, err := app.ReadApprovals(h.Cfg, h.clock)
	if err != nil {
		h.log.Error("cannot read the approvals of hook graphs; all calls to upstreams are refused", "error", err)
		h.activateSet(hookengine.NewSet(nil, []hookengine.Blocked{
			{ID: "(unknown)", Types: hookdef.Types(), Why: err.Error(), Fix: guideway.ErrorFix(err)},
		}))
		return
	}
	h.activateSet(hookadmin.Activate(h.cat.Snapshot(), records).Set)
}

// activateSet activates a set of graphs. If tools/list may change, it calls
// onToolsListChange.
func (h *ActiveHooks) activateSet(next *hookengine.Set) {
	before := h.active.Swap(next)
	if notify := h.onToolsListChange.Load(); notify != nil && len(before.Links(hookdef.ToolsList))+len(next.Links(hookdef.ToolsList)) > 0 {
		(*notify)()
	}
}

// Applies implements gateway.Hooks.
func (h *ActiveHooks) Applies(method, upstream, tool string) bool {
	return h.active.Load().Applies(hookdef.Type(method), upstream, tool)
}

// Versions implements gateway.Hooks.
func (h *ActiveHooks) Versions(upstream, tool string) map[string]string {
	return h.active.Load().Versions(upstream, tool)
}

// hookPass is in the context of a request that has passed through graphs. passed are these
// graphs, which do not run again if the call is redirected. set is the set that was active
// when the request began: later changes of the approvals do not apply to the request.
type hookPass struct {
	set    *hookengine.Set
	passed []*hookengine.Program
}

type hookPassKey struct{}

// Around implements gateway.Hooks. The graphs that apply to the request are nested in the
// order of their chain: each is the client of the next one.
func (h *ActiveHooks) Around(ctx context.Context, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	pass, ok := ctx.Value(hookPassKey{}).(hookPass)
	if !ok {
		pass.set = h.active.Load()
	}
	chain, err := pass.set.Chain(hookdef.Type(call.Method), call.Upstream, call.Tool)
	if err != nil {
		return nil, err
	}
	chain = slices.DeleteFunc(chain, func(p *hookengine.Program) bool { return slices.Contains(pass.passed, p) })
	return h.runChain(ctx, pass, chain, call, send)
}

// runChain runs the first graph of a chain, whose call is the rest of the chain. If the
// graph redirects the call to another tool, the rest of the chain is skipped, and send runs
// the graphs of the new tool.
func (h *ActiveHooks) runChain(ctx context.Context, pass hookPass, chain []*hookengine.Program, call gateway.HookCall, send func(context.Context, json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	if len(chain) == 0 {
		return send(context.WithValue(ctx, hookPassKey{}, pass), call.Params)
	}
	p, began := chain[0], time.Now()
	metadata := hookengine.Metadata{Owner: call.Owner, ClientID: call.Client.Client, ClientName: call.Client.Client, ServerID: call.Upstream, ServerName: call.Upstream}
	if call.Run != "" {
		metadata.Run = &hookengine.RunMetadata{ID: call.Run, Step: call.Step}
	}
	request := hookengine.Request{Method: hookdef.Type(call.Method), Params: call.Params, Metadata: metadata}
	out := h.engine.Run(ctx, p, request, hookengine.CallerFunc(func(ctx context.Context, c hookengine.Call) (json.RawMessage, error) {
		if c.Hold != "" {
			ctx = gateway.WithHold(ctx, "the hook graph "+p.Graph().ID+": "+c.Hold)
		}
		if c.Progress != nil {
			ctx = gateway.WithProgress(ctx, c.Progress)
		}
		next := hookPass{pass.set, append(slices.Clip(pass.passed), p)}
		rest := chain[1:]
		if call.Tool != "" && call.Tool != toolOf(c.Params) {
			rest = nil
		}
		inner := call
		inner.Params = c.Params
		return h.runChain(ctx, next, rest, inner, send)
	}))
	noteGraph(ctx, p, out, began)
	if h.log.Enabled(ctx, slog.LevelDebug) {
		h.log.DebugContext(ctx, "a hook graph processed a call", "graph", p.Graph().ID, "upstream", call.Upstream, "tool", call.Tool, "outcome", out.Status)
	}
	return out.Response, out.Err
}

// toolOf returns the name of the tool in the params of a call, or "".
func toolOf(params json.RawMessage) string {
	members, err := jsonrpc.Members(params, "name")
	var name string
	if err != nil || json.Unmarshal(members["name"], &name) != nil {
		return ""
	}
	return name
}

// logBackgroundError logs the errors of fire-and-forget hooks.
func (h *ActiveHooks) logBackgroundError(graph string, node hookengine.NodeTrace) {
	if node.Error != nil {
		h.log.Warn("a fire-and-forget hook has failed", "graph", graph, "node", node.ID, "code", node.Error.Code, "error", node.Error.Message)
	}
}

// auditFile appends the audit entries of hooks to a JSON Lines file.
type auditFile struct {
	path string
	mu   sync.Mutex
}

// Audit implements hookengine.Auditor.
func (a *auditFile) Audit(_ context.Context, entry hookengine.AuditEntry) (err error) {
	line, err := json.Marshal(entry)
	if err != nil {
		return guideway.Errorf(guideway.CodeInvalid, "encode an entry of the audit log of hooks: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := atomicfile.OpenAppend(a.path)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "open the audit log of hooks: %w", err).WithFix("make %s a file that this user can write", a.path)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// Write each line with one call: several processes may append.
	if _, err = file.Write(append(line, '\n')); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "write the audit log of hooks: %w", err).WithFix("check that the disk with %s is not full", a.path)
	}
	return nil
}
