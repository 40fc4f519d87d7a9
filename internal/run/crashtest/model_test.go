package crashtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// ledger is what must be in the journal of one run, as its client knows it.
type ledger struct {
	project
	// request began the run; id and handle are known once that was acknowledged.
	request, id, handle string
	state               engine.State
	// facts are the events of every acknowledged command.
	facts []engine.Event
	// refused counts the acknowledged refusals, tried all attempts that were
	// refused or would have been: each may be recorded once.
	refused, tried int
	// pending is the command whose acknowledgement has not come.
	pending *pending
}

// pending is a command that was sent.
type pending struct {
	order order
	// facts are the events that it makes, or refusal says why it makes none.
	facts   []engine.Event
	refusal *engine.Refusal
}

// lane is a client that works on one run after the other and keeps their
// ledgers. What a command does to a run is what the engine says; the engine is
// not under test here.
type lane struct {
	name   string
	random *rand.Rand
	project
	runs []*ledger
	sent int
}

// longest is how many events a run of a lane gets.
const longest = 120

func newLane(name string, random *rand.Rand, p project) *lane {
	return &lane{name: name, random: random, project: p}
}

// current is the run that the lane works on.
func (l *lane) current() *ledger {
	if n := len(l.runs); n > 0 && l.program.Status(l.runs[n-1].state) != engine.StatusAborted {
		return l.runs[n-1]
	}
	led := &ledger{project: l.project, request: fmt.Sprintf("%s-%d", l.name, len(l.runs))}
	l.runs = append(l.runs, led)
	return led
}

// next is the command that the lane sends: the pending one again, or a new one.
func (l *lane) next() (*ledger, *pending) {
	led := l.current()
	if led.pending == nil {
		led.pending = l.compose(led)
	}
	if led.pending.refusal != nil {
		led.tried++
	}
	return led, led.pending
}

// compose makes a command that nobody has sent before.
func (l *lane) compose(led *ledger) *pending {
	l.sent++
	text := fmt.Sprintf("%s %d done", l.name, l.sent)
	var o order
	var c engine.Command
	pos := l.program.PositionOf(led.state)
	switch {
	case len(led.facts) == 0:
		o = order{Do: opStart, Workflow: l.id, Request: led.request, Goal: "survive " + led.request}
		c.Start = &engine.Start{}
	case len(led.facts) > longest:
		o = order{Do: opAbort, Run: led.id, Notes: text}
		c.Abort = &engine.Abort{Reason: text}
	case l.random.IntN(6) == 0 && pos.Kind != engine.PositionContext:
		o, c.Continue = l.odd(pos, text)
	case pos.Kind == engine.PositionGate:
		o = order{Do: opContinue, Option: pos.Options[l.random.IntN(len(pos.Options))].ID, Notes: text}
		c.Continue = &engine.Continue{Answer: &engine.Answer{OptionID: o.Option, Note: text}}
	case pos.Kind == engine.PositionContext:
		o = order{Do: opContinue, Context: map[string]any{pos.Needs[0].Variable: []any{text, "another"}}}
		c.Continue = &engine.Continue{Context: o.Context}
	default:
		o = order{Do: opContinue, Output: text}
		c.Continue = &engine.Continue{Output: text}
		if l.random.IntN(4) == 0 {
			o.Context = map[string]any{"last": text}
			c.Continue.Context = o.Context
		}
		if l.random.IntN(20) == 0 { // more than a page of the database
			o.Notes = string(bytes.Repeat([]byte(text+" "), 1+l.random.IntN(2000)))
			c.Continue.Notes = o.Notes
		}
	}
	o.Handle = led.handle
	p := &pending{order: o}
	p.facts, p.refusal = l.program.Decide(led.state, c)
	return p
}

// odd makes a command that most positions refuse: an output that fails the
// criterion, an output in place of an answer, an answer that nobody offers, a skip
// of what is required. The engine says which.
func (l *lane) odd(pos engine.Position, text string) (order, *engine.Continue) {
	switch {
	case pos.Kind == engine.PositionGate && l.random.IntN(2) == 0:
		return order{Do: opContinue, Option: "no-such-option", Notes: text},
			&engine.Continue{Answer: &engine.Answer{OptionID: "no-such-option", Note: text}}
	case pos.Kind == engine.PositionStep && l.random.IntN(3) == 0:
		return order{Do: opContinue, Skip: text}, &engine.Continue{Skip: &engine.Skip{Reason: text}}
	default:
		return order{Do: opContinue, Output: refusedOutput}, &engine.Continue{Output: refusedOutput}
	}
}

// acknowledge enters a reply to the pending command.
func (l *lane) acknowledge(led *ledger, r reply) error {
	p := led.pending
	if p.refusal != nil {
		if r.Code != guideway.CodeRefused || r.Rule != p.refusal.Rule {
			return fmt.Errorf("%+v must be refused by %s, and the answer is %+v", p.order, p.refusal.Rule, r)
		}
		led.refused++
		led.pending = nil
		return nil
	}
	if !r.OK() {
		return fmt.Errorf("%+v is legal, and the answer is %+v", p.order, r)
	}
	l.happened(led)
	if led.id == "" {
		led.id = r.Run
	}
	led.handle = r.Handle
	pos := l.program.PositionOf(led.state)
	if r.Run != led.id || r.Handle == "" || r.Step != pos.ID || r.Status != l.program.Status(led.state) {
		return fmt.Errorf("after %+v the run is at %q (%s), and the answer is %+v", p.order, pos.ID, l.program.Status(led.state), r)
	}
	return nil
}

// happened enters the pending command.
func (l *lane) happened(led *ledger) {
	for _, fact := range led.pending.facts {
		led.state = engine.Apply(led.state, fact)
	}
	led.facts = append(led.facts, led.pending.facts...)
	led.pending = nil
}

// drive sends commands until the worker dies, or for so many commands.
func (l *lane) drive(w *worker, most int) error {
	for range most {
		led, p := l.next()
		r, err := w.Do(p.order)
		if errors.Is(err, crash.ErrDied) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.acknowledge(led, r); err != nil {
			return err
		}
	}
	return nil
}

// compare says how the events of a journal differ from what a client knows.
// whole says that the pending command has happened.
func (led *ledger) compare(events []run.Event) (whole bool, err error) {
	if len(events) == 0 || events[0].Kind != run.KindCreated {
		return false, fmt.Errorf("run %s does not begin with its creation", led.id)
	}
	want := led.facts
	if led.pending != nil {
		want = append(want[:len(want):len(want)], led.pending.facts...)
	}
	had, refused := 0, 0
	for i, e := range events {
		if e.Seq != int64(i+1) {
			return false, fmt.Errorf("run %s has event %d in the place of %d", led.id, e.Seq, i+1)
		}
		switch e.Kind {
		case run.KindCreated:
			continue
		case run.KindRefused:
			refused++
			continue
		}
		if had == len(want) {
			return false, fmt.Errorf("run %s has an event that nobody made: %d %s %s", led.id, e.Seq, e.Kind, e.Data)
		}
		if text := encode(want[had]); e.Kind != string(want[had].Kind) || !bytes.Equal(text, e.Data) {
			return false, fmt.Errorf("event %d of run %s is\n%s, not\n%s", e.Seq, led.id, e.Data, text)
		}
		had++
	}
	if refused < led.refused || refused > led.tried {
		return false, fmt.Errorf("run %s has %d refused attempts, of %d that were answered and %d that were made", led.id, refused, led.refused, led.tried)
	}
	switch {
	case had < len(led.facts):
		return false, fmt.Errorf("run %s has lost acknowledged events: %d of %d are there", led.id, had, len(led.facts))
	case had == len(led.facts):
		return false, nil
	case had < len(want):
		return false, fmt.Errorf("the last command of run %s is half applied: %d of its %d events", led.id, had-len(led.facts), len(led.pending.facts))
	}
	return true, nil
}

// encode writes a fact as journals keep it.
func encode(fact engine.Event) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fact); err != nil {
		panic(err) // it was decoded from what the engine made
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decode reads a fact as journals keep it.
func decode(t testing.TB, e run.Event) engine.Event {
	t.Helper()
	var fact engine.Event
	if err := json.Unmarshal(e.Data, &fact); err != nil {
		t.Fatalf("event %d: %v", e.Seq, err)
	}
	return fact
}
