package contexts

import (
	"encoding/json"
	"maps"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// place is the run that a checkpoint is of, as it tells of itself.
type place struct {
	RunID    string        `json:"runId"`
	Seq      int64         `json:"seq"`
	Workflow string        `json:"workflowId"`
	Name     string        `json:"workflowName,omitempty"`
	Goal     string        `json:"goal,omitempty"`
	Status   engine.Status `json:"status"`
	// Position is what the run asked for, without its texts.
	Position engine.Position `json:"position"`
	// Written are the summaries that a model has written of the run's parts, by
	// the events that they are of.
	Written map[string]string `json:"written,omitempty"`
}

// placeOf tells where a run stands.
func placeOf(rec run.Record, status engine.Status, pos engine.Position) place {
	return place{
		RunID: rec.ID, Seq: rec.Seq, Workflow: rec.Workflow, Name: rec.Name, Goal: rec.Goal, Status: status,
		Position: engine.Position{Kind: pos.Kind, ID: pos.ID, Title: pos.Title, Loop: pos.Loop, Phase: pos.Phase, Person: pos.Person},
	}
}

// prepare makes of a run's variables what is stored: they stand in it as they
// are, beside those that the caller has added and what run they are of. Where the
// run stands in a loop follows from its events and is told, not stored: restored
// it is by the run itself.
func prepare(vars, added map[string]any, at place) (json.RawMessage, error) {
	doc := without(vars)
	maps.Copy(doc, added)
	delete(doc, keyNext)
	doc[keyRun] = at
	return encode(doc)
}

// walk is a stateless walk by workflow_next, as it stands in a checkpoint.
type walk struct {
	Workflow  string   `json:"workflowId"`
	Completed []string `json:"completedSteps"`
}

// prepareWalk makes of the context of a stateless walk what is stored. The
// engine's own keys, such as those of a loop, are a part of it.
func prepareWalk(context map[string]any, at walk) (json.RawMessage, error) {
	doc := without(context, keyRun)
	doc[keyNext] = at
	return encode(doc)
}

// restored is a context as it was before it was prepared.
type restored struct {
	context map[string]json.RawMessage
	run     *place
	walk    *walk
}

// restore takes what is the server's out of a stored context. What does not read
// as the server would have written it is left out: it decides nothing.
func restore(text json.RawMessage) (*restored, error) {
	all, err := objectOf(text)
	if err != nil {
		return nil, err
	}
	r := &restored{context: all}
	var at place
	if raw, there := all[keyRun]; there && json.Unmarshal(raw, &at) == nil && at.RunID != "" {
		r.run = &at
	}
	var w walk
	if raw, there := all[keyNext]; there && json.Unmarshal(raw, &w) == nil && w.Workflow != "" {
		r.walk = &w
	}
	delete(all, keyRun)
	delete(all, keyNext)
	return r, nil
}
