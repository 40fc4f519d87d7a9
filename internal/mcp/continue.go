package mcp

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (r *runTools) continueRun(ctx context.Context, c call) (any, error) {
	if c.req.Params.RequestState != "" || len(c.req.Params.InputResponses) > 0 {
		return r.acceptFormAnswer(ctx, c.req, c.caller, c.textArg("handle"))
	}
	request, err := continueRequest(c)
	if err != nil {
		return nil, err
	}
	if q, err := r.askAtGate(ctx, c.req, c.caller, request); err != nil {
		return nil, err
	} else if q != nil {
		return q, nil
	}
	request.Progress = progressOf(ctx, c.req)
	a, err := r.runs.Continue(ctx, c.caller, request)
	if err != nil {
		if refusal, ok := run.AsRefusal(err); ok {
			r.open.noteUse(ctx, c.req, c.caller, refusal.RunID)
		}
		return nil, r.addGateOptions(ctx, c.req, c.caller, request.Handle, withGiven(err, c.arguments))
	}
	return r.newAnswer(ctx, c.req, a, c.arguments), nil
}

// legalCall checks the call that a refusal suggests. If that call has no input, or an
// option that the gate does not offer, legalCall returns a call with the form of the run.
// If no agent can continue the run, it returns a call for the status of the run. It returns
// nil if the suggested call works, or if the handle of the call is not the run's current
// one.
func (r *runTools) legalCall(ctx context.Context, suggested *run.Call) *run.Call {
	given := arguments(suggested.Arguments)
	answer := given.membersArg("answer")
	if answer == nil && (given["output"] != nil || given["notes"] != nil || given["context"] != nil || given["skip"] != nil) {
		return nil
	}
	caller, err := callerFrom(ctx)
	if err != nil {
		return nil
	}
	now, err := r.runs.Status(ctx, caller, run.Ref{Handle: given.textArg("handle")})
	if err != nil || now.Handle != given.textArg("handle") {
		return nil
	}
	if now.Next == nil {
		return statusCall(now.Handle)
	}
	offered := func(o engine.Option) bool { return o.ID == answer.textArg("optionId") }
	if answer != nil && !now.Position.Person && (answer.boolArg("decline") || slices.ContainsFunc(now.Position.Options, offered)) {
		return nil
	}
	return now.Next
}

// withGiven adds the caller's other arguments to the call that a refusal suggests: a
// refused call stores nothing, and a caller that copies the suggestion would lose them. A
// long argument becomes a field of the suggested call.
func withGiven(err error, in arguments) error {
	const longest = 512
	refusal, ok := run.AsRefusal(err)
	if !ok || refusal.Next == nil || refusal.Next.Tool != "workflow_continue" || refusal.Next.Arguments["handle"] != in["handle"] {
		return err
	}
	var keep []string
	switch refusal.Rule {
	case engine.RuleCriteria, engine.RuleOutputMissing, engine.RulePlaceholder:
		keep = []string{"notes", "context"}
	case engine.RuleNoteMissing:
		keep = []string{"output", "context"}
	case engine.RuleContextTooLarge, engine.RuleContextTooDeep, engine.RuleServerVariable, engine.RuleVariableType:
		keep = []string{"output", "notes"}
	case engine.RuleValidate, engine.RuleNoGate, engine.RuleStepRequired, engine.RuleCheckVariable:
		keep = []string{"output", "notes", "context"}
	case engine.RuleWrongStep, engine.RuleContextNeeded:
		keep = []string{"context"}
	}
	next := *refusal.Next
	next.Arguments = maps.Clone(next.Arguments)
	for _, name := range keep {
		v := in[name]
		if name == "context" {
			v = withoutPaths(in.objectArg(name), contextPaths(refusal, next.Fields))
		}
		if isRefusedText(refusal, name) {
			continue
		}
		if text, err := jsontext.Marshal(v); v != nil && err == nil && len(text) <= longest {
			next.Arguments[name] = v
		} else if v != nil && err == nil && !slices.ContainsFunc(next.Fields, func(f engine.Field) bool { return f.Name == name }) {
			next.Fields = append(slices.Clip(next.Fields), engine.Field{Name: name, Description: engine.DescribeSame})
		}
	}
	next.Fields = slices.DeleteFunc(slices.Clone(next.Fields), func(f engine.Field) bool { return next.Arguments[f.Name] != nil })
	copied := *refusal
	copied.Next = &next
	return &copied
}

// isRefusedText reports whether a refusal is about the text of an argument.
func isRefusedText(refusal *run.Refusal, argument string) bool {
	given, _ := refusal.Given.(map[string]any)
	return refusal.Rule == engine.RulePlaceholder && given[argument] != nil
}

// contextPaths returns the paths of the variables that a form asks for, and of the refused
// ones.
func contextPaths(refusal *run.Refusal, fields []engine.Field) []string {
	names := lists.Map(fields, func(f engine.Field) string { return f.Name })
	if given, ok := refusal.Given.(map[string]any); ok && refusal.Rule == engine.RulePlaceholder {
		names = slices.AppendSeq(names, maps.Keys(given))
	}
	var paths []string
	for _, name := range names {
		if path, ok := strings.CutPrefix(name, "context."); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// withoutPaths returns the variables without the values at the paths, or nil if none are
// left. A path is the name of a variable, or leads to a member of an object.
func withoutPaths(context map[string]any, paths []string) any {
	out := maps.Clone(context)
	for _, path := range paths {
		dropPath(out, path)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// dropPath deletes the value at a path, and the objects that are empty without it.
func dropPath(members map[string]any, path string) {
	if _, ok := members[path]; ok {
		delete(members, path)
		return
	}
	name, rest, dotted := strings.Cut(path, ".")
	inner, ok := members[name].(map[string]any)
	if !dotted || !ok {
		delete(members, name) // the value is not an object, or contains a list
		return
	}
	inner = maps.Clone(inner)
	dropPath(inner, rest)
	members[name] = inner
	if len(inner) == 0 {
		delete(members, name)
	}
}

// continueRequest reads the arguments of workflow_continue.
func continueRequest(c call) (run.ContinueRequest, error) {
	r := run.ContinueRequest{
		Handle: c.textArg("handle"), Step: c.textArg("stepId"), Output: c.textArg("output"), Notes: c.textArg("notes"),
		Context: c.objectArg("context"),
	}
	if answer := c.membersArg("answer"); answer != nil {
		r.Answer = &engine.Answer{OptionID: answer.textArg("optionId"), Decline: answer.boolArg("decline"), Note: answer.textArg("note")}
		if (r.Answer.OptionID == "") != r.Answer.Decline {
			bad := c.badCall("answer", "answer takes either optionId or decline: true")
			delete(bad.Next.Arguments, "answer")
			return r, bad
		}
	}
	if skip := c.membersArg("skip"); skip != nil {
		r.Skip = &engine.Skip{Reason: skip.textArg("reason")}
	}
	return r, nil
}

// askAtGate returns a question to the person if the run is at a gate with human approval
// and the client can show a form; otherwise nil. It ignores a call with other input than an
// answer, which the engine judges.
func (r *runTools) askAtGate(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, in run.ContinueRequest) (*question, error) {
	if !canAsk(ctx, req) || in.Output != "" || in.Notes != "" || len(in.Context) > 0 || in.Skip != nil {
		return nil, nil
	}
	now := r.gateOf(ctx, c, in)
	if now == nil {
		return nil, nil
	}
	if err := r.refuseRepeatedForm(ctx, now); err != nil {
		return nil, err
	}
	sealed, form, err := r.forms.openForm(ctx, formState{User: c.User, Client: c.Client, Run: now.ID, Handle: now.Current, Gate: now.Position.ID})
	if err != nil {
		return nil, err
	}
	if sealed == "" {
		return nil, r.refuseOpenForm(ctx, form)
	}
	// Another form may have been answered or declined before this one was opened.
	if now = r.gateOf(ctx, c, in); now == nil {
		r.forms.closeForm(form)
		return nil, nil
	}
	if err := r.refuseRepeatedForm(ctx, now); err != nil {
		r.forms.closeForm(form)
		return nil, err
	}
	return r.newQuestion(ctx, now, sealed, func() { r.forms.closeForm(form) }), nil
}

// gateOf returns the run of a call that is at a gate with human approval, otherwise nil.
func (r *runTools) gateOf(ctx context.Context, c run.Caller, in run.ContinueRequest) *run.Details {
	now, err := r.runs.Get(ctx, c, run.Ref{Handle: in.Handle})
	if err != nil {
		return nil // Continue reports the error.
	}
	pos := now.Position
	if pos.Kind != engine.PositionGate || !pos.Person || now.Current != in.Handle || in.Step != "" && in.Step != pos.ID {
		return nil
	}
	return now
}
