package httpapi

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

func (a *api) memoryRoutes() []route {
	list := []route{
		{"GET", "/api/checkpoints", auth.RightContents, a.listCheckpoints},
		{"GET", "/api/checkpoints/{id}", auth.RightContents, a.getCheckpoint},
		{"GET", "/api/checkpoints/{id}/diff", auth.RightContents, a.diffCheckpoint},
	}
	if a.Runs != nil {
		list = append(list,
			route{"GET", "/api/runs/{id}/checkpoints", auth.RightContents, a.listRunCheckpoints},
			route{"GET", "/api/runs/{id}/context", auth.RightContents, a.runContext},
		)
	}
	return list
}

// checkpointView is a checkpoint without its storage details.
type checkpointView struct {
	ID        string          `json:"checkpointId"`
	Session   string          `json:"sessionId"`
	Run       string          `json:"runId,omitempty"`
	RunSeq    int64           `json:"runSeq,omitempty"`
	Parent    string          `json:"parentId,omitempty"`
	Branch    bool            `json:"branch,omitempty"`
	Head      bool            `json:"head"`
	Number    int64           `json:"number"`
	Workflow  string          `json:"workflowId,omitempty"`
	Project   string          `json:"projectId,omitempty"`
	Agent     string          `json:"agentId,omitempty"`
	Name      string          `json:"name,omitempty"`
	Tags      []string        `json:"tags,omitempty"`
	Kind      checkpoint.Kind `json:"kind"`
	Created   time.Time       `json:"createdAt"`
	Bytes     int64           `json:"bytes"`
	Stored    int64           `json:"storedBytes"`
	Tokens    int64           `json:"tokens,omitempty"`
	Encrypted bool            `json:"encrypted,omitempty"`
	Problem   string          `json:"error,omitempty"`
}

func viewOf(r checkpoint.Record) checkpointView {
	return checkpointView{
		ID: r.ID, Session: r.Session, Run: r.Run, RunSeq: r.RunSeq, Parent: r.Parent, Branch: r.Branch, Head: !r.Followed, Number: r.Number,
		Workflow: r.Workflow, Project: r.Project, Agent: r.Agent, Name: r.Name, Tags: r.Tags, Kind: r.Kind, Created: r.Created,
		Bytes: r.Bytes, Stored: r.Stored, Tokens: r.Tokens, Encrypted: r.Key != "", Problem: r.Problem,
	}
}

const (
	checkpointLimit    = 20
	maxCheckpointLimit = 200
)

func (a *api) listCheckpoints(c *call) (any, error) {
	return a.queryCheckpoints(c, checkpoint.ListRequest{
		Session: c.textParam("session"), Workflow: c.textParam("workflow"), Project: c.textParam("project"), Query: c.textParam("q"),
		Tags: c.listParam("tag"), Since: c.timeParam("since"), Until: c.timeParam("until"),
	})
}

func (a *api) listRunCheckpoints(c *call) (any, error) {
	return a.queryCheckpoints(c, checkpoint.ListRequest{Session: c.PathValue("id")})
}

func (a *api) queryCheckpoints(c *call, request checkpoint.ListRequest) (any, error) {
	request.Limit = int(c.intParam("limit", checkpointLimit, 1, maxCheckpointLimit))
	request.Cursor = c.textParam("cursor")
	if c.err != nil {
		return nil, c.err
	}
	page, err := a.Memory.List(c.Context(), c.runCaller(), request)
	if err != nil {
		return nil, err
	}
	list := []checkpointView{}
	for _, rec := range page.Checkpoints {
		view := viewOf(rec)
		view.Head = slices.Contains(page.Heads, rec.ID)
		list = append(list, view)
	}
	return object{
		"count": len(list), "checkpoints": list, "ranked": page.Ranked, "store": page.Store, "automatic": a.Memory.Health(),
	}.addText("note", page.Note).addText("next", page.Next), nil // The value of next, passed as the parameter cursor, returns the next page.
}

// checkpointDetails is a checkpoint with its contents.
type checkpointDetails struct {
	Checkpoint checkpointView       `json:"checkpoint"`
	Context    json.RawMessage      `json:"context"`
	Status     engine.Status        `json:"status,omitempty"`
	Position   *engine.Position     `json:"position,omitempty"`
	Completed  []string             `json:"completedSteps,omitempty"`
	Degraded   *checkpoint.Degraded `json:"degraded,omitempty"`
	Store      checkpoint.Store     `json:"store"`
}

func (a *api) getCheckpoint(c *call) (any, error) {
	shown, err := a.Memory.Show(c.Context(), c.runCaller(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	rec, err := a.Memory.Get(c.Context(), c.runCaller(), shown.ID)
	return checkpointDetails{
		Checkpoint: viewOf(rec), Context: shown.Context, Status: shown.Status, Position: shown.Position,
		Completed: shown.Completed, Degraded: shown.Degraded, Store: shown.Store,
	}, err
}

func (a *api) diffCheckpoint(c *call) (any, error) {
	id, from := c.PathValue("id"), c.textParam("from")
	if c.err != nil {
		return nil, c.err
	}
	if from == "" {
		rec, err := a.Memory.Get(c.Context(), c.runCaller(), id)
		if err != nil {
			return nil, err
		}
		if from = rec.Parent; from == "" {
			return nil, guideway.Errorf(guideway.CodeInvalid, "the checkpoint %s is the first of its series, so it has no earlier one to compare with", id).
				WithFix("name the checkpoint to compare with in the parameter from")
		}
	}
	diff, err := a.Memory.Diff(c.Context(), c.runCaller(), from, id)
	if err != nil {
		return nil, err
	}
	out := object{"from": viewOf(diff.From), "to": viewOf(diff.To), "changes": diff.Changes}
	if diff.More {
		out["more"] = true
	}
	return out, nil
}

func (a *api) runContext(c *call) (any, error) {
	return a.Memory.Layers(c.Context(), c.runCaller(), c.runRef())
}
