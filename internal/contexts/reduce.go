package contexts

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Omission tells what was left out of a context, why, and the reference that
// reads it back.
type Omission = compress.Omission

// Fit says how small a context is to become.
type Fit struct {
	// Budget is in tokens; where it is 0, Ratio says how many times fewer.
	Budget int
	Ratio  float64
	// Question is what the agent wants to know; empty is what the run's position
	// asks.
	Question string
}

// ReduceRequest names a context: that of a run, or one that the caller gives.
type ReduceRequest struct {
	Handle, Session, Workflow string
	Context                   map[string]any
	Fit
}

// Compressed is a context that was made smaller.
type Compressed struct {
	Context  compress.Context `json:"context"`
	Before   int              `json:"tokensBefore"`
	After    int              `json:"tokensAfter"`
	Critical int              `json:"criticalTokens"`
	Omitted  []Omission       `json:"omitted"`
	// Over says why the budget was not kept.
	Over    string           `json:"over,omitempty"`
	Session string           `json:"sessionId,omitempty"`
	RunID   string           `json:"runId,omitempty"`
	Store   checkpoint.Store `json:"store"`
}

// Prioritized is a context of whole items.
type Prioritized struct {
	Context  compress.Context      `json:"context"`
	Items    []compress.RankedItem `json:"items"`
	Before   int                   `json:"tokensBefore"`
	After    int                   `json:"tokensAfter"`
	Critical int                   `json:"criticalTokens"`
	Over     string                `json:"over,omitempty"`
	Session  string                `json:"sessionId,omitempty"`
	RunID    string                `json:"runId,omitempty"`
	Store    checkpoint.Store      `json:"store"`
}

// Compress leaves parts of items out until a context fits. What is left out can
// be read back. The run itself stays as it is.
func (s *Service) Compress(ctx context.Context, c run.Caller, r ReduceRequest) (*Compressed, error) {
	m, err := s.material(ctx, c, r)
	if err != nil {
		return nil, err
	}
	return s.compress(ctx, m, r.Fit)
}

// Prioritize keeps or drops whole items until a context fits.
func (s *Service) Prioritize(ctx context.Context, c run.Caller, r ReduceRequest) (*Prioritized, error) {
	m, err := s.material(ctx, c, r)
	if err != nil {
		return nil, err
	}
	return s.prioritize(ctx, m, r.Fit)
}

// material is a context with all that is known of it.
type material struct {
	caller   run.Caller
	values   compress.Context
	hints    compress.Hints
	question string
	// ages are for how many steps variables have not changed.
	ages map[string]int
	// ref names what is left out of an item.
	ref func(key string, value []byte) string
	// keep stores what the references name; nil where nothing needs storing.
	keep           func(context.Context) error
	session, runID string
	// brief says that it is for the answer of another tool, which must stay small.
	// It is only so where nothing needs storing.
	brief bool
}

// material finds the context of a request.
func (s *Service) material(ctx context.Context, c run.Caller, r ReduceRequest) (*material, error) {
	ref, ok := refOf(r.Handle, r.Session)
	switch {
	case ok && len(r.Context) > 0:
		return nil, invalid("both a run and a context are given").WithFix("give the one or the other")
	case ok:
		return s.runMaterial(ctx, c, ref)
	case r.Context == nil:
		return nil, invalid("there is no context").WithFix("give context, or the handle of a run")
	}
	if r.Session == "" {
		r.Session, _ = r.Context[keySession].(string)
	}
	values, err := valuesOf(r.Context)
	if err != nil {
		return nil, err
	}
	return s.sessionMaterial(ctx, c, sessionContext{session: r.Session, workflow: r.Workflow, values: values})
}

// runMaterial is the context of a run.
func (s *Service) runMaterial(ctx context.Context, c run.Caller, ref run.Ref) (*material, error) {
	runs, err := s.runs()
	if err != nil {
		return nil, err
	}
	d, err := runs.Look(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	return s.materialOf(ctx, c, d)
}

func (s *Service) materialOf(ctx context.Context, c run.Caller, d *run.Details) (*material, error) {
	values, err := valuesOf(d.Variables)
	if err != nil {
		return nil, err
	}
	hints, err := s.hintsOf(ctx, c, d)
	if err != nil {
		return nil, err
	}
	for _, mark := range d.Marks {
		hints.Marks = append(hints.Marks, mark.Key)
	}
	st, err := s.story(ctx, c, d)
	if err != nil {
		return nil, err
	}
	return &material{
		caller: c, values: values, hints: hints, runID: d.ID, ages: st.ages(values),
		question: questionOf(d.Position),
		ref:      func(_ string, value []byte) string { return runValueRef(d.ID, d.Seq, value) },
	}, nil
}

// questionOf is what a position wants to know.
func questionOf(pos engine.Position) string {
	text := pos.Title + "\n" + pos.Prompt + "\n" + pos.Message
	const most = 4000
	return text[:min(len(text), most)]
}

// hintsOf are the hints of a run's pinned definition.
func (s *Service) hintsOf(ctx context.Context, c run.Caller, d *run.Details) (compress.Hints, error) {
	s.mu.Lock()
	hints, known := s.hints[d.Hash]
	s.mu.Unlock()
	if known {
		return hints, nil
	}
	flow, err := s.o.Runs.Flow(ctx, c, run.Ref{RunID: d.ID})
	if err != nil {
		return hints, err
	}
	hints = flow.Hints()
	s.mu.Lock()
	defer s.mu.Unlock()
	put(s.hints, d.Hash, hints)
	return hints, nil
}

// sessionContext is a context that is no run's.
type sessionContext struct {
	session, workflow string
	values            compress.Context
}

// sessionMaterial is a context that is no run's. What is left out of it is kept as
// a whole under its session.
func (s *Service) sessionMaterial(ctx context.Context, c run.Caller, r sessionContext) (*material, error) {
	whole, err := encode(r.values)
	if err != nil {
		return nil, err
	}
	session := r.session
	m, head, err := lastMarks(ctx, s.o.Checkpoints, c.Principal, session)
	if err != nil {
		return nil, err
	}
	if own := marksIn(r.values[keyCritical]); own != nil {
		m = own
	}
	if r.workflow == "" {
		r.workflow = head.Workflow
	}
	hints, err := s.workflowHints(ctx, r.workflow)
	if err != nil {
		return nil, err
	}
	hints.Variables = append(slices.Clone(hints.Variables), loopNames(r.values[keyCurrentLoop])...)
	if m != nil {
		hints.Marks = m.Keys
	}
	if session == "" {
		session = checkpoint.NewSession(r.workflow, whole)
	}
	session = checkpoint.SessionID(session)
	piece := checkpoint.FragmentRef(c.User, session, whole)
	order := map[string]int{}
	for i, key := range slices.Sorted(maps.Keys(r.values)) {
		order[key] = i
	}
	return &material{
		caller: c, values: r.values, hints: hints, session: session,
		ref: func(key string, _ []byte) string { return piece + "." + strconv.Itoa(order[key]) },
		keep: func(ctx context.Context) error {
			_, err := s.o.Checkpoints.StoreFragment(ctx, c.Principal, session, whole)
			return err
		},
	}, nil
}

// keyCurrentLoop is where a stateless walk tells of the loop that it is in.
const keyCurrentLoop = "_currentLoop"

// loopNames are the variables of the loop that a context says it is in: without
// them the walk cannot go on.
func loopNames(current json.RawMessage) []string {
	var at struct {
		LoopStep struct {
			Loop struct {
				Items        string `json:"items"`
				Count        any    `json:"count"`
				ItemVar      string `json:"itemVar"`
				IndexVar     string `json:"indexVar"`
				IterationVar string `json:"iterationVar"`
			} `json:"loop"`
		} `json:"loopStep"`
	}
	names := []string{"currentItem", "currentIndex", "currentIteration"}
	if current == nil || json.Unmarshal(current, &at) != nil {
		return nil
	}
	l := at.LoopStep.Loop
	count, _ := l.Count.(string)
	return append(names, l.Items, count, l.ItemVar, l.IndexVar, l.IterationVar)
}

// workflowHints are what a workflow that is served now says of its variables. One
// that is not there says nothing.
func (s *Service) workflowHints(ctx context.Context, id string) (compress.Hints, error) {
	if id == "" || s.o.Definitions == nil {
		return compress.Hints{}, nil
	}
	d, err := s.o.Definitions.Startable(ctx, id)
	switch code := guideway.ErrorCode(err); {
	case code == guideway.CodeNotFound || code == guideway.CodeInvalidDefinition:
		return compress.Hints{}, nil
	case err != nil:
		return compress.Hints{}, err
	case d.Phases != nil:
		return engine.CompilePhases(d.Phases).Hints(), nil
	default:
		return engine.Compile(d.Steps).Hints(), nil
	}
}

// items classifies a context.
func (s *Service) items(m *material) []compress.Item {
	items := compress.Items(m.values, s.classifier.WithHints(m.hints), s.o.Counter, compress.History{})
	for i := range items {
		items[i].Age = m.ages[items[i].Key]
	}
	return items
}

func (s *Service) options(m *material, f Fit) compress.Options {
	o := compress.Options{
		Budget: f.Budget, Ratio: f.Ratio, Question: f.Question, Counter: s.o.Counter, Stems: s.stems, Ref: m.ref,
		NoBlobs: s.o.ReadOnly && !m.brief,
	}
	if o.Question == "" {
		o.Question = m.question
	}
	return o
}

// compress reduces a context and keeps what is left out. Where that cannot be
// kept, nothing is left out.
func (s *Service) compress(ctx context.Context, m *material, f Fit) (*Compressed, error) {
	items, o := s.items(m), s.options(m, f)
	result := compress.Compress(items, o)
	if len(result.Omitted) > 0 && m.keep != nil {
		if problem := s.keep(ctx, m); problem != "" {
			o.NoBlobs = true
			result = compress.Compress(items, o)
			result.OverReason = problem
		}
	}
	if result.Omitted == nil {
		result.Omitted = []Omission{}
	}
	return &Compressed{
		Context: result.Context, Before: result.TokensBefore, After: result.TokensAfter, Critical: result.CriticalTokens,
		Omitted: result.Omitted, Over: result.OverReason, Session: m.session, RunID: m.runID, Store: s.Store(),
	}, nil
}

// keep stores what was left out, or says why it could not.
func (s *Service) keep(ctx context.Context, m *material) string {
	err := m.keep(ctx)
	if err == nil {
		return ""
	}
	if guideway.ErrorCode(err) == guideway.CodeInternal {
		s.o.Logger.ErrorContext(ctx, "what was left out of a context could not be kept", "session", m.session, "error", err)
		return "nothing is left out, as it could not be kept for a reason that the server's log tells"
	}
	return "nothing is left out, as it could not be kept: " + err.Error()
}

func (s *Service) prioritize(ctx context.Context, m *material, f Fit) (*Prioritized, error) {
	items, o := s.items(m), s.options(m, f)
	p := compress.Prioritise(items, o)
	if len(p.Blobs) > 0 && m.keep != nil {
		if problem := s.keep(ctx, m); problem != "" {
			o.NoBlobs = true
			p = compress.Prioritise(items, o)
			p.OverReason = problem
		}
	}
	return &Prioritized{
		Context: p.Context, Items: p.Items, Before: p.TokensBefore, After: p.TokensAfter, Critical: p.CriticalTokens,
		Over: p.OverReason, Session: m.session, RunID: m.runID, Store: s.Store(),
	}, nil
}
