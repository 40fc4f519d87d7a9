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

// Any call may be the first one of a service: it opens the store, and where that fails
// it says so and leaves it to the next call.
func TestEveryFirstCallOpensTheStore(t *testing.T) {
	t.Parallel()
	source := newBench(t)
	begun, err := source.Start(t.Context(), agent(), run.StartRequest{WorkflowID: "guarded"})
	if err != nil {
		t.Fatal(err)
	}
	byID, byHandle := run.Ref{RunID: begun.RunID}, run.Ref{Handle: begun.Handle}
	bundle, err := source.Export(t.Context(), agent(), byID)
	if err != nil {
		t.Fatal(err)
	}
	closed := errors.New("the store is closed")
	for name, call := range map[string]func(ctx context.Context, s *run.Service) error{
		"Start": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Start(ctx, agent(), run.StartRequest{WorkflowID: "guarded"}))
		},
		"Start, repeated": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Start(ctx, agent(), run.StartRequest{WorkflowID: "guarded", RequestID: "a"}))
		},
		"Continue": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Continue(ctx, agent(), run.ContinueRequest{Handle: begun.Handle}))
		},
		"Answer": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Answer(ctx, agent(), run.AnswerRequest{Ref: byID}))
		},
		"Status, handle": func(ctx context.Context, s *run.Service) error { return errorOf(s.Status(ctx, agent(), byHandle)) },
		"Status, id":     func(ctx context.Context, s *run.Service) error { return errorOf(s.Status(ctx, agent(), byID)) },
		"Abort": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Abort(ctx, agent(), run.AbortRequest{Ref: byID}))
		},
		"Fork": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Fork(ctx, agent(), run.ForkRequest{Ref: byID}))
		},
		"List":   func(ctx context.Context, s *run.Service) error { return errorOf(s.List(ctx, agent(), run.Filter{})) },
		"Events": func(ctx context.Context, s *run.Service) error { return errorOf(s.Events(ctx, agent(), byID, 0, 1)) },
		"Get":    func(ctx context.Context, s *run.Service) error { return errorOf(s.Get(ctx, agent(), byID)) },
		"Look":   func(ctx context.Context, s *run.Service) error { return errorOf(s.Look(ctx, agent(), byID)) },
		"Flow":   func(ctx context.Context, s *run.Service) error { return errorOf(s.Flow(ctx, agent(), byID)) },
		"Mark": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Mark(ctx, agent(), run.MarkRequest{Ref: byID, Keys: []string{"a"}}))
		},
		"Admit": func(ctx context.Context, s *run.Service) error {
			return s.Admit(ctx, agent(), byID, map[string]any{"a": 1})
		},
		"Behind": func(ctx context.Context, s *run.Service) error { return errorOf(s.Behind(ctx, agent(), byID, 1)) },
		"Resume, words": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Resume(ctx, agent(), run.ResumeRequest{Query: "guarded"}))
		},
		"Resume, the last": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Resume(ctx, agent(), run.ResumeRequest{}))
		},
		"Resume, id": func(ctx context.Context, s *run.Service) error {
			return errorOf(s.Resume(ctx, agent(), run.ResumeRequest{Query: begun.RunID}))
		},
		"State":         func(ctx context.Context, s *run.Service) error { return errorOf(s.State(ctx, agent(), byID)) },
		"Export":        func(ctx context.Context, s *run.Service) error { return errorOf(s.Export(ctx, agent(), byID)) },
		"Import":        func(ctx context.Context, s *run.Service) error { return errorOf(s.Import(ctx, agent(), bundle)) },
		"Verify":        func(ctx context.Context, s *run.Service) error { return errorOf(s.Verify(ctx, "")) },
		"AcceptRestore": func(ctx context.Context, s *run.Service) error { return s.AcceptRestore(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failure, asked := closed, 0
			b := newBench(t, func(o *run.Options) {
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
				t.Errorf("with an open one it returns %v", err)
			}
		})
	}
}
