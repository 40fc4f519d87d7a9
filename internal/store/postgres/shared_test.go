package postgres_test

import (
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/deployment"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// TestTake checks that a call counts against all of its limits or against none, for all
// instances, and that the refusal names the limit that blocks longest.
func TestTake(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	stores := []*postgres.Store{openStore(t, postgres.Options{URL: u}), openStore(t, postgres.Options{URL: u})}
	many, one := deployment.Limit{Name: "limits/many", PerMinute: 3}, deployment.Limit{Name: "limits/one", PerMinute: 1}
	for i, step := range []struct {
		limits []deployment.Limit
		over   int
		most   time.Duration
	}{
		{[]deployment.Limit{many, one}, -1, 0},
		{[]deployment.Limit{many, one}, 1, time.Minute},
		{[]deployment.Limit{many}, -1, 0},
		{[]deployment.Limit{many}, -1, 0},
		{[]deployment.Limit{many}, 0, 20 * time.Second},
		{[]deployment.Limit{many, one}, 1, time.Minute},
	} {
		over, wait, err := stores[i%2].Shared().Take(t.Context(), step.limits)
		if err != nil || over != step.over || wait > step.most || over >= 0 && wait <= 0 {
			t.Errorf("call %d: %d, %s, %v", i, over, wait, err)
		}
	}
}
