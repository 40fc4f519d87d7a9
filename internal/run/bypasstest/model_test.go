package bypasstest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unicode/utf16"
)

// command is what somebody asks of a run.
type command struct {
	// kind is start, continue or abort.
	kind          string
	output, notes string
	context       map[string]any
	answer        *reply
	skip          bool
	// step is the step that the caller believes to be at.
	step string
	// person says that the command came by a way that proves a person; of a
	// start, that only people open the run's gates.
	person bool
}

// reply is an answer to a gate.
type reply struct {
	option  string
	decline bool
	note    string
}

// place is where a run stands.
type place struct {
	// kind is step, gate, context or end; status is as in answers.
	kind, status string
	at           *step
	// in is the loop that a step is asked for in.
	in            *step
	round, rounds int
	// prompt is the line of the step's prompt.
	prompt string
	// options are those of a gate, human says that only a person answers.
	options []string
	human   bool
	// needs are the variables that the run waits for.
	needs []string
	// vars are the variables that were set, scope looks up all that can be seen.
	vars  map[string]any
	scope lookup
	// done counts the steps that are done, reached are those that were shown.
	done    int
	reached []*step
}

func (p place) String() string {
	id := ""
	if p.at != nil {
		id = p.at.id
	}
	return fmt.Sprintf("%s %q round %d of %d, options %v, needs %v, %s", p.kind, id, p.round, p.rounds, p.options, p.needs, p.status)
}

// whereIs says where a run stands after the commands that it has accepted. It
// goes through the definition from its beginning every time, and takes a command
// wherever the definition asks for something.
func whereIs(d *definition, accepted []command) place {
	w := &walker{def: d, rest: accepted[1:], vars: maps.Clone(accepted[0].context), people: accepted[0].person}
	if w.vars == nil {
		w.vars = map[string]any{}
	}
	for _, s := range d.items {
		if !w.item(s) {
			return w.at
		}
	}
	if len(w.rest) > 0 {
		panic("a command was accepted after the end")
	}
	return place{kind: "end", status: "completed", vars: w.vars, scope: w.lookup, done: w.done, reached: w.reached}
}

// walker goes through a definition. Its methods say false where the run stands.
type walker struct {
	def  *definition
	rest []command
	vars map[string]any
	at   place
	// people says that only people open gates, whatever the definition says.
	people bool
	// in is the loop that the walk is in, with its round and its list.
	in      *step
	round   int
	rounds  int
	list    []any
	done    int
	reached []*step
}

// ask takes the next command, or says that the run stands here.
func (w *walker) ask(p place) (command, bool) {
	seen := *w
	p.vars, p.scope, p.done, p.reached = w.vars, seen.lookup, w.done, w.reached
	if len(w.rest) == 0 {
		w.at = p
		return command{}, false
	}
	c := w.rest[0]
	w.rest = w.rest[1:]
	if c.kind == "abort" {
		w.at = place{kind: "end", status: "aborted", vars: w.vars, scope: w.lookup, done: w.done, reached: w.reached}
		return c, false
	}
	return c, true
}

// set takes over the variables of a command. The earlier ones stay as they were
// for who looks at them still.
func (w *walker) set(vars map[string]any) {
	w.vars = maps.Clone(w.vars)
	maps.Copy(w.vars, vars)
}

// lookup finds a variable: a loop's own in it, else what was set. What only the
// server sets is null elsewhere, so that nothing waits for it.
func (w *walker) lookup(name string) (any, bool) {
	if w.in != nil {
		l := w.in.loop
		switch {
		case l.kind == "forEach" && name == l.itemVar():
			return w.list[w.round-1], true
		case name == l.roundVar():
			return float64(w.round), true
		case name == l.indexVar():
			return float64(w.round - 1), true
		}
	}
	if w.def.owns(name) {
		return nil, true
	}
	v, ok := w.vars[name]
	return v, ok
}

// owns says whether only the server sets a variable.
func (d *definition) owns(name string) bool { return slices.Contains(d.owned(), name) }

// owned are the variables that only the server sets: those of loops, and the
// engine's own.
func (d *definition) owned() []string {
	names := []string{"_currentLoop", "_loopState", "_warnings", "_contextSize"}
	for _, s := range d.items {
		if s.loop == nil {
			continue
		}
		names = append(names, s.loop.roundVar(), s.loop.indexVar())
		if s.loop.kind == "forEach" {
			names = append(names, s.loop.itemVar())
		}
	}
	return names
}

func (w *walker) item(s *step) bool {
	if s.loop != nil {
		return w.loop(s)
	}
	return w.step(s)
}

// applies waits until a condition is decided.
func (w *walker) applies(s *step, condition *test) (holds, ok bool) {
	for {
		switch condition.decide(w.lookup) {
		case yes:
			return true, true
		case no:
			return false, true
		}
		if !w.wait(s, condition.needs(w.lookup)) {
			return false, false
		}
	}
}

// wait takes variables.
func (w *walker) wait(s *step, needs []string) bool {
	c, ok := w.ask(place{kind: "context", status: "waiting", at: s, needs: needs})
	if ok {
		w.set(c.context)
	}
	return ok
}

// gate asks for a confirmation (docs/adr/0004).
func (w *walker) gate(s *step, options ...string) (option string, ok bool) {
	c, ok := w.ask(place{kind: "gate", status: "waiting", at: s, options: options, human: s.human || w.people})
	if !ok {
		return "", false
	}
	return c.answer.option, true
}

// asks says whether a step wants to be confirmed; where the condition cannot be
// decided it does.
func (s *step) asks(vars lookup) bool {
	if s.confirm == nil {
		return s.human
	}
	return s.confirm.when.decide(vars) != no
}

func (w *walker) step(s *step) bool {
	holds, ok := w.applies(s, s.when)
	if !ok || !holds {
		return ok
	}
	for {
		if !slices.Contains(w.reached, s) {
			w.reached = append(w.reached, s)
		}
		p := place{kind: "step", status: "running", at: s, in: w.in, round: w.round, rounds: w.rounds, prompt: w.fill(s.promptText())}
		confirm := s.asks(w.lookup)
		c, ok := w.ask(p)
		if !ok {
			return false
		}
		w.set(c.context)
		w.done++
		if !confirm && !s.asks(w.lookup) {
			return true
		}
		option, ok := w.gate(s, "confirm", "revise")
		if !ok || option == "confirm" {
			return ok
		}
		w.done--
	}
}

func (w *walker) loop(s *step) bool {
	count, list, enters, ok := w.extent(s)
	if !ok || !enters {
		return ok
	}
	if s.asks(w.lookup) {
		option, ok := w.gate(s, "confirm", "skip")
		if !ok || option == "skip" {
			return ok
		}
	}
	w.list = list
	defer func() { w.in, w.round, w.rounds, w.list = nil, 0, 0, nil }()
	for round := 1; round <= s.loop.most && (count < 0 || round <= count); round++ {
		w.in, w.round, w.rounds = s, round, max(0, min(count, s.loop.most))
		if kind := s.loop.kind; kind == "while" || kind == "until" {
			holds, ok := w.applies(s, s.loop.when)
			if !ok {
				return false
			}
			if holds != (kind == "while") {
				return true
			}
		}
		for _, b := range s.loop.body {
			if !w.step(b) {
				return false
			}
		}
	}
	return true
}

// extent waits until it is known whether a loop is entered, and how many rounds
// its count or list allows: -1 where it has none. A count or list that only the
// server sets will never be there: the loop is passed over.
func (w *walker) extent(s *step) (count int, list []any, enters, ok bool) {
	for {
		holds, ok := w.applies(s, s.when)
		if !ok || !holds {
			return 0, nil, false, ok
		}
		name := s.loop.items
		if n, fixed := s.loop.count.(int); s.loop.kind == "for" && fixed {
			return n, nil, true, true
		}
		if variable, named := s.loop.count.(string); s.loop.kind == "for" && named {
			name = variable
		}
		v, _ := w.lookup(name)
		switch s.loop.kind {
		case "for":
			if n, ok := measured(v); ok && n >= 0 && n == float64(int(n)) {
				return int(n), nil, true, true
			}
		case "forEach":
			if list, ok := v.([]any); ok {
				return len(list), list, true, true
			}
		default:
			return -1, nil, true, true
		}
		if w.def.owns(name) {
			return 0, nil, false, true
		}
		if !w.wait(s, []string{name}) {
			return 0, nil, false, false
		}
	}
}

// braces are the placeholders that the generator writes.
var braces = regexp.MustCompile(`\{\{\s*(\w+)(\[0\]|\.length)?(\s*\+\s*1)?\s*\}\}`)

// fill replaces what stands in braces by values; what has none stays.
func (w *walker) fill(text string) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		part := braces.FindStringSubmatch(found)
		v, ok := w.lookup(part[1])
		if !ok || v == nil && w.def.owns(part[1]) {
			return found
		}
		if part[2] != "" {
			if v, ok = member(v, part[2]); !ok {
				return found
			}
		}
		if part[3] != "" {
			n, ok := v.(float64)
			if !ok {
				return found
			}
			v = n + 1
		}
		if text, ok := v.(string); ok {
			return text
		}
		text, err := json.Marshal(v)
		if err != nil {
			return found
		}
		return string(text)
	})
}

// member is the first element of a list, or the length of a list or a text.
func member(v any, which string) (any, bool) {
	list, isList := v.([]any)
	text, isText := v.(string)
	switch {
	case isList && which == ".length":
		return float64(len(list)), true
	case isText && which == ".length":
		return float64(len(utf16.Encode([]rune(text)))), true
	case isList && len(list) > 0:
		return list[0], true
	}
	return nil, false
}

// The rules that a command can break. They are part of the contract.
const (
	ruleServerVariable = "server-variable"
	ruleTooLarge       = "context-too-large"
	ruleTooDeep        = "context-too-deep"
	ruleGate           = "gate-unanswered"
	ruleOption         = "unknown-option"
	ruleNoGate         = "no-gate"
	ruleContext        = "context-needed"
	ruleOutput         = "output-missing"
	ruleCriteria       = "criteria-failed"
	ruleEnded          = "run-ended"
	rulePerson         = "gate-needs-person"
	ruleStep           = "step-not-reached"
	ruleRequired       = "step-required"
	ruleDecline        = "gate-required"
	ruleUnknownHandle  = "handle-unknown"
	ruleStaleHandle    = "handle-stale"
	ruleUnknownRun     = "run-unknown"
	ruleSeq            = "seq-unknown"
	ruleInput          = "input-too-large"
)

// breaks gives the rules that a command breaks at a place; none if it is legal.
func (d *definition) breaks(p place, c command) []string {
	var rules []string
	add := func(broken bool, rule string) {
		if broken && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	if p.kind == "end" {
		add(true, ruleEnded)
		add(c.step != "", ruleStep)
		return rules
	}
	if c.kind == "abort" {
		return nil
	}
	owned := d.owned()
	for name := range c.context {
		add(slices.Contains(owned, name), ruleServerVariable)
	}
	after := maps.Clone(p.vars)
	maps.Copy(after, c.context)
	add(len(c.context) > 0 && estimate(after) >= 256*1024, ruleTooLarge)
	add(depth(c.context) > 130, ruleTooDeep)
	add(c.step != "" && c.step != p.at.id, ruleStep)
	handedIn := !blank(c.output) || !blank(c.notes)
	switch p.kind {
	case "gate":
		add(c.answer == nil || c.output != "" || c.notes != "" || len(c.context) > 0 || c.skip, ruleGate)
		add(c.answer != nil && c.answer.decline, ruleDecline)
		add(c.answer != nil && !slices.Contains(p.options, c.answer.option), ruleOption)
		add(p.human && !c.person, rulePerson)
	case "context":
		add(c.answer != nil, ruleNoGate)
		add(c.skip, ruleRequired)
		add(handedIn || len(c.context) == 0, ruleContext)
	default:
		add(c.answer != nil, ruleNoGate)
		add(c.skip, ruleRequired)
		add(!handedIn, ruleOutput)
		add(!p.at.criteria.accepts(c.output, p.scope), ruleCriteria)
		add(!p.at.criteria.accepts(c.output, over(c.context, p.scope)), ruleCriteria)
	}
	return rules
}

// over puts variables before others. The server's cannot be among them.
func over(vars map[string]any, below lookup) lookup {
	return func(name string) (any, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		return below(name)
	}
}

// estimate is the size of a context (facts/steps.md 1.6).
func estimate(v any) int {
	text := func(s string) int { return 2 * len(utf16.Encode([]rune(s))) }
	switch v := v.(type) {
	case string:
		return text(v)
	case float64:
		return 8
	case json.Number:
		return max(8, 2*len(v))
	case []any:
		n := 4
		for _, part := range v {
			n += estimate(part)
		}
		return n
	case map[string]any:
		n := 4
		for k, part := range v {
			n += text(k) + estimate(part)
		}
		return n
	}
	return 4
}

// depth counts the levels of nesting.
func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			deepest = max(deepest, 1+depth(part))
		}
	case map[string]any:
		for _, part := range v {
			deepest = max(deepest, 1+depth(part))
		}
	}
	return deepest
}
