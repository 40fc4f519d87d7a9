package notice_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/notice"
	"github.com/guideway-dev/guideway/internal/run"
)

// fakeJournal has records and a feed whose first entries may be pruned.
type fakeJournal struct {
	records map[string]run.Record
	feed    []run.Change
}

// put stores a record and adds a change.
func (j *fakeJournal) put(r run.Record) {
	j.records[r.ID] = r
	j.feed = append(j.feed, run.Change{Pos: int64(len(j.feed) + 1), Subject: run.SubjectRun, Op: run.OpChanged, ID: r.ID, Seq: r.Seq})
}

func (j *fakeJournal) Changes(_ context.Context, after int64, limit int) ([]run.Change, bool, error) {
	if after > int64(len(j.feed)) {
		return nil, true, nil
	}
	return j.feed[after:min(int64(len(j.feed)), after+int64(limit))], false, nil
}

func (j *fakeJournal) Latest(context.Context) (int64, error) { return int64(len(j.feed)), nil }
func (j *fakeJournal) Watch(context.Context) <-chan struct{} { return nil }
func (j *fakeJournal) Run(_ context.Context, id string) (run.Record, error) {
	r, ok := j.records[id]
	if !ok {
		return r, guideway.Errorf(guideway.CodeNotFound, "no run")
	}
	return r, nil
}

func (j *fakeJournal) Runs(_ context.Context, f run.Filter) (list []run.Record, err error) {
	for _, r := range j.records {
		if slices.Contains(f.Statuses, r.Status) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b run.Record) int { return strings.Compare(b.ID, a.ID) })
	return list, nil
}

// TestJournalSource checks which notices the changes of runs lead to.
func TestJournalSource(t *testing.T) {
	t.Parallel()
	j := &fakeJournal{records: map[string]run.Record{}}
	source := &notice.JournalSource{
		SourceName: "runs", Describe: notice.DescribeRun,
		Open: func(context.Context) (notice.Journal, error) { return j, nil },
	}
	position := int64(-1)
	check := func(want ...string) {
		t.Helper()
		list, next, err := source.Read(t.Context(), position)
		var got []string
		for _, n := range list {
			got = append(got, n.ID+" "+string(n.Type))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("notices %q, error %v, want %q", got, err, want)
		}
		position = next
	}
	gate := run.Record{ID: "r_a", Seq: 3, Status: engine.StatusWaiting, Person: true, Name: "Release", Title: "Ship it?"}
	j.put(gate)
	check("n_r_a_3 gate") // a new receiver gets everything that waits
	check()
	j.put(run.Record{ID: "r_b", Seq: 1, Status: engine.StatusRunning})
	j.put(run.Record{ID: "r_b", Seq: 2, Status: engine.StatusWaiting}) // a gate that the agent answers
	j.put(run.Record{ID: "r_c", Seq: 4, Status: engine.StatusWaiting, Person: true})
	j.put(run.Record{ID: "r_c", Seq: 5, Status: engine.StatusCompleted}) // answered meanwhile
	j.put(run.Record{ID: "r_d", Seq: 6, Status: engine.StatusAborted})
	j.feed = append(j.feed, run.Change{Pos: int64(len(j.feed) + 1), Subject: run.SubjectSession, ID: "s_a"})
	check("n_r_c_5 run-completed", "n_r_d_6 run-aborted")
	position = 1000 // a position that only another store has
	check("n_r_a_3 gate")
	if n, ok := notice.DescribeRun(&gate); !ok || n.Text != "The workflow Release waits for your approval: Ship it?" || n.Command != "guideway runs approve r_a" {
		t.Errorf("notice %+v", n)
	}
}

// TestMachineNotices checks the notices about runs of machines.
func TestMachineNotices(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]notice.Type{
		"waiting": notice.TypeMachineWaiting, "paused": notice.TypeMachinePaused,
		"completed": notice.TypeMachineCompleted, "cancelled": notice.TypeMachineCancelled, "running": "",
	} {
		n, ok := notice.DescribeMachineRun(&run.Record{ID: "m_1", Workflow: "shop", Step: "ask", Title: status})
		if n.Type != want || ok != (want != "") {
			t.Errorf("%s: notice %+v, %v", status, n, ok)
		}
	}
}

// TestMissingJournal checks that a store that does not exist yet is not an error.
func TestMissingJournal(t *testing.T) {
	t.Parallel()
	source := &notice.JournalSource{Open: func(context.Context) (notice.Journal, error) { return nil, nil }}
	if list, next, err := source.Read(t.Context(), -1); len(list) > 0 || next != -1 || err != nil || source.Watch(t.Context()) != nil {
		t.Errorf("%v, %d, %v", list, next, err)
	}
}
