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

// handles attacks a run of a service by its handles.
type handles struct {
	*walk
	on *service
}

// attack is the hook of a walk: it tries forged handles, those of others, old
// ones, and repeats of what was accepted.
func (h *handles) attack(p place) {
	h.Helper()
	h.forged(p)
	h.foreign(p)
	h.stale(p)
	h.repeats(p)
	if p.kind == "end" {
		h.abortAgain(p)
	}
}

// abortAgain aborts what has ended: what is aborted stays as it is, what is
// completed cannot be.
func (h *handles) abortAgain(p place) {
	h.Helper()
	before := h.on.state()
	a, err := h.on.Abort(h.on.ctx, h.on.agent(), run.AbortRequest{Ref: run.Ref{RunID: h.on.answer.RunID}, Reason: "again"})
	r, _ := run.AsRefusal(err)
	switch {
	case p.status == "aborted" && (err != nil || !a.Replayed):
		h.Fatalf("a second abort: %s, %v", asJSON(a), err)
	case p.status == "completed" && (r == nil || r.Rule != ruleEnded):
		h.Fatalf("a completed run is aborted: %s, %v", asJSON(a), err)
	}
	if after := h.on.state(); after != before {
		h.Fatalf("a second abort has changed the run from\n%s\nto\n%s", before, after)
	}
}

// unknown checks that nothing can be done by a reference, for the reason that it
// is not there, and that this leaves everything as it was.
func (h *handles) unknown(p place, cheat string, c run.Caller, ref run.Ref, rule string) {
	h.Helper()
	before := h.on.state()
	for what, err := range h.on.asks(c, ref) {
		r, ok := run.AsRefusal(err)
		if !ok || r.Rule != rule || r.Code != guideway.CodeNotFound || r.Message == "" || r.RunID != "" || r.Position != nil {
			h.Fatalf("%s: %s by %+v: %v (%s)", cheat, what, ref, err, asJSON(r))
		}
		h.hides(place{vars: p.vars}, command{}, asJSON(r))
		h.tally.illegal[cheat]++
		h.tally.rules[r.Rule]++
	}
	if after := h.on.state(); after != before {
		h.Fatalf("%s has changed the run from\n%s\nto\n%s", cheat, before, after)
	}
}

func (h *handles) forged(p place) {
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
		cheat, forged = "a handle with one other character", token[:at]+string(other)+token[at+1:]
	case 2:
		cheat, forged = "a handle cut short", token[:at]
	case 3:
		cheat, forged = "a handle in capitals", strings.ToUpper(token)
	case 4:
		cheat, forged = "a handle with a space", pick(h.dice, token+" ", " "+token, token+"\n", token+"\x00")
	case 5:
		cheat, forged = "a run's id for a handle", h.on.answer.RunID
	case 6:
		cheat, forged = "a pattern for a handle", pick(h.dice, "h_%", "h_*", "%", "h_' OR '1'='1", "../"+token)
	default:
		cheat, forged = "two handles in one", token+token
	}
	if forged == token {
		return // it has no letters
	}
	h.unknown(p, cheat, h.on.agent(), run.Ref{Handle: forged}, ruleUnknownHandle)
}

// foreign is somebody else with the run's own handle or id.
func (h *handles) foreign(p place) {
	c := pick(h.dice, h.on.agent(), h.on.someone())
	c.User = pick(h.dice, "eve", "Ada", "ada ", "")
	if oneIn(h.dice, 2) {
		h.unknown(p, "another principal's handle", c, run.Ref{Handle: h.on.answer.Handle}, ruleUnknownHandle)
		return
	}
	h.unknown(p, "another principal's run", c, run.Ref{RunID: h.on.answer.RunID}, ruleUnknownRun)
}

// stale hands in something else with a handle of an earlier position.
func (h *handles) stale(p place) {
	h.Helper()
	if len(h.on.past) == 0 {
		return
	}
	m := h.on.past[h.below(len(h.on.past))]
	now, ok := legal(h.dice, h.def, p)
	if !ok || now.kind != "continue" {
		now = command{kind: "continue", output: "DONE"}
	}
	r := now.request(m.request.Handle)
	if asJSON(r) == asJSON(m.request) || h.known(r) {
		return
	}
	before := h.on.state()
	_, err := h.on.Continue(h.on.ctx, h.on.agent(), r)
	refusal, _ := run.AsRefusal(err)
	if refusal == nil || refusal.Rule != ruleStaleHandle || !strings.Contains(asJSON(refusal.Allowed), `"workflow_fork"`) {
		h.Fatalf("an old handle with other input: %v (%s)", err, asJSON(refusal))
	}
	if after := h.on.state(); after != before {
		h.Fatalf("an old handle has changed the run from\n%s\nto\n%s", before, after)
	}
	h.hides(p, now, asJSON(refusal))
	h.tally.illegal["an old handle with other input"]++
	h.tally.rules[refusal.Rule]++
}

// known says whether a request was accepted before.
func (h *handles) known(r run.ContinueRequest) bool {
	return slices.ContainsFunc(h.on.past, func(m memory) bool { return asJSON(m.request) == asJSON(r) })
}

// repeats hands in again what was accepted: the answer is the same, and nothing
// is added.
func (h *handles) repeats(p place) {
	h.Helper()
	for range min(2, len(h.on.past)) {
		m := h.on.past[h.below(len(h.on.past))]
		before := h.on.state()
		a, err := h.on.Continue(h.on.ctx, h.on.agent(), m.request)
		if err != nil {
			h.Fatalf("a repeat is refused at %s: %v", p, err)
		}
		if !a.Replayed {
			h.Fatalf("a repeat is not called one: %s", asJSON(a))
		}
		want, got := m.answer, *a
		want.Replayed, got.Replayed = false, false
		if asJSON(got) != asJSON(want) {
			h.Fatalf("a repeat answers\n%s\nnot\n%s", asJSON(got), asJSON(want))
		}
		if after := h.on.state(); after != before {
			h.Fatalf("a repeat has changed the run from\n%s\nto\n%s", before, after)
		}
		h.tally.repeats++
	}
}

// race has several clients hand in commands by one handle at the same time: the
// same one twice, and another legal one. One of the two wins; who lost by the
// same command gets its answer, the other is told that the handle is old.
func (h *handles) race(p place, c command) {
	h.Helper()
	other, ok := legal(h.dice, h.def, p)
	if !ok || other.kind != "continue" || other.person || other.String() == c.String() {
		other = c
		other.notes += " and more"
		if len(h.def.breaks(p, other)) > 0 {
			return
		}
	}
	commands := []command{c, c, other}
	second, err := run.New(h.on.options)
	if err != nil {
		h.Fatalf("new: %v", err)
	}
	answers, errs := make([]*run.Answer, len(commands)), make([]error, len(commands))
	caller, handle, before := h.on.agent(), h.on.answer.Handle, stanceOf(h.on.answer.Position, nil)
	var wg sync.WaitGroup
	for i, c := range commands {
		on := []*run.Service{h.on.Service, second, second}[i]
		wg.Go(func() { answers[i], errs[i] = on.Continue(h.on.ctx, caller, c.request(handle)) })
	}
	wg.Wait()
	winner := -1
	for i, a := range answers {
		if errs[i] == nil && !a.Replayed {
			if winner >= 0 {
				h.Fatalf("two have won at %s: %s and %s", p, commands[winner], commands[i])
			}
			winner = i
		}
	}
	if winner < 0 {
		h.Fatalf("nobody has won at %s: %v", p, errs)
	}
	won := commands[winner]
	for i, c := range commands {
		if i == winner {
			continue
		}
		r, _ := run.AsRefusal(errs[i])
		switch same := asJSON(c.request("")) == asJSON(won.request("")); {
		case same && (errs[i] != nil || answers[i].Handle != answers[winner].Handle):
			h.Fatalf("the same command answers %s and %s (%v)", asJSON(answers[winner]), asJSON(answers[i]), errs[i])
		case !same && (r == nil || r.Rule != ruleStaleHandle):
			h.Fatalf("who lost the race gets %s, %v", asJSON(answers[i]), errs[i])
		}
	}
	h.tally.races++
	h.tally.legal++
	h.on.answer = answers[winner]
	h.on.past = append(h.on.past, memory{won.request(handle), *h.on.answer, before})
	h.accepted = append(h.accepted, won)
	s, _ := h.on.told(h.on.answer, nil)
	h.check(whereIs(h.def, h.accepted), s)
}

// forks forks the run at every event that it has had. A fork stands where the
// run has stood, with the variables that it had there, and its gates are for
// those whom they were for.
func (h *handles) forks() {
	h.Helper()
	var stood []string
	for n := 1; n <= len(h.accepted); n++ {
		stood = append(stood, stance(whereIs(h.def, h.accepted[:n])))
	}
	d, err := h.on.Get(h.on.ctx, h.on.agent(), run.Ref{RunID: h.on.answer.RunID})
	if err != nil {
		h.Fatalf("get: %v", err)
	}
	for _, e := range d.Events {
		if e.Kind == run.KindRefused && !oneIn(h.dice, 50) {
			continue // there are many, and one is like the other
		}
		a, err := h.on.Fork(h.on.ctx, h.on.agent(), run.ForkRequest{Ref: run.Ref{RunID: d.ID}, Seq: e.Seq})
		if r, ok := run.AsRefusal(err); ok && r.Rule == ruleSeq && (e.Seq == 1 || e.Kind == "run_completed" || d.Status == "completed") {
			continue // there is nothing is left to do after it
		}
		if err != nil {
			h.Fatalf("fork at %d (%s): %v", e.Seq, e.Kind, err)
		}
		fork, err := h.on.Get(h.on.ctx, h.on.agent(), run.Ref{RunID: a.RunID})
		if err != nil {
			h.Fatalf("get the fork: %v", err)
		}
		got := stanceOf(a.Position, fork.Variables)
		if !slices.Contains(stood, got) {
			h.Fatalf("the fork at %d (%s) stands where the run never stood:\n%s\nThe run stood at\n%s\nof %s",
				e.Seq, e.Kind, got, strings.Join(stood, "\n"), h.def.document())
		}
		h.tally.forks++
		_, err = h.on.Status(h.on.ctx, h.on.agent(), run.Ref{Handle: h.on.answer.Handle, RunID: a.RunID})
		if r, ok := run.AsRefusal(err); !ok || r.Rule != ruleUnknownRun {
			h.Fatalf("the handle of one run with the id of another: %v", err)
		}
		h.tally.illegal["a handle with another run's id"]++
		h.tally.rules[ruleUnknownRun]++
	}
	h.forksByHandle()
	for _, seq := range []int64{-1, int64(len(d.Events)) + 1, 1 << 40} {
		_, err := h.on.Fork(h.on.ctx, h.on.agent(), run.ForkRequest{Ref: run.Ref{RunID: d.ID}, Seq: seq})
		r, ok := run.AsRefusal(err)
		if !ok || r.Rule != ruleSeq {
			h.Fatalf("fork at %d: %v", seq, err)
		}
		h.tally.illegal["a fork at no event"]++
		h.tally.rules[r.Rule]++
	}
}

// forksByHandle forks by the handles that the run had: a fork stands where the
// handle was given.
func (h *handles) forksByHandle() {
	h.Helper()
	for _, m := range h.on.past {
		a, err := h.on.Fork(h.on.ctx, h.on.agent(), run.ForkRequest{Ref: run.Ref{Handle: m.request.Handle}})
		if err != nil {
			h.Fatalf("fork by an old handle: %v", err)
		}
		if got := stanceOf(a.Position, nil); got != m.before {
			h.Fatalf("the fork by a handle stands at\n%s\nnot at\n%s", got, m.before)
		}
		h.tally.forks++
	}
}

// stance is where a run stands, in a form that a place and a position share.
func stance(p place) string {
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
