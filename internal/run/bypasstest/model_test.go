package bypasstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// command is a request to change a run.
type command struct {
	// kind is start, continue or abort.
	kind          string
	output, notes string
	context       map[string]any
	// checks are the outcomes of the checks that the server executes for the command, by
	// their names.
	checks map[string]string
	answer *reply
	skip   bool
	// step is the step that the caller expects.
	step string
	// person reports whether the channel of the command proves a person; for a start,
	// whether all gates of the run need human approval.
	person bool
}

// reply is an answer to a gate.
type reply struct {
	option  string
	decline bool
	note    string
}

// position is the position of a run.
type position struct {
	// kind is step, gate, context or end. status is the status of the answer.
	kind, status string
	at           *step
	// in is the loop that contains the step.
	in            *step
	round, rounds int
	// prompt is the first line of the step's prompt.
	prompt string
	// options are the options of the gate. human reports whether the gate needs human
	// approval.
	options []string
	human   bool
	// needs are the variables that the run waits for.
	needs []string
	// vars are the variables that were set. scope looks up all visible variables.
	vars  map[string]any
	scope lookup
	// first looks up the variables from before the first output of a step that was sent
	// back. It is nil at other positions.
	first lookup
	// done counts the completed steps. reached are the steps that were shown.
	done    int
	reached []*step
}

func (p position) String() string {
	id := ""
	if p.at != nil {
		id = p.at.id
	}
	return fmt.Sprintf("%s %q round %d of %d, options %v, needs %v, %s", p.kind, id, p.round, p.rounds, p.options, p.needs, p.status)
}

// positionAfter returns the position of a run after its accepted commands. It walks the
// definition from the beginning each time and takes a command wherever the definition needs
// input.
func positionAfter(d *definition, accepted []command) position {
	w := &walker{def: d, rest: accepted[1:], vars: maps.Clone(accepted[0].context), people: accepted[0].person}
	if w.vars == nil {
		w.vars = map[string]any{}
	}
	for _, s := range d.items {
		if !w.walkItem(s) {
			return w.at
		}
	}
	if len(w.rest) > 0 {
		panic("a command was accepted after the end")
	}
	return position{kind: "end", status: "completed", vars: w.vars, scope: w.lookUpVar, done: w.done, reached: w.reached}
}

// walker walks a definition. Its methods return false at the position of the run.
type walker struct {
	def  *definition
	rest []command
	vars map[string]any
	at   position
	// people is set if every gate requires human approval.
	people bool
	// in is the current loop, with its round and its list.
	in      *step
	round   int
	rounds  int
	list    []any
	done    int
	reached []*step
}

// nextCommand takes the next command. It returns false if there are no more commands.
func (w *walker) nextCommand(p position) (command, bool) {
	seen := *w
	p.vars, p.scope, p.done, p.reached = w.vars, seen.lookUpVar, w.done, w.reached
	if len(w.rest) == 0 {
		w.at = p
		return command{}, false
	}
	c := w.rest[0]
	w.rest = w.rest[1:]
	if c.kind == "abort" {
		w.at = position{kind: "end", status: "aborted", vars: w.vars, scope: w.lookUpVar, done: w.done, reached: w.reached}
		return c, false
	}
	return c, true
}

// mergeVars replaces the current variables with a copy to which the variables of a command
// are added.
func (w *walker) mergeVars(vars map[string]any) {
	w.vars = maps.Clone(w.vars)
	maps.Copy(w.vars, withMembers(w.vars, vars))
}

// lookUpVar finds a variable: first one of the current loop, then one that was set. A
// variable of the server is null outside its loop, so that no condition waits for it.
func (w *walker) lookUpVar(name string) (any, bool) {
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
	if w.def.isServerVar(name) {
		return nil, true
	}
	v, ok := w.vars[name]
	return v, ok
}

// isServerVar reports whether only the server sets a variable.
func (d *definition) isServerVar(name string) bool { return slices.Contains(d.serverVars(), name) }

// serverVars returns the variables that only the server sets: those of loops and of the
// engine.
func (d *definition) serverVars() []string {
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

func (w *walker) walkItem(s *step) bool {
	if s.loop != nil {
		return w.walkLoop(s)
	}
	return w.walkStep(s)
}

// waitForCondition waits until a condition is decided.
func (w *walker) waitForCondition(s *step, condition *test) (holds, ok bool) {
	for {
		switch condition.evalVerdict(w.lookUpVar) {
		case yes:
			return true, true
		case no:
			return false, true
		}
		if !w.waitForVars(s, condition.missingVars(w.lookUpVar)) {
			return false, false
		}
	}
}

// waitForVars waits for variables.
func (w *walker) waitForVars(s *step, needs []string) bool {
	c, ok := w.nextCommand(position{kind: "context", status: "waiting", at: s, needs: needs})
	if ok {
		w.mergeVars(c.context)
	}
	return ok
}

// walkGate asks for a confirmation (docs/adr/0004).
func (w *walker) walkGate(s *step, options ...string) (option string, ok bool) {
	c, ok := w.nextCommand(position{kind: "gate", status: "waiting", at: s, options: options, human: s.human || w.people})
	if !ok {
		return "", false
	}
	return c.answer.option, true
}

// needsConfirmation reports whether a step needs a confirmation. An undecided condition
// counts as true.
func (s *step) needsConfirmation(vars lookup) bool {
	if s.confirm == nil {
		return s.human
	}
	return s.confirm.when.evalVerdict(vars) != no
}

func (w *walker) walkStep(s *step) bool {
	holds, ok := w.waitForCondition(s, s.when)
	if !ok || !holds {
		return ok
	}
	before := *w
	for repeated := false; ; repeated = true {
		if !slices.Contains(w.reached, s) {
			w.reached = append(w.reached, s)
		}
		p := position{kind: "step", status: "running", at: s, in: w.in, round: w.round, rounds: w.rounds, prompt: w.fillTemplate(s.promptText())}
		if repeated { // the criteria from before the first output still apply
			p.first = before.lookUpVar
		}
		confirm := repeated || s.needsConfirmation(w.lookUpVar)
		c, ok := w.nextCommand(p)
		if !ok {
			return false
		}
		w.mergeVars(c.context)
		w.done++
		if !confirm && !s.needsConfirmation(w.lookUpVar) {
			return true
		}
		option, ok := w.walkGate(s, "confirm", "revise")
		if !ok || option == "confirm" {
			return ok
		}
		w.done--
	}
}

func (w *walker) walkLoop(s *step) bool {
	count, list, enters, ok := w.loopExtent(s)
	if !ok || !enters {
		return ok
	}
	if s.needsConfirmation(w.lookUpVar) {
		option, ok := w.walkGate(s, "confirm", "skip")
		if !ok || option == "skip" {
			return ok
		}
	}
	w.list = list
	defer func() { w.in, w.round, w.rounds, w.list = nil, 0, 0, nil }()
	for round := 1; round <= s.loop.most && (count < 0 || round <= count); round++ {
		w.in, w.round, w.rounds = s, round, max(0, min(count, s.loop.most))
		if kind := s.loop.kind; kind == "while" || kind == "until" {
			holds, ok := w.waitForCondition(s, s.loop.when)
			if !ok {
				return false
			}
			if holds != (kind == "while") {
				return true
			}
		}
		for _, b := range s.loop.body {
			if !w.walkStep(b) {
				return false
			}
		}
	}
	if count > s.loop.most { // positions name the loop whose rounds are left out
		w.reached = append(w.reached, s)
	}
	return true
}

// loopExtent waits until it is known whether a loop is entered and how many rounds its
// count or list allows: -1 if it has neither. A loop over a variable of the server is
// skipped, because such a variable is never set.
func (w *walker) loopExtent(s *step) (count int, list []any, enters, ok bool) {
	for {
		holds, ok := w.waitForCondition(s, s.when)
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
		v, _ := w.lookUpVar(name)
		switch s.loop.kind {
		case "for":
			if n, ok := toNumber(v); ok && n >= 0 && n == float64(int(n)) {
				return int(n), nil, true, true
			}
		case "forEach":
			if list, ok := v.([]any); ok {
				return len(list), list, true, true
			}
		default:
			return -1, nil, true, true
		}
		if w.def.isServerVar(name) {
			return 0, nil, false, true
		}
		if !w.waitForVars(s, []string{name}) {
			return 0, nil, false, false
		}
	}
}

// braces matches the placeholders of the generator.
var braces = regexp.MustCompile(`\{\{\s*(\w+)(\[0\]|\.length)?(\s*\+\s*1)?\s*\}\}`)

// fillTemplate replaces placeholders by values. Placeholders without a value are kept.
func (w *walker) fillTemplate(text string) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		part := braces.FindStringSubmatch(found)
		v, ok := w.lookUpVar(part[1])
		if !ok || v == nil && w.def.isServerVar(part[1]) {
			return found
		}
		if part[2] != "" {
			if v, ok = memberOf(v, part[2]); !ok {
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

// memberOf returns the first element of a list, or the length of a list or a string.
func memberOf(v any, which string) (any, bool) {
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

// The rules that a command can break. They are part of the API.
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
	ruleCheckVariable  = "check-variable"
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
	rulePlaceholder    = "placeholder"
)

// brokenRules returns the rules that a command breaks at a position. It is empty for a
// legal command.
func (d *definition) brokenRules(p position, c command) []string {
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
	owned := d.serverVars()
	for name := range c.context {
		root, _, _ := strings.Cut(name, ".")
		add(slices.Contains(owned, root), ruleServerVariable)
	}
	after := maps.Clone(p.vars)
	c.context = withMembers(p.vars, c.context)
	maps.Copy(after, c.context)
	add(isPlaceholder(c.output) || isPlaceholder(c.notes) || hasEllipsis(c.context), rulePlaceholder)
	add(len(c.context) > 0 && estimateSize(after) > 256*1024, ruleTooLarge)
	add(nestingDepth(c.context) > 130, ruleTooDeep)
	add(c.step != "" && c.step != p.at.id, ruleStep)
	handedIn := !isBlank(c.output) || !isBlank(c.notes)
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
		for _, vars := range p.scopesWith(c.context) {
			add(!p.at.criteria.acceptsOutput(c.output, vars, c.checks), ruleCriteria)
		}
		size, set := overlayVars(c.context, p.scope)("size")
		add((!set || size == nil) && p.at.criteria.needsSize(p.scopesWith(c.context)), ruleCheckVariable)
	}
	return rules
}

// scopesWith returns the variables with which the criteria judge an output: those before
// and after it, and for a step that was sent back those from before its first output.
func (p position) scopesWith(vars map[string]any) []lookup {
	scopes := []lookup{p.scope, overlayVars(vars, p.scope)}
	if p.first != nil {
		scopes = append(scopes, p.first)
	}
	return scopes
}

// overlayVars returns a lookup that prefers vars to below. vars must not contain variables
// of the server.
func overlayVars(vars map[string]any, below lookup) lookup {
	return func(name string) (any, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		return below(name)
	}
}

// estimateSize returns the estimated size of a context in bytes.
func estimateSize(v any) int {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return 0
	}
	return b.Len() - 1
}

// nestingDepth returns the levels of nesting.
func nestingDepth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			deepest = max(deepest, 1+nestingDepth(part))
		}
	case map[string]any:
		for _, part := range v {
			deepest = max(deepest, 1+nestingDepth(part))
		}
	}
	return deepest
}

// withMembers returns the variables of a command. To each object it adds the members of the
// existing object that the command does not name.
func withMembers(vars, given map[string]any) map[string]any {
	out := maps.Clone(given)
	for name, value := range given {
		now, ok := vars[name].(map[string]any)
		members, both := value.(map[string]any)
		if ok && both {
			merged := withMembers(now, members)
			for key, old := range now {
				if _, named := members[key]; !named {
					merged[key] = old
				}
			}
			out[name] = merged
		}
	}
	return out
}

// isPlaceholder reports whether an output or notes are one of the generator's placeholders.
func isPlaceholder(text string) bool {
	return slices.Contains([]string{"...", "…", "TODO", "<value>"}, text)
}

// hasEllipsis reports whether a text in the value is an ellipsis. The other placeholders
// may be data of the user; the generator sends none for a variable that a position asks for.
func hasEllipsis(v any) bool {
	switch v := v.(type) {
	case string:
		return v == "..." || v == "…"
	case []any:
		return slices.ContainsFunc(v, hasEllipsis)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasEllipsis)
	}
	return false
}
