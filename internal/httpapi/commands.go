package httpapi

import (
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// startBody is the request body that starts a run.
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
			WithFix(`set "workflowId" to an id from GET /api/workflows`)
	}
	request := run.StartRequest{WorkflowID: body.WorkflowID, Goal: body.Goal, Context: body.Context, RequestID: key}
	if body.Project != nil {
		request.Project = *body.Project
	}
	got, err := a.Runs.Start(c.Context(), c.runCaller(), request)
	return c.answerCreatedRun(got, err)
}

// answerCreatedRun answers with a new run. The status is 200 if an earlier request with the
// same idempotency key created it.
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

// answerBody is the request body that answers a gate.
type answerBody struct {
	OptionID string `json:"optionId"`
	Decline  bool   `json:"decline"`
	Note     string `json:"note"`
	// StepID and Handle, if given, name the gate to answer.
	StepID string `json:"stepId"`
	Handle string `json:"handle"`
}

// answerGate answers the gate of a run. Only the credential (see runCaller) decides whether
// the answer counts as a person's. If the gate requires a person, the service refuses any
// other answer.
func (a *api) answerGate(c *call, body answerBody) (any, error) {
	if (body.OptionID == "") != body.Decline {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the body must have either optionId or decline").
			WithFix(`set "optionId" to one of the position's options, or "decline" to true`)
	}
	return a.Runs.Answer(c.Context(), c.runCaller(), run.AnswerRequest{
		Ref: run.Ref{RunID: c.PathValue("id"), Handle: body.Handle}, Step: body.StepID,
		Answer: engine.Answer{OptionID: body.OptionID, Decline: body.Decline, Note: body.Note},
	})
}

// reasonBody is the request body that ends a run.
type reasonBody struct {
	Reason string `json:"reason"`
}

func (a *api) abortRun(c *call, body reasonBody) (any, error) {
	return a.Runs.Abort(c.Context(), c.runCaller(), run.AbortRequest{Ref: c.runRef(), Reason: body.Reason})
}

// forkBody is the request body that forks a run at an event. Zero is the last event.
type forkBody struct {
	Seq int64 `json:"seq"`
}

func (b forkBody) checkSeq() error {
	if b.Seq < 0 {
		return guideway.Errorf(guideway.CodeInvalid, "seq is %d, but must not be negative", b.Seq).WithFix("pass the number of an event, or omit seq for the last one")
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
	got, err := a.Runs.Fork(c.Context(), c.runCaller(), run.ForkRequest{Ref: c.runRef(), Seq: body.Seq, RequestID: key})
	return c.answerCreatedRun(got, err)
}
