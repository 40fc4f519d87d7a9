package mcp

import (
	"context"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// runTools is the toolset "runs": durable runs of guided workflows.
type runTools struct {
	runs   *run.Service
	places projects
	forms  *formStore
	// live is Options.LiveDashboard.
	live func(ctx context.Context, sessionID string) string
	// catalog has the guides that a position refers to.
	catalog Catalog
	// memory describes the runs' contexts; answers omit the descriptions if it is nil.
	memory *contexts.Service
	// open records which runs a client uses; it may be nil.
	open *OpenRuns
}

func (r *runTools) newTools() map[string]*tool {
	tools := newTools(ToolsetRuns, handlers{
		"workflow_start": r.startRun, "workflow_continue": r.continueRun, "workflow_status": r.getStatus,
		"workflow_resume": r.findRun, "workflow_fork": r.forkRun, "workflow_abort": r.abortRun,
	})
	submit := tools["workflow_continue"]
	submit.legal = r.legalCall
	for name, description := range map[string]string{
		"output": engine.DescribeOutputArgument, "notes": engine.DescribeNotesArgument, "context": engine.DescribeContextArgument,
	} {
		findParam(submit.Params, name).Description = description
	}
	return tools
}

// runAnswer is the state of a run in an answer.
type runAnswer struct {
	*run.Answer
	// Hint is an instruction that no next call covers.
	Hint string `json:"hint,omitempty"`
	// Notice warns that the run's context is large, or that the call stored likely secrets.
	Notice string `json:"contextNotice,omitempty"`
	// Brief summarizes the run's context, if requested.
	*contexts.Brief
}

// newAnswer makes an answer for the client of req. stored are the arguments that the run
// stored, if any.
func (r *runTools) newAnswer(ctx context.Context, req *mcp.CallToolRequest, a *run.Answer, stored arguments) runAnswer {
	if c, err := callerFrom(ctx); err == nil {
		r.open.noteUse(ctx, req, c, a.RunID)
	}
	out := r.newBareAnswer(ctx, req, a)
	if r.memory != nil {
		out.Notice = r.memory.Notice(a.RunID, stored)
	}
	return out
}

// loadBrief returns a summary of the run's context.
func (r *runTools) loadBrief(ctx context.Context, c run.Caller, id string) *contexts.Brief {
	if r.memory == nil {
		return nil
	}
	b, err := r.memory.Brief(ctx, c, id)
	if err != nil { // The answer is complete without the summary.
		return &contexts.Brief{Note: "the summary of the context is missing: " + err.Error() + "; call workflow_status to try again"}
	}
	return b
}

func (r *runTools) newBareAnswer(ctx context.Context, req *mcp.CallToolRequest, a *run.Answer) runAnswer {
	a = withGuides(r.catalog.Snapshot().Library(), a)
	switch {
	case a.Position.Kind != engine.PositionGate:
		return runAnswer{Answer: a}
	case !a.Position.Person:
		return runAnswer{Answer: a, Hint: run.AskUser}
	case canAsk(ctx, req) && r.suggestsForm(a.Declined):
		copied := *a
		copied.Next = askCall(a.Handle)
		return runAnswer{Answer: &copied, Hint: "only a person can answer this gate; the call in next asks them. If the client shows no form, " + r.approvalFix(ctx, a.RunID)}
	}
	return runAnswer{Answer: a, Hint: r.approvalFix(ctx, a.RunID)}
}

func (r *runTools) startRun(ctx context.Context, c call) (any, error) {
	project, err := r.places.findProject(ctx, c)
	if err != nil {
		return nil, err
	}
	snap, definitions, err := r.places.openDefinitions(ctx, project)
	if err != nil {
		return nil, err
	}
	a, err := r.runs.Start(ctx, c.caller, run.StartRequest{
		WorkflowID: c.textArg("workflowId"), Goal: c.textArg("goal"), Context: c.objectArg("context"),
		Project: project, RequestID: c.textArg("requestId"), Definitions: definitions,
	})
	if err != nil {
		err = suggestWorkflow(ctx, snap, c, err)
		again := c.tool.nextCall(c.arguments, "")
		if again.Arguments["context"] != nil {
			delete(again.Arguments, "context")
			again.Fields = append(again.Fields, engine.Field{Name: "context", Type: "object", Description: "the variables, without any that the refusal names"})
		}
		return nil, withNext(err, again)
	}
	return r.newAnswer(ctx, c.req, a, c.arguments), nil
}

// suggestWorkflow adds the known workflows, and a call with the closest one, to the refusal
// of an unknown workflow.
func suggestWorkflow(ctx context.Context, snap *catalog.Snapshot, c call, err error) error {
	refusal, ok := run.AsRefusal(err)
	if !ok || refusal.Rule != run.RuleUnknownWorkflow {
		return err
	}
	ids, meant := similarWorkflows(snap, c.textArg("workflowId"))
	copied := *refusal
	copied.Next = listCall(c.arguments)
	copied.Fix = unknownWorkflowFix(ctx, snap, meant)
	if ids != nil {
		copied.Allowed = ids
	}
	if meant != "" {
		next := c.tool.nextCall(c.arguments, "")
		next.Arguments["workflowId"] = meant
		copied.Next = next
	}
	return &copied
}

// answerRunCall answers a call about a run with the state that do returns.
func (r *runTools) answerRunCall(ctx context.Context, c call, do func(run.Ref) (*run.Answer, error)) (runAnswer, error) {
	ref := run.Ref{Handle: c.textArg("handle"), RunID: c.textArg("runId")}
	if ref == (run.Ref{}) {
		return runAnswer{}, c.badCall("handle", "handle or runId is required")
	}
	a, err := do(ref)
	if err != nil {
		return runAnswer{}, withNext(err, run.StatusCall(ref))
	}
	return r.newAnswer(ctx, c.req, a, nil), nil
}

// withNext adds a next call to a refusal without one.
func withNext(err error, next *run.Call) error {
	r, ok := run.AsRefusal(err)
	if !ok || r.Next != nil {
		return err
	}
	copied := *r
	copied.Next = next
	return &copied
}

func (r *runTools) getStatus(ctx context.Context, c call) (any, error) {
	out, err := r.answerRunCall(ctx, c, func(ref run.Ref) (*run.Answer, error) {
		a, err := r.runs.Status(ctx, c.caller, ref)
		if err == nil && c.boolArg("state") {
			a.State, err = r.runs.State(ctx, c.caller, run.Ref{RunID: a.RunID})
		}
		return a, err
	})
	if err != nil {
		return nil, err
	}
	out.Brief = r.loadBrief(ctx, c.caller, out.RunID)
	return out, nil
}

func (r *runTools) forkRun(ctx context.Context, c call) (any, error) {
	return r.answerRunCall(ctx, c, func(ref run.Ref) (*run.Answer, error) {
		return r.runs.Fork(ctx, c.caller, run.ForkRequest{Ref: ref, Seq: c.intArg("seq"), RequestID: c.textArg("requestId")})
	})
}

func (r *runTools) abortRun(ctx context.Context, c call) (any, error) {
	return r.answerRunCall(ctx, c, func(ref run.Ref) (*run.Answer, error) {
		return r.runs.Abort(ctx, c.caller, run.AbortRequest{Ref: ref, Reason: c.textArg("reason")})
	})
}

func (r *runTools) findRun(ctx context.Context, c call) (any, error) {
	request := run.ResumeRequest{Query: c.textArg("query"), RunID: c.textArg("runId"), Here: r.places.currentProject(ctx)}
	if c.textArg("project") != "" {
		p, err := r.places.findProject(ctx, c)
		if err != nil {
			return nil, err
		}
		request.Project = p.ID
	}
	found, err := r.runs.Resume(ctx, c.caller, request)
	if err != nil {
		return nil, err
	}
	if len(found) == 1 {
		r.open.noteUse(ctx, c.req, c.caller, found[0].RunID)
	}
	out := newCandidateAnswer(found)
	if len(found) == 0 {
		out.Hint = noRunHint(request)
	}
	if len(found) > 0 && found[0].Status != run.StatusError {
		out.Brief = r.loadBrief(ctx, c.caller, found[0].RunID)
	}
	return out, nil
}

// candidateAnswer is the answer of workflow_resume.
type candidateAnswer struct {
	Candidates []run.Candidate `json:"candidates"`
	Hint       string          `json:"hint,omitempty"`
	// Brief summarizes the context of the first candidate.
	*contexts.Brief
}

// newCandidateAnswer keeps only the prompt of the best candidate; workflow_status returns
// the others.
func newCandidateAnswer(found []run.Candidate) candidateAnswer {
	out := candidateAnswer{Candidates: []run.Candidate{}}
	for i, c := range found {
		if i > 0 {
			c.Position = engine.Position{
				Kind: c.Position.Kind, ID: c.Position.ID, Title: c.Position.Title, Message: c.Position.Message,
				Loop: c.Position.Loop, Person: c.Position.Person,
			}
			c.Next = run.StatusCall(run.Ref{Handle: c.Handle})
		}
		out.Candidates = append(out.Candidates, c)
	}
	if len(found) > 0 && found[0].Position.Kind == engine.PositionGate && !found[0].Position.Person {
		out.Hint = run.AskUser
	}
	return out
}

// noRunHint returns the hint for a search without a result.
func noRunHint(r run.ResumeRequest) string {
	switch {
	case r.Query != "" && r.Project != "":
		return "no run of this project matches: try other words or none, omit project, or start a run with workflow_start"
	case r.Query != "":
		return "no run matches: try other words or none, or start a run with workflow_start"
	case r.Project != "":
		return "this project has no runs: omit project, or start a run with workflow_start"
	default:
		return "you have no runs: start one with workflow_start"
	}
}
