package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// stepTools is the toolset "steps": tools that list, describe, follow and check workflows
// without a run.
type stepTools struct {
	places projects
	// runs reports whether the toolset "runs" is offered too.
	runs bool
	// memory saves the contexts that name a session; nil saves none.
	memory *contexts.Service
}

func (s *stepTools) newTools() map[string]*tool {
	tools := newTools(ToolsetSteps, handlers{
		"workflow_list": s.listWorkflows, "workflow_get": s.describeWorkflow, "workflow_next": s.findNextStep,
		"workflow_validate": s.validateOutput, "workflow_validate_json": s.validateDefinition, "workflow_get_schema": s.describeSchema,
	})
	if list := tools["workflow_list"]; !s.runs {
		list.Description = strings.Replace(list.Description, "workflow_start", "workflow_next", 1)
	}
	return tools
}

// workflowSummary is one line of workflow_list.
type workflowSummary struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Category    string           `json:"category"`
	Version     string           `json:"version"`
	Dialect     guideway.Dialect `json:"dialect"`
}

func (s *stepTools) listWorkflows(ctx context.Context, c call) (any, error) {
	snap, err := s.openSnapshot(ctx, c)
	if err != nil {
		return nil, err
	}
	out := struct {
		Workflows   []workflowSummary     `json:"workflows"`
		Diagnostics []guideway.Diagnostic `json:"diagnostics,omitempty"`
	}{Workflows: []workflowSummary{}}
	for _, e := range snap.List(catalog.Filter{}) {
		out.Workflows = append(out.Workflows, workflowSummary{
			ID: e.ID, Name: e.Name, Description: e.Description,
			Category: e.Source.Name, Version: e.Version, Dialect: e.Dialect,
		})
	}
	out.Diagnostics = limitDiagnostics(snap.Diagnostics(), 10, "guideway doctor lists all")
	return out, nil
}

// maxDiagnosticBytes bounds the size of the diagnostics in an answer.
const maxDiagnosticBytes = 24 << 10

// limitDiagnostics returns at most limit diagnostics and maxDiagnosticBytes of text. If it
// omits some, it adds a diagnostic with their number and the fix rest.
func limitDiagnostics(list []guideway.Diagnostic, limit int, rest string) []guideway.Diagnostic {
	size := 0
	for i, d := range list {
		size += len(d.Message) + len(d.Fix) + len(d.File) + len(d.Pointer)
		if i < limit && size <= maxDiagnosticBytes {
			continue
		}
		more := guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: "more",
			Message: fmt.Sprintf("more diagnostics are not shown: %d of %d", len(list)-i, len(list)),
			Fix:     rest,
		}
		if slices.ContainsFunc(list[i:], isError) {
			more.Severity = guideway.SeverityError
		}
		return append(slices.Clone(list[:i]), more)
	}
	return list
}

func isError(d guideway.Diagnostic) bool { return d.Severity == guideway.SeverityError }

// workflowDetails is the answer of workflow_get.
type workflowDetails struct {
	ID                   string           `json:"id"`
	Name                 string           `json:"name"`
	Description          string           `json:"description"`
	Version              string           `json:"version"`
	Preconditions        []string         `json:"preconditions,omitempty"`
	ClarificationPrompts []string         `json:"clarificationPrompts,omitempty"`
	MetaGuidance         []string         `json:"metaGuidance,omitempty"`
	TotalSteps           int              `json:"totalSteps"`
	TotalPhases          int              `json:"totalPhases,omitempty"`
	Dialect              guideway.Dialect `json:"dialect"`
	Source               string           `json:"source"`
	Hash                 string           `json:"hash"`
	FirstStep            any              `json:"firstStep,omitempty"`
}

func (s *stepTools) describeWorkflow(ctx context.Context, c call) (any, error) {
	snap, err := s.openSnapshot(ctx, c)
	if err != nil {
		return nil, err
	}
	e, err := findWorkflow(ctx, snap, c, "id")
	if err != nil {
		return nil, err
	}
	if e.Definition.Phases != nil {
		return newPhaseDetails(e), nil
	}
	p := engine.Compile(e.Definition.Steps)
	w := p.Workflow
	out := workflowDetails{
		ID: w.ID, Name: w.Name, Description: w.Description, Version: w.Version,
		Preconditions: w.Preconditions, ClarificationPrompts: w.ClarificationPrompts,
		MetaGuidance: w.MetaGuidance, TotalSteps: p.TotalSteps(),
		Dialect: e.Definition.Dialect, Source: e.Source.Name, Hash: e.Definition.Hash,
	}
	if c.textArg("mode") != "metadata" {
		first, err := p.Next(engine.NextRequest{})
		if err != nil {
			return nil, err
		}
		out.FirstStep = first.Step
	}
	return out, nil
}

func (s *stepTools) findNextStep(ctx context.Context, c call) (any, error) {
	p, _, err := s.compileProgram(ctx, c)
	if err != nil {
		return nil, err
	}
	res, err := p.Next(engine.NextRequest{Completed: c.textsArg("completedSteps"), Context: c.objectArg("context")})
	if err != nil {
		return nil, err
	}
	if s.memory != nil {
		s.memory.Walked(c.caller.Principal, c.textArg("workflowId"), c.textsArg("completedSteps"), res.Context)
	}
	return struct {
		Step       *engine.StepView `json:"step"`
		Guidance   engine.Guidance  `json:"guidance"`
		IsComplete bool             `json:"isComplete"`
		Context    map[string]any   `json:"context"`
	}{res.Step, res.Guidance, res.IsComplete, res.Context}, nil
}

// validation is the answer of workflow_validate and workflow_validate_json.
type validation struct {
	Valid       bool     `json:"valid"`
	Issues      []string `json:"issues"`
	Suggestions []string `json:"suggestions"`
	// Diagnostics have the locations of the issues.
	Diagnostics []guideway.Diagnostic `json:"diagnostics,omitempty"`
}

// addSuggestions adds suggestions without duplicates.
func (v *validation) addSuggestions(lines ...string) {
	for _, line := range lines {
		if line != "" && !slices.Contains(v.Suggestions, line) {
			v.Suggestions = append(v.Suggestions, line)
		}
	}
}

func (s *stepTools) validateOutput(ctx context.Context, c call) (any, error) {
	p, _, err := s.compileProgram(ctx, c)
	if err != nil {
		return nil, err
	}
	step, err := stepWithOutput(p, c.arguments)
	if err != nil {
		return nil, err
	}
	res, err := step.Criteria.Check(c.textArg("output"), expr.Map(c.objectArg("context")))
	if err != nil {
		return nil, err
	}
	return validation{Valid: res.Valid, Issues: notNil(res.Issues), Suggestions: notNil(res.Suggestions)}, nil
}

// stepWithOutput finds the step whose output a call validates. A loop has no output.
func stepWithOutput(p *engine.Program, in arguments) (*steps.Step, error) {
	id := in.textArg("stepId")
	step, ok := p.Step(id)
	if ok && step.Loop == nil {
		return step, nil
	}
	bad := &callError{
		Code: guideway.CodeNotFound, Field: "stepId", Given: shortenValue(id),
		Message: fmt.Sprintf("Step with id '%v' not found in workflow", shortenValue(id)),
	}
	ids := p.StepIDs()
	meant := spelling.Closest(id, ids)
	if ok {
		ids = nil
		for i := range step.Loop.Body {
			ids = append(ids, step.Loop.Body[i].ID)
		}
		bad.Code = guideway.CodeInvalid
		bad.Message = fmt.Sprintf("'%s' is a loop and has no output", id)
		bad.Fix = "check the output of a step in the loop: " + strings.Join(ids, ", ")
	}
	bad.Allowed = ids
	if meant == "" && len(ids) > 0 {
		meant = ids[0]
	}
	call := &run.Call{Tool: "workflow_validate", Arguments: map[string]any{
		"workflowId": in.textArg("workflowId"), "stepId": meant, "output": "the output of the step",
	}}
	bad.Next = call
	return nil, bad
}

func (s *stepTools) validateDefinition(_ context.Context, c call) (any, error) {
	def, found := workflow.Check("", []byte(c.textArg("workflowJson")))
	out := validation{
		Valid: def != nil && !slices.ContainsFunc(found, isError), Issues: []string{}, Suggestions: []string{},
		Diagnostics: limitDiagnostics(found, 50, "fix the listed diagnostics, then check again"),
	}
	for _, d := range out.Diagnostics {
		if isError(d) {
			out.Issues = append(out.Issues, d.Message)
		}
		out.addSuggestions(strings.Split(d.Fix, "\n")...)
		if d.Code == doc.CodeJSONSyntax {
			out.addSuggestions(
				"Put keys and strings in double quotes; single quotes are not JSON.",
				"Separate members by one comma; no comma after the last.",
				"Close each brace and bracket that you open.",
			)
		}
	}
	return out, nil
}

func (s *stepTools) describeSchema(context.Context, call) (any, error) {
	return map[string]any{
		"schema": json.RawMessage(steps.Schema()),
		"metadata": map[string]any{
			"version":     "1.0.0",
			"description": "The steps dialect: a list of steps and loops with conditions and criteria.",
			"usage":       "Write a definition that fits the schema, then check it with workflow_validate_json.",
			"schemaPath":  "guideway://schemas/steps",
		},
		"commonPatterns": commonPatterns(),
	}, nil
}

// commonPatterns returns small examples to start from.
func commonPatterns() map[string]any {
	step := map[string]any{
		"id": "reproduce", "title": "Reproduce the failure",
		"prompt":             "Run the failing command. Report the command, its output and the exit code.",
		"validationCriteria": []any{map[string]any{"type": "regex", "pattern": "exit code", "flags": "i", "message": "Name the exit code."}},
	}
	loop := map[string]any{
		"id": "each-file", "type": "loop", "title": "Go through the files",
		"loop": map[string]any{"type": "forEach", "items": "files", "itemVar": "file", "maxIterations": 50},
		"body": []any{map[string]any{"id": "review-file", "title": "Review one file", "prompt": "Review {{file}}."}},
	}
	return map[string]any{
		"basicWorkflow": map[string]any{
			"id": "my-workflow", "name": "My workflow", "description": "What it achieves", "version": "0.1.0",
			"steps": []any{step},
		},
		"stepStructure": step,
		"loopStructure": loop,
	}
}

func notNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// newPhaseDetails describes a phase workflow. Only a run returns its first step.
func newPhaseDetails(e *catalog.Opened) workflowDetails {
	w := e.Definition.Phases
	out := workflowDetails{
		ID: w.ID, Name: w.Title, Description: w.Description, Version: w.Version, MetaGuidance: w.Rules, TotalPhases: len(w.Phases),
		Dialect: e.Definition.Dialect, Source: e.Source.Name, Hash: e.Definition.Hash,
	}
	for i := range w.Phases {
		out.TotalSteps += len(w.Phases[i].Steps)
	}
	return out
}

// compileProgram finds the step workflow that a call names, and compiles it.
func (s *stepTools) compileProgram(ctx context.Context, c call) (*engine.Program, *catalog.Opened, error) {
	const field = "workflowId"
	id := c.textArg(field)
	snap, err := s.openSnapshot(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	e, err := findWorkflow(ctx, snap, c, field)
	switch {
	case err != nil:
		return nil, nil, err
	case e.Definition.Steps != nil:
		return engine.Compile(e.Definition.Steps), e, nil
	}
	bad := &callError{
		Code: guideway.CodeInvalid, Field: field, Given: id,
		Message: fmt.Sprintf("'%s' is a phase workflow, which %s does not support: the server keeps its state in a run", id, c.tool.Name),
		Fix:     "ask the user to add the toolset runs to the server (--toolsets, or toolsets in guideway.json); then start a run with workflow_start",
	}
	if s.runs {
		bad.Fix = "start a run"
		bad.Next = &run.Call{Tool: "workflow_start", Arguments: map[string]any{"workflowId": id}}
	}
	return nil, nil, bad
}

// openSnapshot returns the definitions for the project of a call.
func (s *stepTools) openSnapshot(ctx context.Context, c call) (*catalog.Snapshot, error) {
	if c.textArg("project") == "" && len(rootsFrom(ctx)) == 0 {
		return s.places.catalog.Snapshot(), nil
	}
	where, err := s.places.findProject(ctx, c)
	if err != nil {
		return nil, err
	}
	snap, _, err := s.places.openDefinitions(ctx, where)
	return snap, err
}

// unknownWorkflowFix returns the fix for an unknown workflow: the workflow that was meant, if
// any, and the searched directories. A client with its own token does not learn the
// directories of the server's user.
func unknownWorkflowFix(ctx context.Context, snap *catalog.Snapshot, meant string) string {
	var fix []string
	if meant != "" {
		fix = append(fix, fmt.Sprintf("did you mean %s?", meant))
	}
	if auth.TokenLeaseFrom(ctx) != nil {
		fix = append(fix, "This token gives access to the workflows of the server only.")
	} else if dirs := snap.Dirs(); len(dirs) > 0 {
		fix = append(fix, "The searched directories are: "+strings.Join(dirs, ", "))
	}
	return strings.Join(fix, " ")
}

// findWorkflow finds the workflow that a call names in a field.
func findWorkflow(ctx context.Context, snap *catalog.Snapshot, c call, field string) (*catalog.Opened, error) {
	id := c.textArg(field)
	e, err := snap.Get(id)
	if err == nil {
		return e, nil
	}
	bad := &callError{
		Code: guideway.ErrorCode(err), Field: field, Given: shortenValue(id),
		Message: err.Error(), Fix: guideway.ErrorFix(err), Next: listCall(c.arguments),
	}
	if bad.Code == guideway.CodeNotFound {
		ids, meant := similarWorkflows(snap, id)
		bad.Fix = unknownWorkflowFix(ctx, snap, meant)
		if ids != nil {
			bad.Allowed = ids
		}
		if meant != "" {
			args := maps.Clone(c.arguments)
			args[field] = meant
			const longest = 2048
			if text, err := jsontext.Marshal(args); err == nil && len(text) <= longest {
				bad.Next = &run.Call{Tool: c.tool.Name, Arguments: args}
			}
		}
	}
	return nil, bad
}

// listCall returns a call that lists the workflows of the project that a call names.
func listCall(in arguments) *run.Call {
	next := &run.Call{Tool: "workflow_list", Arguments: map[string]any{}}
	if in["project"] != nil {
		next.Arguments["project"] = in["project"]
	}
	return next
}

// similarWorkflows returns the ids of all workflows, or nil if there are too many, and the
// id that an unknown id most likely means, or "".
func similarWorkflows(snap *catalog.Snapshot, id string) (ids []string, meant string) {
	const most = 30
	for _, e := range snap.List(catalog.Filter{}) {
		ids = append(ids, e.ID)
	}
	meant = spelling.Closest(id, ids)
	if len(ids) > most {
		ids = nil
	}
	return ids, meant
}
