package httpapi

import (
	"net/http"
	"net/url"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
)

// runAnswer is where a run stands after a command.
type runAnswer struct {
	Success bool `json:"success"`
	*run.Answer
}

// startBody is the body that starts a run.
type startBody struct {
	WorkflowID string         `json:"workflowId"`
	Goal       string         `json:"goal"`
	Context    map[string]any `json:"context"`
	Project    *run.Project   `json:"project"`
}

func (a *api) startRun(w http.ResponseWriter, r *http.Request) error {
	var body startBody
	if err := decode(w, r, &body); err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if body.WorkflowID == "" {
		return guideway.Errorf(guideway.CodeInvalid, "the body does not name a workflow").
			WithFix(`give "workflowId", one of GET /api/workflows`)
	}
	request := run.StartRequest{WorkflowID: body.WorkflowID, Goal: body.Goal, Context: body.Context, RequestID: key}
	if body.Project != nil {
		request.Project = *body.Project
	}
	got, err := a.Runs.Start(r.Context(), caller(r), request)
	return made(w, got, err)
}

// made answers with a new run; with 200 where the request had made it before.
func made(w http.ResponseWriter, got *run.Answer, err error) error {
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/runs/"+url.PathEscape(got.RunID))
	status := http.StatusCreated
	if got.Replayed {
		status = http.StatusOK
	}
	answer(w, status, runAnswer{true, got})
	return nil
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
func (a *api) answerGate(w http.ResponseWriter, r *http.Request) error {
	var body answerBody
	if err := decode(w, r, &body); err != nil {
		return err
	}
	if (body.OptionID == "") != body.Decline {
		return guideway.Errorf(guideway.CodeInvalid, "the body does not say what the answer is").
			WithFix(`give "optionId", one of the position's options, or "decline": true`)
	}
	ref := runRef(r)
	ref.Handle = body.Handle
	got, err := a.Runs.Answer(r.Context(), caller(r), run.AnswerRequest{
		Ref: ref, Step: body.StepID,
		Answer: guide.Answer{OptionID: body.OptionID, Decline: body.Decline, Note: body.Note},
	})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, runAnswer{true, got})
	return nil
}

func (a *api) abortRun(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Reason string `json:"reason"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	got, err := a.Runs.Abort(r.Context(), caller(r), run.AbortRequest{Ref: runRef(r), Reason: body.Reason})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, runAnswer{true, got})
	return nil
}

func (a *api) forkRun(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Seq int64 `json:"seq"`
	}
	if err := decode(w, r, &body); err != nil {
		return err
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	if body.Seq < 0 {
		return guideway.Errorf(guideway.CodeInvalid, "seq is negative").WithFix("give the number of an event, or nothing for the last")
	}
	got, err := a.Runs.Fork(r.Context(), caller(r), run.ForkRequest{Ref: runRef(r), Seq: body.Seq, RequestID: key})
	return made(w, got, err)
}
