package checkpoint

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDefaultLimits checks that a limit that is not set has its default, and that a limit
// that is set or removed is kept.
func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	want := Limits{
		PerSeries: 100, SeriesBytes: 1 << 30, CheckpointBytes: 10 << 20, RawBytes: 64 << 20, TotalBytes: 10 << 30,
		Warn: 0.8, Clean: 0.9, Retention: 30 * 24 * time.Hour,
	}
	if diff := cmp.Diff(want, Limits{}.withDefaults()); diff != "" {
		t.Errorf("the defaults (-want +got):\n%s", diff)
	}
	for _, set := range []Limits{
		{PerSeries: 1, SeriesBytes: 2, CheckpointBytes: 3, RawBytes: 4, TotalBytes: 5, Warn: 0.1, Clean: 0.2, Retention: time.Hour},
		{PerSeries: -1, SeriesBytes: -1, CheckpointBytes: -1, RawBytes: -1, TotalBytes: -1, Warn: -1, Clean: -1, Retention: -1},
	} {
		if diff := cmp.Diff(set, set.withDefaults()); diff != "" {
			t.Errorf("limits that are set (-want +got):\n%s", diff)
		}
	}
}
