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

// A run whose beginner may not have it go on any more asks no model: it is paused with
// the reason before the next request, and does not go on until that is over. Runs
// without bounds are not asked about.
func TestPermitEnds(t *testing.T) {
	t.Parallel()
	var why atomic.Pointer[string]
	gone, good := "the token was revoked", ""
	why.Store(&gone)
	asked := 0
	permit := func(_ context.Context, f driver.For) (string, error) {
		asked++
		if string(f.Allow) != `{"token":"7"}` || f.Run == "" {
			return "", errors.New("asked for another run")
		}
		return *why.Load(), nil
	}
	r := newRig(t, newMemory(), []*machinedef.Definition{define(t, small("", ""), smallRoles)}, smallHandlers(), `[{"content": "fine"}, {"content": "fine"}]`,
		func(o *driver.Options) { o.Permit = permit })
	begin := func(allow string) string {
		s, err := r.Start(t.Context(), anna, driver.StartRequest{Machine: "small", Allow: json.RawMessage(allow)})
		if err != nil {
			t.Fatal(err)
		}
		return s.RunID
	}
	if s := r.drive(begin("")); s.Status != machineengine.StatusCompleted || asked != 0 {
		t.Fatalf("without bounds: %+v after %d questions", s, asked)
	}
	id := begin(`{"token":"7"}`)
	before := len(r.model.requests)
	s := r.drive(id)
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
	if s := r.drive(id); s.Status != machineengine.StatusCompleted || len(r.model.requests) != before+1 {
		t.Errorf("with the permit back: %+v", s)
	}
}

// It is before each request that is asked, so that the answer to the first is kept and
// the second is not sent.
func TestPermitEndsOnTheWay(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	r := newRig(t, newMemory(), []*machinedef.Definition{define(t, small("", ""), smallRoles)}, smallHandlers(), `[{"fault": "429"}, {"content": "fine"}]`,
		func(o *driver.Options) {
			o.Permit = func(context.Context, driver.For) (string, error) {
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
	if s = r.drive(s.RunID); s.Status != machineengine.StatusPaused || s.Pause.Code != machineengine.PausePermit || len(r.model.requests) != 1 {
		t.Errorf("%+v after %d requests", s, len(r.model.requests))
	}
}
