package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/run"
)

// contextTools is the toolset "context".
type contextTools struct {
	memory *contexts.Service
	places projects
	// live returns the address of a running dashboard. live is nil if the server has no
	// dashboard.
	live func(ctx context.Context, sessionID string) string
}

func (t *contextTools) newTools() map[string]*tool {
	tools := newTools(ToolsetContext, handlers{
		"workflow_checkpoint_save": t.saveCheckpoint, "workflow_checkpoint_load": t.loadCheckpoint, "workflow_checkpoint_list": t.listCheckpoints,
		"workflow_context_compress": t.compressContext, "workflow_context_prioritize": t.prioritizeContext, "workflow_mark_critical": t.markCritical,
	})
	for _, each := range tools {
		each.serve = explained(each.serve)
	}
	return tools
}

// explained returns a handler that explains the errors of do with explainRefusal.
func explained(do func(context.Context, call) (any, error)) func(context.Context, call) (any, error) {
	return func(ctx context.Context, c call) (any, error) {
		out, err := do(ctx, c)
		if err != nil {
			return nil, c.tool.explainRefusal(c.arguments, err)
		}
		return out, nil
	}
}

// explainRefusal adds the argument in question and a next call to an error of a service, if
// a call can help.
func (t *tool) explainRefusal(in arguments, err error) error {
	if _, ok := run.AsRefusal(err); ok {
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
		if in.textArg("find") != "" && strings.Contains(ce.Message, "no line") {
			ce.Field, ce.Given, ce.Next = "find", in["find"], t.callWithout(in, "find")
			break
		}
		ce.setGivenField(in)
		ce.Next = listCheckpointsCall(in)
	case guideway.CodeTooLarge:
		ce.Field = "context"
		ce.Next = smallerCall(in)
	case guideway.CodeInvalid, guideway.CodeRefused:
		ce.Next = t.exampleCall()
		if name := t.namedArgument(in, ce.Message+" "+ce.Fix); name != "" {
			ce.Field, ce.Given = name, t.badCall(in, name, "").Given
			ce.Next = t.callWithout(in, name)
		}
	case guideway.CodeForbidden, guideway.CodeUnavailable: // No other argument would help.
	default:
		ce.setGivenField(in)
	}
	return ce
}

// setGivenField sets the field of the error to the argument that the lookup used.
func (e *callError) setGivenField(in arguments) {
	for _, name := range []string{"checkpointId", "ref", "expectedHead", "cursor", "sessionId", "handle"} {
		if text := in.textArg(name); text != "" {
			e.Field, e.Given = name, shortenValue(text)
			return
		}
	}
}

// namedArgument returns the argument that the text of an error names, or "" if the text
// names none of the call's arguments.
func (t *tool) namedArgument(in arguments, text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	for _, p := range t.Params {
		one := strings.TrimSuffix(p.Name, "s") // "the tag" in a text means the argument tags.
		if in[p.Name] != nil && p.Name != "context" && (slices.Contains(words, p.Name) || slices.Contains(words, one)) {
			return p.Name
		}
	}
	return ""
}

// callWithout returns the caller's call without an argument, or with its example if it is
// required. If no argument is left, it returns the tool's example call.
func (t *tool) callWithout(in arguments, name string) *run.Call {
	next := t.nextCall(in, "")
	delete(next.Arguments, name)
	for _, p := range t.Params {
		if p.Name == name && p.Required {
			next.Arguments[name] = p.Example
		}
	}
	if len(next.Arguments) == 0 {
		return t.exampleCall()
	}
	return next
}

// listCheckpointsCall returns a call that lists checkpoints: those of the call's session if
// the call has an expectedHead, otherwise all.
func listCheckpointsCall(in arguments) *run.Call {
	next := &run.Call{Tool: "workflow_checkpoint_list", Arguments: map[string]any{}}
	if in.textArg("expectedHead") != "" && in.textArg("sessionId") != "" {
		next.Arguments["sessionId"] = in.textArg("sessionId")
	}
	return next
}

// smallerCall returns a call that reduces a context that is too large to be saved.
func smallerCall(in arguments) *run.Call {
	next := &run.Call{Tool: "workflow_context_compress", Arguments: map[string]any{"ratio": 4}}
	if handle := in.textArg("handle"); handle != "" && in.objectArg("context") == nil {
		next.Arguments["handle"] = handle
		return next
	}
	next.Arguments["context"] = map[string]any{"goal": "..."}
	return next
}

// exampleCall returns a call that works if the run, session or checkpoint in it exists.
func (t *tool) exampleCall() *run.Call {
	next := &run.Call{Tool: t.Name, Arguments: map[string]any{}}
	names := []string{"context", "budgetTokens"}
	switch t.Name {
	case "workflow_checkpoint_load", "workflow_checkpoint_list":
		next.Tool, names = "workflow_checkpoint_list", nil
	case "workflow_mark_critical":
		names = []string{"sessionId", "keys"}
	case "workflow_checkpoint_save":
		names = []string{"sessionId", "context"}
	}
	for _, name := range names {
		next.Arguments[name] = findParam(t.Params, name).Example
	}
	return next
}

func (t *contextTools) saveCheckpoint(ctx context.Context, c call) (any, error) {
	if c.textArg("handle") == "" && c.objectArg("context") == nil {
		return nil, c.badCall("context", "context is required, unless handle names a run")
	}
	return t.memory.Save(ctx, c.caller, contexts.SaveRequest{
		Handle: c.textArg("handle"), Session: c.textArg("sessionId"), Workflow: c.textArg("workflowId"), Context: c.objectArg("context"),
		Name: c.textArg("name"), Tags: c.textsArg("tags"), Agent: c.textArg("agentId"), Project: t.places.currentProject(ctx).ID,
		ExpectedHead: c.textArg("expectedHead"),
	})
}

// loadedAnswer is the answer of workflow_checkpoint_load.
type loadedAnswer struct {
	*contexts.Loaded
	Hint string `json:"hint,omitempty"`
}

// textAnswer returns the answer as JSON. If a ref selects a text, it returns this text
// unchanged, followed by the notes. In pages, the context or the value of a ref follows the
// other members, which are on the first page.
func (a loadedAnswer) textAnswer() (textAnswer, error) {
	text, err := jsontext.Marshal(a)
	if err != nil {
		return textAnswer{}, fmt.Errorf("write the answer: %w", err)
	}
	if part := ""; a.Context == nil && a.Missing == nil && a.Degraded == nil && json.Unmarshal(a.Value, &part) == nil {
		for _, note := range []string{a.Note, a.Store.Note} {
			if note != "" {
				part = strings.TrimSuffix(part, "\n") + "\n(" + note + ")"
			}
		}
		return textAnswer{text: part, structure: json.RawMessage(text)}, nil
	}
	w := textAnswer{text: string(text), structure: json.RawMessage(text), body: string(a.Context) + string(a.Value), reserve: 3000}
	rest := *a.Loaded
	rest.Context, rest.Value = nil, nil
	head, err := jsontext.Marshal(loadedAnswer{Loaded: &rest, Hint: a.Hint})
	if err != nil {
		return textAnswer{}, fmt.Errorf("write the answer: %w", err)
	}
	w.head = string(head) + "\n"
	return w, nil
}

func (t *contextTools) loadCheckpoint(ctx context.Context, c call) (any, error) {
	r := contexts.LoadRequest{
		ID: c.textArg("checkpointId"), Session: c.textArg("sessionId"), Ref: c.textArg("ref"), Keys: c.textsArg("keys"),
		Lines: c.textArg("lines"), Find: c.textArg("find"), Question: c.textArg("question"), Budget: int(c.intArg("budgetTokens")),
		// Only the first page has a handle, so that the others do not fork the run again.
		NoRuns: !mayUse(ctx, ToolsetRuns) || c.intArg("page") > 1,
	}
	if r.ID == "" && r.Session == "" && r.Ref == "" {
		bad := c.badCall("checkpointId", "checkpointId, sessionId or ref is required")
		bad.Next = c.tool.exampleCall() // The example call lists the ids.
		return nil, bad
	}
	if c.isBelow("budgetTokens", 1) {
		bad := c.badCall("budgetTokens", "budgetTokens must be 1 or more")
		bad.Next.Arguments["budgetTokens"] = 2000
		return nil, bad
	}
	loaded, err := t.memory.Load(ctx, c.caller, r)
	if err != nil {
		return nil, err
	}
	out := loadedAnswer{Loaded: loaded}
	if pos := loaded.Position; pos != nil && pos.Kind == engine.PositionGate {
		if out.Hint = run.AskUser; pos.Person {
			out.Hint = approvalFix(ctx, t.live, loaded.RunID)
		}
	}
	return out, nil
}

func (t *contextTools) listCheckpoints(ctx context.Context, c call) (any, error) {
	r := checkpoint.ListRequest{
		Session: c.textArg("sessionId"), Workflow: c.textArg("workflowId"), Query: c.textArg("query"), Tags: c.textsArg("tags"),
		Limit: int(c.intArg("limit")), Cursor: c.textArg("cursor"), Reduced: c.textArg("sessionId") != "",
	}
	var err error
	if r.Since, err = parseSince(c); err != nil {
		return nil, err
	}
	if c.textArg("project") != "" {
		p, err := t.places.findProject(ctx, c)
		if err != nil {
			return nil, err
		}
		r.Project = p.ID
	}
	page, err := t.memory.List(ctx, c.caller, r)
	if err != nil {
		return nil, err
	}
	return newCheckpointList(page), nil
}

// parseSince reads a time or a date.
func parseSince(c call) (time.Time, error) {
	text := c.textArg("since")
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	bad := c.badCall("since", "since must be a date or a time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
	bad.Allowed = []string{"2026-01-31", "2026-01-31T08:00:00Z"}
	bad.Next.Arguments["since"] = "2026-01-31"
	return time.Time{}, bad
}

// checkpointInfo is a checkpoint in a list, without the members that only the store needs.
type checkpointInfo struct {
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
	// Head reports whether no checkpoint follows this one. A session with two heads has
	// branches.
	Head    bool   `json:"head,omitempty"`
	Problem string `json:"error,omitempty"`
}

// checkpointList is the answer of workflow_checkpoint_list.
type checkpointList struct {
	Checkpoints []checkpointInfo `json:"checkpoints"`
	Next        string           `json:"nextCursor,omitempty"`
	Ranked      string           `json:"ranked"`
	Note        string           `json:"note,omitempty"`
	Store       checkpoint.Store `json:"store"`
}

func newCheckpointList(page *contexts.Page) checkpointList {
	out := checkpointList{Checkpoints: []checkpointInfo{}, Next: page.Next, Ranked: page.Ranked, Note: page.Note, Store: page.Store}
	heads := map[string]bool{}
	for _, id := range page.Heads {
		heads[id] = true
	}
	for _, r := range page.Checkpoints {
		out.Checkpoints = append(out.Checkpoints, checkpointInfo{
			ID: r.ID, Session: r.Session, RunID: r.Run, Parent: r.Parent, Workflow: r.Workflow, Project: r.Project, Name: r.Name, Tags: r.Tags,
			Agent: r.Agent, Kind: r.Kind, Created: r.Created, Bytes: r.Bytes, Tokens: r.Tokens, Head: heads[r.ID], Problem: r.Problem,
		})
	}
	return out
}

// reduceRequest reads the arguments of either reducing tool.
func reduceRequest(ctx context.Context, c call) (contexts.ReduceRequest, error) {
	r := contexts.ReduceRequest{
		Handle: c.textArg("handle"), Session: c.textArg("sessionId"), Workflow: c.textArg("workflowId"), Context: c.objectArg("context"),
		Fit:    contexts.Fit{Budget: int(c.intArg("budgetTokens")), Ratio: c.floatArg("ratio"), Question: c.textArg("question")},
		NoRuns: !mayUse(ctx, ToolsetRuns),
	}
	switch {
	case r.Handle == "" && r.Session == "" && r.Context == nil:
		return r, c.badCall("context", "context, handle or sessionId is required")
	case r.Handle != "" && r.Context != nil:
		bad := c.badCall("handle", "context and handle are mutually exclusive")
		delete(bad.Next.Arguments, "handle")
		return r, bad
	case c.isBelow("budgetTokens", 1):
		bad := c.badCall("budgetTokens", "budgetTokens must be 1 or more")
		bad.Next.Arguments["budgetTokens"] = 2000
		return r, bad
	case c.isBelow("ratio", 1):
		bad := c.badCall("ratio", "ratio, the reduction factor, must be 1 or more")
		bad.Next.Arguments["ratio"] = 4
		return r, bad
	case r.Budget > 0 && r.Ratio > 0:
		bad := c.badCall("ratio", "budgetTokens and ratio are mutually exclusive")
		delete(bad.Next.Arguments, "ratio")
		return r, bad
	}
	return r, nil
}

func (t *contextTools) compressContext(ctx context.Context, c call) (any, error) {
	r, err := reduceRequest(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.memory.Compress(ctx, c.caller, r)
}

func (t *contextTools) prioritizeContext(ctx context.Context, c call) (any, error) {
	r, err := reduceRequest(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.memory.Prioritize(ctx, c.caller, r)
}

func (t *contextTools) markCritical(ctx context.Context, c call) (any, error) {
	if c.textArg("handle") == "" && c.textArg("sessionId") == "" {
		bad := c.badCall("handle", "handle or sessionId is required")
		delete(bad.Next.Arguments, "handle")
		bad.Next.Arguments["sessionId"] = findParam(c.tool.Params, "sessionId").Example
		return nil, bad
	}
	return t.memory.Mark(ctx, c.caller, contexts.MarkRequest{
		Handle: c.textArg("handle"), Session: c.textArg("sessionId"), Keys: c.textsArg("keys"), Tags: c.textsArg("tags"),
	})
}
