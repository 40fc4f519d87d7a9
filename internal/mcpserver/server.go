// Package mcpserver is our MCP surface: the tools, prompts and resources that
// clients see. How they get here, over stdio or HTTP, is the business of its
// package transport.
package mcpserver

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/mcpserver/transport"
	"github.com/guideway-dev/guideway/internal/run"
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
const (
	ToolsetSteps    = "steps"
	ToolsetRuns     = "runs"
	ToolsetSessions = "sessions"
	ToolsetContext  = "context"
	ToolsetPhases   = "phases"
	ToolsetGateway  = "gateway"
	ToolsetMachines = "machines"
)

// Toolsets lists the names of the toolsets, the default ones first.
func Toolsets() []string {
	return append(DefaultToolsets(), ToolsetPhases, ToolsetGateway, ToolsetMachines)
}

// DefaultToolsets lists the names of the toolsets that are offered where nobody
// chooses.
func DefaultToolsets() []string {
	return []string{ToolsetSteps, ToolsetRuns, ToolsetSessions, ToolsetContext}
}

// Options say what a server offers.
type Options struct {
	// Catalog holds the definitions; it is needed.
	Catalog Catalog
	// Version is the version of the program, "dev" if empty.
	Version string
	// Toolsets chooses the tools; nil means the default ones. One whose service
	// is nil is not offered.
	Toolsets []string
	// Runs is the service behind the toolset "runs".
	Runs Runs
	// Sessions is the service behind the toolset "sessions".
	Sessions Sessions
	// Memory is the service behind the toolset "context"; the answers about runs
	// tell what it knows, whether the toolset is offered or not.
	Memory Memory
	// Dashboard gives the address of a dashboard that is alive, and starts one
	// where none is: of a session document where an id is given. The address is
	// for agents and carries no login. nil means that there is no dashboard.
	Dashboard func(ctx context.Context, sessionID string) (url string, err error)
	// LiveDashboard is as Dashboard, but starts none and answers "" where none
	// is alive; nil is never.
	LiveDashboard func(ctx context.Context, sessionID string) string
	// Project tells the project that a client is in; nil and the zero Project
	// mean that nobody knows.
	Project func(ctx context.Context) run.Project
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger gets what goes wrong; nil is silence.
	Logger *slog.Logger
	// Upstreams are the other MCP servers behind the toolset "gateway".
	Upstreams Upstreams
	// Machines is the service behind the toolset "machines".
	Machines Machines
}

// Upstreams add to a server what other MCP servers offer.
type Upstreams interface {
	// Extend says what the server can do with them.
	Extend(opts *mcp.ServerOptions)
	// Attach adds them to the server. own are the names of its own tools, which
	// stay its own.
	Attach(server *mcp.Server, own []string)
	// Reserve says which names its own prompts have from now on; they stay its own,
	// too.
	Reserve(prompts []string)
}

// Server offers a catalog over MCP. It serves any number of connections.
type Server struct {
	mcp     *mcp.Server
	catalog Catalog
	logger  *slog.Logger
	cancel  func()
	// runs and sessions are nil where their toolset is not offered.
	runs     Runs
	sessions Sessions

	// reserve is told the names of the prompts; nil is nobody.
	reserve func([]string)

	// mu guards shown.
	mu sync.Mutex
	// shown are the ids of the workflows that prompts and resources stand for,
	// with their hashes.
	shown map[string]string
}

// instructions tell a model what the server is for, by the tools that are there.
func instructions(toolsets []string, withRuns, withUpstreams bool) string {
	var said []string
	if withRuns || slices.Contains(toolsets, ToolsetSteps) {
		said = append(said, workflowInstructions(withRuns))
	}
	if slices.Contains(toolsets, ToolsetPhases) {
		said = append(said, "For what the user wants call match_activity with their words: it names the activity to follow. Guides and templates that a step names come by get_guide and get_template.")
	}
	if withUpstreams && len(said) == 0 {
		said = append(said, "Guideway stands in front of other MCP servers, whose tools, prompts and resources are here.")
	}
	return strings.Join(said, " ")
}

// workflowInstructions say how workflows are followed.
func workflowInstructions(withRuns bool) string {
	const what = "Guideway leads you through workflows one step at a time. Before a task of some size call workflow_list; if a workflow fits, "
	if withRuns {
		return what + "begin it with workflow_start, do what position asks, and hand in the result with workflow_continue, until status is completed. " +
			"The server keeps the state and refuses what the workflow does not allow: read the refusal and make the call in next. " +
			"Gates are the user's to answer, not yours. To go on with earlier work call workflow_resume."
	}
	return what + "follow it with workflow_next: " +
		"do the step, append its id to completedSteps, send back the context, until isComplete is true. " +
		"Check a step's output with workflow_validate where it has validationCriteria."
}

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
		opts.Toolsets = DefaultToolsets()
	}
	for _, name := range opts.Toolsets {
		if !slices.Contains(Toolsets(), name) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "there is no toolset %q", name).
				WithFix("use one of %v", Toolsets())
		}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{
		catalog: opts.Catalog, logger: opts.Logger, shown: map[string]string{},
		runs: opts.Runs, sessions: opts.Sessions,
	}
	if !slices.Contains(opts.Toolsets, ToolsetRuns) {
		s.runs = nil
	}
	if !slices.Contains(opts.Toolsets, ToolsetSessions) {
		s.sessions = nil
	}
	withUpstreams := opts.Upstreams != nil && slices.Contains(opts.Toolsets, ToolsetGateway)
	protocol := &mcp.ServerOptions{
		Instructions:      instructions(opts.Toolsets, s.runs != nil, withUpstreams),
		Logger:            opts.Logger,
		CompletionHandler: s.complete,
		// 2025-03-26, which alone has batches, is left out.
		SupportedProtocolVersions: []string{transport.ModernVersion, "2025-11-25", "2025-06-18", "2024-11-05"},
		Capabilities: &mcp.ServerCapabilities{
			// The list of tools is fixed for a connection.
			Tools:     &mcp.ToolCapabilities{},
			Prompts:   &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true},
		},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	}
	if withUpstreams {
		opts.Upstreams.Extend(protocol)
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "guideway", Title: "Guideway", Version: opts.Version}, protocol)
	limits := &allowed{toolset: map[string]string{}}
	s.mcp.AddReceivingMiddleware(limits.middleware)
	var own []string
	for toolset, tools := range s.tools(opts) {
		for _, t := range tools {
			s.mcp.AddTool(t.definition(), t.server(opts.Logger))
			own = append(own, t.name)
			limits.toolset[t.name] = toolset
		}
	}
	if withUpstreams {
		opts.Upstreams.Attach(s.mcp, own)
		s.reserve = opts.Upstreams.Reserve
	}
	s.mcp.AddReceivingMiddleware(explainFailedForms)
	s.mcp.AddReceivingMiddleware(transport.Recover(opts.Logger))
	s.addFixedResources()
	s.show()
	s.cancel = opts.Catalog.OnChange(func(catalog.Change) { s.show() })
	return s, nil
}

// tools are the tools of the toolsets that are offered.
func (s *Server) tools(opts Options) map[string][]*tool {
	all := map[string][]*tool{}
	if slices.Contains(opts.Toolsets, ToolsetSteps) {
		all[ToolsetSteps] = (&stepTools{catalog: opts.Catalog, runs: s.runs != nil, memory: opts.Memory}).tools()
	}
	if s.runs != nil {
		all[ToolsetRuns] = (&runTools{runs: s.runs, places: places{opts.Project}, forms: newForms(opts.Now), catalog: s.catalog, memory: opts.Memory}).tools()
	}
	if s.sessions != nil {
		all[ToolsetSessions] = (&sessionTools{
			sessions: s.sessions, places: places{opts.Project}, open: opts.Dashboard, live: opts.LiveDashboard,
		}).tools()
	}
	if slices.Contains(opts.Toolsets, ToolsetContext) && opts.Memory != nil {
		all[ToolsetContext] = (&contextTools{memory: opts.Memory, places: places{opts.Project}}).tools()
	}
	if slices.Contains(opts.Toolsets, ToolsetPhases) {
		all[ToolsetPhases] = newPhaseTools(s, opts).tools()
	}
	if slices.Contains(opts.Toolsets, ToolsetMachines) && opts.Machines != nil {
		all[ToolsetMachines] = (&machineTools{machines: opts.Machines}).tools()
	}
	return all
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
	list := s.catalog.Snapshot().List(catalog.Filter{})
	for _, e := range list {
		now[e.ID] = e.Hash
	}
	if s.reserve != nil && !maps.EqualFunc(now, s.shown, func(string, string) bool { return true }) {
		s.reserve(slices.Sorted(maps.Keys(now))) // before the first of them is there
	}
	for _, e := range list {
		if s.shown[e.ID] == e.Hash {
			continue
		}
		s.mcp.AddPrompt(workflowPrompt(e), s.getPrompt)
		s.mcp.AddResource(workflowResource(e), s.readWorkflow)
	}
	for id := range s.shown {
		if _, ok := now[id]; !ok {
			s.mcp.RemovePrompts(id)
			s.mcp.RemoveResources(workflowURI(id))
		}
	}
	s.shown = now
}
