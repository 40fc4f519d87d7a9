package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// listLimit is the default length of a list, maxListLimit the maximum.
	listLimit    = 100
	maxListLimit = 500
	// eventLimit is the default number of events, maxEventLimit the maximum.
	eventLimit    = 500
	maxEventLimit = 5_000
	// eventBatch is the maximum number of events in one read. Reading stops after
	// maxEventBytes, because an event may have a large output.
	eventBatch    = 50
	maxEventBytes = 4 << 20
)

func (a *api) listRuns(c *call) (any, error) {
	limit := int(c.intParam("limit", listLimit, 1, maxListLimit))
	filter := run.Filter{
		Project: c.textParam("project"), Workflow: c.textParam("workflow"),
		Statuses: c.statusParams(), Since: c.timeParam("since"), Until: c.timeParam("until"),
		Person: c.boolParam("person"), Before: c.cursorParam(), Limit: limit + 1,
	}
	if c.err != nil {
		return nil, c.err
	}
	list, err := a.Runs.List(c.Context(), c.runCaller(), filter)
	if err != nil {
		return nil, err
	}
	out := object{}
	list = out.addNext(list, limit)
	out["count"], out["runs"] = len(list), replaceNil(list)
	return out, nil
}

// addNext returns the first limit records of list, which was read with limit plus one. If
// there are more, it adds the member next, a value for the parameter cursor.
func (o object) addNext(list []run.Record, limit int) []run.Record {
	if len(list) > limit {
		list = list[:limit]
		o["next"] = cursorOf(list[limit-1])
	}
	return list
}

func (c *call) statusParams() []engine.Status {
	var statuses []engine.Status
	for _, text := range c.listParam("status") {
		switch s := engine.Status(text); s {
		case engine.StatusRunning, engine.StatusWaiting, engine.StatusCompleted, engine.StatusAborted:
			statuses = append(statuses, s)
		default:
			c.failParam("status", text, "running, waiting, completed or aborted")
		}
	}
	return statuses
}

// cursorOf and cursorParam encode and decode the position of a record in the order of
// lists.
func cursorOf(r run.Record) string {
	return base64.RawURLEncoding.EncodeToString([]byte(r.Updated.Format(time.RFC3339Nano) + " " + r.ID))
}

func (c *call) cursorParam() *run.Record {
	given := c.textParam("cursor")
	if given == "" {
		return nil
	}
	text, _ := base64.RawURLEncoding.DecodeString(given)
	updated, id, _ := strings.Cut(string(text), " ")
	t, err := time.Parse(time.RFC3339Nano, updated)
	if err != nil || id == "" {
		c.failParam("cursor", given, "the value of the member next of the previous page")
		return nil
	}
	return &run.Record{ID: id, Updated: t}
}

func (a *api) searchRuns(c *call) (any, error) {
	request := run.ResumeRequest{
		Query: c.textParam("q"), Project: c.textParam("project"), Limit: int(c.intParam("limit", 20, 1, 100)),
	}
	if c.err == nil && strings.TrimSpace(request.Query) == "" {
		c.failParam("q", request.Query, "words that describe the run")
	}
	if c.err != nil {
		return nil, c.err
	}
	list, err := a.Runs.Resume(c.Context(), c.runCaller(), request)
	return object{"count": len(list), "runs": replaceNil(list)}, err
}

// getRun returns a run without its definition. The returned handle is for this state: an
// answer with it is refused if the run has changed since.
func (a *api) getRun(c *call) (any, error) {
	after := c.intParam("after", 0, 0, 1<<53)
	limit := c.intParam("limit", eventLimit, 0, maxEventLimit)
	if c.err != nil {
		return nil, c.err
	}
	details, err := a.Runs.Get(c.Context(), c.runCaller(), c.runRef())
	if err != nil {
		return nil, err
	}
	if details.Variables == nil {
		details.Variables = map[string]any{}
	}
	out := object{"run": details.Record, "position": details.Position, "variables": details.Variables}.addText("handle", details.Current)
	if client, unwatched := clienthook.UnwatchedClient(details.Client, details.Hooked); unwatched {
		out["unwatched"] = client.ID
	}
	if details.Submission != nil {
		out["submission"] = details.Submission
	}
	// Events newer than the record are omitted.
	last := after + min(limit, max(details.Seq-after, 0))
	events, err := a.runEvents(c, after, last)
	if n := len(events); n > 0 && events[n-1].Seq < details.Seq {
		out["nextAfter"] = events[n-1].Seq // The next page begins after this event.
	}
	out["events"] = events
	return out, err
}

// runEvents returns the events of the run between two sequence numbers, up to the maximum
// size of an answer.
func (a *api) runEvents(c *call, after, last int64) ([]run.Event, error) {
	events, bytes := []run.Event{}, 0
	for after < last && bytes < maxEventBytes {
		batch, err := a.Runs.Events(c.Context(), c.runCaller(), c.runRef(), after, int(min(last-after, eventBatch)))
		if err != nil {
			return nil, err
		}
		if len(batch) == 0 {
			break
		}
		for _, e := range batch {
			if bytes += len(e.Data); bytes > maxEventBytes && len(events) > 0 {
				break
			}
			events = append(events, e)
		}
		after = batch[len(batch)-1].Seq
	}
	return events, nil
}

func (a *api) runDefinition(c *call) (any, error) {
	details, err := a.Runs.Get(c.Context(), c.runCaller(), c.runRef())
	if err != nil {
		return nil, err
	}
	return json.RawMessage(details.Definition), nil
}

// runState answers with the state document alone, without the member success.
func (a *api) runState(c *call) (any, error) {
	state, err := a.Runs.State(c.Context(), c.runCaller(), c.runRef())
	if err != nil {
		return nil, err
	}
	return encodeWhole(state)
}

func (a *api) exportRun(c *call) (any, error) {
	bundle, err := a.Runs.Export(c.Context(), c.runCaller(), c.runRef())
	if err == nil {
		c.w.Header().Set("Content-Disposition", `attachment; filename="guideway-run.json"`)
	}
	return json.RawMessage(bundle), err
}

// runRef returns the run that the path names.
func (c *call) runRef() run.Ref { return run.Ref{RunID: c.PathValue("id")} }

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
