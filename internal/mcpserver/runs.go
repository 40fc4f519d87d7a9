package mcpserver

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/memory"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Runs is the service that holds runs. What it refuses is a *run.Refusal; run.Service
// says the rest of the contract.
type Runs interface {
	Start(ctx context.Context, c run.Caller, r run.StartRequest) (*run.Answer, error)
	Continue(ctx context.Context, c run.Caller, r run.ContinueRequest) (*run.Answer, error)
	Status(ctx context.Context, c run.Caller, r run.Ref) (*run.Answer, error)
	Resume(ctx context.Context, c run.Caller, r run.ResumeRequest) ([]run.Candidate, error)
	Fork(ctx context.Context, c run.Caller, r run.ForkRequest) (*run.Answer, error)
	Abort(ctx context.Context, c run.Caller, r run.AbortRequest) (*run.Answer, error)
	List(ctx context.Context, c run.Caller, f run.Filter) ([]run.Record, error)
	State(ctx context.Context, c run.Caller, r run.Ref) (*guide.StateDocument, error)
	Look(ctx context.Context, c run.Caller, r run.Ref) (*run.Details, error)
	Events(ctx context.Context, c run.Caller, r run.Ref, after int64, limit int) ([]run.Event, error)
}

var _ Runs = (*run.Service)(nil)

// runTools is the toolset "runs": durable runs of guided workflows.
type runTools struct {
	runs   Runs
	places places
	forms  *forms
	// catalog has the guides that positions name.
	catalog Catalog
	// memory knows of the runs' contexts; nil knows nothing.
	memory Memory
}

func (r *runTools) tools() []*tool {
	return []*tool{r.start(), r.proceed(), r.status(), r.resume(), r.fork(), r.abort()}
}

// The arguments that examples show.
const (
	exampleHandle = "h_0123456789abcdefghjkm"
	exampleRun    = "r_0123456789abcdefghjkmnp"
)

func handleParam(required bool) param {
	p := param{
		name: "handle", kind: kindString, required: required, maxLength: maxID, example: exampleHandle,
		description: "Handle of the last answer",
	}
	if !required {
		p.description = "Any handle of the run"
	}
	return p
}

// refParams name a run by a handle or its id.
func refParams() []param {
	return []param{
		handleParam(false),
		{name: "runId", kind: kindString, maxLength: maxID, description: "Instead of a handle"},
	}
}

func requestParam() param {
	return param{
		name: "requestId", kind: kindString, maxLength: maxID,
		description: "Any id; a repeated call with it makes no second run",
	}
}

// answerSchema is the schema of a run.Answer.
func answerSchema() map[string]any {
	return object(map[string]any{
		"runId": typed("string"), "handle": typed("string"), "workflowId": typed("string"),
		"status": typed("string"), "position": positionSchema(), "next": typed("object"),
	})
}

func positionSchema() map[string]any {
	return object(map[string]any{
		"kind": typed("string"), "id": typed("string"), "title": typed("string"), "prompt": typed("string"),
	})
}

// runAnswer is where a run stands, as an agent reads it.
type runAnswer struct {
	*run.Answer
	// Hint says what no call can do.
	Hint string `json:"hint,omitempty"`
	// Notice says that the run's context has grown large.
	Notice string `json:"contextNotice,omitempty"`
	// Brief tells of the run's context, where it was asked for.
	*memory.Brief
}

// view shapes an answer for the client that asked.
func (r *runTools) view(req *mcp.CallToolRequest, a *run.Answer) runAnswer {
	out := r.bare(req, a)
	if r.memory != nil {
		out.Notice = r.memory.Notice(a.RunID)
	}
	return out
}

// briefed adds what is known of the run's context.
func (r *runTools) briefed(ctx context.Context, c run.Caller, id string) *memory.Brief {
	if r.memory == nil {
		return nil
	}
	b, err := r.memory.Brief(ctx, c, id)
	if err != nil { // it goes with the answer, which stands without it
		return &memory.Brief{Note: "the context could not be told: " + err.Error()}
	}
	return b
}

func (r *runTools) bare(req *mcp.CallToolRequest, a *run.Answer) runAnswer {
	a = withGuides(r.catalog.Snapshot().Library(), a)
	switch {
	case a.Position.Kind != guide.PositionGate:
		return runAnswer{Answer: a}
	case !a.Position.Person:
		return runAnswer{Answer: a, Hint: run.AskUser}
	case canAsk(req):
		copied := *a
		copied.Next = askCall(a.Handle)
		return runAnswer{Answer: &copied, Hint: "only a person can open this gate; the call asks them"}
	}
	return runAnswer{Answer: a, Hint: run.PersonWays(a.RunID)}
}

func (r *runTools) start() *tool {
	t := &tool{
		name: "workflow_start", title: "Start a run", effect: effectAdds,
		description: "Start a run of a workflow. The server keeps its state and gives one step at a time. " +
			"Do what position asks, then call workflow_continue with the handle.",
		params: []param{
			idParam("workflowId"),
			{name: "goal", kind: kindString, description: "What the user wants, in a sentence; the run is found by it"},
			{name: "context", kind: kindObject, description: "First variables"},
			projectParam(),
			requestParam(),
		},
		output: answerSchema(),
	}
	t.converse = func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (any, error) {
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, err
		}
		project, err := r.places.named(ctx, t, in)
		if err != nil {
			return nil, err
		}
		a, err := r.runs.Start(ctx, caller, run.StartRequest{
			WorkflowID: in.text("workflowId"), Goal: in.text("goal"), Context: in.object("context"),
			Project: project, RequestID: in.text("requestId"),
		})
		if err != nil {
			err = r.nearest(t, in, err)
			again := t.nextCall(in, "")
			delete(again.Arguments, "context")
			return nil, withNext(err, (*run.Call)(again))
		}
		return r.view(req, a), nil
	}
	return t
}

// nearest adds to the refusal of a workflow that is not there those that are, and
// the call with the one that was meant.
func (r *runTools) nearest(t *tool, in arguments, err error) error {
	refusal, ok := run.IsRefusal(err)
	if !ok || refusal.Rule != run.RuleUnknownWorkflow {
		return err
	}
	ids, meant := nearWorkflows(r.catalog.Snapshot(), in.text("workflowId"))
	copied := *refusal
	if ids != nil {
		copied.Allowed = ids
	}
	if meant != "" {
		next := t.nextCall(in, "")
		next.Arguments["workflowId"] = meant
		copied.Fix, copied.Next = fmt.Sprintf("did you mean %s?", meant), (*run.Call)(next)
	}
	return &copied
}

// onRun makes the handler of a tool that is about one run: it checks that the
// run is named, and shapes the answer.
func (r *runTools) onRun(t *tool, do func(context.Context, run.Caller, run.Ref, arguments) (*run.Answer, error)) *tool {
	t.output = answerSchema()
	t.converse = func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (any, error) {
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, err
		}
		ref := run.Ref{Handle: in.text("handle"), RunID: in.text("runId")}
		if ref == (run.Ref{}) {
			return nil, t.badCall(in, "handle", "handle or runId is required")
		}
		a, err := do(ctx, caller, ref, in)
		if err != nil {
			return nil, withNext(err, run.StatusCall(ref))
		}
		return r.view(req, a), nil
	}
	return t
}

// withNext adds a call that works to a refusal that names none.
func withNext(err error, next *run.Call) error {
	r, ok := run.IsRefusal(err)
	if !ok || r.Next != nil {
		return err
	}
	copied := *r
	copied.Next = next
	return &copied
}

func (r *runTools) status() *tool {
	t := r.onRun(&tool{
		name: "workflow_status", title: "Where a run stands",
		description: "Get the current handle, position and context of a run.",
		params: append(refParams(),
			param{name: "state", kind: kindBool, description: "Add the whole run as a state document"}),
	}, func(ctx context.Context, c run.Caller, ref run.Ref, in arguments) (*run.Answer, error) {
		a, err := r.runs.Status(ctx, c, ref)
		if err != nil || !in.flag("state") {
			return a, err
		}
		a.State, err = r.runs.State(ctx, c, run.Ref{RunID: a.RunID})
		return a, err
	})
	plain := t.converse
	t.converse = func(ctx context.Context, req *mcp.CallToolRequest, in arguments) (any, error) {
		out, err := plain(ctx, req, in)
		a, ok := out.(runAnswer)
		if err != nil || !ok {
			return out, err
		}
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, err
		}
		a.Brief = r.briefed(ctx, caller, a.RunID)
		return a, nil
	}
	return t
}

func (r *runTools) fork() *tool {
	return r.onRun(&tool{
		name: "workflow_fork", title: "Fork a run", effect: effectAdds,
		description: "Begin a new run from an earlier point of a run, to go another way. The old run stays as it is.",
		params: append(refParams(),
			param{name: "seq", kind: kindInteger, description: "Last event to take over; default: the handle's position"},
			requestParam()),
	}, func(ctx context.Context, c run.Caller, ref run.Ref, in arguments) (*run.Answer, error) {
		return r.runs.Fork(ctx, c, run.ForkRequest{Ref: ref, Seq: in.integer("seq"), RequestID: in.text("requestId")})
	})
}

func (r *runTools) abort() *tool {
	return r.onRun(&tool{
		name: "workflow_abort", title: "Abort a run", effect: effectReplaces,
		description: "End a run for good. Only where the user wants that.",
		params:      append(refParams(), param{name: "reason", kind: kindString}),
	}, func(ctx context.Context, c run.Caller, ref run.Ref, in arguments) (*run.Answer, error) {
		return r.runs.Abort(ctx, c, run.AbortRequest{Ref: ref, Reason: in.text("reason")})
	})
}

func (r *runTools) resume() *tool {
	t := &tool{
		name: "workflow_resume", title: "Find a run to go on with",
		description: "Find a run to go on with, by words of its goal, notes, workflow, branch or time, or by id; without arguments, the last ones. " +
			"Do this when the user wants to go on with earlier work.",
		params: []param{
			{name: "query", kind: kindString, description: "Such as: the auth refactoring of last week"},
			{name: "runId", kind: kindString, maxLength: maxID},
			{name: "project", kind: kindString, maxLength: maxPath, description: "Absolute path or id; default: all"},
		},
		output: object(map[string]any{"candidates": listOf(object(map[string]any{
			"runId": typed("string"), "handle": typed("string"), "goal": typed("string"), "status": typed("string"),
			"position": positionSchema(), "score": typed("number"), "why": typed("string"), "next": typed("object"),
		}))}),
	}
	t.handle = func(ctx context.Context, in arguments) (any, error) {
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, err
		}
		request := run.ResumeRequest{Query: in.text("query"), RunID: in.text("runId"), Here: r.places.here(ctx)}
		if in.text("project") != "" {
			p, err := r.places.named(ctx, t, in)
			if err != nil {
				return nil, err
			}
			request.Project = p.ID
		}
		found, err := r.runs.Resume(ctx, caller, request)
		if err != nil {
			return nil, err
		}
		out := candidateList(found)
		if len(found) > 0 && found[0].Status != run.StatusError {
			out.Brief = r.briefed(ctx, caller, found[0].RunID)
		}
		return out, nil
	}
	return t
}

// candidates is the answer of workflow_resume.
type candidates struct {
	Candidates []run.Candidate `json:"candidates"`
	Hint       string          `json:"hint,omitempty"`
	// Brief tells of the context of the first one.
	*memory.Brief
}

// candidateList keeps the prompt of the best candidate only: who wants another
// one asks where it stands.
func candidateList(found []run.Candidate) candidates {
	out := candidates{Candidates: []run.Candidate{}}
	for i, c := range found {
		if i > 0 {
			c.Position = guide.Position{
				Kind: c.Position.Kind, ID: c.Position.ID, Title: c.Position.Title, Message: c.Position.Message,
				Loop: c.Position.Loop, Person: c.Position.Person,
			}
			c.Next = run.StatusCall(run.Ref{Handle: c.Handle})
		}
		out.Candidates = append(out.Candidates, c)
	}
	if len(found) > 0 && found[0].Position.Kind == guide.PositionGate && !found[0].Position.Person {
		out.Hint = run.AskUser
	}
	if len(found) == 0 {
		out.Hint = "no run fits: ask with other words or none, or begin one with workflow_start"
	}
	return out
}
