package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Labels of the edges that leave a declined checkpoint or lead past a skipped phase.
const (
	labelDecline = "decline"
	labelSkipped = "if skipped"
)

// Phases draws a phase workflow: a frame for each phase with its steps, loops, checkpoints
// and decisions in order, and the transitions between the phases. It omits branches and
// transitions that can never be taken because of the others.
func Phases(w *phases.Workflow) *Graph {
	d := &phaseDrawing{builder: builder{graph: &Graph{}}, w: w, entries: make([]string, len(w.Phases))}
	d.addNode(Node{ID: "start", Kind: KindStart, Label: "Start"})
	if i := w.Index(w.InitialPhase); i >= 0 {
		d.addTransition(transition{exit: exit{from: "start"}, to: i})
	}
	for i := range w.Phases {
		d.addPhase(i)
	}
	d.addNode(Node{ID: "done", Kind: KindEnd, Label: "End"})
	for _, x := range d.transitions {
		to := "done"
		if x.to >= 0 {
			to = d.entries[x.to]
		}
		d.addEdge(Edge{From: x.from, To: to, Label: x.label, Skip: x.skip})
	}
	return d.graph
}

// phaseDrawing draws one phase workflow.
type phaseDrawing struct {
	builder
	w *phases.Workflow
	// entries are the ids of the first node or frame in each phase, by the index of the
	// phase.
	entries []string
	// transitions connect the phases; they are drawn last, outside of all frames.
	transitions []transition
}

// end is the target of a transition that ends the run.
const end = -1

// transition leads to the phase at a position, or to the end.
type transition struct {
	exit
	to int
}

func (d *phaseDrawing) addTransition(x transition) { d.transitions = append(d.transitions, x) }

// leadTo connects all pending edges to a phase.
func (d *phaseDrawing) leadTo(to int, label string) {
	for _, x := range d.pending {
		d.addTransition(transition{exit: exit{from: x.from, label: joinTexts(x.label, label), skip: x.skip}, to: to})
	}
}

// placeNode adds a node to the phase. The first one is the phase's entry.
func (d *phaseDrawing) placeNode(i int, n Node) {
	if d.entries[i] == "" {
		d.entries[i] = n.ID
	}
	d.connectPending(n.ID, "")
	d.addNode(n)
}

func (d *phaseDrawing) addPhase(i int) {
	phase := &d.w.Phases[i]
	frame := d.newID('p')
	d.graph.Frames = append(d.graph.Frames, Frame{ID: frame, Label: phase.Name, Extent: d.phaseDetails(i), Ref: phase.ID})
	d.frame, d.pending = frame, nil
	for j := range phase.Steps {
		d.phaseStep(i, &phase.Steps[j])
	}
	for j := range phase.Loops {
		d.phaseLoop(i, frame, &phase.Loops[j])
	}
	for j := range phase.Checkpoints {
		d.addCheckpoint(i, &phase.Checkpoints[j])
	}
	if d.entries[i] == "" && len(phase.Decisions) == 0 {
		id := d.newID('s')
		d.placeNode(i, Node{ID: id, Kind: KindStep, Label: "Nothing to do", Ref: phase.ID})
		d.pending = []exit{{from: id}}
	}
	for j := range phase.Decisions {
		d.addDecision(i, &phase.Decisions[j])
	}
	d.addTransitions(i, phase)
	d.frame = ""
	if to, ok := nextPhase(d.w, phase); ok && to != i && d.canBeSkipped(phase) {
		d.addTransition(transition{exit: exit{from: frame, label: labelSkipped, skip: true}, to: to})
	}
}

// phaseDetails returns a description of a phase to show after its name.
func (d *phaseDrawing) phaseDetails(i int) string {
	words := []string{fmt.Sprintf("phase %d of %d", i+1, len(d.w.Phases))}
	if t := d.w.Phases[i].EstimatedTime; t != "" {
		words = append(words, t)
	}
	if !d.w.Phases[i].Required {
		words = append(words, "optional")
	}
	return strings.Join(words, ", ")
}

func (d *phaseDrawing) phaseStep(i int, s *phases.Step) {
	id := d.newID('s')
	d.placeNode(i, Node{ID: id, Kind: KindStep, Label: stepLabel(s), Ref: s.ID})
	d.pending = []exit{{from: id}}
}

func stepLabel(s *phases.Step) string {
	if !s.Required {
		return s.Name + " (optional)"
	}
	return s.Name
}

// phaseLoop draws a loop as a frame in the frame of its phase; a loop without steps is
// drawn as a step.
func (d *phaseDrawing) phaseLoop(i int, phase string, l *phases.Loop) {
	if len(l.Steps) == 0 {
		d.phaseStep(i, &phases.Step{ID: l.ID, Name: l.Name, Required: true})
		return
	}
	id := d.newID('l')
	if d.entries[i] == "" {
		d.entries[i] = id
	}
	d.connectPending(id, "")
	d.graph.Frames = append(d.graph.Frames, Frame{ID: id, Label: l.Name, Extent: PhaseExtent(l), Ref: l.ID, Frame: phase})
	d.frame = id
	first := ""
	for j := range l.Steps {
		step := d.newID('s')
		d.connectPending(step, "")
		d.addNode(Node{ID: step, Kind: KindStep, Label: stepLabel(&l.Steps[j]), Ref: l.Steps[j].ID})
		d.pending = []exit{{from: step}}
		if first == "" {
			first = step
		}
	}
	d.addEdge(Edge{From: d.pending[0].from, To: first, Label: labelRound, Back: true})
	d.frame, d.pending = phase, []exit{{from: id}}
}

// PhaseExtent describes the rounds of a loop of a phase.
func PhaseExtent(l *phases.Loop) string {
	var words string
	switch l.Type {
	case phases.LoopForEach:
		words = "for each of " + l.Over
		if l.Variable != "" {
			words = "for each " + l.Variable + " of " + l.Over
		}
	case phases.LoopDoWhile:
		words = "once, then while " + l.Condition.String()
	default:
		words = "while " + l.Condition.String()
	}
	words += ", at most " + pluralize(l.MaxIterations, "round")
	if l.BreakCondition != nil {
		words += ", until " + l.BreakCondition.String()
	}
	return words
}

// addCheckpoint draws a checkpoint with an edge for each answer.
func (d *phaseDrawing) addCheckpoint(i int, c *phases.Checkpoint) {
	id := d.newID('g')
	d.placeNode(i, Node{ID: id, Kind: KindGate, Label: c.Name, Ref: c.ID})
	for j := range c.Options {
		o := &c.Options[j]
		x := exit{from: id, label: joinTexts(o.Label, EffectWords(&o.Effect))}
		if to := d.w.Index(o.Effect.TransitionTo); to >= 0 {
			d.addTransition(transition{exit: x, to: to})
		} else {
			d.pending = append(d.pending, x)
		}
	}
	if !c.Required {
		d.pending = append(d.pending, exit{from: id, label: labelDecline, skip: true})
	}
}

// EffectWords describes the effects of an answer except its transition, or returns "".
func EffectWords(e *phases.Effect) string {
	var words []string
	for _, set := range e.SetVariable {
		words = append(words, fmt.Sprintf("%s = %v", set.Name, set.Value))
	}
	for _, id := range e.SkipPhases {
		words = append(words, "skips "+id)
	}
	return strings.Join(words, ", ")
}

// addDecision draws a decision, unless every path before it leaves the phase. An edge leads
// past the decision only if it has neither a default branch nor an unconditional branch.
func (d *phaseDrawing) addDecision(i int, dec *phases.Decision) {
	if d.entries[i] != "" && len(d.pending) == 0 {
		return
	}
	id := d.newID('c')
	d.placeNode(i, Node{ID: id, Kind: KindChoice, Label: dec.Name, Ref: dec.ID})
	certain := slices.ContainsFunc(dec.Branches, func(b phases.Branch) bool { return b.IsDefault })
	offers := !certain
	certain = certain || slices.ContainsFunc(dec.Branches, func(b phases.Branch) bool { return b.Condition == nil })
	fallback := false
	for j := range dec.Branches {
		b := &dec.Branches[j]
		var label string
		switch {
		case b.Condition != nil:
			label = joinTexts(b.Label, "if "+b.Condition.String())
			if b.IsDefault && !fallback {
				label = joinTexts(label, labelSkip)
			}
		case b.IsDefault && !fallback:
			label = joinTexts(b.Label, labelSkip)
		case offers:
			label = joinTexts(b.Label, "by an answer")
		default:
			continue // the transition is never taken
		}
		fallback = fallback || b.IsDefault
		d.addTransition(transition{exit: exit{from: id, label: label}, to: d.w.Index(b.TransitionTo)})
	}
	if !certain {
		d.pending = []exit{{from: id, label: labelSkip}}
	}
}

// addTransitions draws the transitions that the phase itself lists. The transitions of its
// answers and decisions are drawn with them.
func (d *phaseDrawing) addTransitions(i int, phase *phases.Phase) {
	switch {
	case len(d.pending) == 0:
		return
	case phase.Terminal():
		d.leadTo(end, "")
		return
	case len(phase.Transitions) == 0:
		return // the phase waits for the variables of its decisions
	}
	first := phase.Transitions[0]
	one := len(phase.Transitions) == 1 && (first.IsDefault || first.Condition == nil)
	if !one || d.pending[0].from == d.entries[i] && d.w.Index(first.To) == i {
		id := d.newID('c')
		d.placeNode(i, Node{ID: id, Kind: KindChoice})
		d.pending = []exit{{from: id}}
	}
	if one {
		d.leadTo(d.w.Index(first.To), "")
		return
	}
	fallback := slices.IndexFunc(phase.Transitions, func(t phases.Transition) bool { return t.IsDefault })
	for j := range phase.Transitions {
		t := &phase.Transitions[j]
		switch {
		case t.Condition == nil && t.IsDefault:
		case t.Condition == nil:
			d.leadTo(d.w.Index(t.To), labelSkip)
			return // later transitions are never checked
		case j == fallback:
			d.leadTo(d.w.Index(t.To), joinTexts(t.Condition.String(), labelSkip))
		default:
			d.leadTo(d.w.Index(t.To), t.Condition.String())
		}
	}
	if fallback >= 0 && phase.Transitions[fallback].Condition == nil {
		d.leadTo(d.w.Index(phase.Transitions[fallback].To), labelSkip)
	}
}

// canBeSkipped reports whether a phase can be skipped: by an answer, or because it is
// optional and has steps.
func (d *phaseDrawing) canBeSkipped(phase *phases.Phase) bool {
	if !phase.Required && len(phase.Steps) > 0 {
		return true
	}
	for i := range d.w.Phases {
		for _, c := range d.w.Phases[i].Checkpoints {
			if slices.ContainsFunc(c.Options, func(o phases.Option) bool { return slices.Contains(o.Effect.SkipPhases, phase.ID) }) {
				return true
			}
		}
	}
	return false
}

// nextPhase returns the phase that follows phase if a run skips it: the target of its
// default branch, default transition or unconditional transition, or the end if it is
// terminal. ok is false if the next phase depends on variables.
func nextPhase(w *phases.Workflow, phase *phases.Phase) (to int, ok bool) {
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			if b.IsDefault {
				return w.Index(b.TransitionTo), true
			}
		}
	}
	for _, t := range phase.Transitions {
		if t.IsDefault || t.Condition == nil {
			return w.Index(t.To), true
		}
	}
	return end, phase.Terminal()
}

// joinTexts joins two texts with a comma; one of them may be empty.
func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}
