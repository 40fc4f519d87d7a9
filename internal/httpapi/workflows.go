package httpapi

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/writer"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// workflowSummary describes a definition in a list.
type workflowSummary struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Version     string           `json:"version"`
	Dialect     guideway.Dialect `json:"dialect"`
	Hash        string           `json:"hash"`
	// Source is the name of the source, and Path the path of the document in it.
	Source string `json:"source"`
	Path   string `json:"path"`
	// Revision is the version of the source, such as a commit.
	Revision string `json:"revision,omitempty"`
	// Stale reports that the document no longer loads, and that this is the last version
	// that did.
	Stale bool `json:"stale,omitempty"`
}

func summarizeEntry(e *catalog.Entry) workflowSummary {
	return workflowSummary{
		ID: e.ID, Name: e.Name, Description: e.Description, Version: e.Version, Dialect: e.Dialect,
		Hash: e.Hash, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale,
	}
}

func (a *api) listWorkflows(*call) (any, error) {
	list := lists.Map(a.Catalog.List(catalog.Filter{}), summarizeEntry)
	return object{"count": len(list), "workflows": list}, nil
}

// getWorkflow returns a definition as canonical JSON, and the definitions with the same id
// that have a lower precedence.
func (a *api) getWorkflow(c *call) (any, error) {
	entry, err := a.Catalog.Get(c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := object{"workflow": summarizeEntry(entry.Entry), "definition": json.RawMessage(entry.Definition.Canonical)}
	if len(entry.Overrides) > 0 {
		out["overrides"] = entry.Overrides
	}
	return out, nil
}

// sourceStatus describes a source of definitions.
type sourceStatus struct {
	catalog.SourceStatus
	// Writable reports whether a person can save definitions in the source.
	Writable bool `json:"writable"`
}

// catalogState returns the diagnostics of the catalog, and the sources by increasing
// precedence.
func (a *api) catalogState(*call) (any, error) {
	sources := lists.Map(a.Catalog.Sources(), func(s catalog.SourceStatus) sourceStatus { return sourceStatus{s, writer.IsWritable(s.SourceInfo)} })
	return object{"sources": sources, "diagnostics": replaceNil(a.Catalog.Diagnostics())}, nil
}

// workflowText is the text of a definition's file.
type workflowText struct {
	Workflow workflowSummary `json:"workflow"`
	Text     string          `json:"text"`
	// Format is the format of the text.
	Format string `json:"format"`
	// Base identifies this version of the text; a save must name it.
	Base string `json:"base"`
	// Writable reports whether a person can save the text in the same source.
	Writable bool `json:"writable"`
	// Diagnostics are the diagnostics of the text.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

func (a *api) workflowSource(c *call) (any, error) {
	id := c.PathValue("id")
	entry, err := a.Catalog.Get(id)
	if err != nil {
		return nil, err
	}
	data := entry.Text()
	if data == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "cannot read the text of the definition %q", clipText(id)).
			WithFix("check that %s exists and is readable", entry.Path)
	}
	return workflowText{
		Workflow: summarizeEntry(entry.Entry), Text: string(data), Format: writer.Format(string(data)), Base: writer.Version(data),
		Writable: writer.IsWritable(entry.Source), Diagnostics: replaceNil(entry.Lint()),
	}, nil
}

// saveBody is a new text of a definition.
type saveBody struct {
	// Source is the source to save the definition in.
	Source string `json:"source"`
	Text   string `json:"text"`
	// Base is the version of the text that the change started from. It is empty if the
	// source does not have the definition yet.
	Base string `json:"base"`
}

// saveWorkflow writes a definition to a directory of the user or the project. It requires a
// person, because otherwise an agent could remove the gates of its own workflow.
func (a *api) saveWorkflow(c *call) (any, error) {
	if c.authGrant().Proof != auth.ProofBrowser {
		return nil, guideway.Errorf(guideway.CodeForbidden, "this credential cannot save definitions").
			WithFix("use a browser that is logged in (guideway open), or edit the file of the definition")
	}
	var body saveBody
	if err := c.decodeBody(&body); err != nil {
		return nil, err
	}
	id := c.PathValue("id")
	if err := checkSavable(id, body.Text); err != nil {
		return nil, err
	}
	info, name, err := a.findFile(id, body)
	if err != nil {
		return nil, err
	}
	a.writing.Lock()
	err = writer.Save(info, writer.Change{Name: name, Text: body.Text, Base: body.Base})
	a.writing.Unlock()
	if err != nil {
		return nil, err
	}
	if err := a.Catalog.Load(context.WithoutCancel(c.Context())); err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the file is saved, but is not served yet, because the catalog could not be loaded again: %w", err).WithFix("restart the server")
	}
	return a.workflowSource(c)
}

// fileName matches the ids that can name a file.
var fileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`) })

// checkSavable refuses a text that does not load or that has a different id, and an id that
// cannot name a file.
func checkSavable(id, text string) error {
	loads, found := workflow.Parse("", []byte(text))
	if loads == nil {
		return loadError(found)
	}
	if loads.ID != id {
		return guideway.Errorf(guideway.CodeInvalid, "the definition has the id %q and cannot be saved as %q", clipText(loads.ID), clipText(id)).
			WithFix("save the definition under its own id")
	}
	if !fileName().MatchString(id) {
		return guideway.Errorf(guideway.CodeInvalid, "the id %q cannot name a file", clipText(id)).
			WithFix("use at most 128 letters, digits, dots, hyphens and underscores, and start with a letter or a digit")
	}
	return nil
}

// loadError returns the error for a text that does not load, with its first error.
func loadError(found []guideway.Diagnostic) error {
	i := slices.IndexFunc(found, func(d guideway.Diagnostic) bool { return d.Severity == guideway.SeverityError })
	if i < 0 {
		return guideway.Errorf(guideway.CodeInvalidDefinition, "the definition does not load: the document is not a workflow").
			WithFix("write a workflow with steps or phases; guideway schema prints the schema of each dialect")
	}
	err := guideway.Errorf(guideway.CodeInvalidDefinition, "the definition does not load: %s", found[i].Message)
	if found[i].Fix != "" {
		err = err.WithFix("%s", found[i].Fix)
	}
	return err
}

// findFile returns the source and the file name for a definition.
func (a *api) findFile(id string, body saveBody) (catalog.SourceInfo, string, error) {
	var info *catalog.SourceInfo
	var names []string
	for _, s := range a.Catalog.Sources() {
		if writer.IsWritable(s.SourceInfo) {
			names = append(names, s.Name)
			if s.Name == body.Source {
				info = &s.SourceInfo
			}
		}
	}
	if info == nil {
		err := guideway.Errorf(guideway.CodeInvalid, "definitions cannot be saved in the source %q", clipText(body.Source))
		if len(names) == 0 {
			return catalog.SourceInfo{}, "", err.WithFix("no source is writable; set workflows.user or workflows.project to true in the configuration and restart the server")
		}
		return catalog.SourceInfo{}, "", err.WithFix("choose one of these sources: %s", strings.Join(names, ", "))
	}
	name := id + "." + writer.Format(body.Text)
	if entry, err := a.Catalog.Get(id); err == nil {
		path := ""
		if entry.Source.Name == info.Name {
			path = entry.Path
		}
		for _, o := range entry.Overrides {
			if path == "" && o.Source.Name == info.Name {
				path = o.Path
			}
		}
		if rel, err := filepath.Rel(info.Location, path); path != "" && err == nil {
			name = rel
		}
	}
	return *info, name, nil
}

func (a *api) getSchema(c *call) (any, error) {
	dialect := guideway.Dialect(c.PathValue("dialect"))
	text := workflow.Schema(workflow.As{Dialect: dialect})
	if text == nil {
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no dialect %q", clipText(string(dialect))).WithFix("use steps, phases, hooks or machines")
	}
	return json.RawMessage(text), nil
}

type validateBody struct {
	Text string `json:"text"`
}

// validateText returns the diagnostics of a text. It stores nothing. The member valid
// reports whether the definition loads and has no errors.
func (a *api) validateText(_ *call, body validateBody) (any, error) {
	loads, found := workflow.Check("", []byte(body.Text))
	valid := loads != nil
	for _, d := range found {
		valid = valid && d.Severity != guideway.SeverityError
	}
	out := object{"valid": valid, "diagnostics": replaceNil(found)}
	if loads != nil {
		out["id"], out["dialect"], out["definition"] = loads.ID, loads.Dialect, json.RawMessage(loads.Canonical)
	}
	return out, nil
}

// maxTrialMoves is the maximum number of moves of a trial. Each request replays all of
// them.
const maxTrialMoves = 500

// trialBody describes a trial: the initial context and all moves.
type trialBody struct {
	Text    string         `json:"text"`
	Context map[string]any `json:"context"`
	Moves   []trialMove    `json:"moves"`
}

// trialMove is the input at one position.
type trialMove struct {
	Output  string         `json:"output"`
	Notes   string         `json:"notes"`
	Context map[string]any `json:"context"`
	Option  string         `json:"optionId"`
	Decline bool           `json:"decline"`
	Skip    string         `json:"skip"`
}

func (m trialMove) guideCommand() engine.Command {
	c := &engine.Continue{Output: m.Output, Notes: m.Notes, Context: m.Context, Person: true}
	if m.Option != "" || m.Decline {
		c.Answer = &engine.Answer{OptionID: m.Option, Decline: m.Decline, Note: m.Notes}
		c.Notes = ""
	}
	if m.Skip != "" {
		c.Skip = &engine.Skip{Reason: m.Skip}
	}
	return engine.Command{Continue: c}
}

// trialEvent is an event of a trial. It has no time, because it is not stored.
type trialEvent struct {
	Seq  int              `json:"seq"`
	Kind engine.EventKind `json:"kind"`
	Data engine.Event     `json:"data"`
}

// trialResult is the state of a trial after its last move.
type trialResult struct {
	Status engine.Status `json:"status"`
	// Refused is set if the last move was refused. The other fields are as before the move.
	Refused   *engine.Refusal `json:"refused,omitempty"`
	Position  engine.Position `json:"position"`
	Variables map[string]any  `json:"variables"`
	Events    []trialEvent    `json:"events"`
}

// tryMoves replays a trial with the same engine as runs, and stores nothing. The caller
// keeps the moves, and removes the last one to undo it.
func (a *api) tryMoves(c *call, body trialBody) (any, error) {
	if len(body.Moves) > maxTrialMoves {
		return nil, guideway.Errorf(guideway.CodeTooLarge, "the trial has %d moves, more than the maximum of %d", len(body.Moves), maxTrialMoves).WithFix("start a run, which has no such limit")
	}
	loads, found := workflow.Parse("", []byte(body.Text))
	if loads == nil {
		return nil, loadError(found)
	}
	t := &trial{flow: compileFlow(loads)}
	refused := t.applyMove(engine.Command{Start: &engine.Start{Context: body.Context}})
	for i, m := range body.Moves {
		if refused == nil {
			refused = t.applyMove(m.guideCommand())
		}
		if refused != nil && i+1 < len(body.Moves) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "move %d is refused: %s", i+1, refused.Message).
				WithFix("remove the refused move and the moves after it")
		}
		if err := c.Context().Err(); err != nil {
			return nil, err
		}
	}
	if t.state.Vars == nil {
		t.state.Vars = map[string]any{}
	}
	return trialResult{
		Status: t.flow.Status(t.state), Refused: refused, Position: t.flow.PositionOf(t.state),
		Variables: t.state.Vars, Events: t.events,
	}, nil
}

func compileFlow(d *workflow.Definition) engine.Flow {
	if d.Phases != nil {
		return engine.CompilePhases(d.Phases)
	}
	return engine.Compile(d.Steps)
}

// trial is a run that is not stored.
type trial struct {
	flow   engine.Flow
	state  engine.State
	events []trialEvent
}

func (t *trial) applyMove(c engine.Command) *engine.Refusal {
	events, refusal := t.flow.Decide(t.state, c)
	if t.events == nil {
		t.events = []trialEvent{}
	}
	for _, e := range events {
		t.state = engine.Apply(t.state, e)
		t.events = append(t.events, trialEvent{len(t.events) + 1, e.Kind, e})
	}
	return refusal
}
