package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Words of the edges between phases that no condition labels.
const (
	labelDecline = "decline"
	labelSkipped = "if skipped"
)

// Phases draws a phase workflow: a frame for each phase with its steps, loops,
// checkpoints and decisions in the order in which they come, and the ways out of
// it that the engine would take. A way that nothing ever reaches is not drawn.
func Phases(w *phases.Workflow) *Graph {
	d := &phaseDrawing{builder: builder{graph: &Graph{}}, w: w, entries: make([]string, len(w.Phases))}
	d.node(Node{ID: "start", Kind: KindStart, Label: "Start"})
	if i := w.Index(w.InitialPhase); i >= 0 {
		d.lead(way{exit: exit{from: "start"}, to: i})
	}
	for i := range w.Phases {
		d.phase(i)
	}
	d.node(Node{ID: "done", Kind: KindEnd, Label: "End"})
	for _, x := range d.ways {
		to := "done"
		if x.to >= 0 {
			to = d.entries[x.to]
		}
		d.edge(Edge{From: x.from, To: to, Label: x.label, Skip: x.skip})
	}
	return d.graph
}

// phaseDrawing draws one phase workflow.
type phaseDrawing struct {
	builder
	w *phases.Workflow
	// entries are the nodes that the ways into each phase lead to.
	entries []string
	// ways lead from phase to phase; they are drawn last, outside of all frames.
	ways []way
}

// end is where a way leads that ends the run.
const end = -1

// way leads to a phase, by its position, or to the end.
type way struct {
	exit
	to int
}

func (d *phaseDrawing) lead(x way) { d.ways = append(d.ways, x) }

// leadTo has all open ways lead to a phase.
func (d *phaseDrawing) leadTo(to int, label string) {
	for _, x := range d.open {
		d.lead(way{exit: exit{from: x.from, label: joined(x.label, label), skip: x.skip}, to: to})
	}
}

// place puts a node into the phase. The first one is the phase's entry.
func (d *phaseDrawing) place(i int, n Node) {
	if d.entries[i] == "" {
		d.entries[i] = n.ID
	}
	d.enter(n.ID, "")
	d.node(n)
}

func (d *phaseDrawing) phase(i int) {
	phase := &d.w.Phases[i]
	frame := d.id('p')
	d.graph.Frames = append(d.graph.Frames, Frame{ID: frame, Label: phase.Name, Extent: d.about(i), Ref: phase.ID})
	d.frame, d.open = frame, nil
	for j := range phase.Steps {
		d.phaseStep(i, &phase.Steps[j])
	}
	for j := range phase.Loops {
		d.phaseLoop(i, frame, &phase.Loops[j])
	}
	for j := range phase.Checkpoints {
		d.checkpoint(i, &phase.Checkpoints[j])
	}
	if d.entries[i] == "" && len(phase.Decisions) == 0 {
		id := d.id('s')
		d.place(i, Node{ID: id, Kind: KindStep, Label: "Nothing to do", Ref: phase.ID})
		d.open = []exit{{from: id}}
	}
	for j := range phase.Decisions {
		d.decision(i, &phase.Decisions[j])
	}
	d.transitions(i, phase)
	d.frame = ""
	if to, ok := wayOn(d.w, phase); ok && to != i && d.passedThrough(phase) {
		d.lead(way{exit: exit{from: frame, label: labelSkipped, skip: true}, to: to})
	}
}

// about says what there is to know of a phase besides its name.
func (d *phaseDrawing) about(i int) string {
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
	id := d.id('s')
	d.place(i, Node{ID: id, Kind: KindStep, Label: stepLabel(s), Ref: s.ID})
	d.open = []exit{{from: id}}
}

func stepLabel(s *phases.Step) string {
	if !s.Required {
		return s.Name + " (optional)"
	}
	return s.Name
}

// phaseLoop draws a loop as a frame inside of its phase's; one without steps is
// no more than a step.
func (d *phaseDrawing) phaseLoop(i int, phase string, l *phases.Loop) {
	if len(l.Steps) == 0 {
		d.phaseStep(i, &phases.Step{ID: l.ID, Name: l.Name, Required: true})
		return
	}
	id := d.id('l')
	if d.entries[i] == "" {
		d.entries[i] = id
	}
	d.enter(id, "")
	d.graph.Frames = append(d.graph.Frames, Frame{ID: id, Label: l.Name, Extent: PhaseExtent(l), Ref: l.ID, Frame: phase})
	d.frame = id
	first := ""
	for j := range l.Steps {
		step := d.id('s')
		d.enter(step, "")
		d.node(Node{ID: step, Kind: KindStep, Label: stepLabel(&l.Steps[j]), Ref: l.Steps[j].ID})
		d.open = []exit{{from: step}}
		if first == "" {
			first = step
		}
	}
	d.edge(Edge{From: d.open[0].from, To: first, Label: labelRound, Back: true})
	d.frame, d.open = phase, []exit{{from: id}}
}

// PhaseExtent says in words how far a loop of a phase goes.
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
	words += ", at most " + plural(l.MaxIterations, "round")
	if l.BreakCondition != nil {
		words += ", until " + l.BreakCondition.String()
	}
	return words
}

// checkpoint draws a question with a way for each answer.
func (d *phaseDrawing) checkpoint(i int, c *phases.Checkpoint) {
	id := d.id('g')
	d.place(i, Node{ID: id, Kind: KindGate, Label: c.Name, Ref: c.ID})
	for j := range c.Options {
		o := &c.Options[j]
		x := exit{from: id, label: joined(o.Label, EffectWords(&o.Effect))}
		if to := d.w.Index(o.Effect.TransitionTo); to >= 0 {
			d.lead(way{exit: x, to: to})
		} else {
			d.open = append(d.open, x)
		}
	}
	if !c.Required {
		d.open = append(d.open, exit{from: id, label: labelDecline, skip: true})
	}
}

// EffectWords says what an answer brings about besides a way to a phase; "" is
// nothing.
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

// decision draws a branching. Only where no branch is sure to be taken is there a
// way past it.
func (d *phaseDrawing) decision(i int, dec *phases.Decision) {
	if d.entries[i] != "" && len(d.open) == 0 {
		return
	}
	id := d.id('c')
	d.place(i, Node{ID: id, Kind: KindChoice, Label: dec.Name, Ref: dec.ID})
	certain := slices.ContainsFunc(dec.Branches, func(b phases.Branch) bool { return b.IsDefault })
	offers := !certain
	certain = certain || slices.ContainsFunc(dec.Branches, func(b phases.Branch) bool { return b.Condition == nil })
	fallback := false
	for j := range dec.Branches {
		b := &dec.Branches[j]
		var label string
		switch {
		case b.Condition != nil:
			label = joined(b.Label, "if "+b.Condition.String())
			if b.IsDefault && !fallback {
				label = joined(label, labelSkip)
			}
		case b.IsDefault && !fallback:
			label = joined(b.Label, labelSkip)
		case offers:
			label = joined(b.Label, "by an answer")
		default:
			continue // nothing ever takes it
		}
		fallback = fallback || b.IsDefault
		d.lead(way{exit: exit{from: id, label: label}, to: d.w.Index(b.TransitionTo)})
	}
	if !certain {
		d.open = []exit{{from: id, label: labelSkip}}
	}
}

// transitions draws the ways out of a phase that no answer and no decision takes.
func (d *phaseDrawing) transitions(i int, phase *phases.Phase) {
	switch {
	case len(d.open) == 0:
		return
	case phase.Terminal():
		d.leadTo(end, "")
		return
	case len(phase.Transitions) == 0:
		return // it waits for the variables of its decisions
	}
	first := phase.Transitions[0]
	one := len(phase.Transitions) == 1 && (first.IsDefault || first.Condition == nil)
	if !one || d.open[0].from == d.entries[i] && d.w.Index(first.To) == i {
		id := d.id('c')
		d.place(i, Node{ID: id, Kind: KindChoice})
		d.open = []exit{{from: id}}
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
			return // nothing behind it is ever asked
		case j == fallback:
			d.leadTo(d.w.Index(t.To), joined(t.Condition.String(), labelSkip))
		default:
			d.leadTo(d.w.Index(t.To), t.Condition.String())
		}
	}
	if fallback >= 0 && phase.Transitions[fallback].Condition == nil {
		d.leadTo(d.w.Index(phase.Transitions[fallback].To), labelSkip)
	}
}

// passedThrough says whether a phase can be skipped: by an answer, or because it
// is optional.
func (d *phaseDrawing) passedThrough(phase *phases.Phase) bool {
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

// wayOn is where a phase that is skipped leads to: its default way on, or the end
// behind a terminal one. Where only variables can tell, ok is false.
func wayOn(w *phases.Workflow, phase *phases.Phase) (to int, ok bool) {
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

// joined puts words behind others.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}
