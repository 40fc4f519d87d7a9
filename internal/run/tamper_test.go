package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// TestHumanApprovalIsNotImported checks that a human approval in a bundle is kept only if a
// person imports the bundle.
func TestHumanApprovalIsNotImported(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "person", nil)
	a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
	a, err := b.Answer(t.Context(), personCaller(run.ViaTerminal), run.AnswerRequest{Ref: run.Ref{Handle: a.Handle}, Answer: *confirmAnswer()})
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := b.Export(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Import(t.Context(), agentCaller(), bundle)
	if err != nil || again.Position.Kind != engine.PositionGate || !again.Position.Person {
		t.Errorf("the import by an agent returned %+v, %v", again, err)
	}
	again, err = b.Import(t.Context(), personCaller(run.ViaTerminal), bundle)
	if err != nil || again.Position.ID != "build" {
		t.Errorf("the import by a person returned %+v, %v", again, err)
	}
}

// TestRefusalsAreRecordedUpToABound checks that 300 refused calls at one position add at
// most 120 events to the journal.
func TestRefusalsAreRecordedUpToABound(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	for range 300 {
		_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "no"})
		checkRule(t, err, engine.RuleCriteria)
	}
	if n := len(b.journal.events[a.RunID]); n > 120 {
		t.Errorf("the journal has %d events", n)
	}
}

// TestRecordedRefusalsOfAPosition checks that exactly the first 100 refusals of a rule at a
// position are recorded, and that the count starts at zero at the next position.
func TestRecordedRefusalsOfAPosition(t *testing.T) {
	t.Parallel()
	const most = 100
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	count := func() (n int) {
		for _, e := range b.journal.events[a.RunID] {
			if e.Kind == run.KindRefused {
				n++
			}
		}
		return n
	}
	refuse := func(s *run.Service, times int) {
		t.Helper()
		for range times {
			_, err := s.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "no", Step: "none"})
			if _, refused := run.AsRefusal(err); !refused {
				t.Fatalf("got %v, want a refusal", err)
			}
		}
	}
	refuse(b.Service, most-1)
	if n := count(); n != most-1 {
		t.Fatalf("%d refusals are recorded, want %d", n, most-1)
	}
	refuse(b.Service, 1)
	if n := count(); n != most {
		t.Errorf("%d refusals are recorded, want %d", n, most)
	}
	refuse(b.Service, 2)
	if n := count(); n != most {
		t.Errorf("%d refusals are recorded, want at most %d", n, most)
	}
	a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	refuse(b.Service, 2)
	if n := count(); n != most+2 {
		t.Errorf("%d refusals are recorded after the next position, want %d", n, most+2)
	}
}

// TestVerifyFindsTampering checks that every change of the journal without the key is
// found, with the first changed event.
func TestVerifyFindsTampering(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		tamper func(b *testBench, id string)
		kind   run.FaultKind
		seq    int64
	}{
		{"an edited event", func(b *testBench, id string) { b.journal.events[id][2].Data = []byte(`{}`) }, run.FaultEdited, 3},
		{"an edited time", func(b *testBench, id string) { b.journal.events[id][2].At = time.Unix(0, 0) }, run.FaultEdited, 3},
		{"an edited author", func(b *testBench, id string) { b.journal.events[id][2].By.Via = run.ViaTerminal }, run.FaultEdited, 3},
		{"a recomputed chain", func(b *testBench, id string) {
			events := b.journal.events[id]
			events[2].Data = []byte(`{}`)
			forger := run.Key(bytes.Repeat([]byte{8}, run.KeySize))
			prev := events[1].MAC
			for i := 2; i < len(events); i++ {
				events[i].MAC = forger.Chain(id, prev, events[i])
				prev = events[i].MAC
			}
			r := b.journal.records[id]
			r.Head = prev
			b.journal.records[id] = r
		}, run.FaultEdited, 3},
		{"a removed event", func(b *testBench, id string) { b.journal.events[id] = slices.Delete(b.journal.events[id], 2, 3) }, run.FaultGap, 3},
		{"a removed tail", func(b *testBench, id string) { b.journal.events[id] = b.journal.events[id][:4] }, run.FaultTruncated, 5},
		{"a removed tail with its record", func(b *testBench, id string) {
			b.journal.events[id] = b.journal.events[id][:4]
			r := b.journal.records[id]
			r.Seq, r.Head = 4, b.journal.events[id][3].MAC
			b.journal.records[id] = r
		}, run.FaultTruncated, 5},
		{"a removed run", func(b *testBench, id string) { delete(b.journal.records, id); delete(b.journal.events, id) }, run.FaultMissing, 1},
		{"another goal", func(b *testBench, id string) {
			r := b.journal.records[id]
			r.Goal = "another"
			b.journal.records[id] = r
		}, run.FaultRecord, 15},
		{"another status", func(b *testBench, id string) {
			r := b.journal.records[id]
			r.Status = engine.StatusCompleted
			b.journal.records[id] = r
		}, run.FaultRecord, 15},
		{"a record with fewer events", func(b *testBench, id string) {
			r := b.journal.records[id]
			r.Seq, r.Head = 8, b.journal.events[id][7].MAC
			b.journal.records[id] = r
		}, run.FaultRecord, 9},
		{"another owner", func(b *testBench, id string) {
			r := b.journal.records[id]
			r.User = "eve"
			b.journal.records[id] = r
		}, run.FaultRecord, 1},
		{"an edited definition", func(b *testBench, id string) {
			r := b.journal.records[id]
			d := b.journal.defs[r.Hash]
			d.Text = strings.Replace(d.Text, "PLAN", "P", 1)
			b.journal.defs[r.Hash] = d
		}, run.FaultDefinition, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newTestBench(t)
			id := runToLastStep(t, b.Service)[0].RunID
			startRun(t, b.Service, "person", nil)
			tt.tamper(b, id)
			report, err := b.newService(t).Verify(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Faults) != 1 || report.Faults[0].Run != id || report.Faults[0].Kind != tt.kind || report.Faults[0].Seq != tt.seq {
				t.Errorf("faults = %+v, want one: %s at %d", report.Faults, tt.kind, tt.seq)
			}
		})
	}
}

// TestARollbackIsFound checks that a rollback of the journal is detected, even if the run
// was continued afterwards, and that a deliberate restore can be accepted.
func TestARollbackIsFound(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	oldEvents, oldRecord := slices.Clone(b.journal.events[a.RunID]), b.journal.records[a.RunID]
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN one"})
	b.journal.events[a.RunID], b.journal.records[a.RunID] = oldEvents, oldRecord
	delete(b.journal.snaps, a.RunID)
	b.journal.outcomes = map[string]run.Handle{}
	fresh := b.newService(t)
	report, err := fresh.Verify(t.Context(), a.RunID)
	if err != nil || len(report.Faults) != 1 || report.Faults[0].Kind != run.FaultTruncated {
		t.Fatalf("after the rollback, Verify returned %+v, %v", report, err)
	}
	mustContinue(t, fresh, run.ContinueRequest{Handle: a.Handle, Output: "PLAN two"})
	report, err = fresh.Verify(t.Context(), "")
	if err != nil || len(report.Faults) != 1 || report.Faults[0].Kind != run.FaultReplaced {
		t.Fatalf("after the run was continued, Verify returned %+v, %v", report, err)
	}
	if err := fresh.AcceptRestore(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err = fresh.Verify(t.Context(), "")
	if err != nil || len(report.Faults) != 0 {
		t.Errorf("after the restore was accepted, Verify returned %+v, %v", report, err)
	}
}

// movingJournal does not list a run the first time, as if the run had changed its place in
// the list between two pages.
type movingJournal struct {
	*memoryJournal
	missed string
	listed int
}

func (m *movingJournal) Runs(ctx context.Context, f run.Filter) ([]run.Record, error) {
	list, err := m.memoryJournal.Runs(ctx, f)
	if m.listed++; m.listed == 1 {
		list = slices.DeleteFunc(list, func(r run.Record) bool { return r.ID == m.missed })
	}
	return list, err
}

// TestVerifyVisitsChangedRuns checks that the verification of all runs includes a run that
// changes meanwhile, and that the verification of one run visits no other run.
func TestVerifyVisitsChangedRuns(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	moved, other := startRun(t, b.Service, "guarded", nil), startRun(t, b.Service, "guarded", nil)
	b.journal.events[moved.RunID][1].Data = []byte(`{}`)
	for id, want := range map[string]run.Report{"": {Runs: 2, Faults: make([]run.Fault, 1)}, moved.RunID: {Runs: 1, Faults: make([]run.Fault, 1)}, other.RunID: {Runs: 1}} {
		s := b.newService(t, func(o *run.Options) {
			o.Journal, o.Heads = &movingJournal{memoryJournal: b.journal, missed: moved.RunID}, nil
		})
		report, err := s.Verify(t.Context(), id)
		if err != nil || report.Runs != want.Runs || len(report.Faults) != len(want.Faults) || len(report.Faults) > 0 && report.Faults[0].Run != moved.RunID {
			t.Errorf("the verification of %q returned %+v, %v", id, report, err)
		}
	}
}

// TestVerifyGoesOnWithDamagedHeads checks that damaged heads are reported and hide no other
// error, and that a missing run does not pass the verification.
func TestVerifyGoesOnWithDamagedHeads(t *testing.T) {
	t.Parallel()
	b := newTestBench(t, func(o *run.Options) { o.Heads = damagedHeads{newMemoryHeads()} })
	a := startRun(t, b.Service, "guarded", nil)
	b.journal.events[a.RunID][1].Data = []byte(`{}`)
	report, err := b.Verify(t.Context(), "")
	if err != nil || len(report.Faults) != 2 || report.Faults[0].Kind != run.FaultHeads || report.Faults[1].Kind != run.FaultEdited {
		t.Errorf("verify: %+v, %v", report, err)
	}
	fine := newTestBench(t)
	if _, err := fine.Verify(t.Context(), "r_nosuchrun"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("Verify of a missing run returned %v", err)
	}
}

// damagedHeads are heads with an unreadable line.
type damagedHeads struct{ *memoryHeads }

func (d damagedHeads) Heads() (map[string]run.Head, error) {
	known, _ := d.memoryHeads.Heads()
	return known, guideway.Errorf(guideway.CodeInvalid, "1 line of the head file is damaged")
}

// TestEventsByThePage checks that pages of events are parts of the whole list, and that a
// page with an edited event is refused.
func TestEventsByThePage(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	id := runToLastStep(t, b.Service)[0].RunID
	d, err := b.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	for after := range d.Seq + 2 {
		page, err := b.Events(t.Context(), agentCaller(), run.Ref{RunID: id}, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		from := min(after, d.Seq)
		if diff := cmp.Diff(d.Events[from:min(from+3, d.Seq)], page, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("after %d (-whole +page):\n%s", after, diff)
		}
	}
	b.journal.events[id][4].Data = []byte(`{}`)
	if _, err := b.Events(t.Context(), agentCaller(), run.Ref{RunID: id}, 3, 3); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("Events with an edited event returned %v", err)
	}
}

// TestSnapshotsAndEventsAreNotTrusted checks that a forged snapshot skips no step, and that
// a run with changed events accepts no command.
func TestSnapshotsAndEventsAreNotTrusted(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	snap := b.journal.snaps[a.RunID]
	var state engine.State
	if err := json.Unmarshal(snap.State, &state); err != nil {
		t.Fatal(err)
	}
	state.Cursor = 4
	snap.State, _ = json.Marshal(state)
	b.journal.snaps[a.RunID] = snap
	status, err := b.newService(t).Status(t.Context(), agentCaller(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.ID != "plan" {
		t.Fatalf("a forged snapshot leads to %+v, %v", status, err)
	}
	b.journal.events[a.RunID][1].Data = []byte(`{"kind":"run_started","vars":{"size":"small"}}`)
	_, err = b.newService(t).Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "runs verify") {
		t.Errorf("a command on a changed run returned %v", err)
	}
}

// TestEditedRecordsOpenNothing checks that an edited record does not open another user's
// run or weaken the rules of a run.
func TestEditedRecordsOpenNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(b *testBench, r *run.Record){
		"the owner": func(_ *testBench, r *run.Record) { r.User = "eve" },
		"the definition": func(b *testBench, r *run.Record) {
			lax, _ := b.shelf.Startable(t.Context(), "guarded")
			d, _ := workflow.Check("", []byte(strings.Replace(lax.Canonical, "PLAN", "", 1)))
			b.journal.defs[d.Hash] = run.Definition{Hash: d.Hash, Text: d.Canonical}
			r.Hash = d.Hash
		},
	} {
		b := newTestBench(t)
		a := startRun(t, b.Service, "guarded", nil)
		r := b.journal.records[a.RunID]
		edit(b, &r)
		b.journal.records[a.RunID] = r
		caller := run.Caller{Principal: guideway.Principal{User: r.User}}
		for _, s := range []*run.Service{b.Service, b.newService(t)} {
			_, err := s.Continue(t.Context(), caller, run.ContinueRequest{Handle: a.Handle, Output: "no"})
			if guideway.ErrorCode(err) != guideway.CodeUnavailable {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestRecordMatchesTheEndOfItsChain checks that a run whose record does not match the end
// of its chain accepts no command: neither if the record names an earlier event, nor if it
// has a different head. An untouched record is accepted.
func TestRecordMatchesTheEndOfItsChain(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(events []run.Event, r *run.Record){
		"":                         func([]run.Event, *run.Record) {},
		"an earlier number":        func(_ []run.Event, r *run.Record) { r.Seq-- },
		"an earlier head":          func(events []run.Event, r *run.Record) { r.Head = events[len(events)-2].MAC },
		"the first number":         func(_ []run.Event, r *run.Record) { r.Seq = 1 },
		"a changed head":           func(_ []run.Event, r *run.Record) { r.Head = bytes.Repeat([]byte{1}, len(r.Head)) },
		"no head":                  func(_ []run.Event, r *run.Record) { r.Head = nil },
		"the number after the end": func(_ []run.Event, r *run.Record) { r.Seq++ },
	} {
		b := newTestBench(t)
		a := startRun(t, b.Service, "guarded", nil)
		a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
		r := b.journal.records[a.RunID]
		edit(b.journal.events[a.RunID], &r)
		b.journal.records[a.RunID] = r
		delete(b.journal.snaps, a.RunID)
		for what, s := range map[string]*run.Service{"this process": b.Service, "another process": b.newService(t)} {
			_, err := s.Status(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
			if name == "" {
				if err != nil {
					t.Errorf("%s: a command with an untouched record returned %v", what, err)
				}
				continue
			}
			if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(guideway.ErrorFix(err), "runs verify") {
				t.Errorf("%s: %s: %v", what, name, err)
			}
		}
	}
}

// TestAFailedWriteChangesNothing checks that a command that cannot be stored has no effect
// and can be repeated.
func TestAFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	b.journal.failing = guideway.Errorf(guideway.CodeUnavailable, "the disk is full")
	req := run.ContinueRequest{Handle: a.Handle, Output: "PLAN"}
	if _, err := b.Continue(t.Context(), agentCaller(), req); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Fatalf("got %v", err)
	}
	status, err := b.Status(t.Context(), agentCaller(), run.Ref{Handle: a.Handle})
	if err != nil || status.Position.ID != "plan" {
		t.Errorf("after the failed write, the status is %+v, %v", status, err)
	}
	if got := mustContinue(t, b.Service, req); got.Replayed || got.Position.ID != "approve" {
		t.Errorf("the repeated command returned %+v", got)
	}
}

// TestAnAnswerOpensTheGateThatWasShown checks that an answer applies to the shown gate and
// not to a later one.
func TestAnAnswerOpensTheGateThatWasShown(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	b.shelf["rounds"] = testWorkflow("rounds", `[{"id":"loop","type":"loop","title":"L","loop":{"type":"for","count":2,"maxIterations":2},
		"body":[{"id":"work","title":"Work","prompt":"p","approval":"human"}]}]`)
	a := startRun(t, b.Service, "rounds", nil)
	first := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "one"})
	open := run.AnswerRequest{Ref: run.Ref{Handle: first.Handle}, Step: "work", Answer: *confirmAnswer()}
	next, err := b.Answer(t.Context(), personCaller(run.ViaBrowser), open)
	if err != nil {
		t.Fatal(err)
	}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: next.Handle, Output: "two"})
	_, err = b.Answer(t.Context(), personCaller(run.ViaBrowser), open)
	checkRule(t, err, run.RuleStaleHandle)
	status, err := b.Status(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil || status.Position.Kind != engine.PositionGate {
		t.Errorf("the second gate was answered: %+v, %v", status, err)
	}
}

// TestTheCallersValuesAreCopied checks that changing the input after the call does not
// change the run, and that invalid UTF-8 in a goal is replaced.
func TestTheCallersValuesAreCopied(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	list := []any{"a"}
	a, err := b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "guarded", Goal: "bad \xff text", Context: map[string]any{"files": list}})
	if err != nil {
		t.Fatal(err)
	}
	list[0] = "b"
	here, err := b.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	there, err := b.newService(t).Get(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(there.Variables, here.Variables); d != "" || here.Goal != "bad \uFFFD text" {
		t.Errorf("two processes differ: %s; goal %q", d, here.Goal)
	}
}

func TestInputIsBounded(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: strings.Repeat("PLAN", 1<<20)})
	checkRule(t, err, run.RuleTooLarge)
	_, err = b.Start(t.Context(), agentCaller(), run.StartRequest{WorkflowID: "guarded", Goal: strings.Repeat("g", 5000)})
	checkRule(t, err, run.RuleTooLarge)
	_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": strings.Repeat("x", 300_000)}})
	checkRule(t, err, engine.RuleContextTooLarge)
	_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": json.Number(strings.Repeat("1", 300_000))}})
	checkRule(t, err, engine.RuleContextTooLarge)
	var deep any
	for range 200 {
		deep = []any{deep}
	}
	_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": deep}})
	checkRule(t, err, engine.RuleContextTooDeep)
	for range 20_000 {
		deep = []any{deep}
	}
	_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"x": deep}})
	if err == nil {
		t.Error("a context that cannot be decoded is accepted")
	}
}

// TestTextsOfACommandAreBounded checks the bound of each text, at the bound and one byte
// above it.
func TestTextsOfACommandAreBounded(t *testing.T) {
	t.Parallel()
	const notes, goal = 64 << 10, 4 << 10
	for name, send := range map[string]struct {
		most int
		send func(b *testBench, a *run.Answer, text string) error
	}{
		"the reason of an abort": {notes, func(b *testBench, a *run.Answer, text string) error {
			_, err := b.Abort(t.Context(), agentCaller(), run.AbortRequest{Ref: run.Ref{RunID: a.RunID}, Reason: text})
			return err
		}},
		"notes": {notes, func(b *testBench, a *run.Answer, text string) error {
			_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Notes: text})
			return err
		}},
		"a query": {goal, func(b *testBench, _ *run.Answer, text string) error {
			_, err := b.Resume(t.Context(), agentCaller(), run.ResumeRequest{Query: text})
			return err
		}},
		"a project": {goal, func(b *testBench, _ *run.Answer, text string) error {
			_, err := b.Resume(t.Context(), agentCaller(), run.ResumeRequest{Project: text})
			return err
		}},
	} {
		b := newTestBench(t)
		a := startRun(t, b.Service, "guarded", nil)
		err := send.send(b, a, strings.Repeat("x", send.most+1))
		if r, ok := run.AsRefusal(err); !ok || r.Rule != run.RuleTooLarge {
			t.Errorf("%s of %d bytes: %v", name, send.most+1, err)
		}
		if status, err := b.Status(t.Context(), agentCaller(), run.Ref{RunID: a.RunID}); err != nil || status.Position.ID != "plan" {
			t.Errorf("%s: after the refusal the run is at %+v, %v", name, status, err)
		}
		if err := send.send(b, a, strings.Repeat("x", send.most)); err != nil {
			t.Errorf("%s of %d bytes: %v", name, send.most, err)
		}
	}
}

// TestResumeWithWordsAndATime checks ambiguous queries: a handle or an id that is followed
// by words is a search word, and a time without matches is ignored.
func TestResumeWithWordsAndATime(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	old := startRun(t, b.Service, "guarded", nil)
	b.now = b.now.Add(24 * time.Hour)
	today := startRun(t, b.Service, "guarded", nil)
	alone := startRun(t, b.Service, "person", nil)
	for query, want := range map[string][]string{
		"guarded":                    {today.RunID, old.RunID},
		"guarded today":              {today.RunID},
		"guarded yesterday":          {old.RunID},
		"person yesterday":           {alone.RunID},
		"kubernetes yesterday":       nil,
		today.Handle + " guarded":    {today.RunID, old.RunID},
		today.RunID + "\nguarded":    {today.RunID, old.RunID},
		"  " + today.Handle + "  \n": {today.RunID},
		"  " + today.RunID + "\t":    {today.RunID},
	} {
		found, err := b.Resume(t.Context(), agentCaller(), run.ResumeRequest{Query: query})
		if err != nil {
			t.Errorf("%q: %v", query, err)
			continue
		}
		var ids []string
		for _, c := range found {
			ids = append(ids, c.RunID)
		}
		if d := cmp.Diff(want, ids); d != "" {
			t.Errorf("%q (-want +got):\n%s", query, d)
		}
	}
}

// TestResumeByTheDaysOfThisMachine checks that "yesterday" is in the user's time zone, even
// if the UTC day differs.
func TestResumeByTheDaysOfThisMachine(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	east := time.FixedZone("east", 10*60*60)
	b.now = time.Date(2026, 11, 19, 23, 30, 0, 0, east)
	a := startRun(t, b.Service, "guarded", nil)
	b.now = time.Date(2026, 11, 20, 8, 0, 0, 0, east) // still the 19th in UTC
	found, err := b.Resume(t.Context(), agentCaller(), run.ResumeRequest{Query: "yesterday"})
	if err != nil || len(found) != 1 || found[0].RunID != a.RunID {
		t.Errorf("%v, %v", found, err)
	}
}
