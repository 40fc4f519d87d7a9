package driver_test

import (
	"testing"
	"testing/synctest"
	"time"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
)

// TestBackground checks that Start and Wait return while the run continues, and that Wait
// continues the run in a new Background after the first one was closed.
func TestBackground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newMemory(), []*machinedef.Definition{parseMachine(t, smallMachine("", ""), smallRoles)}, smallHandlers(),
			`{"rules": [{"content": "fine", "delay": 60}]}`, schedules)
		b := driver.NewBackground(r.Service, 2, nil)
		s, err := b.Start(t.Context(), anna, driver.StartRequest{Machine: "small"})
		if err != nil || s.Status != machineengine.StatusRunning {
			t.Fatalf("%+v, %v", s, err)
		}
		id := s.RunID
		if s, err = b.Wait(t.Context(), anna, id, time.Second); err != nil || s.Status != machineengine.StatusRunning {
			t.Fatalf("%+v, %v", s, err)
		}
		b.Close() // simulates the end of the server
		r.reopen()
		b = driver.NewBackground(r.Service, 2, nil)
		defer b.Close()
		if s, err = b.Wait(t.Context(), anna, id, 2*time.Minute); err != nil || s.Status != machineengine.StatusCompleted {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
