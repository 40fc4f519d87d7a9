package crashtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// crime is a journal with two runs in it, and somebody who edits it.
type crime struct {
	t     *testing.T
	place place
	// first and second are the runs; each has had so many events.
	first, second string
	events        int64
}

// scene makes a journal with two runs of as many events.
func scene(t *testing.T) *crime {
	t.Helper()
	c := &crime{t: t, place: place{Dir: t.TempDir()}}
	c.with(func(d *desk) {
		c.first, c.second = c.start(d, "the first run"), c.start(d, "the second run")
		for _, id := range []string{c.first, c.second} {
			c.advance(d, id, 12)
		}
		c.events = c.record(d, c.first).Seq
		if other := c.record(d, c.second).Seq; other != c.events {
			t.Fatalf("the runs have %d and %d events", c.events, other)
		}
	})
	return c
}

// with opens the journal as a new process would, and closes it.
func (c *crime) with(do func(d *desk)) {
	c.t.Helper()
	d, err := c.place.open(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		if err := d.journal.Close(); err != nil {
			c.t.Error(err)
		}
	}()
	do(d)
}

func (c *crime) start(d *desk, goal string) string {
	c.t.Helper()
	a, err := d.service.Start(c.t.Context(), caller(), run.StartRequest{WorkflowID: workflowID, Goal: goal})
	if err != nil {
		c.t.Fatal(err)
	}
	return a.RunID
}

// advance hands in so many commands, some of which are refused.
func (c *crime) advance(d *desk, id string, commands int) {
	c.t.Helper()
	ctx := c.t.Context()
	a, err := d.service.Status(ctx, caller(), run.Ref{RunID: id})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range commands {
		if a.Position.ID == "act" {
			_, err := d.service.Continue(ctx, caller(), run.ContinueRequest{Handle: a.Handle, Output: refusedOutput})
			if guideway.ErrorCode(err) != guideway.CodeRefused {
				c.t.Fatalf("%q is answered with %v", refusedOutput, err)
			}
		}
		r := run.ContinueRequest{Handle: a.Handle, Output: fmt.Sprintf("%d done", i)}
		if a.Position.Kind == engine.PositionGate {
			r = run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: engine.OptionConfirm}}
		}
		if a, err = d.service.Continue(ctx, caller(), r); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *crime) record(d *desk, id string) run.Record {
	c.t.Helper()
	rec, err := d.journal.Run(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return rec
}

// edit changes the database by hand. Each statement must change something.
func (c *crime) edit(statements ...string) {
	c.t.Helper()
	c.sql(func(ctx context.Context, db *sql.DB) {
		for _, text := range statements {
			text = strings.NewReplacer("$first", "'"+c.first+"'", "$second", "'"+c.second+"'").Replace(text)
			res, err := db.ExecContext(ctx, text)
			if err != nil {
				c.t.Fatalf("%s: %v", text, err)
			}
			if n, err := res.RowsAffected(); (err != nil || n == 0) && !strings.Contains(text, " table ") {
				c.t.Fatalf("%s changes nothing: %v", text, err)
			}
		}
	})
}

func (c *crime) sql(do func(ctx context.Context, db *sql.DB)) {
	c.t.Helper()
	db, err := sql.Open("sqlite", c.place.database())
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			c.t.Error(err)
		}
	}()
	do(c.t.Context(), db)
}

// verify checks the journal as a new process would.
func (c *crime) verify() []run.Fault {
	c.t.Helper()
	var report *run.Report
	c.with(func(d *desk) {
		var err error
		if report, err = d.service.Verify(c.t.Context(), ""); err != nil {
			c.t.Fatal(err)
		}
	})
	for _, f := range report.Faults {
		if f.Message == "" {
			c.t.Errorf("a fault has no message: %+v", f)
		}
	}
	return report.Faults
}

// expect compares what verify finds with what was done.
func (c *crime) expect(want ...run.Fault) {
	c.t.Helper()
	byRun := func(a, b run.Fault) int { return strings.Compare(a.Run, b.Run) }
	got := c.verify()
	slices.SortFunc(got, byRun)
	slices.SortFunc(want, byRun)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(run.Fault{}, "Message"), cmpopts.EquateEmpty()); diff != "" {
		c.t.Errorf("what verify finds (-want +got):\n%s", diff)
	}
}

func (c *crime) fault(seq int64, kind run.FaultKind) run.Fault {
	return run.Fault{Run: c.first, Seq: seq, Kind: kind}
}

// TestEditsAreFound edits the database by hand, as somebody does who knows all
// but the key. Each edit is found, at the first event that it falsifies; the
// other run is not suspected.
func TestEditsAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		edits []string
		// seq is the first broken event; below 1 it counts from the last.
		seq  int64
		kind run.FaultKind
	}{
		{"an event's data", []string{`update events set data = cast(replace(cast(data as text), 'done', 'gone') as blob) where run = $first and seq = 3`}, 3, run.FaultEdited},
		{"an event's kind", []string{`update events set kind = 'step_skipped' where run = $first and seq = 3`}, 3, run.FaultEdited},
		{"an event's time", []string{`update events set at = at + 1 where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"an event's user", []string{`update events set by_user = 'mallory' where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"an event's way", []string{`update events set by_via = 'terminal' where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"an event's MAC", []string{`update events set mac = zeroblob(32) where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"the first event", []string{`update events set data = cast(replace(cast(data as text), 'first', 'worst') as blob) where run = $first and seq = 1`}, 1, run.FaultEdited},
		{"the last event", []string{`update events set at = at + 1 where run = $first and seq = (select max(seq) from events where run = $first)`}, 0, run.FaultEdited},
		{"an event of another run in its place", []string{
			`delete from events where run = $first and seq = 5`,
			`insert into events select $first, seq, at, kind, by_user, by_client, by_via, data, mac from events where run = $second and seq = 5`,
		}, 5, run.FaultEdited},
		{"two events that have changed places", []string{
			`update events set seq = -seq where run = $first and seq in (4, 5)`,
			`update events set seq = 9 + seq where run = $first and seq in (-4, -5)`,
		}, 4, run.FaultEdited},
		{"the contents of two events that have changed places", []string{
			`create table swap as select * from events where run = $first and seq in (4, 5)`,
			`delete from events where run = $first and seq in (4, 5)`,
			`insert into events select run, 9 - seq, at, kind, by_user, by_client, by_via, data, (select mac from swap o where o.seq = 9 - swap.seq) from swap`,
			`drop table swap`,
		}, 4, run.FaultEdited},
		{"an event that is gone", []string{`delete from events where run = $first and seq = 4`}, 4, run.FaultGap},
		{"events that are gone", []string{`delete from events where run = $first and seq between 4 and 7`}, 4, run.FaultGap},
		{"the first event that is gone", []string{`delete from events where run = $first and seq = 1`}, 1, run.FaultGap},
		{"an event that is gone, and the others moved up", []string{
			`delete from events where run = $first and seq = 4`,
			`update events set seq = -seq where run = $first and seq > 4`,
			`update events set seq = -seq - 1 where run = $first and seq < 0`,
		}, 4, run.FaultEdited},
		{"an event that nobody made", []string{
			`insert into events select run, seq + 1, at, kind, by_user, by_client, by_via, data, mac from events
				where run = $first and seq = (select max(seq) from events where run = $first)`,
		}, 1 - 2, run.FaultEdited},
		{"a tail that is gone", []string{`delete from events where run = $first and seq > 8`}, 9, run.FaultTruncated},
		{"a tail that is gone, and the record of the run is made to fit", []string{
			`delete from events where run = $first and seq > 8`,
			`update runs set seq = 8, head = (select mac from events where run = $first and seq = 8) where id = $first`,
			`delete from snapshots where run = $first`,
		}, 9, run.FaultTruncated},
		{"the last event alone that is gone, and the record is made to fit", []string{
			`delete from events where run = $first and seq = (select max(seq) from events where run = $first)`,
			`update runs set (seq, head) = (select seq, mac from events where run = $first order by seq desc limit 1) where id = $first`,
		}, 0, run.FaultTruncated},
		{"all events", []string{`delete from events where run = $first`}, 1, run.FaultTruncated},
		{"the whole run", []string{
			`delete from events where run = $first`, `delete from handles where run = $first`,
			`delete from commands where run = $first`, `delete from snapshots where run = $first`, `delete from runs where id = $first`,
		}, 1, run.FaultMissing},
		{"the record alone", []string{`delete from runs where id = $first`}, 1, run.FaultMissing},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := scene(t)
			c.expect() // none is found on untouched data
			c.edit(test.edits...)
			seq := test.seq
			switch {
			case seq == 0:
				seq = c.events
			case seq < 0:
				seq = c.events - seq
			}
			c.expect(c.fault(seq, test.kind))
		})
	}
}

// TestEditedRecordsAreFound edits what lists and searches show of a run. All of
// it follows from the events.
func TestEditedRecordsAreFound(t *testing.T) {
	t.Parallel()
	for _, set := range []string{
		"user = 'mallory'", "goal = 'another one'", "workflow = 'another-one'",
		"hash = 'sha256:0000'", "head = zeroblob(32)",
		"client = 'another one'", "name = 'another one'", "version = '9.9.9'",
		"project = '0123456789ab'", "project_path = '/elsewhere'", "project_branch = 'other'", "project_commit = 'abc'",
		"status = 'completed'", "kind = 'end'", "step = 'frame'", "title = 'another one'", "person = 1", "done = 1",
		"parent = $second", "parent_seq = 3", "created = created - 1000000", "updated = updated + 1000000",
		"(seq, head) = (select seq, mac from events where run = $first and seq = 8)",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			c := scene(t)
			c.edit("update runs set " + set + " where id = $first")
			found := c.verify()
			if len(found) != 1 || found[0].Run != c.first || found[0].Kind != run.FaultRecord && !strings.HasPrefix(set, "hash") {
				t.Errorf("verify finds %+v", found)
			}
		})
	}
}

// TestForgedChainIsFound has an editor recompute all MACs from an edited event
// on, with whatever is not the key.
func TestForgedChainIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		key  []byte
	}{{"an empty key", make([]byte, run.KeySize)}, {"a hash of what is known", nil}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := scene(t)
			var events []run.Event
			c.with(func(d *desk) {
				var err error
				if events, err = d.journal.Events(t.Context(), c.first, 0, 1000); err != nil {
					t.Fatal(err)
				}
			})
			c.sql(func(ctx context.Context, db *sql.DB) {
				mac := events[2].MAC
				for _, e := range events[3:] {
					e.Data = []byte(strings.ReplaceAll(string(e.Data), "done", "gone"))
					if test.key != nil {
						mac = run.Key(test.key).Chain(c.first, mac, e)
					} else {
						sum := sha256.Sum256(append(slices.Clone(mac), e.Data...))
						mac = sum[:]
					}
					if _, err := db.ExecContext(ctx, `update events set data = ?, mac = ? where run = ? and seq = ?`, []byte(e.Data), mac, c.first, e.Seq); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := db.ExecContext(ctx, `update runs set head = ? where id = ?`, mac, c.first); err != nil {
					t.Fatal(err)
				}
			})
			c.expect(c.fault(4, run.FaultEdited))
		})
	}
}

// TestEditsOpenNoShortcut edits what a run is loaded from. The service never
// goes on from another state than the events give.
func TestEditsOpenNoShortcut(t *testing.T) {
	t.Parallel()
	lax, found := workflow.Parse("lax.yaml", []byte(strings.NewReplacer("value: done", "value: e", "requireConfirmation: true", "requireConfirmation: false").Replace(crashWorkflow)))
	if lax == nil {
		t.Fatalf("%+v", found)
	}
	for _, test := range []struct {
		name string
		edit func(c *crime)
		// stays says that the run goes on as if nothing were; else it stops.
		stays bool
	}{
		{"the state of the snapshot", func(c *crime) {
			c.edit(`update snapshots set state = cast(replace(replace(cast(state as text), '"act"', '"note"'), '"check"', '"note"') as blob)`)
		}, true},
		{"the snapshot of another run", func(c *crime) {
			c.edit(`delete from snapshots where run = $first`,
				`insert into snapshots select $first, seq, (select head from runs where id = $first), state, mac from snapshots where run = $second`)
		}, true},
		{"the sequence number of the snapshot", func(c *crime) {
			c.edit(`update snapshots set (seq, head) = (select seq, head from runs where id = $first) where run = $first`)
		}, true},
		{"a snapshot that is not JSON", func(c *crime) { c.edit(`update snapshots set state = x'00ff'`) }, true},
		{"the definition", func(c *crime) {
			c.edit(`update definitions set text = cast(replace(cast(text as text), '"requireConfirmation":true', '"requireConfirmation":false') as blob)`)
		}, false},
		{"the definition that the record names", func(c *crime) {
			c.sql(func(ctx context.Context, db *sql.DB) {
				if _, err := db.ExecContext(ctx, `insert into definitions values (?, ?)`, lax.Hash, []byte(lax.Steps.Canonical)); err != nil {
					c.t.Fatal(err)
				}
				if _, err := db.ExecContext(ctx, `update runs set hash = ? where id = ?`, lax.Hash, c.first); err != nil {
					c.t.Fatal(err)
				}
			})
		}, false},
		{"the owner that the record names", func(c *crime) { c.edit(`update runs set user = 'mallory' where id = $first`) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := scene(t)
			var before *run.Answer
			c.with(func(d *desk) { before = c.status(d, "ada") })
			test.edit(c)
			c.with(func(d *desk) {
				if !test.stays {
					c.stopped(d)
					return
				}
				after := c.status(d, "ada")
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the run stands elsewhere (-before +after):\n%s", diff)
				}
				c.advance(d, c.first, 6)
			})
			if test.stays {
				c.expect()
			}
		})
	}
}

func (c *crime) status(d *desk, user string) *run.Answer {
	c.t.Helper()
	who := caller()
	who.User = user
	a, err := d.service.Status(c.t.Context(), who, run.Ref{RunID: c.first})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// stopped checks that nobody can go on with the first run.
func (c *crime) stopped(d *desk) {
	c.t.Helper()
	for _, user := range []string{"ada", "mallory"} {
		who := caller()
		who.User = user
		rec := c.record(d, c.first)
		_, err := d.service.Continue(c.t.Context(), who, run.ContinueRequest{Handle: rec.Handle, Output: "one more done"})
		if refusal, ok := run.AsRefusal(err); ok && refusal.Rule == run.RuleUnknownHandle {
			continue // it is not this user's
		}
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
			c.t.Errorf("%s goes on with the run: %v", user, err)
		}
	}
}

// files are the database with what belongs to it.
func (c *crime) files() []string {
	return []string{c.place.database(), c.place.database() + "-wal", c.place.database() + "-shm"}
}

// TestDeletedDatabaseIsFound deletes all of it. A new one is made, and the runs
// are missed.
func TestDeletedDatabaseIsFound(t *testing.T) {
	t.Parallel()
	c := scene(t)
	for _, name := range c.files() {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	c.expect(c.fault(1, run.FaultMissing), run.Fault{Run: c.second, Seq: 1, Kind: run.FaultMissing})
}

// TestEditedDefinitionIsFound edits what runs are pinned to.
func TestEditedDefinitionIsFound(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{
		`update definitions set text = cast(replace(cast(text as text), 'value":"done', 'value":"d') as blob)`,
		`update definitions set hash = 'sha256:0000'`,
		`delete from definitions`,
	} {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			c := scene(t)
			c.edit(edit)
			c.expect(c.fault(1, run.FaultDefinition), run.Fault{Run: c.second, Seq: 1, Kind: run.FaultDefinition})
		})
	}
}
