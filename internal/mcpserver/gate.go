package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The rules of answers that come by a form.
const (
	// ruleForm is a form that does not belong to the call: changed, used
	// before, too old or another's.
	ruleForm = "form-invalid"
	// ruleFormUnanswered is a form without an answer in it.
	ruleFormUnanswered = "form-unanswered"
	// ruleFormFailed is a form that the client could not show.
	ruleFormFailed = "form-failed"
	// ruleDeclined is a person who has not answered.
	ruleDeclined = "gate-declined"
)

// The members of the form.
const (
	formOption = "option"
	formNote   = "note"
)

// canAsk says whether the client shows forms to a person.
func canAsk(req *mcp.CallToolRequest) bool {
	caps := req.ClientCapabilities()
	// A client that names no mode shows forms: modes came later.
	return caps != nil && caps.Elicitation != nil && (caps.Elicitation.Form != nil || caps.Elicitation.URL == nil)
}

// atPersonGate says whether a run waits for a person and nobody else.
func atPersonGate(a *run.Answer) bool {
	return a.Position.Kind == guide.PositionGate && a.Position.Person
}

// askCall is the call that has the client ask the person.
func askCall(handle string) *run.Call {
	return &run.Call{Tool: "workflow_continue", Arguments: map[string]any{"handle": handle}}
}

func statusCall(handle string) *run.Call { return run.StatusCall(run.Ref{Handle: handle}) }

// needsPerson is the refusal of an agent's answer to a person's gate.
func needsPerson(req *mcp.CallToolRequest, runID, handle string) *run.Refusal {
	r := &run.Refusal{
		Code: guideway.CodeRefused, Rule: guide.RulePerson, RunID: runID,
		Message: "this gate requires human approval, which an agent cannot give",
		Fix:     run.PersonWays(runID), Next: statusCall(handle),
	}
	if canAsk(req) {
		r.Fix, r.Next = "call workflow_continue with the handle alone: the client asks the person", askCall(handle)
	}
	return r
}

// forPerson gives the refusal at a person's gate the ways that this client has.
func forPerson(req *mcp.CallToolRequest, handle string, err error) error {
	err = withNext(err, statusCall(handle))
	r, ok := run.IsRefusal(err)
	if !ok || r.Next.Tool != "workflow_status" ||
		r.Rule != guide.RulePerson && r.Rule != guide.RuleGateUnanswered {
		return err
	}
	mine := needsPerson(req, r.RunID, handle)
	mine.Given, mine.Position = r.Given, r.Position
	return mine
}

// ask makes the question to the person at a gate. They read what was handed in
// from the journal, not from the agent.
func (r *runTools) ask(ctx context.Context, c run.Caller, a *run.Answer) *question {
	ids, labels := []string{}, []string{}
	for _, o := range a.Position.Options {
		label := plainLine(o.Label, 100)
		if o.Description != "" {
			label += ": " + plainLine(o.Description, 200)
		}
		ids, labels = append(ids, o.ID), append(labels, label)
	}
	return &question{
		form: &mcp.ElicitParams{
			Mode: "form", Message: r.formText(ctx, c, a),
			RequestedSchema: map[string]any{
				"type": "object",
				"properties": map[string]any{
					formOption: map[string]any{"type": "string", "title": "Your answer", "enum": ids, "enumNames": labels},
					formNote:   map[string]any{"type": "string", "title": "Note to the agent"},
				},
				"required": []string{formOption},
			},
		},
		state: r.forms.seal(formState{User: c.User, Run: a.RunID, Handle: a.Handle, Gate: a.Position.ID}),
		failed: &run.Refusal{
			Code: guideway.CodeUnavailable, Rule: ruleFormFailed, RunID: a.RunID,
			Message: "the client could not ask the person", Fix: run.PersonWays(a.RunID), Next: statusCall(a.Handle),
		},
	}
}

// formText is what the person reads. What comes from agents is quoted, so that
// it cannot be taken for words of ours.
func (r *runTools) formText(ctx context.Context, c run.Caller, a *run.Answer) string {
	const (
		longest     = 500
		mostOfInput = 1500
		lastEvents  = 150
	)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nWorkflow %s, run %s.", plainLine(a.Position.Message, longest), a.WorkflowID, a.RunID)
	d, err := r.runs.Look(ctx, c, run.Ref{RunID: a.RunID})
	if err != nil {
		return b.String() // the gate can be answered without
	}
	if d.Goal != "" {
		b.WriteString("\nGoal: " + plainLine(d.Goal, longest))
	}
	// What was handed in stands right before the gate, but for refused attempts.
	events, err := r.runs.Events(ctx, c, run.Ref{RunID: a.RunID}, d.Seq-lastEvents, lastEvents)
	if err != nil {
		return b.String()
	}
	if text := handedIn(events, a.Position.ID); text != "" {
		b.WriteString("\n\nThe agent handed in:")
		if runes := []rune(text); len(runes) > mostOfInput {
			text = fmt.Sprintf("%s…\n(%d characters more: guideway runs show %s)", string(runes[:mostOfInput]), len(runes)-mostOfInput, a.RunID)
		}
		for line := range strings.Lines(text) {
			b.WriteString("\n> " + plainLine(line, mostOfInput+longest))
		}
	}
	return b.String()
}

// handedIn gives what a step was last completed with.
func handedIn(events []run.Event, step string) string {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Kind != string(guide.EventStepCompleted) {
			continue
		}
		var e guide.Event
		if json.Unmarshal(events[i].Data, &e) != nil || e.Step != step {
			return ""
		}
		if e.Output == "" {
			return e.Notes
		}
		return e.Output
	}
	return ""
}

// answered takes the answer of the person that came back with a form. It never
// asks again: an earlier client would get an empty answer.
func (r *runTools) answered(ctx context.Context, req *mcp.CallToolRequest, c run.Caller, handle string) (any, error) {
	form, err := r.forms.redeem(req.Params.RequestState, c.User, handle)
	if err != nil {
		refusal := formRefusal(handle, ruleForm, err.Error())
		if errors.Is(err, errFormUsed) {
			refusal.Fix, refusal.Next = "ask where the run stands: the answer may have come through", statusCall(handle)
		}
		return nil, refusal
	}
	response, ok := req.Params.InputResponses[gateForm].(*mcp.ElicitResult)
	if !ok {
		return nil, formRefusal(handle, ruleFormUnanswered, "the form came back without an answer")
	}
	if response.Action != "accept" {
		return nil, &run.Refusal{
			Code: guideway.CodeRefused, Rule: ruleDeclined, RunID: form.Run,
			Message: "the person has not opened the gate; the run waits",
			Given:   shorten(response.Action), Next: statusCall(handle),
			Fix: "ask the person what they want before you ask for the gate again",
		}
	}
	option, _ := response.Content[formOption].(string)
	note, _ := response.Content[formNote].(string)
	if option == "" {
		return nil, formRefusal(handle, ruleFormUnanswered, "the form came back without an option")
	}
	c.Via = run.ViaElicitation
	// The handle binds the answer to the position that the person was shown: a
	// gate that comes round again has another one.
	a, err := r.runs.Continue(ctx, c, run.ContinueRequest{
		Handle: form.Handle, Step: form.Gate, Answer: &guide.Answer{OptionID: option, Note: note},
	})
	if err != nil {
		return nil, err
	}
	return r.view(req, a), nil
}

func formRefusal(handle, rule, message string) *run.Refusal {
	return &run.Refusal{
		Code: guideway.CodeRefused, Rule: rule, Message: message,
		Fix: "call workflow_continue with the handle alone to ask the person anew", Next: askCall(handle),
	}
}

type questionKey struct{}

// noteQuestion tells explainFailedForms that a call asks the person.
func noteQuestion(ctx context.Context, q *question) {
	if slot, ok := ctx.Value(questionKey{}).(*atomic.Pointer[question]); ok {
		slot.Store(q)
	}
}

// explainFailedForms is middleware for clients of the legacy era: there the SDK
// asks on the server's behalf, and where that fails the call would end in an
// error of the protocol that names no way out.
func explainFailedForms(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		var asked atomic.Pointer[question]
		result, err := next(context.WithValue(ctx, questionKey{}, &asked), method, req)
		if q := asked.Load(); err != nil && q != nil && ctx.Err() == nil {
			return errorResult(q.failed), nil
		}
		return result, err
	}
}
