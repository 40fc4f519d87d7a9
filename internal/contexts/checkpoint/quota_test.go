package checkpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

func withLimits(l checkpoint.Limits) func(*checkpoint.Options) {
	return func(o *checkpoint.Options) { o.Limits = l }
}

// randomContext returns a context that does not compress.
func randomContext(n int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%016x", random.Uint64())
	}
	return `{"noise":"` + b.String() + `"}`
}

// TestSeriesLimit checks the maximum number of checkpoints of a session: the oldest are
// removed, with a warning from 80 percent.
func TestSeriesLimit(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode, withLimits(checkpoint.Limits{PerSeries: 10}))
		var ids []string
		for i := range 25 {
			saved := r.mustSave(t, "work", bulkyContext(i))
			ids = append(ids, saved.ID)
			if warns := hasWarning(saved.Warnings, checkpoint.WarnLine); warns != (i >= 7) {
				t.Errorf("save %d warns: %v", i, saved.Warnings)
			}
		}
		page, err := r.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Session: "work", Limit: 100})
		mustSucceed(t, err)
		if len(page.Checkpoints) != 10 || page.Checkpoints[9].ID != ids[15] {
			t.Fatalf("there are %d checkpoints", len(page.Checkpoints))
		}
		for i := 15; i < 25; i++ {
			r.wantContext(t, ids[i], bulkyContext(i))
		}
		if mode != checkpoint.ModeMemory {
			if n := len(r.blobFiles(t)); n != 10 {
				t.Errorf("there are %d blobs", n)
			}
		}
	})
}

// TestSeriesLimitOfOne checks that a limit of one keeps the newest checkpoint.
func TestSeriesLimitOfOne(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory, withLimits(checkpoint.Limits{PerSeries: 1}))
	for i := range 3 {
		r.wantContext(t, r.mustSave(t, "work", bulkyContext(i)).ID, bulkyContext(i))
	}
}

// TestHardLimits checks that a too large context is refused with a fix and leaves no blob,
// and that a session does not exceed its maximum size.
func TestHardLimits(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeFiles, withLimits(checkpoint.Limits{CheckpointBytes: 5_000, RawBytes: 50_000, SeriesBytes: 12_000}))
	refused := func(context string) {
		t.Helper()
		_, err := r.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: "work", Context: json.RawMessage(context)})
		wantCode(t, err, guideway.CodeTooLarge, "a context that is too large")
		if guideway.ErrorFix(err) == "" {
			t.Errorf("the error has no fix: %v", err)
		}
	}
	refused(randomContext(60_000, 1))
	refused(randomContext(20_000, 1)) // the compressed context has more than 5,000 bytes
	if n := len(r.blobFiles(t)); n != 0 {
		t.Errorf("%d blobs of refused saves remain", n)
	}
	var last string
	for i := range 12 {
		last = r.mustSave(t, "work", randomContext(4_000, uint64(i))).ID
	}
	r.wantContext(t, last, randomContext(4_000, 11))
	stats, err := r.Stats(t.Context(), "ada")
	mustSucceed(t, err)
	if stats.Stored > 12_000 {
		t.Errorf("the session takes %d bytes", stats.Stored)
	}
}

// TestTotal checks that near the total limit saves return warnings and the least recently
// touched sessions are removed, but not the last checkpoint of an active run. A save that
// does not fit is refused.
func TestTotal(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		active := map[string]bool{"r_active": true}
		r := openRig(t, mode, withLimits(checkpoint.Limits{TotalBytes: 60_000}), func(o *checkpoint.Options) {
			o.Active = func(_ context.Context, run string) (bool, error) { return active[run], nil }
		})
		asRun := func(s *checkpoint.SaveRequest) { s.Run = "r_active" }
		first := r.mustSave(t, "r_active", randomContext(8_000, 100), asRun)
		second := r.mustSave(t, "r_active", randomContext(8_000, 101), asRun)
		var warnings, cleanings int
		for i := range 20 {
			r.clock.Add(time.Minute)
			saved := r.mustSave(t, fmt.Sprint("s", i), randomContext(8_000, uint64(i)))
			if hasWarning(saved.Warnings, checkpoint.WarnTotal) {
				warnings++
			}
			if hasWarning(saved.Warnings, checkpoint.WarnCleaned) {
				cleanings++
			}
			totals, err := r.index.Totals(t.Context())
			mustSucceed(t, err)
			if totals.Stored > 54_000 {
				t.Errorf("after save %d all checkpoints take %d bytes", i, totals.Stored)
			}
			r.wantContext(t, saved.ID, randomContext(8_000, uint64(i)))
		}
		if warnings == 0 || cleanings == 0 {
			t.Errorf("there were %d warnings and %d cleanups", warnings, cleanings)
		}
		r.wantContext(t, second.ID, randomContext(8_000, 101))
		_, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: first.ID})
		wantCode(t, err, guideway.CodeNotFound, "an older checkpoint of the least recently used run, which is active")
		_, err = r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "s0"})
		wantCode(t, err, guideway.CodeNotFound, "the least recently used session")
		_, err = r.Save(t.Context(), testPrincipal(), checkpoint.SaveRequest{Session: "huge", Context: json.RawMessage(randomContext(200_000, 7))})
		wantCode(t, err, guideway.CodeUnavailable, "more than the available space")
	})
}

// TestRetention checks that Maintain removes inactive sessions. A load counts as activity. A
// run that is active, or whose state is unknown, keeps its last checkpoint. If the clock
// goes backwards, nothing is removed.
func TestRetention(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode, func(o *checkpoint.Options) {
			o.Active = func(_ context.Context, run string) (bool, error) {
				if run == "r_unknown" {
					return false, errors.New("the journal is unavailable")
				}
				return run == "r_active", nil
			}
		})
		for i := range 3 {
			for _, session := range []string{"idle", "loaded", "r_active", "r_unknown", "r_done"} {
				r.mustSave(t, session, bulkyContext(i), func(s *checkpoint.SaveRequest) {
					if strings.HasPrefix(session, "r_") {
						s.Run = session
					}
				})
			}
		}
		r.clock.Add(20 * 24 * time.Hour)
		_, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "loaded"})
		mustSucceed(t, err)
		mustSucceed(t, r.Close()) // Close writes the time of the load
		r.clock.Add(-60 * 24 * time.Hour)
		r = reopenRig(t, r)
		kept, err := r.Maintain(t.Context())
		mustSucceed(t, err)
		if kept.Retired.Checkpoints != 0 {
			t.Errorf("with a clock that went backwards %+v were removed", kept.Retired)
		}
		r.clock.Add(75 * 24 * time.Hour)
		r = reopenRig(t, r, func(o *checkpoint.Options) {
			o.Active = func(_ context.Context, run string) (bool, error) {
				if run == "r_unknown" {
					return false, errors.New("the journal is unavailable")
				}
				return run == "r_active", nil
			}
		})
		_, err = r.Maintain(t.Context())
		mustSucceed(t, err)
		seriesList, err := r.index.ListSeries(t.Context(), checkpoint.SeriesFilter{})
		mustSucceed(t, err)
		got := map[string]int{}
		for _, l := range seriesList {
			got[l.Session] = l.Count
		}
		want := map[string]int{"loaded": 3, "r_active": 1, "r_unknown": 1}
		for session, n := range want {
			if got[session] != n {
				t.Errorf("%s has %d checkpoints, want %d", session, got[session], n)
			}
		}
		if len(got) != len(want) {
			t.Errorf("the sessions are %v", got)
		}
		loaded, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "r_active"})
		mustSucceed(t, err)
		if string(loaded.Context) != bulkyContext(2) {
			t.Errorf("the active run's last checkpoint has the context %.50s", loaded.Context)
		}
	})
}

// TestCleanup checks that a cleanup removes and reports the selected checkpoints, and that
// a dry run reports the same and removes nothing.
func TestCleanup(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode)
		for i := range 8 {
			r.mustSave(t, "old", bulkyContext(i))
		}
		r.clock.Add(10 * 24 * time.Hour)
		for i := range 8 {
			r.mustSave(t, "new", bulkyContext(i))
		}
		for _, c := range []struct {
			request  checkpoint.CleanupRequest
			sessions int
			gone     int
		}{
			{checkpoint.CleanupRequest{OlderThan: 7 * 24 * time.Hour, KeepLast: 5}, 0, 3},
			{checkpoint.CleanupRequest{KeepLast: 5}, 0, 3},
			{checkpoint.CleanupRequest{OlderThan: 7 * 24 * time.Hour, User: "bob"}, 0, 0},
			{checkpoint.CleanupRequest{OlderThan: 7 * 24 * time.Hour}, 1, 5},
		} {
			dry := c.request
			dry.DryRun = true
			would, err := r.Cleanup(t.Context(), dry)
			mustSucceed(t, err)
			did, err := r.Cleanup(t.Context(), c.request)
			mustSucceed(t, err)
			would.DryRun = false
			if did != would || did.Checkpoints != c.gone || did.Sessions != c.sessions {
				t.Errorf("%+v: the dry run returned %+v, the cleanup %+v", c.request, would, did)
			}
		}
		for i, id := range historyIDs(t, r, "new") {
			r.wantContext(t, id, bulkyContext(7-i))
		}
		for _, bad := range []checkpoint.CleanupRequest{{}, {OlderThan: -1}, {KeepLast: -1}} {
			_, err := r.Cleanup(t.Context(), bad)
			wantCode(t, err, guideway.CodeInvalid, "a cleanup of everything")
		}
	})
}

// historyIDs returns the ids of a session's checkpoints, the newest first.
func historyIDs(t *testing.T, r *rig, session string) []string {
	t.Helper()
	list, err := r.index.History(t.Context(), checkpoint.SeriesKey{User: "ada", Session: session}, checkpoint.History{})
	mustSucceed(t, err)
	var ids []string
	for _, one := range list {
		ids = append(ids, one.ID)
	}
	return ids
}

// TestClockBackwards checks that the order of the saves is kept and that times increase
// within a session even if the clock goes backwards.
func TestClockBackwards(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, mode checkpoint.Mode) {
		r := openRig(t, mode)
		var ids []string
		for i := range 6 {
			ids = append(ids, r.mustSave(t, "work", bulkyContext(i)).ID)
			r.clock.Add(-time.Hour)
		}
		got := historyIDs(t, r, "work")
		slices.Reverse(got)
		if !slices.Equal(got, ids) {
			t.Errorf("the order is %v, want %v", got, ids)
		}
		var before time.Time
		for i, id := range ids {
			one := r.mustLoad(t, id)
			if !one.Created.After(before) {
				t.Errorf("checkpoint %d was created at %v, the previous one at %v", i, one.Created, before)
			}
			before = one.Created
		}
		last, err := r.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{Session: "work"})
		mustSucceed(t, err)
		if last.ID != ids[5] {
			t.Errorf("the last checkpoint is %s", last.ID)
		}
	})
}

// TestStats checks the sums that Stats returns.
func TestStats(t *testing.T) {
	t.Parallel()
	r := openRig(t, checkpoint.ModeMemory)
	for i := range 5 {
		r.mustSave(t, "work", bulkyContext(i))
		r.clock.Add(24 * time.Hour)
	}
	stats, err := r.Stats(t.Context(), "ada")
	mustSucceed(t, err)
	if stats.Count != 5 || stats.Series != 1 || stats.Ratio < 2 || len(stats.Growth) != 5 || stats.Growth[0].Checkpoints != 1 || len(stats.Sessions) != 1 {
		t.Errorf("the statistics are %+v", stats)
	}
	none, err := r.Stats(t.Context(), "bob")
	mustSucceed(t, err)
	if none.Count != 0 || len(none.Growth) != 0 {
		t.Errorf("another user's statistics are %+v", none)
	}
}
