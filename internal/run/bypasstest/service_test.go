package bypasstest

import (
	"bytes"
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	parsed "github.com/guideway-dev/guideway/internal/workflow"
)

// service is the run service with one run under attack.
type service struct {
	failer
	dice
	*run.Service
	ctx     context.Context
	options run.Options
	ledger  *ledger
	// answer is the last one.
	answer *run.Answer
	// past are the commands that were accepted, with their answers.
	past []memory
}

// memory is a command that was accepted, its answer, and where the run stood
// before.
type memory struct {
	request run.ContinueRequest
	answer  run.Answer
	before  string
}

// only serves one definition.
type only struct{ *parsed.Definition }

func (o only) Startable(context.Context, string) (*parsed.Definition, error) {
	return o.Definition, nil
}

func newService(ctx context.Context, t failer, d dice, def *parsed.Definition, people bool) *service {
	l := newLedger()
	s := &service{failer: t, dice: d, ctx: ctx, ledger: l, options: run.Options{
		Journal: l, Definitions: only{def}, Key: bytes.Repeat([]byte{1}, run.KeySize), PersonGates: people,
	}}
	s.restart()
	return s
}

// restart is another process on the same journal.
func (s *service) restart() {
	var err error
	if s.Service, err = run.New(s.options); err != nil {
		s.Fatalf("new: %v", err)
	}
}

func (s *service) agent() run.Caller {
	return run.Caller{
		Principal: guideway.Principal{User: "ada", Client: "editor"},
		Via:       pick(s.dice, run.ViaAgent, run.ViaAgent, "", run.ViaServer, run.ViaImport, "person", "Terminal", "browser "),
	}
}

// someone comes by a way that proves a person.
func (s *service) someone() run.Caller {
	return run.Caller{
		Principal: guideway.Principal{User: "ada"},
		Via:       pick(s.dice, run.ViaBrowser, run.ViaElicitation, run.ViaTerminal, run.ViaToken),
	}
}

func (s *service) start(vars map[string]any) (seen, *denial) {
	a, err := s.Start(s.ctx, s.agent(), run.StartRequest{WorkflowID: "random", Goal: "see", Context: vars})
	if err == nil {
		s.answer = a
	}
	return s.told(a, err)
}

func (s *service) send(c command) (seen, *denial) {
	if oneIn(s.dice, 10) {
		s.restart()
	}
	a, err := s.deliver(c)
	if err == nil {
		s.answer = a
	}
	return s.told(a, err)
}

// deliver hands a command in by one of the ways that there are for it.
func (s *service) deliver(c command) (*run.Answer, error) {
	caller := s.agent()
	if c.person {
		caller = s.someone()
	}
	ref := pick(s.dice, run.Ref{Handle: s.answer.Handle}, run.Ref{RunID: s.answer.RunID}, run.Ref{Handle: s.answer.Handle, RunID: s.answer.RunID})
	if c.kind == "abort" {
		return s.Abort(s.ctx, caller, run.AbortRequest{Ref: ref, Reason: "enough"})
	}
	r := c.request(s.answer.Handle)
	answerOnly := c.answer != nil && c.output == "" && c.notes == "" && len(c.context) == 0 && !c.skip
	if answerOnly && oneIn(s.dice, 2) {
		return s.Answer(s.ctx, caller, run.AnswerRequest{Ref: ref, Step: c.step, Answer: *r.Answer})
	}
	a, err := s.Continue(s.ctx, caller, r)
	if err == nil {
		s.past = append(s.past, memory{r, *a, stanceOf(s.answer.Position, nil)})
	}
	return a, err
}

// request is a command as the service takes it.
func (c command) request(handle string) run.ContinueRequest {
	r := run.ContinueRequest{Handle: handle, Step: c.step, Output: c.output, Notes: c.notes, Context: c.context}
	r.Answer, r.Skip = c.parts()
	return r
}

// told is what an answer or a refusal shows.
func (s *service) told(a *run.Answer, err error) (seen, *denial) {
	s.Helper()
	if err == nil {
		return seen{status: string(a.Status), position: a.Position, whole: asJSON(a)}, nil
	}
	r, ok := run.AsRefusal(err)
	if !ok {
		s.Fatalf("an error that is no refusal: %v", err)
	}
	return seen{}, &denial{r.Rule, r.Message, asJSON(r)}
}

func (s *service) look() seen {
	a, err := s.Status(s.ctx, s.agent(), run.Ref{Handle: s.answer.Handle})
	if err != nil {
		s.Fatalf("status: %v", err)
	}
	if a.Handle != s.answer.Handle || a.RunID != s.answer.RunID {
		s.Fatalf("status answers %s of %s, want %s of %s", a.Handle, a.RunID, s.answer.Handle, s.answer.RunID)
	}
	out, _ := s.told(a, nil)
	return out
}

// state is what a refusal must leave alone: everything but the record of it.
// Now and then another process says so.
func (s *service) state() string {
	if s.answer == nil {
		return ""
	}
	now := []any{s.look().whole, s.ledger.facts()}
	if !oneIn(s.dice, 10) {
		return asJSON(now)
	}
	kept := s.Service
	defer func() { s.Service = kept }()
	s.restart()
	return asJSON([]any{s.look().whole, s.ledger.facts()})
}

// asks are the things that can be asked of a run, each by its reference.
func (s *service) asks(c run.Caller, ref run.Ref) map[string]error {
	errs := map[string]error{}
	_, errs["status"] = s.Status(s.ctx, c, ref)
	_, errs["answer"] = s.Answer(s.ctx, c, run.AnswerRequest{Ref: ref, Answer: engine.Answer{OptionID: "confirm"}})
	_, errs["abort"] = s.Abort(s.ctx, c, run.AbortRequest{Ref: ref})
	_, errs["fork"] = s.Fork(s.ctx, c, run.ForkRequest{Ref: ref})
	_, errs["get"] = s.GetWithEvents(s.ctx, c, ref)
	_, errs["export"] = s.Export(s.ctx, c, ref)
	if ref.Handle != "" {
		_, errs["continue"] = s.Continue(s.ctx, c, run.ContinueRequest{Handle: ref.Handle, Output: "DONE", Answer: nil})
	}
	return errs
}
