package workflow

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// snapshotSize is the size of the snapshot of a run with a typical context.
const snapshotSize = 4 << 10

// measureAppends measures the time that a command spends in the journal: one durable
// transaction with an event, a handle, search words and a snapshot.
func (p plan) measureAppends(ctx context.Context, w *workplace, rec record) (err error) {
	journal, err := sqlite.Open(ctx, sqlite.Options{Path: filepath.Join(w.dir, "append", "journal.db")})
	if err != nil {
		return fmt.Errorf("open a journal: %w", err)
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	definition := run.Definition{Hash: "sha256:0", Text: "{}"}
	if err := journal.Create(ctx, definition, commitOf(1)); err != nil {
		return fmt.Errorf("create a run: %w", err)
	}
	var times []time.Duration
	for seq := int64(2); len(times) < p.calls; seq++ {
		c := commitOf(seq)
		began := time.Now()
		if err := journal.Append(ctx, c); err != nil {
			return fmt.Errorf("append event %d: %w", seq, err)
		}
		times = append(times, time.Since(began))
	}
	rec(rowAppend, latencyFigure(times))
	return nil
}

// commitOf returns the commit of an event.
func commitOf(seq int64) run.Commit {
	now := time.Now().UTC().Truncate(time.Microsecond)
	mac := make([]byte, run.KeySize)
	handle := fmt.Sprintf("h_%021d", seq)
	return run.Commit{
		Record: run.Record{
			ID: "r_bench", User: "bench", Workflow: durableID, Name: durableID, Version: "1.0.0", Hash: "sha256:0",
			Status: engine.StatusRunning, Kind: engine.PositionStep, Step: "round-1",
			Created: now, Updated: now, Seq: seq, Head: mac, Handle: handle,
		},
		Expected: seq - 1,
		Events: []run.Event{{
			Seq: seq, At: now, Kind: string(engine.EventStepCompleted), By: run.By{User: "bench", Via: run.ViaAgent},
			Data: []byte(`{"kind":"step_completed","step":"round-1","output":"` + durableID + `"}`), MAC: mac,
		}},
		Handle: handle, Key: fmt.Sprintf("key %d", seq), Terms: words.Of("the retry that had no bound"),
		Snapshot: &run.Snapshot{Seq: seq, Head: mac, State: make([]byte, snapshotSize), MAC: mac},
	}
}
