// Package mcp is the MCP server of Guideway: the tools, prompts and resources that clients
// see. Its package transport serves them over stdio and HTTP.
package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Catalog is the source of the definitions.
type Catalog interface {
	// Snapshot returns the current definitions. It reads no file.
	Snapshot() *catalog.Snapshot
	// OnChange calls f after every change until cancel is called.
	OnChange(f func(catalog.Change)) (cancel func())
}

// The names of the toolsets.
const (
	ToolsetSteps    = "steps"
	ToolsetRuns     = "runs"
	ToolsetSessions = "sessions"
	ToolsetContext  = "context"
	ToolsetPhases   = "phases"
	ToolsetGateway  = "gateway"
	ToolsetMachines = "machines"
	// ToolsetAuto stands for the default toolsets, the gateway, and phases and machines as
	// soon as a source other than the bundled one has such a definition.
	ToolsetAuto = "auto"
)

// Toolsets returns the names of the toolsets, the default ones first.
func Toolsets() []string {
	return append(DefaultToolsets(), ToolsetPhases, ToolsetGateway, ToolsetMachines)
}

// DefaultToolsets returns the names of the default toolsets.
func DefaultToolsets() []string {
	return []string{ToolsetSteps, ToolsetRuns, ToolsetSessions, ToolsetContext}
}

// Options configure a server.
type Options struct {
	// Catalog holds the definitions; it must not be nil.
	Catalog Catalog
	// Version is the version of the program, "dev" if empty.
	Version string
	// Toolsets are the toolsets to offer, or ToolsetAuto; nil means the default ones. A
	// toolset whose service is nil is not offered.
	Toolsets []string
	// Answers is the form of answers, AnswersAuto if empty.
	Answers string
	// Runs is the service of the toolset "runs".
	Runs *run.Service
	// OpenRuns records which runs a client uses; it may be nil.
	OpenRuns *OpenRuns
	// Sessions is the service of the toolset "sessions".
	Sessions *session.Service
	// Memory is the service of the toolset "context". Answers about runs include a summary
	// of the run's context even if the toolset is not offered.
	Memory *contexts.Service
	// Dashboard returns the URL of a running dashboard, which it starts if needed. With an
	// id, it returns the URL of that session document. The URL is for agents and carries no
	// login. Dashboard is nil if the server has no dashboard.
	Dashboard func(ctx context.Context, sessionID string) (url string, err error)
	// LiveDashboard is like Dashboard, but does not start a dashboard: it returns "" if no
	// dashboard is running. It must not be nil if Dashboard is set.
	LiveDashboard func(ctx context.Context, sessionID string) string
	// Project returns the project of a client; nil and the zero Project mean that it is
	// unknown.
	Project func(ctx context.Context) run.Project
	// Definitions provides the definitions of projects; nil means that all have those of
	// Catalog.
	Definitions Definitions
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Logger receives errors and warnings; nil discards them.
	Logger *slog.Logger
	// Upstreams are the MCP servers of the toolset "gateway".
	Upstreams Upstreams
	// Machines is the service of the toolset "machines".
	Machines Machines
	// NewSessionID returns the id of a new session over HTTP; nil means a random one.
	NewSessionID func() string
	// ConnectChecks lets guideway connect execute checks on the computer of a client. A server
	// that only serves its own computer executes them itself.
	ConnectChecks bool
	// Shared is the state that the instances of a deployment share; nil for one instance.
	Shared deployment.Shared
}

func (opts *Options) setDefaults() {
	opts.Version = cmp.Or(opts.Version, "dev")
	opts.Answers = cmp.Or(opts.Answers, AnswersAuto)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Toolsets == nil {
		opts.Toolsets = DefaultToolsets()
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
}

// Upstreams adds the tools, prompts and resources of other MCP servers to a server.
type Upstreams interface {
	// Extend adds the capabilities of the upstreams to the options.
	Extend(opts *mcp.ServerOptions)
	// Attach adds the upstreams to the server. own are the names of the server's own tools,
	// which they cannot replace.
	Attach(server *mcp.Server, own []string)
	// Reserve sets the names of the server's own prompts, which upstreams cannot replace.
	Reserve(prompts []string)
}

// Server offers a catalog over MCP. It serves any number of connections.
type Server struct {
	mcp     *mcp.Server
	catalog Catalog
	logger  *slog.Logger
	answers *responder
	cancel  func()
	// runs and sessions are nil if their toolset is not offered.
	runs     *run.Service
	sessions *session.Service

	// reservePrompts receives the names of the prompts; it may be nil.
	reservePrompts func([]string)

	// mu guards shown and waiting.
	mu sync.Mutex
	// waiting holds the tools of the toolsets that are offered as soon as a definition needs
	// them. A toolset that is offered once stays: a client may use its tools.
	waiting map[string]map[string]*tool
	// shown maps the ids of the workflows that have prompts and resources to their hashes.
	shown map[string]string
}

// serverInstructions returns the instructions for a model that has the toolsets.
func serverInstructions(toolsets []string, withRuns, withUpstreams bool) string {
	var said []string
	if withRuns || slices.Contains(toolsets, ToolsetSteps) {
		said = append(said, "Guideway leads you through workflows one step at a time. Before a larger task call workflow_list; if a workflow fits, "+followInstructions(withRuns))
	}
	if withRuns {
		said = append(said, "If your tools are deferred, load workflow_list, workflow_start, workflow_continue, workflow_status and workflow_resume with one search.")
	}
	if slices.Contains(toolsets, ToolsetPhases) {
		said = append(said, "For the user's goal call match_activity with their words: it names the activity to follow. get_guide and get_template return the guides and templates that a step names.")
	}
	if withUpstreams && len(said) == 0 {
		said = append(said, "Guideway is a gateway to other MCP servers and offers their tools, prompts and resources.")
	}
	return strings.Join(said, " ")
}

// followInstructions returns the instructions to follow a workflow.
func followInstructions(withRuns bool) string {
	if withRuns {
		return "start it with workflow_start, do what position asks, and submit the result with workflow_continue, until status is completed. " +
			"The server keeps the state and refuses what the workflow does not allow: read the refusal, and fill in the fields of next truthfully. " +
			"Only the user may answer gates. To continue earlier work call workflow_resume."
	}
	return "follow it with workflow_next: " +
		"do the step, append its id to completedSteps, send back the context, until isComplete is true. " +
		"Check a step's output with workflow_validate where it has validationCriteria."
}

// introductionFor returns the instructions for the first answer to a model that does not see
// the server's instructions, or "" if it needs none.
func introductionFor(toolsets []string, withRuns bool) string {
	if withRuns || slices.Contains(toolsets, ToolsetSteps) {
		return "To follow a workflow, " + followInstructions(withRuns)
	}
	return ""
}

// New returns a server, which Close releases. An unknown toolset is an error with
// guideway.CodeInvalid.
func New(opts Options) (*Server, error) {
	opts.setDefaults()
	automatic, err := opts.resolveToolsets()
	if err != nil {
		return nil, err
	}
	s := &Server{
		waiting: map[string]map[string]*tool{},
		catalog: opts.Catalog, logger: opts.Logger, shown: map[string]string{},
		runs: opts.Runs, sessions: opts.Sessions,
	}
	if !slices.Contains(opts.Toolsets, ToolsetRuns) {
		s.runs = nil
	}
	if !slices.Contains(opts.Toolsets, ToolsetSessions) {
		s.sessions = nil
	}
	answers, err := newResponder(opts, introductionFor(opts.Toolsets, s.runs != nil))
	if err != nil {
		return nil, err
	}
	s.answers = answers
	withUpstreams := opts.Upstreams != nil && slices.Contains(opts.Toolsets, ToolsetGateway)
	protocol := &mcp.ServerOptions{
		Instructions: serverInstructions(s.neededNow(opts.Toolsets, automatic), s.runs != nil, withUpstreams),
		Logger:       opts.Logger, GetSessionID: opts.NewSessionID,
		CompletionHandler: s.completeArgument,
		// 2025-03-26, the only version with batches, is not supported.
		SupportedProtocolVersions: []string{transport.ModernVersion, "2025-11-25", "2025-06-18", "2024-11-05"},
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: len(automatic) > 0},
			Prompts:   &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true},
		},
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	}
	roots := &clientRoots{known: map[*mcp.ServerSession]func() []string{}}
	protocol.RootsListChangedHandler = func(_ context.Context, req *mcp.RootsListChangedRequest) { roots.markChanged(req.Session) } //nolint:staticcheck // SA1019: legacy clients have roots
	if withUpstreams {
		opts.Upstreams.Extend(protocol)
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "guideway", Title: "Guideway", Version: opts.Version}, protocol)
	limits := &toolFilter{toolset: map[string]string{}}
	s.mcp.AddReceivingMiddleware(roots.wrapHandler)
	s.mcp.AddReceivingMiddleware(limits.wrapHandler)
	s.mcp.AddReceivingMiddleware(answers.wrapHandler)
	var own []string
	for toolset, tools := range s.toolsByToolset(opts) {
		for _, t := range tools {
			own = append(own, t.Name)
			limits.toolset[t.Name] = toolset
		}
		if slices.Contains(automatic, toolset) {
			s.waiting[toolset] = tools
		} else {
			s.addTools(tools)
		}
	}
	if withUpstreams {
		opts.Upstreams.Attach(s.mcp, own)
		s.reservePrompts = opts.Upstreams.Reserve
	}
	s.mcp.AddReceivingMiddleware(answers.explainFailedForms)
	s.mcp.AddReceivingMiddleware(transport.Recover(opts.Logger))
	s.addFixedResources()
	s.syncCatalog()
	s.cancel = opts.Catalog.OnChange(func(catalog.Change) { s.syncCatalog() })
	return s, nil
}

// toolsByToolset returns the tools of the offered toolsets.
func (s *Server) toolsByToolset(opts Options) map[string]map[string]*tool {
	all := map[string]map[string]*tool{}
	places := projects{project: opts.Project, catalog: opts.Catalog, definitions: opts.Definitions}
	if slices.Contains(opts.Toolsets, ToolsetSteps) {
		all[ToolsetSteps] = (&stepTools{places: places, runs: s.runs != nil, memory: opts.Memory}).newTools()
	}
	if s.runs != nil {
		all[ToolsetRuns] = (&runTools{runs: s.runs, places: places, forms: s.answers.forms, live: opts.LiveDashboard, catalog: s.catalog, memory: opts.Memory, open: opts.OpenRuns}).newTools()
	}
	if s.sessions != nil {
		all[ToolsetSessions] = (&sessionTools{
			sessions: s.sessions, places: places, open: opts.Dashboard, live: opts.LiveDashboard,
		}).newTools()
	}
	if slices.Contains(opts.Toolsets, ToolsetContext) && opts.Memory != nil {
		all[ToolsetContext] = (&contextTools{memory: opts.Memory, places: places, live: opts.LiveDashboard}).newTools()
	}
	if slices.Contains(opts.Toolsets, ToolsetPhases) {
		all[ToolsetPhases] = newPhaseTools(s, opts).newTools()
	}
	if slices.Contains(opts.Toolsets, ToolsetMachines) && opts.Machines != nil {
		all[ToolsetMachines] = (&machineTools{machines: opts.Machines, places: places, open: opts.OpenRuns}).newTools()
	}
	return all
}

// MCP returns the SDK's server, for a transport.
func (s *Server) MCP() *mcp.Server { return s.mcp }

// Close stops following the catalog.
func (s *Server) Close() { s.cancel() }

// addTools adds tools to the SDK's server, which notifies clients.
func (s *Server) addTools(tools map[string]*tool) {
	for _, t := range tools {
		s.mcp.AddTool(t.mcpTool(), t.newHandler(s.answers))
	}
}

// syncCatalog updates the prompts, the resources and the automatic toolsets from the
// catalog. The SDK notifies clients.
func (s *Server) syncCatalog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := make(map[string]string)
	snap := s.catalog.Snapshot()
	list := snap.List(catalog.Filter{})
	for _, e := range list {
		now[e.ID] = e.Hash
	}
	needed := map[string]*tool{}
	for toolset, tools := range s.waiting {
		if needsToolset(snap, toolset) {
			maps.Copy(needed, tools)
			delete(s.waiting, toolset)
		}
	}
	if s.reservePrompts != nil && (len(needed) > 0 || !maps.Equal(now, s.shown)) {
		s.reservePrompts(slices.Sorted(maps.Keys(now))) // The names must be reserved before the lists change.
	}
	s.addTools(needed)
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
