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

// runLedger is the expected content of the journal for one run, as its client knows it.
type runLedger struct {
	project
	// request started the run. id and handle are set after the acknowledgement.
	request, id, handle string
	state               engine.State
	// facts are the events of all acknowledged commands.
	facts []engine.Event
	// refused counts the acknowledged refusals. tried counts all attempts that were or
	// would be refused, because each may be recorded once.
	refused, tried int
	// pending is the command without an acknowledgement.
	pending *pendingCommand
}

// pendingCommand is a command that was sent.
type pendingCommand struct {
	order order
	// facts are the resulting events, or refusal is the reason why there are none.
	facts   []engine.Event
	refusal *engine.Refusal
}

// modelClient is a client that uses one run after the other and keeps their ledgers. The
// engine computes the expected effect of a command; it is not under test here.
type modelClient struct {
	name   string
	random *rand.Rand
	project
	runs []*runLedger
	sent int
}

// maxEvents is the number of events after which a client starts another run.
const maxEvents = 120

func newLane(name string, random *rand.Rand, p project) *modelClient {
	return &modelClient{name: name, random: random, project: p}
}

// currentRun returns the run that the client uses.
func (l *modelClient) currentRun() *runLedger {
	if n := len(l.runs); n > 0 && l.program.Status(l.runs[n-1].state) != engine.StatusAborted {
		return l.runs[n-1]
	}
	led := &runLedger{project: l.project, request: fmt.Sprintf("%s-%d", l.name, len(l.runs))}
	l.runs = append(l.runs, led)
	return led
}

// nextCommand returns the pending command again, or a new one.
func (l *modelClient) nextCommand() (*runLedger, *pendingCommand) {
	led := l.currentRun()
	if led.pending == nil {
		led.pending = l.newCommand(led)
	}
	if led.pending.refusal != nil {
		led.tried++
	}
	return led, led.pending
}

// newCommand returns a unique command.
func (l *modelClient) newCommand(led *runLedger) *pendingCommand {
	l.sent++
	text := fmt.Sprintf("%s %d done", l.name, l.sent)
	var o order
	var c engine.Command
	pos := l.program.PositionOf(led.state)
	switch {
	case len(led.facts) == 0:
		o = order{Do: opStart, Workflow: l.id, Request: led.request, Goal: "survive " + led.request}
		c.Start = &engine.Start{}
	case len(led.facts) > maxEvents:
		o = order{Do: opAbort, Run: led.id, Notes: text}
		c.Abort = &engine.Abort{Reason: text}
	case l.random.IntN(6) == 0 && pos.Kind != engine.PositionContext:
		o, c.Continue = l.newOddCommand(pos, text)
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
		if l.random.IntN(20) == 0 { // the text is longer than a database page
			o.Notes = string(bytes.Repeat([]byte(text+" "), 1+l.random.IntN(2000)))
			c.Continue.Notes = o.Notes
		}
	}
	o.Handle = led.handle
	p := &pendingCommand{order: o}
	p.facts, p.refusal = l.program.Decide(led.state, c)
	return p
}

// newOddCommand returns a command that most positions refuse: an output that fails the
// criterion, an output instead of an answer, an answer that is not offered, or a skip of a
// required step. The engine decides which.
func (l *modelClient) newOddCommand(pos engine.Position, text string) (order, *engine.Continue) {
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

// applyReply applies a reply to the pending command.
func (l *modelClient) applyReply(led *runLedger, r reply) error {
	p := led.pending
	if p.refusal != nil {
		if r.Code != guideway.CodeRefused || r.Rule != p.refusal.Rule {
			return fmt.Errorf("%+v must be refused by %s, but the answer is %+v", p.order, p.refusal.Rule, r)
		}
		led.refused++
		led.pending = nil
		return nil
	}
	if !r.OK() {
		return fmt.Errorf("%+v is legal, but the answer is %+v", p.order, r)
	}
	l.applyPending(led)
	if led.id == "" {
		led.id = r.Run
	}
	led.handle = r.Handle
	pos := l.program.PositionOf(led.state)
	if r.Run != led.id || r.Handle == "" || r.Step != pos.ID || r.Status != l.program.Status(led.state) {
		return fmt.Errorf("after %+v the run is at %q (%s), but the answer is %+v", p.order, pos.ID, l.program.Status(led.state), r)
	}
	return nil
}

// applyPending applies the pending command.
func (l *modelClient) applyPending(led *runLedger) {
	for _, fact := range led.pending.facts {
		led.state = engine.Apply(led.state, fact)
	}
	led.facts = append(led.facts, led.pending.facts...)
	led.pending = nil
}

// sendCommands sends commands until the worker ends or the maximum is reached.
func (l *modelClient) sendCommands(w *worker, most int) error {
	for range most {
		led, p := l.nextCommand()
		r, err := w.Do(p.order)
		if errors.Is(err, crash.ErrDied) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.applyReply(led, r); err != nil {
			return err
		}
	}
	return nil
}

// compareEvents returns an error if the events of a journal differ from the ledger. whole
// reports whether the pending command was executed.
func (led *runLedger) compareEvents(events []run.Event) (whole bool, err error) {
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
			return false, fmt.Errorf("run %s has event %d instead of %d", led.id, e.Seq, i+1)
		}
		switch e.Kind {
		case run.KindCreated:
			continue
		case run.KindRefused:
			refused++
			continue
		}
		if had == len(want) {
			return false, fmt.Errorf("run %s has an unexpected event: %d %s %s", led.id, e.Seq, e.Kind, e.Data)
		}
		if text := encodeFact(want[had]); e.Kind != string(want[had].Kind) || !bytes.Equal(text, e.Data) {
			return false, fmt.Errorf("event %d of run %s is\n%s, not\n%s", e.Seq, led.id, e.Data, text)
		}
		had++
	}
	// A position records at most 100 refusals of a rule.
	if refused < min(led.refused, 100) || refused > led.tried {
		return false, fmt.Errorf("run %s has %d refused attempts; %d were acknowledged and %d sent", led.id, refused, led.refused, led.tried)
	}
	switch {
	case had < len(led.facts):
		return false, fmt.Errorf("run %s has lost acknowledged events: %d of %d remain", led.id, had, len(led.facts))
	case had == len(led.facts):
		return false, nil
	case had < len(want):
		return false, fmt.Errorf("the last command of run %s is partly applied: %d of its %d events", led.id, had-len(led.facts), len(led.pending.facts))
	}
	return true, nil
}

// encodeFact encodes a fact as journals store it.
func encodeFact(fact engine.Event) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fact); err != nil {
		panic(err) // unreachable: the engine created it
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// decodeFact decodes a fact of a journal.
func decodeFact(t testing.TB, e run.Event) engine.Event {
	t.Helper()
	var fact engine.Event
	if err := json.Unmarshal(e.Data, &fact); err != nil {
		t.Fatalf("event %d: %v", e.Seq, err)
	}
	return fact
}
