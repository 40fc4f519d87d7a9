package bypasstest

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// handleAttacks attacks a run of a service with handles.
type handleAttacks struct {
	*attackedRun
	on *service
}

// attackHandles attacks a run at a position: it tries forged and stale handles and handles
// of other users, repeats accepted commands, and aborts an ended run.
func (h *handleAttacks) attackHandles(p position) {
	h.Helper()
	h.tryForged(p)
	h.tryForeign(p)
	h.tryStale(p)
	h.tryRepeats(p)
	if p.kind == "end" {
		h.abortAgain(p)
	}
}

// abortAgain aborts an ended run: an aborted run stays aborted, a completed run cannot be
// aborted.
func (h *handleAttacks) abortAgain(p position) {
	h.Helper()
	before := h.on.state()
	a, err := h.on.Abort(h.on.ctx, h.on.agentCaller(), run.AbortRequest{Ref: run.Ref{RunID: h.on.answer.RunID}, Reason: "again"})
	r, _ := run.AsRefusal(err)
	switch {
	case p.status == "aborted" && (err != nil || !a.Replayed):
		h.Fatalf("a second abort returned %s, %v", asJSON(a), err)
	case p.status == "completed" && (r == nil || r.Rule != ruleEnded):
		h.Fatalf("a completed run was aborted: %s, %v", asJSON(a), err)
	}
	if after := h.on.state(); after != before {
		h.Fatalf("a second abort has changed the run from\n%s\nto\n%s", before, after)
	}
}

// checkUnknown checks that all calls with a reference are refused because it is unknown,
// and that this changes nothing.
func (h *handleAttacks) checkUnknown(p position, cheat string, c run.Caller, ref run.Ref, rule string) {
	h.Helper()
	before := h.on.state()
	for what, err := range h.on.callAll(c, ref) {
		r, ok := run.AsRefusal(err)
		if !ok || r.Rule != rule || r.Code != guideway.CodeNotFound || r.Message == "" || r.RunID != "" || r.Position != nil {
			h.Fatalf("%s: %s by %+v: %v (%s)", cheat, what, ref, err, asJSON(r))
		}
		h.checkHidden(position{vars: p.vars}, command{}, asJSON(r))
		h.tally.illegal[cheat]++
		h.tally.rules[r.Rule]++
	}
	if after := h.on.state(); after != before {
		h.Fatalf("%s has changed the run from\n%s\nto\n%s", cheat, before, after)
	}
}

func (h *handleAttacks) tryForged(p position) {
	token := h.on.answer.Handle
	at := 2 + h.below(len(token)-2)
	other := byte('0')
	if token[at] == other {
		other = '1'
	}
	cheat, forged := "", ""
	switch h.below(8) {
	case 0:
		cheat, forged = "a random handle", "h_"+strings.ToLower(rand.Text())[:21]
	case 1:
		cheat, forged = "a handle with one changed character", token[:at]+string(other)+token[at+1:]
	case 2:
		cheat, forged = "a truncated handle", token[:at]
	case 3:
		cheat, forged = "a handle in capitals", strings.ToUpper(token)
	case 4:
		cheat, forged = "a handle with a space", pickOne(h.randomSource, token+" ", " "+token, token+"\n", token+"\x00")
	case 5:
		cheat, forged = "a run id as a handle", h.on.answer.RunID
	case 6:
		cheat, forged = "a pattern as a handle", pickOne(h.randomSource, "h_%", "h_*", "%", "h_' OR '1'='1", "../"+token)
	default:
		cheat, forged = "two handles in one", token+token
	}
	if forged == token {
		return // without letters, the token in capitals is the same
	}
	h.checkUnknown(p, cheat, h.on.agentCaller(), run.Ref{Handle: forged}, ruleUnknownHandle)
}

// tryForeign uses the run's handle or id as another user.
func (h *handleAttacks) tryForeign(p position) {
	c := pickOne(h.randomSource, h.on.agentCaller(), h.on.personCaller())
	c.User = pickOne(h.randomSource, "eve", "Ada", "ada ", "")
	if oneIn(h.randomSource, 2) {
		h.checkUnknown(p, "another principal's handle", c, run.Ref{Handle: h.on.answer.Handle}, ruleUnknownHandle)
		return
	}
	h.checkUnknown(p, "another principal's run", c, run.Ref{RunID: h.on.answer.RunID}, ruleUnknownRun)
}

// tryStale sends different input with a handle of an earlier position.
func (h *handleAttacks) tryStale(p position) {
	h.Helper()
	if len(h.on.past) == 0 {
		return
	}
	m := h.on.past[h.below(len(h.on.past))]
	now, ok := legalCommand(h.randomSource, h.def, p)
	if !ok || now.kind != "continue" {
		now = command{kind: "continue", output: "DONE"}
	}
	r := now.newRequest(m.request.Handle)
	if asJSON(r) == asJSON(m.request) || h.isAccepted(r) {
		return
	}
	before := h.on.state()
	_, err := h.on.Continue(h.on.ctx, h.on.agentCaller(), r)
	refusal, _ := run.AsRefusal(err)
	if refusal == nil || refusal.Rule != ruleStaleHandle || !strings.Contains(asJSON(refusal.Allowed), `"workflow_fork"`) {
		h.Fatalf("an old handle with different input returned %v (%s)", err, asJSON(refusal))
	}
	if after := h.on.state(); after != before {
		h.Fatalf("an old handle has changed the run from\n%s\nto\n%s", before, after)
	}
	h.checkHidden(p, now, asJSON(refusal))
	h.tally.illegal["an old handle with different input"]++
	h.tally.rules[refusal.Rule]++
}

// isAccepted reports whether a request was accepted before.
func (h *handleAttacks) isAccepted(r run.ContinueRequest) bool {
	return slices.ContainsFunc(h.on.past, func(m acceptedCommand) bool { return asJSON(m.request) == asJSON(r) })
}

// tryRepeats repeats accepted commands: the answer is the same and no event is added.
func (h *handleAttacks) tryRepeats(p position) {
	h.Helper()
	for range min(2, len(h.on.past)) {
		m := h.on.past[h.below(len(h.on.past))]
		before := h.on.state()
		a, err := h.on.Continue(h.on.ctx, h.on.agentCaller(), m.request)
		if err != nil {
			h.Fatalf("a repeat is refused at %s: %v", p, err)
		}
		if !a.Replayed {
			h.Fatalf("a repeat is not marked as replayed: %s", asJSON(a))
		}
		want, got := m.answer, *a
		want.Replayed, got.Replayed = false, false
		want.Checks = nil // a repeat executes none
		if asJSON(got) != asJSON(want) {
			h.Fatalf("a repeat returns\n%s\nwant\n%s", asJSON(got), asJSON(want))
		}
		if after := h.on.state(); after != before {
			h.Fatalf("a repeat has changed the run from\n%s\nto\n%s", before, after)
		}
		h.tally.repeats++
	}
}

// raceCommands sends three commands with one handle concurrently: the same command to two
// services, and a different legal command. One of the two commands succeeds. Its repetition
// gets the same answer, and the other command is refused as stale.
func (h *handleAttacks) raceCommands(p position, c command) {
	h.Helper()
	other, ok := legalCommand(h.randomSource, h.def, p)
	if !ok || other.kind != "continue" || other.person || other.String() == c.String() {
		other = c
		other.notes += " and more"
		if len(h.def.brokenRules(p, other)) > 0 {
			return
		}
	}
	commands := []command{c, c, other}
	second, err := run.New(h.on.options)
	if err != nil {
		h.Fatalf("new: %v", err)
	}
	answers, errs := make([]*run.Answer, len(commands)), make([]error, len(commands))
	caller, handle, before := h.on.agentCaller(), h.on.answer.Handle, stanceOf(h.on.answer.Position, nil)
	var wg sync.WaitGroup
	for i, c := range commands {
		on := []*run.Service{h.on.Service, second, second}[i]
		wg.Go(func() {
			answers[i], errs[i] = on.Continue(withOutcomes(h.on.ctx, c.checks), caller, c.newRequest(handle))
		})
	}
	wg.Wait()
	winner := -1
	for i, a := range answers {
		if errs[i] == nil && !a.Replayed {
			if winner >= 0 {
				h.Fatalf("two commands succeeded at %s: %s and %s", p, commands[winner], commands[i])
			}
			winner = i
		}
	}
	if winner < 0 {
		h.Fatalf("no command succeeded at %s: %v", p, errs)
	}
	won := commands[winner]
	for i, c := range commands {
		if i == winner {
			continue
		}
		r, _ := run.AsRefusal(errs[i])
		switch same := asJSON(c.newRequest("")) == asJSON(won.newRequest("")); {
		case same && (errs[i] != nil || answers[i].Handle != answers[winner].Handle):
			h.Fatalf("the same command returned %s and %s (%v)", asJSON(answers[winner]), asJSON(answers[i]), errs[i])
		case !same && (r == nil || r.Rule != ruleStaleHandle):
			h.Fatalf("the later command returned %s, %v", asJSON(answers[i]), errs[i])
		}
	}
	h.tally.races++
	h.tally.legal++
	h.on.answer = answers[winner]
	h.on.past = append(h.on.past, acceptedCommand{won.newRequest(handle), *h.on.answer, before})
	h.accepted = append(h.accepted, won)
	s, _ := h.on.toSeen(h.on.answer, nil)
	h.checkSeen(positionAfter(h.def, h.accepted), s)
}

// tryForks forks the run at every event, except for many refusals. Each fork has a
// position, with its approval and variables, that the run had before. A fork at a missing
// event is refused.
func (h *handleAttacks) tryForks() {
	h.Helper()
	var stood []string
	for n := 1; n <= len(h.accepted); n++ {
		stood = append(stood, positionText(positionAfter(h.def, h.accepted[:n])))
	}
	d, err := h.on.Get(h.on.ctx, h.on.agentCaller(), run.Ref{RunID: h.on.answer.RunID})
	if err != nil {
		h.Fatalf("get: %v", err)
	}
	for _, e := range d.Events {
		if e.Kind == run.KindRefused && !oneIn(h.randomSource, 50) {
			continue // skip some of many similar events
		}
		a, err := h.on.Fork(h.on.ctx, h.on.agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: d.ID}, Seq: e.Seq})
		if r, ok := run.AsRefusal(err); ok && r.Rule == ruleSeq && (e.Seq == 1 || e.Kind == "run_completed" || d.Status == "completed") {
			continue // nothing is left to do after the event
		}
		if err != nil {
			h.Fatalf("fork at event %d (%s): %v", e.Seq, e.Kind, err)
		}
		fork, err := h.on.Get(h.on.ctx, h.on.agentCaller(), run.Ref{RunID: a.RunID})
		if err != nil {
			h.Fatalf("get the fork: %v", err)
		}
		got := stanceOf(a.Position, fork.Variables)
		if !slices.Contains(stood, got) {
			h.Fatalf("the fork at %d (%s) has a position that the run never had:\n%s\nThe run had\n%s\nof %s",
				e.Seq, e.Kind, got, strings.Join(stood, "\n"), h.def.marshalDefinition())
		}
		h.tally.forks++
		_, err = h.on.Status(h.on.ctx, h.on.agentCaller(), run.Ref{Handle: h.on.answer.Handle, RunID: a.RunID})
		if r, ok := run.AsRefusal(err); !ok || r.Rule != ruleUnknownRun {
			h.Fatalf("the handle of one run with the id of a different run returned %v", err)
		}
		h.tally.illegal["a handle with another run's id"]++
		h.tally.rules[ruleUnknownRun]++
	}
	h.forksByHandle()
	for _, seq := range []int64{-1, int64(len(d.Events)) + 1, 1 << 40} {
		_, err := h.on.Fork(h.on.ctx, h.on.agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: d.ID}, Seq: seq})
		r, ok := run.AsRefusal(err)
		if !ok || r.Rule != ruleSeq {
			h.Fatalf("fork at event %d: %v", seq, err)
		}
		h.tally.illegal["a fork at a missing event"]++
		h.tally.rules[r.Rule]++
	}
}

// forksByHandle forks with the handles of the run: a fork begins at the position of the
// handle, or at the first human approval before it.
func (h *handleAttacks) forksByHandle() {
	h.Helper()
	for _, m := range h.on.past {
		a, err := h.on.Fork(h.on.ctx, h.on.agentCaller(), run.ForkRequest{Ref: run.Ref{Handle: m.request.Handle}})
		if err != nil {
			h.Fatalf("fork by an old handle: %v", err)
		}
		if got := stanceOf(a.Position, nil); got != m.before && !a.Position.Person {
			h.Fatalf("the fork by a handle is at\n%s\nwant\n%s", got, m.before)
		}
		h.tally.forks++
	}
}

// positionText formats a position of the model like one of the product.
func positionText(p position) string {
	id := ""
	if p.at != nil {
		id = p.at.id
	}
	round := p.round
	if p.in == nil || p.kind != "step" {
		round = 0
	}
	return fmt.Sprintf("%s %s %d %q %v %q %s", p.kind, id, round, p.options, p.human, p.needs, asJSON(p.vars))
}

func stanceOf(pos engine.Position, vars map[string]any) string {
	var options, needs []string
	for _, o := range pos.Options {
		options = append(options, o.ID)
	}
	for _, n := range pos.Needs {
		needs = append(needs, n.Variable)
	}
	round := 0
	if pos.Loop != nil {
		round = pos.Loop.Round
	}
	return fmt.Sprintf("%s %s %d %q %v %q %s", pos.Kind, pos.ID, round, options, pos.Person, needs, asJSON(vars))
}
