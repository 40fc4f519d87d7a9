package driver_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestPermitEnds tests that a run whose user lost the permission sends no request: it
// pauses with the reason before the next request, and resumes only after the permission is
// back. Permit is not called for runs without restrictions.
func TestPermitEnds(t *testing.T) {
	t.Parallel()
	var why atomic.Pointer[string]
	gone, good := "the token was revoked", ""
	why.Store(&gone)
	asked := 0
	permit := func(_ context.Context, f driver.RunScope) (string, error) {
		asked++
		if string(f.Allow) != `{"token":"7"}` || f.Run == "" {
			return "", errors.New("Permit was called for a different run")
		}
		return *why.Load(), nil
	}
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(), `[{"content": "fine"}, {"content": "fine"}]`,
		func(o *driver.Options) { o.Permit = permit })
	begin := func(allow string) string {
		s, err := r.Start(t.Context(), anna, driver.StartRequest{Machine: "small", Allow: json.RawMessage(allow)})
		if err != nil {
			t.Fatal(err)
		}
		return s.RunID
	}
	if s := r.driveRun(begin("")); s.Status != machineengine.StatusCompleted || asked != 0 {
		t.Fatalf("a run without restrictions is %+v after %d calls of Permit", s, asked)
	}
	id := begin(`{"token":"7"}`)
	before := len(r.model.requests)
	s := r.driveRun(id)
	if s.Status != machineengine.StatusPaused || s.Pause.Code != machineengine.PausePermit || s.Pause.Message != gone || s.Pause.Fix == "" || len(r.model.requests) != before {
		t.Fatalf("%+v after %d requests", s, len(r.model.requests)-before)
	}
	var refusal *run.Refusal
	if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{}); !errors.As(err, &refusal) || refusal.Rule != driver.RulePermit || refusal.Message != gone {
		t.Errorf("resumed: %v", err)
	}
	why.Store(&good)
	if _, err := r.Resume(t.Context(), anna, id, machineengine.Limits{}); err != nil {
		t.Fatal(err)
	}
	if s := r.driveRun(id); s.Status != machineengine.StatusCompleted || len(r.model.requests) != before+1 {
		t.Errorf("after the permission is back, the run is %+v", s)
	}
}

// TestPermitEndsDuringRun checks that Permit is called before each request: after the
// permission is lost during the first request, its retry is not sent.
func TestPermitEndsDuringRun(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(), `[{"fault": "429"}, {"content": "fine"}]`,
		func(o *driver.Options) {
			o.Permit = func(context.Context, driver.RunScope) (string, error) {
				if gone.Load() {
					return "gone", nil
				}
				return "", nil
			}
			o.Models.(*model).after = func(llm.Request) { gone.Store(true) }
		})
	s, err := r.Start(t.Context(), anna, driver.StartRequest{Machine: "small", Allow: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	if s = r.driveRun(s.RunID); s.Status != machineengine.StatusPaused || s.Pause.Code != machineengine.PausePermit || len(r.model.requests) != 1 {
		t.Errorf("%+v after %d requests", s, len(r.model.requests))
	}
}
