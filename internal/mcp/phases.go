package mcp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/library"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// phaseTools is the toolset "phases". Its tools have the inputs and outputs of the workflow
// server that phase workflows come from, here "the original server".
type phaseTools struct {
	catalog Catalog
	// runs is nil if the toolset "runs" is not offered.
	runs    *run.Service
	version string
	now     func() time.Time
	started time.Time
}

func newPhaseTools(s *Server, opts Options) *phaseTools {
	return &phaseTools{catalog: opts.Catalog, runs: s.runs, version: opts.Version, now: opts.Now, started: opts.Now()}
}

func (p *phaseTools) newTools() map[string]*tool {
	ofKind := func(kind phases.EntryKind, serve func(phases.EntryKind, call) (any, error)) func(context.Context, call) (any, error) {
		return func(_ context.Context, c call) (any, error) { return serve(kind, c) }
	}
	tools := newTools(ToolsetPhases, handlers{
		"list_workflows": p.listWorkflows, "get_workflow": p.getWorkflow, "get_phase": p.getPhase, "get_checkpoint": p.getCheckpoint,
		"validate_transition": p.validateTransition, "get_activities": p.getActivities, "get_activity": p.getActivity,
		"match_activity": p.matchActivity, "get_rules": p.getRules, "get_skills": p.getSkills, "list_skills": p.listSkills, "get_skill": p.getSkill,
		"list_guides": ofKind(library.KindGuide, p.listTexts), "get_guide": ofKind(library.KindGuide, p.getText),
		"list_templates": ofKind(library.KindTemplate, p.listTexts), "get_template": ofKind(library.KindTemplate, p.getText),
		"list_resources": p.listResources, "health_check": p.checkHealth,
	})
	if begin, check := tools["get_workflow"], tools["validate_transition"]; p.runs == nil {
		begin.Description = strings.Replace(begin.Description, "start a run: workflow_start", "start with its first phase: get_phase", 1)
		check.Description = strings.Replace(check.Description, "variables, a state document or a run's handle", "variables or a state document", 1)
		check.Params = slices.DeleteFunc(check.Params, func(p param) bool { return p.Name == "handle" })
	}
	return tools
}

// workflowInfo is a workflow in the answer of list_workflows.
type workflowInfo struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

func (p *phaseTools) listWorkflows(context.Context, call) (any, error) {
	snap := p.catalog.Snapshot()
	items := lists.Map(phaseWorkflows(snap), func(e *catalog.Entry) workflowInfo { return workflowInfo{e.ID, e.Name, e.Version, e.Description} })
	return itemList(items, describeUnloaded(snap))
}

// describeUnloaded returns the first errors of the catalog's files, or "" if none exists.
func describeUnloaded(snap *catalog.Snapshot) string {
	const most = 5
	var lines []string
	for _, d := range snap.Diagnostics() {
		if isError(d) {
			lines = append(lines, d.String())
		}
	}
	if len(lines) == 0 {
		return ""
	}
	head := "Some files have errors:\n"
	if n := len(lines) - most; n > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more: guideway doctor lists all", n))
	}
	return head + strings.Join(lines, "\n")
}

func phaseWorkflows(snap *catalog.Snapshot) []*catalog.Entry {
	return snap.List(catalog.Filter{Dialect: guideway.DialectPhases})
}

func (p *phaseTools) getWorkflow(_ context.Context, c call) (any, error) {
	w, err := p.findWorkflow(c)
	if err != nil {
		return nil, err
	}
	return wholeDocument(w.Canonical, withDefaults)
}

func (p *phaseTools) getPhase(_ context.Context, c call) (any, error) {
	phase, err := p.findPhaseOf(c)
	if err != nil {
		return nil, err
	}
	return wholeDocument(phase.Source, phaseDefaults)
}

func (p *phaseTools) getCheckpoint(_ context.Context, c call) (any, error) {
	phase, err := p.findPhaseOf(c)
	if err != nil {
		return nil, err
	}
	checkpoint, err := findCheckpoint(c, phase)
	if err != nil {
		return nil, err
	}
	return wholeDocument(checkpoint.Source, checkpointDefaults)
}

// findWorkflow finds the phase workflow of a call.
func (p *phaseTools) findWorkflow(c call) (*phases.Workflow, error) {
	snap, id := p.catalog.Snapshot(), c.textArg("workflow_id")
	e, err := snap.Get(id)
	if err == nil && e.Definition.Phases != nil {
		return e.Definition.Phases, nil
	}
	if err == nil {
		return nil, &callError{
			Code: guideway.CodeInvalid, Field: "workflow_id", Given: shortenValue(id),
			Message: fmt.Sprintf("'%s' is a step workflow: it has no phases", id),
			Fix:     "name a phase workflow; workflow_get, a tool of the toolset steps, describes step workflows", Allowed: workflowIDs(snap),
			Next: &run.Call{Tool: "list_workflows", Arguments: map[string]any{}},
		}
	}
	bad := notFound("Workflow", "workflow_id", id, workflowIDs(snap))
	if guideway.ErrorCode(err) == guideway.CodeInvalidDefinition {
		bad.Code, bad.Fix = guideway.CodeInvalidDefinition, guideway.ErrorFix(err)
		bad.Message = fmt.Sprintf("Workflow validation failed for %s: %s", id, err.Error())
	}
	bad.suggestRetry(c)
	return nil, bad
}

func workflowIDs(snap *catalog.Snapshot) []string {
	return lists.Map(phaseWorkflows(snap), func(e *catalog.Entry) string { return e.ID })
}

// notFound returns the error about an unknown id, in the wording of the original server,
// with the known ids.
func notFound(what, field, id string, allowed []string) *callError {
	const most = 60
	bad := &callError{
		Code: guideway.CodeNotFound, Field: field, Given: shortenValue(id), Message: fmt.Sprintf("%s not found: %v", what, shortenValue(id)),
	}
	if len(allowed) > 0 {
		bad.Allowed = allowed[:min(len(allowed), most)]
	}
	if meant := spelling.Closest(id, allowed); meant != "" {
		bad.Fix = fmt.Sprintf("did you mean %q?", meant)
	}
	return bad
}

// suggestRetry sets the next call to the caller's call with the closest known value, or
// else the first one. If no value is known, it suggests list_resources.
func (e *callError) suggestRetry(c call) {
	allowed, _ := e.Allowed.([]string)
	if len(allowed) == 0 {
		e.Next = &run.Call{Tool: "list_resources", Arguments: map[string]any{}}
		return
	}
	args := maps.Clone(map[string]any(c.arguments))
	args[e.Field] = allowed[0]
	if given, ok := e.Given.(string); ok {
		if meant := spelling.Closest(given, allowed); meant != "" {
			args[e.Field] = meant
		}
	}
	e.Next = &run.Call{Tool: c.tool.Name, Arguments: args}
}

// findPhaseOf finds the workflow that a call names, and its phase.
func (p *phaseTools) findPhaseOf(c call) (*phases.Phase, error) {
	w, err := p.findWorkflow(c)
	if err != nil {
		return nil, err
	}
	return p.findPhase(c, w, "phase_id")
}

// findPhase finds a phase by its id or its 1-based number.
func (p *phaseTools) findPhase(c call, w *phases.Workflow, field string) (*phases.Phase, error) {
	if i := indexByID(phaseIDs(w), c.textArg(field)); i >= 0 {
		return &w.Phases[i], nil
	}
	bad := notFound("Phase", field, c.textArg(field), phaseIDs(w))
	bad.suggestRetry(c)
	return nil, bad
}

// indexByID returns the index of the element with an id or a 1-based number, or -1 if there
// is none.
func indexByID(ids []string, id string) int {
	if i := slices.Index(ids, id); i >= 0 {
		return i
	}
	if n, ok := phases.Index(id); ok && n >= 1 && n <= len(ids) {
		return n - 1
	}
	return -1
}

func phaseIDs(w *phases.Workflow) []string {
	return lists.Map(w.Phases, func(p phases.Phase) string { return p.ID })
}

// findCheckpoint finds a checkpoint of a phase by its id or its 1-based number.
func findCheckpoint(c call, phase *phases.Phase) (*phases.Checkpoint, error) {
	id := c.textArg("checkpoint_id")
	ids := lists.Map(phase.Checkpoints, func(c phases.Checkpoint) string { return c.ID })
	if i := indexByID(ids, id); i >= 0 {
		return &phase.Checkpoints[i], nil
	}
	bad := notFound("Checkpoint", "checkpoint_id", id, ids)
	if len(ids) == 0 {
		bad.Fix = fmt.Sprintf("choose a phase with checkpoints: the phase %q has none", phase.ID)
		bad.Next = &run.Call{Tool: "get_phase", Arguments: map[string]any{"workflow_id": c.textArg("workflow_id"), "phase_id": phase.ID}}
		return nil, bad
	}
	bad.suggestRetry(c)
	return nil, bad
}

// healthAnswer is the answer of health_check.
type healthAnswer struct {
	Status    string `json:"status"`
	Server    string `json:"server"`
	Version   string `json:"version"`
	Workflows int    `json:"workflows_available"`
	Uptime    int64  `json:"uptime_seconds"`
	// Problems is the number of errors of files and sources. Sources names the sources that
	// could not be read.
	Problems int      `json:"problems"`
	Sources  []string `json:"failed_sources,omitempty"`
}

func (p *phaseTools) checkHealth(context.Context, call) (any, error) {
	snap := p.catalog.Snapshot()
	h := healthAnswer{
		Status: "healthy", Server: "guideway", Version: p.version,
		Workflows: len(phaseWorkflows(snap)), Uptime: int64(p.now().Sub(p.started).Seconds()),
	}
	for _, d := range snap.Diagnostics() {
		if isError(d) {
			h.Problems++
		}
	}
	for _, source := range snap.Sources() {
		if source.State == catalog.SourceFailed || source.State == catalog.SourceMissing && !source.Optional {
			h.Sources = append(h.Sources, source.Name)
		}
	}
	if h.Problems > 0 || len(h.Sources) > 0 {
		h.Status = "degraded"
	}
	return textAnswer{structure: h, note: describeUnloaded(snap)}, nil
}
