package mcp

import (
	"context"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxRoots bounds the roots of a client.
	maxRoots = 20
	// rootsTimeout is the maximum time for a client to list its roots. A client that does
	// not answer is not asked again.
	rootsTimeout = 2 * time.Second
)

// clientRoots asks the clients of earlier protocol versions for their roots, the directories
// that the user works in. A session is asked once, and again after a change.
type clientRoots struct {
	mu sync.Mutex
	// known holds a function for each session that asks the client at its first call. The
	// function is nil after a change of the roots, until the next call of a tool.
	known map[*mcp.ServerSession]func() []string
}

type rootsKey struct{}

// wrapHandler is a middleware that gives tools access to the roots of the client.
func (r *clientRoots) wrapHandler(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if c, ok := req.(*mcp.CallToolRequest); ok && canListRoots(ctx, c) {
			ctx = context.WithValue(ctx, rootsKey{}, func() []string { return r.listRoots(ctx, c.Session) })
		}
		return next(ctx, method, req)
	}
}

// rootsFrom returns the directories of the client of ctx, which may not exist.
func rootsFrom(ctx context.Context) []string {
	if list, ok := ctx.Value(rootsKey{}).(func() []string); ok {
		return list()
	}
	return nil
}

// canListRoots reports whether a client can be asked for its roots. A client with its own
// token may be on another machine and belong to another person: its paths mean nothing here.
func canListRoots(ctx context.Context, req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	return req.Session != nil && caps != nil && caps.RootsV2 != nil && //nolint:staticcheck // SA1019: legacy clients support it
		req.ProtocolVersion() < transport.ModernVersion && auth.TokenLeaseFrom(ctx) == nil
}

// listRoots returns the roots of a session. Concurrent calls wait for one answer.
func (r *clientRoots) listRoots(ctx context.Context, session *mcp.ServerSession) []string {
	r.mu.Lock()
	list, seen := r.known[session]
	if list == nil {
		// All calls of the session use the answer, so the end of this call must not cancel
		// the request.
		ctx := context.WithoutCancel(ctx)
		list = sync.OnceValue(func() []string { return askRoots(ctx, session) })
		r.known[session] = list
	}
	if !seen {
		go r.forgetAtEnd(session)
	}
	r.mu.Unlock()
	return list()
}

// forgetAtEnd removes a session after its end.
func (r *clientRoots) forgetAtEnd(session *mcp.ServerSession) {
	_ = session.Wait() // The reason for the end is not needed.
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, session)
}

// markChanged lets the next call of a session ask for its roots again.
func (r *clientRoots) markChanged(session *mcp.ServerSession) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, seen := r.known[session]; seen {
		r.known[session] = nil
	}
}

// askRoots asks a client for its roots.
func askRoots(ctx context.Context, session *mcp.ServerSession) []string {
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout)
	defer cancel()
	answer, err := session.ListRoots(ctx, nil) //nolint:staticcheck // SA1019: legacy clients support it
	if err != nil || answer == nil {
		return nil
	}
	var dirs []string
	for _, root := range answer.Roots[:min(len(answer.Roots), maxRoots)] {
		if dir := rootDir(root.URI, runtime.GOOS); dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// rootDir returns the absolute path of a root on the operating system with a name of GOOS,
// or "" if the root is not a local directory.
func rootDir(uri, system string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || len(u.Path) > maxPath || strings.ContainsRune(u.Path, 0) {
		return ""
	}
	dir := u.Path
	if system == "windows" {
		dir = strings.TrimPrefix(dir, "/")
		if project.IsNetworkPath(dir, system) || !drivePath().MatchString(dir) {
			return ""
		}
	} else if !strings.HasPrefix(dir, "/") {
		return ""
	}
	return filepath.Clean(filepath.FromSlash(dir))
}
