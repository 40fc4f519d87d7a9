package httpapi

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
)

const (
	// listLimit bounds a list by default, maxListLimit in any case.
	listLimit    = 100
	maxListLimit = 500
	// eventLimit bounds the events of a run likewise.
	eventLimit    = 500
	maxEventLimit = 5_000
	// eventBatch is how many events are read at once. No more are read once
	// they have maxEventBytes: an event may have a large output.
	eventBatch    = 50
	maxEventBytes = 4 << 20
)

// runList is a page of runs.
type runList struct {
	Success bool         `json:"success"`
	Count   int          `json:"count"`
	Runs    []run.Record `json:"runs"`
	// Next continues the list, as the parameter cursor.
	Next string `json:"next,omitempty"`
}

func (a *api) listRuns(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	filter := run.Filter{
		Project: q.text("project"), Workflow: q.text("workflow"),
		Statuses: q.statuses(), Since: q.time("since"), Until: q.time("until"),
		Person: q.yes("person"), Before: q.cursor(),
	}
	limit := int(q.number("limit", listLimit, 1, maxListLimit))
	if q.err != nil {
		return q.err
	}
	filter.Limit = limit + 1 // one more tells whether there are more
	list, err := a.Runs.List(r.Context(), caller(r), filter)
	if err != nil {
		return err
	}
	page := runList{Success: true, Runs: list}
	if len(list) > limit {
		page.Runs = list[:limit]
		page.Next = cursorOf(page.Runs[limit-1])
	}
	if page.Runs == nil {
		page.Runs = []run.Record{}
	}
	page.Count = len(page.Runs)
	answer(w, http.StatusOK, page)
	return nil
}

func (q *query) statuses() []guide.Status {
	var statuses []guide.Status
	for _, text := range q.list("status") {
		switch s := guide.Status(text); s {
		case guide.StatusRunning, guide.StatusWaiting, guide.StatusCompleted, guide.StatusAborted:
			statuses = append(statuses, s)
		default:
			q.wrong("status", text, "running, waiting, completed or aborted")
		}
	}
	return statuses
}

// cursorOf and cursor carry the place behind a record: what lists are ordered
// by.
func cursorOf(r run.Record) string {
	return base64.RawURLEncoding.EncodeToString([]byte(r.Updated.Format(time.RFC3339Nano) + " " + r.ID))
}

func (q *query) cursor() *run.Record {
	given := q.text("cursor")
	if given == "" {
		return nil
	}
	text, _ := base64.RawURLEncoding.DecodeString(given)
	updated, id, _ := strings.Cut(string(text), " ")
	t, err := time.Parse(time.RFC3339Nano, updated)
	if err != nil || id == "" {
		q.wrong("cursor", given, "the member next of a list")
		return nil
	}
	return &run.Record{ID: id, Updated: t}
}

// searchResult is the runs that words may mean.
type searchResult struct {
	Success bool            `json:"success"`
	Count   int             `json:"count"`
	Runs    []run.Candidate `json:"runs"`
}

func (a *api) searchRuns(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	request := run.ResumeRequest{
		Query: q.text("q"), Project: q.text("project"), Limit: int(q.number("limit", 20, 1, 100)),
	}
	if q.err == nil && strings.TrimSpace(request.Query) == "" {
		q.wrong("q", request.Query, "what you remember of the run, in words")
	}
	if q.err != nil {
		return q.err
	}
	list, err := a.Runs.Resume(r.Context(), caller(r), request)
	if err != nil {
		return err
	}
	if list == nil {
		list = []run.Candidate{}
	}
	answer(w, http.StatusOK, searchResult{Success: true, Count: len(list), Runs: list})
	return nil
}

// runDetails is all of a run but its definition.
type runDetails struct {
	Success bool       `json:"success"`
	Run     run.Record `json:"run"`
	// Handle is the current one. An answer that carries it is refused when
	// the run has moved on.
	Handle    string         `json:"handle,omitempty"`
	Position  guide.Position `json:"position"`
	Variables map[string]any `json:"variables"`
	Events    []run.Event    `json:"events"`
	// NextAfter continues the events, as the parameter after.
	NextAfter int64 `json:"nextAfter,omitempty"`
}

func (a *api) getRun(w http.ResponseWriter, r *http.Request) error {
	q := &query{r: r}
	after := q.number("after", 0, 0, 1<<53)
	limit := int(q.number("limit", eventLimit, 0, maxEventLimit))
	if q.err != nil {
		return q.err
	}
	details, err := a.Runs.Look(r.Context(), caller(r), runRef(r))
	if err != nil {
		return err
	}
	d := runDetails{
		Success: true, Run: details.Record, Handle: details.Current,
		Position: details.Position, Variables: details.Variables,
	}
	if d.Variables == nil {
		d.Variables = map[string]any{}
	}
	// Events that came meanwhile do not go with the record.
	last := after + min(int64(limit), max(details.Seq-after, 0))
	if d.Events, err = a.runEvents(r, after, last); err != nil {
		return err
	}
	if n := len(d.Events); n > 0 && d.Events[n-1].Seq < details.Seq {
		d.NextAfter = d.Events[n-1].Seq
	}
	answer(w, http.StatusOK, d)
	return nil
}

// runEvents reads the events after one up to another of the run of the path, or
// as many of them as an answer has room for.
func (a *api) runEvents(r *http.Request, after, last int64) ([]run.Event, error) {
	events, bytes := []run.Event{}, 0
	for after < last && bytes < maxEventBytes {
		batch, err := a.Runs.Events(r.Context(), caller(r), runRef(r), after, int(min(last-after, eventBatch)))
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

func (a *api) runDefinition(w http.ResponseWriter, r *http.Request) error {
	details, err := a.Runs.Look(r.Context(), caller(r), runRef(r))
	if err != nil {
		return err
	}
	answerText(w, http.StatusOK, []byte(details.Definition))
	return nil
}

// runState answers with the document alone, so that it is one as it stands.
func (a *api) runState(w http.ResponseWriter, r *http.Request) error {
	state, err := a.Runs.State(r.Context(), caller(r), runRef(r))
	if err != nil {
		return err
	}
	answer(w, http.StatusOK, state)
	return nil
}

func (a *api) exportRun(w http.ResponseWriter, r *http.Request) error {
	ref := runRef(r)
	bundle, err := a.Runs.Export(r.Context(), caller(r), ref)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", `attachment; filename="guideway-run.json"`)
	answerText(w, http.StatusOK, bundle)
	return nil
}

// runRef names the run of the path.
func runRef(r *http.Request) run.Ref { return run.Ref{RunID: r.PathValue("id")} }
