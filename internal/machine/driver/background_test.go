package driver_test

import (
	"testing"
	"testing/synctest"
	"time"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
)

// TestBackground answers at once and goes on; what was broken off by the end of a
// server is gone on with when somebody asks.
func TestBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemory(), []*machinedef.Definition{define(t, small("", ""), smallRoles)}, smallHandlers(),
			`{"rules": [{"content": "fine", "delay": 60}]}`)
		b := driver.NewBackground(r.Service, nil)
		s, err := b.Start(t.Context(), anna, driver.StartRequest{Machine: "small"})
		if err != nil || s.Status != machineengine.StatusRunning {
			t.Fatalf("%+v, %v", s, err)
		}
		id := s.RunID
		if s, err = b.Wait(t.Context(), anna, id, time.Second); err != nil || s.Status != machineengine.StatusRunning {
			t.Fatalf("%+v, %v", s, err)
		}
		b.Close() // the server ends
		b = driver.NewBackground(r.Service, nil)
		defer b.Close()
		if s, err = b.Wait(t.Context(), anna, id, 2*time.Minute); err != nil || s.Status != machineengine.StatusCompleted {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
