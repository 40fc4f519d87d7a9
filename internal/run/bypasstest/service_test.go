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
	randomSource
	*run.Service
	ctx     context.Context
	options run.Options
	ledger  *memoryJournal
	// answer is the last answer.
	answer *run.Answer
	// past are the accepted commands with their answers.
	past []acceptedCommand
}

// acceptedCommand is an accepted command, its answer, and the position before it.
type acceptedCommand struct {
	request run.ContinueRequest
	answer  run.Answer
	before  string
}

// singleDefinition provides one definition.
type singleDefinition struct{ *parsed.Definition }

func (o singleDefinition) Startable(context.Context, string) (*parsed.Definition, error) {
	return o.Definition, nil
}

func newService(ctx context.Context, t failer, d randomSource, def *parsed.Definition, people bool) *service {
	l := newLedger()
	s := &service{failer: t, randomSource: d, ctx: ctx, ledger: l, options: run.Options{
		Journal: l, Definitions: singleDefinition{def}, Key: bytes.Repeat([]byte{1}, run.KeySize), PersonGates: people, Checker: scripted{},
	}}
	s.restartProcess()
	return s
}

// restartProcess replaces the service by a new one with the same journal, as in a new
// process.
func (s *service) restartProcess() {
	var err error
	if s.Service, err = run.New(s.options); err != nil {
		s.Fatalf("new: %v", err)
	}
}

func (s *service) agentCaller() run.Caller {
	return run.Caller{
		Principal: guideway.Principal{User: "ada", Client: "editor"},
		Via:       pickOne(s.randomSource, run.ViaAgent, run.ViaAgent, "", run.ViaServer, run.ViaImport, "person", "Terminal", "browser "),
	}
}

// personCaller returns a caller whose channel proves a person.
func (s *service) personCaller() run.Caller {
	return run.Caller{
		Principal: guideway.Principal{User: "ada"},
		Via:       pickOne(s.randomSource, run.ViaBrowser, run.ViaElicitation, run.ViaTerminal, run.ViaToken),
	}
}

func (s *service) start(vars map[string]any) (seen, *denial) {
	a, err := s.Start(s.ctx, s.agentCaller(), run.StartRequest{WorkflowID: "random", Goal: "see", Context: vars})
	if err == nil {
		s.answer = a
	}
	return s.toSeen(a, err)
}

func (s *service) send(c command) (seen, *denial) {
	if oneIn(s.randomSource, 10) {
		s.restartProcess()
	}
	a, err := s.sendVia(c)
	if err == nil {
		s.answer = a
	}
	return s.toSeen(a, err)
}

// sendVia sends a command through one of the methods that can send it.
func (s *service) sendVia(c command) (*run.Answer, error) {
	caller := s.agentCaller()
	if c.person {
		caller = s.personCaller()
	}
	ref := pickOne(s.randomSource, run.Ref{Handle: s.answer.Handle}, run.Ref{RunID: s.answer.RunID}, run.Ref{Handle: s.answer.Handle, RunID: s.answer.RunID})
	if c.kind == "abort" {
		return s.Abort(s.ctx, caller, run.AbortRequest{Ref: ref, Reason: "enough"})
	}
	r := c.newRequest(s.answer.Handle)
	answerOnly := c.answer != nil && c.output == "" && c.notes == "" && len(c.context) == 0 && !c.skip
	if answerOnly && oneIn(s.randomSource, 2) {
		return s.Answer(s.ctx, caller, run.AnswerRequest{Ref: ref, Step: c.step, Answer: *r.Answer})
	}
	a, err := s.Continue(withOutcomes(s.ctx, c.checks), caller, r)
	if err == nil {
		s.past = append(s.past, acceptedCommand{r, *a, stanceOf(s.answer.Position, nil)})
	}
	return a, err
}

// newRequest returns a command as a request of the service.
func (c command) newRequest(handle string) run.ContinueRequest {
	r := run.ContinueRequest{Handle: handle, Step: c.step, Output: c.output, Notes: c.notes, Context: c.context}
	r.Answer, r.Skip = c.answerAndSkip()
	return r
}

// toSeen converts an answer or a refusal.
func (s *service) toSeen(a *run.Answer, err error) (seen, *denial) {
	s.Helper()
	if err == nil {
		return seen{status: string(a.Status), position: a.Position, whole: asJSON(a)}, nil
	}
	r, ok := run.AsRefusal(err)
	if !ok {
		s.Fatalf("the error is not a refusal: %v", err)
	}
	return seen{}, &denial{rule: r.Rule, message: r.Message, whole: asJSON(r)}
}

func (s *service) look() seen {
	a, err := s.Status(s.ctx, s.agentCaller(), run.Ref{Handle: s.answer.Handle})
	if err != nil {
		s.Fatalf("status: %v", err)
	}
	if a.Handle != s.answer.Handle || a.RunID != s.answer.RunID {
		s.Fatalf("the status has the handle %s of run %s, want %s of run %s", a.Handle, a.RunID, s.answer.Handle, s.answer.RunID)
	}
	out, _ := s.toSeen(a, nil)
	return out
}

// state returns everything that a refusal must not change, except the record of the
// refusal. Sometimes another process reads it.
func (s *service) state() string {
	if s.answer == nil {
		return ""
	}
	now := []any{s.look().whole, s.ledger.countFacts()}
	if !oneIn(s.randomSource, 10) {
		return asJSON(now)
	}
	kept := s.Service
	defer func() { s.Service = kept }()
	s.restartProcess()
	return asJSON([]any{s.look().whole, s.ledger.countFacts()})
}

// callAll makes every possible call with a reference and returns the errors.
func (s *service) callAll(c run.Caller, ref run.Ref) map[string]error {
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
