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

// tamperTest is a journal with two runs that a test edits.
type tamperTest struct {
	t     *testing.T
	place workerPlace
	// first and second are the runs. events is the number of events of each.
	first, second string
	events        int64
}

// newTamperTest creates a journal with two runs of the same length.
func newTamperTest(t *testing.T) *tamperTest {
	t.Helper()
	c := &tamperTest{t: t, place: workerPlace{Dir: t.TempDir()}}
	c.withStore(func(d *workerState) {
		c.first, c.second = c.startRun(d, "the first run"), c.startRun(d, "the second run")
		for _, id := range []string{c.first, c.second} {
			c.advanceRun(d, id, 12)
		}
		c.events = c.readRecord(d, c.first).Seq
		if other := c.readRecord(d, c.second).Seq; other != c.events {
			t.Fatalf("the runs have %d and %d events", c.events, other)
		}
	})
	return c
}

// withStore opens the journal like a new process, and closes it.
func (c *tamperTest) withStore(do func(d *workerState)) {
	c.t.Helper()
	d, err := c.place.openStore(c.t.Context())
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

func (c *tamperTest) startRun(d *workerState, goal string) string {
	c.t.Helper()
	a, err := d.service.Start(c.t.Context(), testCaller(), run.StartRequest{WorkflowID: workflowID, Goal: goal})
	if err != nil {
		c.t.Fatal(err)
	}
	return a.RunID
}

// advanceRun sends commands, some of which are refused.
func (c *tamperTest) advanceRun(d *workerState, id string, commands int) {
	c.t.Helper()
	ctx := c.t.Context()
	a, err := d.service.Status(ctx, testCaller(), run.Ref{RunID: id})
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range commands {
		if a.Position.ID == "act" {
			_, err := d.service.Continue(ctx, testCaller(), run.ContinueRequest{Handle: a.Handle, Output: refusedOutput})
			if guideway.ErrorCode(err) != guideway.CodeRefused {
				c.t.Fatalf("%q returned %v", refusedOutput, err)
			}
		}
		r := run.ContinueRequest{Handle: a.Handle, Output: fmt.Sprintf("%d done", i)}
		if a.Position.Kind == engine.PositionGate {
			r = run.ContinueRequest{Handle: a.Handle, Answer: &engine.Answer{OptionID: engine.OptionConfirm}}
		}
		if a, err = d.service.Continue(ctx, testCaller(), r); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *tamperTest) readRecord(d *workerState, id string) run.Record {
	c.t.Helper()
	rec, err := d.journal.Run(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return rec
}

// execEdits edits the database directly. Each statement must change at least one row.
func (c *tamperTest) execEdits(statements ...string) {
	c.t.Helper()
	c.withDatabase(func(ctx context.Context, db *sql.DB) {
		for _, text := range statements {
			text = strings.NewReplacer("$first", "'"+c.first+"'", "$second", "'"+c.second+"'").Replace(text)
			res, err := db.ExecContext(ctx, text)
			if err != nil {
				c.t.Fatalf("%s: %v", text, err)
			}
			if n, err := res.RowsAffected(); (err != nil || n == 0) && !strings.Contains(text, " table ") {
				c.t.Fatalf("the statement %s changed no row: %v", text, err)
			}
		}
	})
}

func (c *tamperTest) withDatabase(do func(ctx context.Context, db *sql.DB)) {
	c.t.Helper()
	db, err := sql.Open("sqlite", c.place.databasePath())
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

// verifyJournal verifies the journal like a new process.
func (c *tamperTest) verifyJournal() []run.Fault {
	c.t.Helper()
	var report *run.Report
	c.withStore(func(d *workerState) {
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

// checkFaults verifies the journal and compares the reported faults with the expected ones.
func (c *tamperTest) checkFaults(want ...run.Fault) {
	c.t.Helper()
	byRun := func(a, b run.Fault) int { return strings.Compare(a.Run, b.Run) }
	got := c.verifyJournal()
	slices.SortFunc(got, byRun)
	slices.SortFunc(want, byRun)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(run.Fault{}, "Message"), cmpopts.EquateEmpty()); diff != "" {
		c.t.Errorf("the faults (-want +got):\n%s", diff)
	}
}

func (c *tamperTest) newFault(seq int64, kind run.FaultKind) run.Fault {
	return run.Fault{Run: c.first, Seq: seq, Kind: kind}
}

// TestEditsAreFound checks direct edits of the database by an attacker who knows everything
// except the key. Each edit is detected at the first event that it changes, and the other
// run stays valid.
func TestEditsAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		edits []string
		// seq is the first invalid event; below 1 it counts from the last.
		seq  int64
		kind run.FaultKind
	}{
		{"an event's data", []string{`update events set data = cast(replace(cast(data as text), 'done', 'gone') as blob) where run = $first and seq = 3`}, 3, run.FaultEdited},
		{"an event's kind", []string{`update events set kind = 'step_skipped' where run = $first and seq = 3`}, 3, run.FaultEdited},
		{"an event's time", []string{`update events set at = at + 1 where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"an event's user", []string{`update events set by_user = 'mallory' where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"an event's channel", []string{`update events set by_via = 'terminal' where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"an event's MAC", []string{`update events set mac = zeroblob(32) where run = $first and seq = 5`}, 5, run.FaultEdited},
		{"the first event", []string{`update events set data = cast(replace(cast(data as text), 'first', 'worst') as blob) where run = $first and seq = 1`}, 1, run.FaultEdited},
		{"the last event", []string{`update events set at = at + 1 where run = $first and seq = (select max(seq) from events where run = $first)`}, 0, run.FaultEdited},
		{"an event replaced by one of another run", []string{
			`delete from events where run = $first and seq = 5`,
			`insert into events select $first, seq, at, kind, by_user, by_client, by_via, data, mac from events where run = $second and seq = 5`,
		}, 5, run.FaultEdited},
		{"two swapped events", []string{
			`update events set seq = -seq where run = $first and seq in (4, 5)`,
			`update events set seq = 9 + seq where run = $first and seq in (-4, -5)`,
		}, 4, run.FaultEdited},
		{"the contents of two swapped events", []string{
			`create table swap as select * from events where run = $first and seq in (4, 5)`,
			`delete from events where run = $first and seq in (4, 5)`,
			`insert into events select run, 9 - seq, at, kind, by_user, by_client, by_via, data, (select mac from swap o where o.seq = 9 - swap.seq) from swap`,
			`drop table swap`,
		}, 4, run.FaultEdited},
		{"a deleted event", []string{`delete from events where run = $first and seq = 4`}, 4, run.FaultGap},
		{"several deleted events", []string{`delete from events where run = $first and seq between 4 and 7`}, 4, run.FaultGap},
		{"the deleted first event", []string{`delete from events where run = $first and seq = 1`}, 1, run.FaultGap},
		{"a deleted event, with the later ones renumbered", []string{
			`delete from events where run = $first and seq = 4`,
			`update events set seq = -seq where run = $first and seq > 4`,
			`update events set seq = -seq - 1 where run = $first and seq < 0`,
		}, 4, run.FaultEdited},
		{"an unexpected event", []string{
			`insert into events select run, seq + 1, at, kind, by_user, by_client, by_via, data, mac from events
				where run = $first and seq = (select max(seq) from events where run = $first)`,
		}, 1 - 2, run.FaultEdited},
		{"a deleted tail", []string{`delete from events where run = $first and seq > 8`}, 9, run.FaultTruncated},
		{"a deleted tail, with a matching record", []string{
			`delete from events where run = $first and seq > 8`,
			`update runs set seq = 8, head = (select mac from events where run = $first and seq = 8) where id = $first`,
			`delete from snapshots where run = $first`,
		}, 9, run.FaultTruncated},
		{"only the last event deleted, with a matching record", []string{
			`delete from events where run = $first and seq = (select max(seq) from events where run = $first)`,
			`update runs set (seq, head) = (select seq, mac from events where run = $first order by seq desc limit 1) where id = $first`,
		}, 0, run.FaultTruncated},
		{"all events", []string{`delete from events where run = $first`}, 1, run.FaultTruncated},
		{"the whole run", []string{
			`delete from events where run = $first`, `delete from handles where run = $first`,
			`delete from commands where run = $first`, `delete from snapshots where run = $first`, `delete from runs where id = $first`,
		}, 1, run.FaultMissing},
		{"only the record", []string{`delete from runs where id = $first`}, 1, run.FaultMissing},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newTamperTest(t)
			c.checkFaults() // the unchanged data is valid
			c.execEdits(test.edits...)
			seq := test.seq
			switch {
			case seq == 0:
				seq = c.events
			case seq < 0:
				seq = c.events - seq
			}
			c.checkFaults(c.newFault(seq, test.kind))
		})
	}
}

// TestEditedRecordsAreFound checks that an edit of each field of a record is detected,
// because lists and searches show these fields.
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
			c := newTamperTest(t)
			c.execEdits("update runs set " + set + " where id = $first")
			found := c.verifyJournal()
			if len(found) != 1 || found[0].Run != c.first || found[0].Kind != run.FaultRecord && !strings.HasPrefix(set, "hash") {
				t.Errorf("Verify reports %+v", found)
			}
		})
	}
}

// TestForgedChainIsFound checks that an edit is detected even if all later MACs are
// recomputed with a wrong key.
func TestForgedChainIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		key  []byte
	}{{"an empty key", make([]byte, run.KeySize)}, {"a hash of public data", nil}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newTamperTest(t)
			var events []run.Event
			c.withStore(func(d *workerState) {
				var err error
				if events, err = d.journal.Events(t.Context(), c.first, 0, 1000); err != nil {
					t.Fatal(err)
				}
			})
			c.withDatabase(func(ctx context.Context, db *sql.DB) {
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
			c.checkFaults(c.newFault(4, run.FaultEdited))
		})
	}
}

// TestEditsOpenNoShortcut checks edits of the data that a run is loaded from: the service
// never continues with a state that differs from the events.
func TestEditsOpenNoShortcut(t *testing.T) {
	t.Parallel()
	lax, found := workflow.Parse("lax.yaml", []byte(strings.NewReplacer("value: done", "value: e", "requireConfirmation: true", "requireConfirmation: false").Replace(crashWorkflow)))
	if lax == nil {
		t.Fatalf("%+v", found)
	}
	for _, test := range []struct {
		name string
		edit func(c *tamperTest)
		// stays reports whether the run is unaffected; otherwise it cannot be continued.
		stays bool
	}{
		{"the state of the snapshot", func(c *tamperTest) {
			c.execEdits(`update snapshots set state = cast(replace(replace(cast(state as text), '"act"', '"note"'), '"check"', '"note"') as blob)`)
		}, true},
		{"the snapshot of another run", func(c *tamperTest) {
			c.execEdits(`delete from snapshots where run = $first`,
				`insert into snapshots select $first, seq, (select head from runs where id = $first), state, mac from snapshots where run = $second`)
		}, true},
		{"the sequence number of the snapshot", func(c *tamperTest) {
			c.execEdits(`update snapshots set (seq, head) = (select seq, head from runs where id = $first) where run = $first`)
		}, true},
		{"a snapshot that is not JSON", func(c *tamperTest) { c.execEdits(`update snapshots set state = x'00ff'`) }, true},
		{"the definition", func(c *tamperTest) {
			c.execEdits(`update definitions set text = cast(replace(cast(text as text), '"requireConfirmation":true', '"requireConfirmation":false') as blob)`)
		}, false},
		{"the definition that the record names", func(c *tamperTest) {
			c.withDatabase(func(ctx context.Context, db *sql.DB) {
				if _, err := db.ExecContext(ctx, `insert into definitions values (?, ?)`, lax.Hash, []byte(lax.Steps.Canonical)); err != nil {
					c.t.Fatal(err)
				}
				if _, err := db.ExecContext(ctx, `update runs set hash = ? where id = ?`, lax.Hash, c.first); err != nil {
					c.t.Fatal(err)
				}
			})
		}, false},
		{"the owner that the record names", func(c *tamperTest) { c.execEdits(`update runs set user = 'mallory' where id = $first`) }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newTamperTest(t)
			var before *run.Answer
			c.withStore(func(d *workerState) { before = c.runStatus(d, "ada") })
			test.edit(c)
			c.withStore(func(d *workerState) {
				if !test.stays {
					c.checkStopped(d)
					return
				}
				after := c.runStatus(d, "ada")
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the position has changed (-before +after):\n%s", diff)
				}
				c.advanceRun(d, c.first, 6)
			})
			if test.stays {
				c.checkFaults()
			}
		})
	}
}

func (c *tamperTest) runStatus(d *workerState, user string) *run.Answer {
	c.t.Helper()
	who := testCaller()
	who.User = user
	a, err := d.service.Status(c.t.Context(), who, run.Ref{RunID: c.first})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// checkStopped checks that the first run cannot be continued.
func (c *tamperTest) checkStopped(d *workerState) {
	c.t.Helper()
	for _, user := range []string{"ada", "mallory"} {
		who := testCaller()
		who.User = user
		rec := c.readRecord(d, c.first)
		_, err := d.service.Continue(c.t.Context(), who, run.ContinueRequest{Handle: rec.Handle, Output: "one more done"})
		if refusal, ok := run.AsRefusal(err); ok && refusal.Rule == run.RuleUnknownHandle {
			continue // the run belongs to another user
		}
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
			c.t.Errorf("%s can continue the run: %v", user, err)
		}
	}
}

// databaseFiles returns the database file and the files that SQLite keeps next to it.
func (c *tamperTest) databaseFiles() []string {
	return []string{c.place.databasePath(), c.place.databasePath() + "-wal", c.place.databasePath() + "-shm"}
}

// TestDeletedDatabaseIsFound checks that the missing runs are reported if the database is
// deleted and a new one is created.
func TestDeletedDatabaseIsFound(t *testing.T) {
	t.Parallel()
	c := newTamperTest(t)
	for _, name := range c.databaseFiles() {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
	c.checkFaults(c.newFault(1, run.FaultMissing), run.Fault{Run: c.second, Seq: 1, Kind: run.FaultMissing})
}

// TestEditedDefinitionIsFound checks that an edit of a pinned definition is detected.
func TestEditedDefinitionIsFound(t *testing.T) {
	t.Parallel()
	for _, edit := range []string{
		`update definitions set text = cast(replace(cast(text as text), 'value":"done', 'value":"d') as blob)`,
		`update definitions set hash = 'sha256:0000'`,
		`delete from definitions`,
	} {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			c := newTamperTest(t)
			c.execEdits(edit)
			c.checkFaults(c.newFault(1, run.FaultDefinition), run.Fault{Run: c.second, Seq: 1, Kind: run.FaultDefinition})
		})
	}
}
