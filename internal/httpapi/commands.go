package httpapi

import (
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
)

// startBody is the body that starts a run.
type startBody struct {
	WorkflowID string         `json:"workflowId"`
	Goal       string         `json:"goal"`
	Context    map[string]any `json:"context"`
	Project    *run.Project   `json:"project"`
}

func (a *api) startRun(c *call, body startBody) (any, error) {
	key, err := c.idempotencyKey()
	if err != nil {
		return nil, err
	}
	if body.WorkflowID == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the body does not name a workflow").
			WithFix(`give "workflowId", one of GET /api/workflows`)
	}
	request := run.StartRequest{WorkflowID: body.WorkflowID, Goal: body.Goal, Context: body.Context, RequestID: key}
	if body.Project != nil {
		request.Project = *body.Project
	}
	got, err := a.Runs.Start(c.Context(), c.caller(), request)
	return c.answerCreatedRun(got, err)
}

// answerCreatedRun answers with a new run; with 200 if the request had made it before.
func (c *call) answerCreatedRun(got *run.Answer, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.setCreated("/api/runs/", got.RunID)
	if got.Replayed {
		c.status = http.StatusOK
	}
	return got, nil
}

// answerBody is the body that answers a gate.
type answerBody struct {
	OptionID string `json:"optionId"`
	Decline  bool   `json:"decline"`
	Note     string `json:"note"`
	// StepID and Handle, if given, are the gate that the answer is for.
	StepID string `json:"stepId"`
	Handle string `json:"handle"`
}

// answerGate answers the gate that a run waits at. Whether the answer is a
// person's follows from the credential (see caller) and from nothing in the
// body; the service refuses one that is not where the gate wants a person.
func (a *api) answerGate(c *call, body answerBody) (any, error) {
	if (body.OptionID == "") != body.Decline {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the body does not say what the answer is").
			WithFix(`give "optionId", one of the position's options, or "decline": true`)
	}
	return a.Runs.Answer(c.Context(), c.caller(), run.AnswerRequest{
		Ref: run.Ref{RunID: c.PathValue("id"), Handle: body.Handle}, Step: body.StepID,
		Answer: guide.Answer{OptionID: body.OptionID, Decline: body.Decline, Note: body.Note},
	})
}

// reasonBody is the body that ends a run.
type reasonBody struct {
	Reason string `json:"reason"`
}

func (a *api) abortRun(c *call, body reasonBody) (any, error) {
	return a.Runs.Abort(c.Context(), c.caller(), run.AbortRequest{Ref: c.runRef(), Reason: body.Reason})
}

// forkBody is the body that forks a run at an event; zero is the last one.
type forkBody struct {
	Seq int64 `json:"seq"`
}

func (b forkBody) checkSeq() error {
	if b.Seq < 0 {
		return guideway.Errorf(guideway.CodeInvalid, "seq is negative").WithFix("give the number of an event, or nothing for the last")
	}
	return nil
}

func (a *api) forkRun(c *call, body forkBody) (any, error) {
	key, err := c.idempotencyKey()
	if err == nil {
		err = body.checkSeq()
	}
	if err != nil {
		return nil, err
	}
	got, err := a.Runs.Fork(c.Context(), c.caller(), run.ForkRequest{Ref: c.runRef(), Seq: body.Seq, RequestID: key})
	return c.answerCreatedRun(got, err)
}
