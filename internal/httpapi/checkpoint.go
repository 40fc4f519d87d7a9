package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/memory"
	"github.com/guideway-dev/guideway/internal/run"
)

func (a *api) memoryRoutes() []route {
	list := []route{
		{"GET", "/api/checkpoints", authn.RightRead, a.listCheckpoints},
		{"GET", "/api/checkpoints/{id}", authn.RightRead, a.getCheckpoint},
		{"GET", "/api/checkpoints/{id}/diff", authn.RightRead, a.diffCheckpoint},
	}
	if a.Runs != nil {
		list = append(list,
			route{"GET", "/api/runs/{id}/checkpoints", authn.RightRead, a.listRunCheckpoints},
			route{"GET", "/api/runs/{id}/context", authn.RightRead, a.runContext},
		)
	}
	return list
}

// checkpointView is a checkpoint for people: without how it is stored.
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
	Problem   string          `json:"problem,omitempty"`
}

func viewOf(r checkpoint.Record) checkpointView {
	return checkpointView{
		ID: r.ID, Session: r.Session, Run: r.Run, RunSeq: r.RunSeq, Parent: r.Parent, Branch: r.Branch, Head: !r.Followed, Number: r.Number,
		Workflow: r.Workflow, Project: r.Project, Agent: r.Agent, Name: r.Name, Tags: r.Tags, Kind: r.Kind, Created: r.Created,
		Bytes: r.Bytes, Stored: r.Stored, Tokens: r.Tokens, Encrypted: r.Key != "", Problem: r.Problem,
	}
}

// checkpointList is a page of checkpoints.
type checkpointList struct {
	Success     bool             `json:"success"`
	Count       int              `json:"count"`
	Checkpoints []checkpointView `json:"checkpoints"`
	Ranked      string           `json:"ranked"`
	Note        string           `json:"note,omitempty"`
	// Next continues the list, as the parameter cursor.
	Next      string           `json:"next,omitempty"`
	Store     checkpoint.Store `json:"store"`
	Automatic memory.Health    `json:"automatic"`
}

const (
	checkpointLimit    = 20
	maxCheckpointLimit = 200
)

func (a *api) listCheckpoints(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	return a.checkpoints(w, q, checkpoint.ListRequest{
		Session: q.text("session"), Workflow: q.text("workflow"), Project: q.text("project"), Query: q.text("q"),
		Tags: q.list("tag"), Since: q.time("since"), Until: q.time("until"),
	})
}

func (a *api) listRunCheckpoints(w http.ResponseWriter, r *http.Request) error {
	return a.checkpoints(w, &query{r: r}, checkpoint.ListRequest{Session: r.PathValue("id")})
}

func (a *api) checkpoints(w http.ResponseWriter, q *query, request checkpoint.ListRequest) error {
	request.Limit = int(q.number("limit", checkpointLimit, 1, maxCheckpointLimit))
	request.Cursor = q.text("cursor")
	if q.err != nil {
		return q.err
	}
	page, err := a.Memory.List(q.r.Context(), caller(q.r), request)
	if err != nil {
		return err
	}
	out := checkpointList{
		Success: true, Count: len(page.Checkpoints), Checkpoints: []checkpointView{}, Ranked: page.Ranked, Note: page.Note,
		Next: page.Next, Store: page.Store, Automatic: a.Memory.Health(),
	}
	for _, rec := range page.Checkpoints {
		view := viewOf(rec)
		view.Head = slices.Contains(page.Heads, rec.ID)
		out.Checkpoints = append(out.Checkpoints, view)
	}
	answer(w, http.StatusOK, out)
	return nil
}

// checkpointDetails is a checkpoint with what it holds.
type checkpointDetails struct {
	Success    bool                 `json:"success"`
	Checkpoint checkpointView       `json:"checkpoint"`
	Context    json.RawMessage      `json:"context"`
	Status     guide.Status         `json:"status,omitempty"`
	Position   *guide.Position      `json:"position,omitempty"`
	Completed  []string             `json:"completedSteps,omitempty"`
	Degraded   *checkpoint.Degraded `json:"degraded,omitempty"`
	Store      checkpoint.Store     `json:"store"`
}

func (a *api) getCheckpoint(w http.ResponseWriter, r *http.Request) error {
	shown, err := a.Memory.Show(r.Context(), caller(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	rec, err := a.Memory.Get(r.Context(), caller(r), shown.ID)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, checkpointDetails{
		Success: true, Checkpoint: viewOf(rec), Context: shown.Context, Status: shown.Status, Position: shown.Position,
		Completed: shown.Completed, Degraded: shown.Degraded, Store: shown.Store,
	})
	return nil
}

// checkpointDiff is what changed between two checkpoints.
type checkpointDiff struct {
	Success bool                     `json:"success"`
	From    checkpointView           `json:"from"`
	To      checkpointView           `json:"to"`
	Changes []checkpoint.ValueChange `json:"changes"`
	More    bool                     `json:"more,omitempty"`
}

func (a *api) diffCheckpoint(w http.ResponseWriter, r *http.Request) error {
	q, id := &query{r: r}, r.PathValue("id")
	from := q.text("from")
	if q.err != nil {
		return q.err
	}
	if from == "" {
		rec, err := a.Memory.Get(r.Context(), caller(r), id)
		if err != nil {
			return err
		}
		if from = rec.Parent; from == "" {
			return guideway.Errorf(guideway.CodeInvalid, "the checkpoint %s is the first one of its session", id).
				WithFix("name another one with the parameter from")
		}
	}
	diff, err := a.Memory.Diff(r.Context(), caller(r), from, id)
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, checkpointDiff{
		Success: true, From: viewOf(diff.From), To: viewOf(diff.To), Changes: diff.Changes, More: diff.More,
	})
	return nil
}

// runContext is the context of a run by layer.
type runContext struct {
	Success bool `json:"success"`
	*memory.Layers
}

func (a *api) runContext(w http.ResponseWriter, r *http.Request) error {
	layers, err := a.Memory.Layers(r.Context(), caller(r), run.Ref{RunID: r.PathValue("id")})
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, runContext{Success: true, Layers: layers})
	return nil
}
