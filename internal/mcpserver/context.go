package mcpserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/memory"
	"github.com/guideway-dev/guideway/internal/run"
)

// Memory is the service behind the toolset "context"; memory.Service says the
// contract.
type Memory interface {
	Save(ctx context.Context, c run.Caller, r memory.SaveRequest) (*memory.Saved, error)
	Load(ctx context.Context, c run.Caller, r memory.LoadRequest) (*memory.Loaded, error)
	List(ctx context.Context, c run.Caller, r checkpoint.ListRequest) (*memory.Page, error)
	Compress(ctx context.Context, c run.Caller, r memory.ReduceRequest) (*memory.Compressed, error)
	Prioritize(ctx context.Context, c run.Caller, r memory.ReduceRequest) (*memory.Prioritized, error)
	Mark(ctx context.Context, c run.Caller, r memory.MarkRequest) (*memory.Marked, error)
	// Brief and Notice tell of a run's context in the answers about the run.
	Brief(ctx context.Context, c run.Caller, runID string) (*memory.Brief, error)
	Notice(runID string) string
	// Walked is told of the answers of workflow_next.
	Walked(who guideway.Principal, workflow string, completed []string, vars map[string]any)
}

var _ Memory = (*memory.Service)(nil)

// contextTools is the toolset "context": what seed 003 has.
type contextTools struct {
	memory Memory
	places places
}

func (c *contextTools) tools() []*tool {
	return []*tool{c.save(), c.load(), c.list(), c.compress(), c.prioritize(), c.mark()}
}

// The arguments that examples show.
const exampleCheckpoint = "c_0123456789abcdefghjkmnp"

func runHandleParam() param {
	return param{name: "handle", kind: kindString, maxLength: maxID, description: "Of a run", example: exampleHandle}
}

func lineParam(description string) param {
	return param{name: "sessionId", kind: kindString, maxLength: maxLine, description: description, example: exampleSession}
}

// maxLine bounds the name of a line of checkpoints, in characters.
const maxLine = 512

func contextParam(description string) param {
	return param{name: "context", kind: kindObject, description: description, example: map[string]any{"goal": "..."}}
}

func workflowParam() param { return param{name: "workflowId", kind: kindString, maxLength: maxID} }

// answering makes the handler of a tool of this set: it knows the caller, and tells
// what is wrong with the call that works.
func (c *contextTools) answering(t *tool, do func(ctx context.Context, caller run.Caller, in arguments) (any, error)) *tool {
	t.handle = func(ctx context.Context, in arguments) (any, error) {
		caller, err := callerFrom(ctx)
		if err != nil {
			return nil, err
		}
		out, err := do(ctx, caller, in)
		if err != nil {
			return nil, t.refused(in, err)
		}
		return out, nil
	}
	return t
}

// refused adds to an error of a service what was given, and a call that works.
func (t *tool) refused(in arguments, err error) error {
	if _, ok := run.IsRefusal(err); ok {
		return withNext(err, &run.Call{Tool: "workflow_resume", Arguments: map[string]any{}})
	}
	var ce *callError
	code := guideway.ErrorCode(err)
	if errors.As(err, &ce) || code == guideway.CodeInternal {
		return err
	}
	ce = &callError{Code: code, Message: err.Error(), Fix: guideway.ErrorFix(err)}
	switch code {
	case guideway.CodeNotFound:
		ce.tellGiven(in)
		ce.Next = listCall(in)
	case guideway.CodeTooLarge:
		ce.Field = "context"
		ce.Next = smallerCall(in)
	case guideway.CodeInvalid, guideway.CodeRefused:
		ce.Next = t.exampleCall()
		if name := t.blamed(in, ce.Message+" "+ce.Fix); name != "" {
			ce.Field, ce.Given = name, t.badCall(in, name, "").Given
			ce.Next = t.without(in, name)
		}
	case guideway.CodeForbidden, guideway.CodeUnavailable: // no other argument would do
	default:
		ce.tellGiven(in)
	}
	return ce
}

// tellGiven names the argument that something was looked for by.
func (e *callError) tellGiven(in arguments) {
	for _, name := range []string{"checkpointId", "ref", "expectedHead", "cursor", "sessionId", "handle"} {
		if text := in.text(name); text != "" {
			e.Field, e.Given = name, shorten(text)
			return
		}
	}
}

// blamed gives the argument that an error of a service names, "" where it names
// none that was given.
func (t *tool) blamed(in arguments, text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	for _, p := range t.params {
		one := strings.TrimSuffix(p.name, "s") // "the tag" is of tags
		if in[p.name] != nil && p.name != "context" && (slices.Contains(words, p.name) || slices.Contains(words, one)) {
			return p.name
		}
	}
	return ""
}

// without is the caller's call without an argument, or with an example of it where
// it is needed. One that was given alone cannot be left out.
func (t *tool) without(in arguments, name string) *nextCall {
	next := t.nextCall(in, "")
	delete(next.Arguments, name)
	for _, p := range t.params {
		if p.name == name && p.required {
			next.Arguments[name] = p.example
		}
	}
	if len(next.Arguments) == 0 {
		return t.exampleCall()
	}
	return next
}

// listCall shows the checkpoints that there are. Those of the session where what is
// missing is one of them.
func listCall(in arguments) *nextCall {
	next := &nextCall{Tool: "workflow_checkpoint_list", Arguments: map[string]any{}}
	if in.text("expectedHead") != "" && in.text("sessionId") != "" {
		next.Arguments["sessionId"] = in.text("sessionId")
	}
	return next
}

// smallerCall makes what is too large to be saved smaller.
func smallerCall(in arguments) *nextCall {
	next := &nextCall{Tool: "workflow_context_compress", Arguments: map[string]any{"ratio": 4}}
	if handle := in.text("handle"); handle != "" && in.object("context") == nil {
		next.Arguments["handle"] = handle
		return next
	}
	next.Arguments["context"] = map[string]any{"goal": "..."}
	return next
}

// exampleCall is a call that works wherever what it names is there.
func (t *tool) exampleCall() *nextCall {
	args := map[string]any{}
	switch t.name {
	case "workflow_checkpoint_load", "workflow_checkpoint_list":
		return &nextCall{Tool: "workflow_checkpoint_list", Arguments: args}
	case "workflow_mark_critical":
		args["sessionId"], args["keys"] = exampleSession, []any{"goal"}
	case "workflow_checkpoint_save":
		args["sessionId"], args["context"] = exampleSession, map[string]any{"goal": "..."}
	default:
		args["context"], args["budgetTokens"] = map[string]any{"goal": "..."}, 2000
	}
	return &nextCall{Tool: t.name, Arguments: args}
}

func (c *contextTools) save() *tool {
	t := &tool{
		name: "workflow_checkpoint_save", title: "Save a checkpoint", effect: effectAdds,
		description: "Save your context so that it outlives this conversation: that of a run by its handle (context is then added in the checkpoint alone), " +
			"or any under a sessionId. Runs save themselves at phase ends and gates.",
		params: []param{
			runHandleParam(), lineParam("Any; made if absent"), workflowParam(), contextParam("What you need to go on"),
			{name: "name", kind: kindString, maxLength: 200},
			{name: "tags", kind: kindStrings},
			{name: "agentId", kind: kindString, maxLength: maxID},
			{name: "expectedHead", kind: kindString, maxLength: maxID, description: "Where you began"},
		},
		output: object(map[string]any{
			"checkpointId": typed("string"), "sessionId": typed("string"), "parentId": typed("string"), "bytes": typed("integer"),
			"storedBytes": typed("integer"), "tokens": typed("integer"), "warnings": typed("array"),
		}),
	}
	return c.answering(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		if in.text("handle") == "" && in.object("context") == nil {
			return nil, t.badCall(in, "context", "context is required where no handle is given")
		}
		return c.memory.Save(ctx, caller, memory.SaveRequest{
			Handle: in.text("handle"), Session: in.text("sessionId"), Workflow: in.text("workflowId"), Context: in.object("context"),
			Name: in.text("name"), Tags: in.texts("tags"), Agent: in.text("agentId"), Project: c.places.here(ctx).ID,
			ExpectedHead: in.text("expectedHead"),
		})
	})
}

// loadedAnswer is what was loaded, as an agent reads it.
type loadedAnswer struct {
	*memory.Loaded
	Hint string `json:"hint,omitempty"`
}

func (c *contextTools) load() *tool {
	t := &tool{
		name: "workflow_checkpoint_load", title: "Load a checkpoint", effect: effectAdds,
		description: "Get a checkpoint's context back, or what a ref stands for. For a run it also gives a handle that goes on from there, in a fork where the run has gone on since.",
		params: []param{
			{name: "checkpointId", kind: kindString, maxLength: maxID, example: exampleCheckpoint},
			lineParam("Its last checkpoint"),
			{name: "ref", kind: kindString, maxLength: maxID, description: "From omitted or a gap"},
			{name: "keys", kind: kindStrings, description: "Only these variables"},
			{name: "budgetTokens", kind: kindInteger, description: "Reduce the context to this"},
		},
		output: object(map[string]any{
			"checkpointId": typed("string"), "sessionId": typed("string"), "context": typed("object"), "handle": typed("string"),
			"position": typed("object"), "degraded": typed("object"), "next": typed("object"),
		}),
	}
	return c.answering(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		r := memory.LoadRequest{
			ID: in.text("checkpointId"), Session: in.text("sessionId"), Ref: in.text("ref"), Keys: in.texts("keys"),
			Budget: int(in.integer("budgetTokens")),
		}
		if r.ID == "" && r.Session == "" && r.Ref == "" {
			bad := t.badCall(in, "checkpointId", "checkpointId, sessionId or ref is required")
			bad.Next = t.exampleCall() // which shows the ids that there are
			return nil, bad
		}
		if in.below("budgetTokens", 1) {
			bad := t.badCall(in, "budgetTokens", "budgetTokens must be 1 or more")
			bad.Next.Arguments["budgetTokens"] = 2000
			return nil, bad
		}
		loaded, err := c.memory.Load(ctx, caller, r)
		if err != nil {
			return nil, err
		}
		out := loadedAnswer{Loaded: loaded}
		if pos := loaded.Position; pos != nil && pos.Kind == guide.PositionGate {
			if out.Hint = run.AskUser; pos.Person {
				out.Hint = run.PersonWays(loaded.RunID)
			}
		}
		return out, nil
	})
}

func (c *contextTools) list() *tool {
	t := &tool{
		name: "workflow_checkpoint_list", title: "List checkpoints",
		description: "Find checkpoints, the newest first. Confirm with the user which one is meant.",
		params: []param{
			workflowParam(), lineParam(""),
			{name: "query", kind: kindString, maxLength: 1000, description: "Words"},
			{name: "tags", kind: kindStrings},
			{name: "since", kind: kindString, maxLength: maxID, description: "Time or date", example: "2026-01-31"},
			{name: "project", kind: kindString, maxLength: maxPath, description: "Path or id; default: all"},
			{name: "limit", kind: kindInteger},
			{name: "cursor", kind: kindString, maxLength: maxLine},
		},
		output: object(map[string]any{
			"checkpoints": listOf(typed("object")), "nextCursor": typed("string"),
		}),
	}
	return c.answering(t, func(ctx context.Context, caller run.Caller, in arguments) (any, error) {
		r := checkpoint.ListRequest{
			Session: in.text("sessionId"), Workflow: in.text("workflowId"), Query: in.text("query"), Tags: in.texts("tags"),
			Limit: int(in.integer("limit")), Cursor: in.text("cursor"),
		}
		var err error
		if r.Since, err = sinceOf(t, in); err != nil {
			return nil, err
		}
		if in.text("project") != "" {
			p, err := c.places.named(ctx, t, in)
			if err != nil {
				return nil, err
			}
			r.Project = p.ID
		}
		page, err := c.memory.List(ctx, caller, r)
		if err != nil {
			return nil, err
		}
		return checkpointLines(page), nil
	})
}

// sinceOf reads a time or a date.
func sinceOf(t *tool, in arguments) (time.Time, error) {
	text := in.text("since")
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	bad := t.badCall(in, "since", "since is neither a date nor a time")
	bad.Allowed = []string{"2026-01-31", "2026-01-31T08:00:00Z"}
	bad.Next.Arguments["since"] = "2026-01-31"
	return time.Time{}, bad
}

// line is a checkpoint as an agent chooses among them: without what only the store
// needs.
type line struct {
	ID       string          `json:"checkpointId"`
	Session  string          `json:"sessionId"`
	RunID    string          `json:"runId,omitempty"`
	Parent   string          `json:"parentId,omitempty"`
	Workflow string          `json:"workflowId,omitempty"`
	Project  string          `json:"projectId,omitempty"`
	Name     string          `json:"name,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Agent    string          `json:"agentId,omitempty"`
	Kind     checkpoint.Kind `json:"kind"`
	Created  time.Time       `json:"createdAt"`
	Bytes    int64           `json:"bytes"`
	Tokens   int64           `json:"tokens,omitempty"`
	// Head says that nothing follows it: two of a session are branches.
	Head    bool   `json:"head,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// lines is the answer of workflow_checkpoint_list.
type lines struct {
	Checkpoints []line           `json:"checkpoints"`
	Next        string           `json:"nextCursor,omitempty"`
	Ranked      string           `json:"ranked"`
	Note        string           `json:"note,omitempty"`
	Store       checkpoint.Store `json:"store"`
}

func checkpointLines(page *memory.Page) lines {
	out := lines{Checkpoints: []line{}, Next: page.Next, Ranked: page.Ranked, Note: page.Note, Store: page.Store}
	heads := map[string]bool{}
	for _, id := range page.Heads {
		heads[id] = true
	}
	for _, r := range page.Checkpoints {
		out.Checkpoints = append(out.Checkpoints, line{
			ID: r.ID, Session: r.Session, RunID: r.Run, Parent: r.Parent, Workflow: r.Workflow, Project: r.Project, Name: r.Name, Tags: r.Tags,
			Agent: r.Agent, Kind: r.Kind, Created: r.Created, Bytes: r.Bytes, Tokens: r.Tokens, Head: heads[r.ID], Problem: r.Problem,
		})
	}
	return out
}
