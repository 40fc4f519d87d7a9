package mcp

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/run/project"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxPath bounds the path of a project, in characters.
const maxPath = 4096

var (
	projectID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{12}$`) })
	// drivePath matches an absolute Windows path.
	drivePath = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z]:[\\/]`) })
)

// projects finds the projects of clients.
type projects struct {
	project func(context.Context) run.Project
	// catalog holds the definitions of the server, and definitions those of other
	// directories; nil means that all projects have those of the server.
	catalog     Catalog
	definitions Definitions
}

// Definitions provides the definitions of projects.
type Definitions interface {
	// Open returns the definitions that apply in a directory. If the directory does not
	// exist, they are those of the server.
	Open(ctx context.Context, dir string) (*catalog.Snapshot, run.Definitions, error)
}

// openDefinitions returns the definitions for the project of a call. A client with its own
// token gets those of the server: it may belong to a person who must not read the files of
// the server's user. startable is nil for the definitions of the server.
func (p projects) openDefinitions(ctx context.Context, where run.Project) (snap *catalog.Snapshot, startable run.Definitions, err error) {
	if p.definitions == nil || where.Path == "" || auth.TokenLeaseFrom(ctx) != nil || p.project != nil && where.Path == p.project(ctx).Path {
		return p.catalog.Snapshot(), nil, nil
	}
	return p.definitions.Open(ctx, where.Path)
}

// currentProject returns the client's project, if the server knows it: the project of the
// working directory, unless the client has roots and none of them is in that project. Then
// it is the project of the first root that exists.
func (p projects) currentProject(ctx context.Context) run.Project {
	var here run.Project
	if p.project != nil {
		here = p.project(ctx)
	}
	first := here
	for _, dir := range rootsFrom(ctx) {
		found, err := project.Detect(dir)
		switch {
		case err != nil:
		case found.ID == here.ID:
			return here
		case first.ID == here.ID:
			first = run.Project{ID: found.ID, Path: found.Path, Branch: found.Branch, Commit: found.Commit}
		}
	}
	return first
}

// findProject returns the project that a call names by id or path, or the client's current
// project. A path that is not on this machine is used as the project's name.
func (p projects) findProject(ctx context.Context, c call) (run.Project, error) {
	name, here := c.textArg("project"), p.currentProject(ctx)
	switch {
	case name == "" || name == here.ID || name == here.Path:
		return here, nil
	case projectID().MatchString(name):
		return run.Project{ID: name}, nil
	case isForeignPath(name, runtime.GOOS):
		return run.Project{ID: project.ID(name), Path: name}, nil
	case project.IsNetworkPath(name, runtime.GOOS):
		return run.Project{}, badProject(c, fmt.Sprintf("project %q is a path on a network or of a device, which the server does not access", shortenValue(name)),
			"omit project, or pass the project's id, or the path on a drive to which the share is mapped, such as Z:\\project")
	case !filepath.IsAbs(name):
		return run.Project{}, badProject(c, fmt.Sprintf("project %q is neither an absolute path nor a project's id", shortenValue(name)),
			"omit project, or pass the absolute path of your working directory")
	}
	found, err := project.Detect(name)
	if by, _ := auth.PrincipalFrom(ctx); err != nil || by.Roles != nil {
		clean := filepath.Clean(name)
		return run.Project{ID: project.ID(clean), Path: clean}, nil //nolint:nilerr // it is another machine's or person's directory
	}
	return run.Project{ID: found.ID, Path: found.Path, Branch: found.Branch, Commit: found.Commit}, nil
}

// badProject returns an error about the project of a call, with a call without it.
func badProject(c call, message, fix string) error {
	bad := c.badCall("project", message)
	bad.Fix = fix
	delete(bad.Next.Arguments, "project")
	return bad
}

// isForeignPath reports whether a path is a Windows path and system is not Windows. On
// Windows, project.Detect normalizes the spelling of such a path.
func isForeignPath(name, system string) bool {
	return system != "windows" && drivePath().MatchString(name)
}

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

// maxClient bounds the name of a client, in characters.
const maxClient = 64

// withClient labels the caller with the name in the client's request. The name is only a
// label: a client may send any.
func withClient(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	p, ok := auth.PrincipalFrom(ctx)
	info := req.ClientInfo()
	if !ok || info == nil || auth.TokenLeaseFrom(ctx) != nil { // The name of the client's token identifies it better.
		return ctx
	}
	p.Client = plainLine(info.Name, maxClient)
	return auth.WithPrincipal(ctx, p)
}

// plainLine returns one line of text that is safe to show to a person: hidden characters are
// escaped, and it has at most limit characters.
func plainLine(text string, limit int) string {
	text = visible.EscapeLine(text)
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// callerFrom returns the caller of ctx. Over MCP every caller is an agent.
func callerFrom(ctx context.Context) (run.Caller, error) {
	p, ok := auth.PrincipalFrom(ctx)
	if !ok || p.User == "" {
		return run.Caller{}, guideway.Errorf(guideway.CodeUnauthorized, "the caller is unknown").
			WithFix("connect with the bearer token of the server; guideway doctor shows the path of its file")
	}
	return run.Caller{Principal: p, Via: run.ViaAgent}, nil
}
