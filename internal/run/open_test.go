package run_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/guideway-dev/guideway/internal/run"
)

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }

// TestEveryFirstCallOpensTheStore checks that any call can be the first one of a service:
// the call opens the store and returns the error of opening it, and the next call tries
// again.
func TestEveryFirstCallOpensTheStore(t *testing.T) {
	t.Parallel()
	source := newTestBench(t)
	begun, err := source.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "guarded"})
	if err != nil {
		t.Fatal(err)
	}
	byID, byHandle := run.Ref{RunID: begun.RunID}, run.Ref{Handle: begun.Handle}
	bundle, err := source.Export(t.Context(), agentCaller(), byID)
	if err != nil {
		t.Fatal(err)
	}
	closed := errors.New("the store is closed")
	for name, call := range map[string]func(ctx context.Context, s *run.Service) error{
		"Start": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Start(ctx, agentCaller(), run.StartRequest{WorkflowID: "guarded"}))
		},
		"Start, repeated": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Start(ctx, agentCaller(), run.StartRequest{WorkflowID: "guarded", RequestID: "a"}))
		},
		"Continue": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Continue(ctx, agentCaller(), run.ContinueRequest{Handle: begun.Handle}))
		},
		"Answer": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Answer(ctx, agentCaller(), run.AnswerRequest{Ref: byID}))
		},
		"Status, handle": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Status(ctx, agentCaller(), byHandle))
		},
		"Status, id": func(ctx context.Context, s *run.Service) error { return errorOf(s.Status(ctx, agentCaller(), byID)) },
		"Abort": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Abort(ctx, agentCaller(), run.AbortRequest{Ref: byID}))
		},
		"Fork": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Fork(ctx, agentCaller(), run.ForkRequest{Ref: byID}))
		},
		"List": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.List(ctx, agentCaller(), run.Filter{}))
		},
		"Events": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Events(ctx, agentCaller(), byID, 0, 1))
		},
		"GetWithEvents": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.GetWithEvents(ctx, agentCaller(), byID))
		},
		"Get":  func(ctx context.Context, s *run.Service) error { return errorOf(s.Get(ctx, agentCaller(), byID)) },
		"Flow": func(ctx context.Context, s *run.Service) error { return errorOf(s.Flow(ctx, agentCaller(), byID)) },
		"Mark": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Mark(ctx, agentCaller(), run.MarkRequest{Ref: byID, Keys: []string{"a"}}))
		},
		"Admit": func(ctx context.Context, s *run.Service) error {
			return s.Admit(ctx, agentCaller(), byID, map[string]any{"a": 1})
		},
		"StateAt": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.StateAt(ctx, agentCaller(), byID, 1))
		},
		"Resume, words": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Resume(ctx, agentCaller(), run.ResumeRequest{Query: "guarded"}))
		},
		"Resume, the last": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Resume(ctx, agentCaller(), run.ResumeRequest{}))
		},
		"Resume, id": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Resume(ctx, agentCaller(), run.ResumeRequest{Query: begun.RunID}))
		},
		"State":         func(ctx context.Context, s *run.Service) error { return errorOf(s.State(ctx, agentCaller(), byID)) },
		"Export":        func(ctx context.Context, s *run.Service) error { return errorOf(s.Export(ctx, agentCaller(), byID)) },
		"Import":        func(ctx context.Context, s *run.Service) error { return errorOf(s.Import(ctx, agentCaller(), bundle)) },
		"Verify":        func(ctx context.Context, s *run.Service) error { return errorOf(s.Verify(ctx, "")) },
		"AcceptRestore": func(ctx context.Context, s *run.Service) error { return s.AcceptRestore(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure, asked := closed, 0
			b := newTestBench(t, func(o *run.Options) {
				journal, heads := o.Journal, o.Heads
				o.Journal, o.Key, o.Heads = nil, nil, nil
				o.Open = func(context.Context) (run.Journal, run.Key, run.Heads, error) {
					asked++
					return journal, bytes.Repeat([]byte{7}, run.KeySize), heads, failure
				}
			})
			if err := call(t.Context(), b.Service); !errors.Is(err, closed) || asked == 0 {
				t.Fatalf("with a closed store the call returns %v", err)
			}
			failure = nil
			if err := call(t.Context(), b.Service); errors.Is(err, closed) {
				t.Errorf("with an open store the call returns %v", err)
			}
		})
	}
}
