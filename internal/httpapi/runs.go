package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

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
