package contexts

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Omission describes omitted variables that have the same reason.
type Omission struct {
	Keys []string `json:"keys"`
	// More is the number of further variables.
	More   int    `json:"more,omitempty"`
	Reason string `json:"reason"`
	// Ref is the reference that loads the variables. If there are several, the keys must be
	// given too.
	Ref string `json:"ref"`
	// Tokens is the number of tokens saved.
	Tokens int `json:"tokens"`
}

// The names of omitted variables in an answer take keyShare of its budget, but at least
// minKeyTokens and at most maxKeyTokens tokens.
const (
	minKeyTokens = 60
	maxKeyTokens = 400
	keyShare     = 0.05
)

func keyTokens(budget int) int {
	return min(max(int(keyShare*float64(budget)), minKeyTokens), maxKeyTokens)
}

// shortenKeys returns the first keys that fit into a number of tokens, and the number of the
// others.
func shortenKeys(keys []string, tokens int) (shown []string, more int) {
	const overhead = 2 // the quotes and the comma
	for i, key := range keys {
		if tokens -= compress.Estimate(key) + overhead; tokens < 0 && i > 0 {
			return keys[:i], len(keys) - i
		}
	}
	return keys, 0
}

// groupOmissions joins omissions of the same kind. whole is the reference of all variables.
func groupOmissions(list []compress.Omission, whole string, tokens int) []Omission {
	out := []Omission{}
	at := map[string]int{}
	for _, o := range list {
		kind, _, _ := strings.Cut(o.Reason, ":")
		i, known := at[kind]
		if !known {
			at[kind] = len(out)
			out = append(out, Omission{Keys: []string{o.Key}, Reason: o.Reason, Ref: o.Ref, Tokens: o.Tokens})
			continue
		}
		g := &out[i]
		if g.Ref = whole; g.Reason != o.Reason {
			g.Reason = kind
		}
		g.Keys, g.Tokens = append(g.Keys, o.Key), g.Tokens+o.Tokens
	}
	for i := range out {
		out[i].Keys, out[i].More = shortenKeys(out[i].Keys, tokens/len(out))
	}
	return out
}

// Fit is the target size of a context.
type Fit struct {
	// Budget is in tokens; if it is 0, Ratio is the factor of the reduction.
	Budget int
	Ratio  float64
	// Question is the agent's question; the default is the prompt of the run's position.
	Question string
}

// ReduceRequest selects a context: that of a run, or one in the request.
type ReduceRequest struct {
	Handle, Session, Workflow string
	Context                   map[string]any
	// NoRuns reports that the caller may not use runs, and so cannot load an omitted value of
	// a run. Then no value of a run is omitted.
	NoRuns bool
	Fit
}

// Compressed is a reduced context.
type Compressed struct {
	Context  compress.Context `json:"context"`
	Before   int              `json:"tokensBefore"`
	After    int              `json:"tokensAfter"`
	Critical int              `json:"criticalTokens"`
	Omitted  []Omission       `json:"omitted"`
	// Over is the reason why the budget was exceeded.
	Over    string           `json:"over,omitempty"`
	Session string           `json:"sessionId,omitempty"`
	RunID   string           `json:"runId,omitempty"`
	Store   checkpoint.Store `json:"store"`
}

// Prioritized is a context of whole items.
type Prioritized struct {
	Context  compress.Context `json:"context"`
	Items    []RankedItems    `json:"items"`
	Before   int              `json:"tokensBefore"`
	After    int              `json:"tokensAfter"`
	Critical int              `json:"criticalTokens"`
	Over     string           `json:"over,omitempty"`
	Session  string           `json:"sessionId,omitempty"`
	RunID    string           `json:"runId,omitempty"`
	Store    checkpoint.Store `json:"store"`
}

// RankedItems are the items of a context that have the same layer for the same reason.
type RankedItems struct {
	Keys   []string       `json:"keys"`
	More   int            `json:"more,omitempty"`
	Layer  compress.Layer `json:"layer"`
	Tokens int            `json:"tokens"`
	Kept   bool           `json:"kept"`
	Why    string         `json:"why"`
	// Ref is the reference that loads items that were not kept. If there are several, the
	// keys must be given too.
	Ref string `json:"ref,omitempty"`
}

// groupItems joins items with the same layer and reason.
func groupItems(list []compress.RankedItem, whole string, tokens int) []RankedItems {
	out := []RankedItems{}
	for _, item := range list {
		i := slices.IndexFunc(out, func(g RankedItems) bool { return g.Layer == item.Layer && g.Kept == item.Kept && g.Why == item.Why })
		if i < 0 {
			out = append(out, RankedItems{Keys: []string{item.Key}, Layer: item.Layer, Tokens: item.Tokens, Kept: item.Kept, Why: item.Why, Ref: item.Ref})
			continue
		}
		g := &out[i]
		if g.Keys, g.Tokens = append(g.Keys, item.Key), g.Tokens+item.Tokens; !g.Kept {
			g.Ref = whole
		}
	}
	for i := range out {
		out[i].Keys, out[i].More = shortenKeys(out[i].Keys, tokens/len(out))
	}
	return out
}

// Compress omits parts of items until a context fits. Omitted parts can be loaded again.
// The run itself is not changed.
func (s *Service) Compress(ctx context.Context, c run.Caller, r ReduceRequest) (*Compressed, error) {
	m, err := s.findMaterial(ctx, c, r)
	if err != nil {
		return nil, err
	}
	return s.compressMaterial(ctx, m, r.Fit)
}

// Prioritize drops whole items until a context fits.
func (s *Service) Prioritize(ctx context.Context, c run.Caller, r ReduceRequest) (*Prioritized, error) {
	m, err := s.findMaterial(ctx, c, r)
	if err != nil {
		return nil, err
	}
	return s.prioritizeMaterial(ctx, m, r.Fit)
}

// material is a context with the data that is needed to reduce it.
type material struct {
	values   compress.Context
	hints    compress.Hints
	question string
	// ages maps a variable to the number of steps since its last change.
	ages map[string]int
	// ref returns the reference of an omitted item, whole is the reference of all items.
	ref   func(key string, value []byte) string
	whole string
	// single marks one value that is not a variable, so that its layer does not matter.
	single bool
	// envelope returns the answer with the omissions and without its context. The default is
	// a Compressed.
	envelope func(left []Omission) any
	// store stores the values to which references refer; it is nil if they need not be
	// stored.
	store          func(context.Context) error
	session, runID string
	// noRefs marks a context of a run whose references the caller may not load.
	noRefs bool
}

// keptForToken is the reason why a context with noRefs exceeds the budget.
const keptForToken = "nothing was omitted because the token does not allow the toolset runs, which loads omitted values of a run"

// findMaterial returns the context of a request.
func (s *Service) findMaterial(ctx context.Context, c run.Caller, r ReduceRequest) (*material, error) {
	ref, ok := refOf(r.Handle, r.Session)
	switch {
	case ok && len(r.Context) > 0:
		return nil, newInvalid("both a run and a context are given").WithFix("pass either the handle of a run or a context")
	case ok:
		m, err := s.runMaterial(ctx, c, ref)
		if err == nil {
			m.noRefs = r.NoRuns
		}
		return m, err
	case r.Context == nil:
		return nil, newInvalid("a context is required").WithFix("pass context, or the handle of a run")
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

// runMaterial returns the context of a run.
func (s *Service) runMaterial(ctx context.Context, c run.Caller, ref run.Ref) (*material, error) {
	d, err := s.lookUpRun(ctx, c, ref)
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
	st, err := s.loadHistory(ctx, c, d)
	if err != nil {
		return nil, err
	}
	return &material{
		values: values, hints: hints, runID: d.ID, ages: st.variableAges(values),
		question: questionOf(d.Position),
		ref:      func(_ string, value []byte) string { return runValueRef(d.ID, d.Seq, value) },
		whole:    runEventRef(d.ID, d.Seq),
	}, nil
}

// questionOf returns the title, the prompt and the message of a position.
func questionOf(pos engine.Position) string {
	text := pos.Title + "\n" + pos.Prompt + "\n" + pos.Message
	const most = 4000
	return text[:min(len(text), most)]
}

// hintsOf returns the hints of a run's pinned definition.
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
	putCached(s.hints, d.Hash, hints)
	return hints, nil
}

// sessionContext is a context that does not belong to a run.
type sessionContext struct {
	session, workflow string
	values            compress.Context
	// stored is the reference of the whole stored context to which the values belong. If it
	// is empty, the values are stored.
	stored string
	whole  compress.Context
}

// sessionMaterial returns a context that does not belong to a run. If anything is omitted
// that is not stored, the whole context is stored under its session.
func (s *Service) sessionMaterial(ctx context.Context, c run.Caller, r sessionContext) (*material, error) {
	session := r.session
	m, head, err := lastMarks(ctx, s.o.Checkpoints, c.Principal, session)
	if err != nil {
		return nil, err
	}
	if own := marksIn(r.values[keyCritical]); own != nil {
		m = own
	}
	r.workflow = cmp.Or(r.workflow, head.Workflow)
	hints, err := s.workflowHints(ctx, r.workflow)
	if err != nil {
		return nil, err
	}
	hints.Variables = append(slices.Clone(hints.Variables), loopNames(r.values[keyCurrentLoop])...)
	if m != nil {
		hints.Marks = m.Keys
	}
	all, order := r.values, map[string]int{}
	if r.stored != "" {
		all = r.whole
	}
	for i, key := range slices.Sorted(maps.Keys(all)) {
		order[key] = i
	}
	out := &material{values: r.values, hints: hints, session: session, whole: r.stored}
	out.ref = func(key string, _ []byte) string { return out.whole + "." + strconv.Itoa(order[key]) }
	if r.stored != "" {
		return out, nil
	}
	whole, err := encodeJSON(r.values)
	if err != nil {
		return nil, err
	}
	if session == "" {
		session = checkpoint.NewSession(r.workflow, whole)
	}
	out.session = checkpoint.SessionID(session)
	out.whole = checkpoint.FragmentRef(c.User, out.session, whole)
	out.store = func(ctx context.Context) error {
		_, err := s.o.Checkpoints.StoreFragment(ctx, c.Principal, out.session, whole)
		return err
	}
	return out, nil
}

// keyCurrentLoop is the key in which a stateless walk stores its current loop.
const keyCurrentLoop = "_currentLoop"

// loopNames returns the variables of the current loop: without them the walk cannot
// continue.
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

// workflowHints returns the hints of a workflow that the server has now, or no hints if it
// does not have the workflow.
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

// classifyItems returns the items of a context with their layers.
func (s *Service) classifyItems(m *material) []compress.Item {
	items := compress.Items(m.values, s.classifier.WithHints(m.hints), s.o.Counter)
	for i := range items {
		items[i].Age = m.ages[items[i].Key]
		if m.single {
			items[i].Layer = compress.Useful
		}
	}
	return items
}

// reduceOptions returns the options of a reduction of some items. envelope returns the answer
// without its context; names is the number of tokens for the names of variables in it.
func (s *Service) reduceOptions(m *material, f Fit, envelope func(left []compress.Omission, ranked []compress.RankedItem, names int) any) compress.Options {
	o := compress.Options{
		Budget: f.Budget, Ratio: f.Ratio, Question: f.Question, Counter: s.o.Counter, Stems: s.stems, Ref: m.ref,
		NoBlobs: m.noRefs || s.o.ReadOnly && m.store != nil,
	}
	o.Question = cmp.Or(o.Question, m.question)
	o.Overhead = func(left []compress.Omission, ranked []compress.RankedItem, budget int) int {
		text, err := encodeJSON(envelope(left, ranked, keyTokens(budget)))
		if err != nil {
			return 0 // an answer can be encoded
		}
		return s.o.Counter.Count(string(text))
	}
	return o
}

// compressMaterial reduces a context and stores the omitted values. If they cannot be stored,
// nothing is omitted.
func (s *Service) compressMaterial(ctx context.Context, m *material, f Fit) (*Compressed, error) {
	items := s.classifyItems(m)
	answer := func(result compress.Result, left []Omission) *Compressed {
		return &Compressed{
			Context: result.Context, Before: result.TokensBefore, After: result.TokensAfter, Critical: result.CriticalTokens,
			Omitted: left, Over: result.OverReason, Session: m.session, RunID: m.runID, Store: s.Store(),
		}
	}
	if m.envelope == nil {
		m.envelope = func(left []Omission) any { return answer(placeholder(), left) }
	}
	o := s.reduceOptions(m, f, func(left []compress.Omission, _ []compress.RankedItem, names int) any {
		return m.envelope(groupOmissions(left, m.whole, names))
	})
	result := compress.Compress(items, o)
	if len(result.Omitted) > 0 && m.store != nil {
		if problem := s.storeOmitted(ctx, m); problem != "" {
			o.NoBlobs = true
			result = compress.Compress(items, o)
			result.OverReason = problem
		}
	}
	if m.noRefs && result.OverReason != "" {
		result.OverReason = keptForToken
	}
	return answer(result, groupOmissions(result.Omitted, m.whole, keyTokens(result.Budget))), nil
}

// placeholder returns a result with figures of the usual length.
func placeholder() compress.Result {
	const figure = 1000
	return compress.Result{TokensBefore: figure, TokensAfter: figure, CriticalTokens: figure}
}

// storeOmitted stores the omitted values; if it fails, it returns the reason.
func (s *Service) storeOmitted(ctx context.Context, m *material) string {
	err := m.store(ctx)
	if err == nil {
		return ""
	}
	if guideway.ErrorCode(err) == guideway.CodeInternal {
		s.o.Logger.ErrorContext(ctx, "the omitted values of a context could not be stored", "session", m.session, "error", err)
		return "nothing was omitted because the values could not be stored; see the server's log"
	}
	return "nothing was omitted because the values could not be stored: " + err.Error()
}

func (s *Service) prioritizeMaterial(ctx context.Context, m *material, f Fit) (*Prioritized, error) {
	items := s.classifyItems(m)
	answer := func(result compress.Result, ranked []compress.RankedItem, names int) *Prioritized {
		return &Prioritized{
			Context: result.Context, Items: groupItems(ranked, m.whole, names), Before: result.TokensBefore, After: result.TokensAfter,
			Critical: result.CriticalTokens, Over: result.OverReason, Session: m.session, RunID: m.runID, Store: s.Store(),
		}
	}
	o := s.reduceOptions(m, f, func(_ []compress.Omission, ranked []compress.RankedItem, names int) any {
		return answer(placeholder(), ranked, names)
	})
	p := compress.Prioritise(items, o)
	dropped := slices.ContainsFunc(p.Items, func(item compress.RankedItem) bool { return !item.Kept })
	if dropped && m.store != nil {
		if problem := s.storeOmitted(ctx, m); problem != "" {
			o.NoBlobs = true
			p = compress.Prioritise(items, o)
			p.OverReason = problem
		}
	}
	if m.noRefs && p.OverReason != "" {
		p.OverReason = keptForToken
	}
	return answer(p.Result, p.Items, keyTokens(p.Budget)), nil
}
