package contexts

import (
	"encoding/json"
	"maps"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// runPlace identifies the run of a checkpoint inside the stored context.
type runPlace struct {
	RunID    string        `json:"runId"`
	Seq      int64         `json:"seq"`
	Workflow string        `json:"workflowId"`
	Name     string        `json:"workflowName,omitempty"`
	Goal     string        `json:"goal,omitempty"`
	Status   engine.Status `json:"status"`
	// Position is the position of the run, without its texts.
	Position engine.Position `json:"position"`
	// Written are the model-written summaries of the run's parts, by their event ranges.
	Written map[string]string `json:"written,omitempty"`
}

// placeOf returns the place of a run.
func placeOf(rec run.Record, status engine.Status, pos engine.Position) runPlace {
	return runPlace{
		RunID: rec.ID, Seq: rec.Seq, Workflow: rec.Workflow, Name: rec.Name, Goal: rec.Goal, Status: status,
		Position: engine.Position{Kind: pos.Kind, ID: pos.ID, Title: pos.Title, Loop: pos.Loop, Phase: pos.Phase, Person: pos.Person},
	}
}

// encodeRun encodes a run's variables, the variables that the caller added, and the run's
// place for storage. It removes keyNext, which only a walk has.
func encodeRun(vars, added map[string]any, at runPlace) (json.RawMessage, error) {
	doc := withoutKeys(vars)
	maps.Copy(doc, added)
	delete(doc, keyNext)
	doc[keyRun] = at
	return encodeJSON(doc)
}

// stepsWalk is the state of a stateless walk by workflow_next in a checkpoint.
type stepsWalk struct {
	Workflow  string   `json:"workflowId"`
	Completed []string `json:"completedSteps"`
}

// encodeWalk encodes the context of a stateless walk for storage, including the engine's
// own keys, such as those of a loop.
func encodeWalk(context map[string]any, at stepsWalk) (json.RawMessage, error) {
	doc := withoutKeys(context, keyRun)
	doc[keyNext] = at
	return encodeJSON(doc)
}

// storedContext is a stored context split into its parts.
type storedContext struct {
	context map[string]json.RawMessage
	run     *runPlace
	walk    *stepsWalk
}

// splitStored separates the server's members from a stored context. It ignores malformed
// members, because no decision depends on them.
func splitStored(text json.RawMessage) (*storedContext, error) {
	all, err := objectOf(text)
	if err != nil {
		return nil, err
	}
	r := &storedContext{context: all}
	var at runPlace
	if raw, there := all[keyRun]; there && json.Unmarshal(raw, &at) == nil && at.RunID != "" {
		r.run = &at
	}
	var w stepsWalk
	if raw, there := all[keyNext]; there && json.Unmarshal(raw, &w) == nil && w.Workflow != "" {
		r.walk = &w
	}
	delete(all, keyRun)
	delete(all, keyNext)
	return r, nil
}
