// Package mcpserver is our MCP surface: the tools, prompts and resources that
// clients see. How they get here, over stdio or HTTP, is the business of its
// package transport.
package mcpserver

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/mcpserver/transport"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Catalog is where the definitions come from.
type Catalog interface {
	// Snapshot gives the definitions as they are now. It costs no file read.
	Snapshot() *catalog.Snapshot
	// OnChange calls f after every change until cancel is called.
	OnChange(f func(catalog.Change)) (cancel func())
}

// The toolsets that exist.
const ToolsetSteps = "steps"

// Toolsets lists the names of the toolsets, the default ones first.
func Toolsets() []string { return []string{ToolsetSteps} }

// Options say what a server offers.
type Options struct {
	// Catalog holds the definitions; it is needed.
	Catalog Catalog
	// Version is the version of the program, "dev" if empty.
	Version string
	// Toolsets chooses the tools; nil means the default ones.
	Toolsets []string
	// Logger gets what goes wrong; nil is silence.
	Logger *slog.Logger
}

// Server offers a catalog over MCP. It serves any number of connections.
type Server struct {
	mcp     *mcp.Server
	catalog Catalog
	cancel  func()

	// mu guards shown.
	mu sync.Mutex
	// shown are the ids of the workflows that prompts and resources stand for,
	// with their hashes.
	shown map[string]string
}

// instructions tell a model what the server is for.
const instructions = "Guideway leads you through workflows one step at a time. " +
	"Before a task of some size call workflow_list; if a workflow fits, follow it with workflow_next: " +
	"do the step, append its id to completedSteps, send back the context, until isComplete is true. " +
	"Check a step's output with workflow_validate where it has validationCriteria."

// New makes a server. Close releases it. An unknown toolset is an error with
// guideway.CodeInvalid.
func New(opts Options) (*Server, error) {
	if opts.Version == "" {
		opts.Version = "dev"
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Toolsets == nil {
		opts.Toolsets = Toolsets()
	}
	for _, name := range opts.Toolsets {
		if !slices.Contains(Toolsets(), name) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "there is no toolset %q", name).
				WithFix("use one of %v", Toolsets())
		}
	}
	s := &Server{catalog: opts.Catalog, shown: map[string]string{}}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "guideway", Title: "Guideway", Version: opts.Version},
		&mcp.ServerOptions{
			Instructions:      instructions,
			Logger:            opts.Logger,
			CompletionHandler: s.complete,
			Capabilities: &mcp.ServerCapabilities{
				// The list of tools is fixed for a connection.
				Tools:     &mcp.ToolCapabilities{},
				Prompts:   &mcp.PromptCapabilities{ListChanged: true},
				Resources: &mcp.ResourceCapabilities{ListChanged: true},
			},
			SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
		})
	if slices.Contains(opts.Toolsets, ToolsetSteps) {
		for _, t := range (&stepTools{catalog: opts.Catalog}).tools() {
			s.mcp.AddTool(t.definition(), t.server(opts.Logger))
		}
	}
	s.mcp.AddReceivingMiddleware(transport.Recover(opts.Logger))
	s.addFixedResources()
	s.show()
	s.cancel = opts.Catalog.OnChange(func(catalog.Change) { s.show() })
	return s, nil
}

// MCP is the protocol's side of the server, for a transport.
func (s *Server) MCP() *mcp.Server { return s.mcp }

// Close stops following the catalog.
func (s *Server) Close() { s.cancel() }

// show makes prompts and resources match the catalog. The SDK tells clients of
// what changed.
func (s *Server) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[string]string)
	for _, e := range s.catalog.Snapshot().List(catalog.Filter{}) {
		d := e.Definition
		now[d.ID] = d.Hash
		if s.shown[d.ID] == d.Hash {
			continue
		}
		s.mcp.AddPrompt(workflowPrompt(d), s.getPrompt)
		s.mcp.AddResource(workflowResource(d), s.readWorkflow)
	}
	for id := range s.shown {
		if _, ok := now[id]; !ok {
			s.mcp.RemovePrompts(id)
			s.mcp.RemoveResources(workflowURI(id))
		}
	}
	s.shown = now
}
