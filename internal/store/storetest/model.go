package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// modelTests compare random walks with a model.
func modelTests() []subtest {
	return []subtest{{"random calls do what a plain model says", randomCalls}}
}

// randomCalls has rapid make calls of two stores on the same data, as two
// processes would, and of a model in memory. Each walk has users of its own, so
// that all can share the data.
func randomCalls(t *testing.T, f *fixture) {
	stores := []Store{f.open(t), f.open(t)}
	var walks atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		start, err := stores[0].Latest(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		m := &machine{
			stores: stores, ctx: t.Context(), walk: walks.Add(1), start: start, now: epoch(),
			runs: map[string]*modelRun{}, requests: map[string]run.Handle{}, documents: map[session.Ref]*modelDocument{},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"create":   m.create,
			"append":   m.append,
			"document": m.createDocument,
			"update":   m.updateDocument,
			"delete":   m.deleteDocument,
			"restore":  m.restoreDocument,
		})
	})
}

// modelRun is a run of the model.
type modelRun struct {
	record   run.Record
	events   []run.Event
	snapshot *run.Snapshot
	handles  map[string]run.Handle
	outcomes map[string]run.Handle
}

// modelDocument is a document of the model.
type modelDocument struct {
	session.Document
	deleted bool
	log     []session.LogEntry // newest first
}

// machine is the model, and the stores that should do the same. It keeps the
// context of its test, which is as long as it lives.
type machine struct {
	stores []Store
	ctx    context.Context
	walk   int64
	start  int64
	now    time.Time

	runs      map[string]*modelRun
	requests  map[string]run.Handle
	documents map[session.Ref]*modelDocument
	feed      []run.Change
}

// store draws the process that makes a call.
func (m *machine) store(t *rapid.T) Store { return rapid.SampledFrom(m.stores).Draw(t, "process") }

// tick gives a time behind all others.
func (m *machine) tick() time.Time {
	m.now = m.now.Add(time.Millisecond)
	return m.now
}

func (m *machine) user(t *rapid.T) string {
	return fmt.Sprintf("%s-%d", rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "user"), m.walk)
}

// same ends the walk where an answer is not the model's.
func same(t *rapid.T, what string, got, expected any) {
	t.Helper()
	if diff := cmp.Diff(expected, got, alike()); diff != "" {
		t.Fatalf("%s (-model +store):\n%s", what, diff)
	}
}

// sameCode ends the walk where a call did not end with a code; "" is a success.
func sameCode(t *rapid.T, err error, code guideway.Code) {
	t.Helper()
	if got := guideway.ErrorCode(err); got != code {
		t.Fatalf("the code is %q (%v), the model says %q", got, err, code)
	}
}

func (m *machine) create(t *rapid.T) {
	user := m.user(t)
	r := newRecord(fmt.Sprintf("r_%d_%d", m.walk, rapid.IntRange(0, 3).Draw(t, "run")), user)
	r.Created = m.tick()
	r.Updated = r.Created
	r.Seq = int64(rapid.IntRange(1, 3).Draw(t, "events"))
	r.Handle = fmt.Sprintf("h_%d_%d", m.walk, r.Created.UnixMicro())
	c := first(r)
	c.Key = rapid.SampledFrom([]string{"", "request-1", "request-2"}).Draw(t, "key")
	request := user + "/" + c.Key
	code := guideway.Code("")
	if _, there := m.runs[r.ID]; there {
		code = guideway.CodeConflict
	}
	if _, there := m.requests[request]; there && c.Key != "" {
		code = guideway.CodeConflict
	}
	sameCode(t, m.store(t).Create(m.ctx, definitionOf(r), c), code)
	if code != "" {
		return
	}
	h := run.Handle{Token: r.Handle, Run: r.ID, Seq: r.Seq}
	m.runs[r.ID] = &modelRun{record: r, events: c.Events, handles: map[string]run.Handle{r.Handle: h}, outcomes: map[string]run.Handle{}}
	if c.Key != "" {
		m.requests[request] = h
	}
	m.tellRun(run.OpCreated, r)
}

func (m *machine) append(t *rapid.T) {
	id := fmt.Sprintf("r_%d_%d", m.walk, rapid.IntRange(0, 3).Draw(t, "run"))
	known, there := m.runs[id]
	if !there {
		sameCode(t, m.store(t).Append(m.ctx, next(newRecord(id, m.user(t)), "x")), guideway.CodeNotFound)
		return
	}
	before := known.record
	before.Seq += int64(rapid.SampledFrom([]int{0, 0, 0, -1, 1}).Draw(t, "off"))
	c := next(before, fmt.Sprint(m.tick().UnixMicro()))
	c.Record.Updated = m.now
	c.Key = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "key")
	if rapid.Bool().Draw(t, "snapshot") {
		c.Snapshot = &run.Snapshot{Seq: c.Record.Seq, Head: c.Record.Head, State: fmt.Appendf(nil, "state %d", c.Record.Seq), MAC: []byte("mac")}
	}
	if rapid.Bool().Draw(t, "same position") {
		c.Handle, c.Record.Handle = "", before.Handle
	}
	code := guideway.Code("")
	if _, used := known.outcomes[c.Key]; before.Seq != known.record.Seq || (used && c.Key != "") {
		code = guideway.CodeConflict
	}
	sameCode(t, m.store(t).Append(m.ctx, c), code)
	if code != "" {
		return
	}
	known.record, known.events = c.Record, append(known.events, c.Events...)
	if c.Snapshot != nil {
		known.snapshot = c.Snapshot
	}
	h := run.Handle{Token: c.Record.Handle, Run: id, Seq: c.Record.Seq}
	if c.Handle != "" {
		known.handles[c.Handle] = h
	}
	if c.Key != "" {
		known.outcomes[c.Key] = h
	}
	m.tellRun(run.OpChanged, c.Record)
}

func (m *machine) tellRun(op string, r run.Record) {
	m.feed = append(m.feed, run.Change{At: r.Updated, Subject: run.SubjectRun, Op: op, User: r.User, ID: r.ID, Seq: r.Seq})
}

// ref draws the name of a document, which may not be there.
func (m *machine) ref(t *rapid.T) session.Ref {
	return session.Ref{
		User: m.user(t), Project: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "project"),
		Workflow: "w", ID: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "document"),
	}
}

// log draws entries of a validation log.
func (m *machine) log(t *rapid.T, revision int64) []session.LogEntry {
	var entries []session.LogEntry
	for range rapid.IntRange(0, 2).Draw(t, "entries") {
		entries = append(entries, session.LogEntry{At: m.tick(), Revision: revision, Pointer: "/a", Message: fmt.Sprint(m.now)})
	}
	return entries
}

func (m *machine) createDocument(t *rapid.T) {
	ref := m.ref(t)
	d := newDocument(ref.User, ref.Project, ref.Workflow, ref.ID)
	d.Created = m.tick()
	d.Updated = d.Created
	log := m.log(t, 1)
	known, there := m.documents[ref]
	code := guideway.Code("")
	if there && !known.deleted {
		code = guideway.CodeConflict
	}
	sameCode(t, m.store(t).CreateDocument(m.ctx, d, log), code)
	if code != "" {
		return
	}
	slices.Reverse(log)
	m.documents[ref] = &modelDocument{Document: d, log: log}
	m.tellDocument(run.OpCreated, d, d.Updated)
}

func (m *machine) updateDocument(t *rapid.T) {
	ref := m.ref(t)
	known, there := m.documents[ref]
	there = there && !known.deleted
	key, at := rapid.SampledFrom([]string{"title", "a", "b"}).Draw(t, "key"), m.tick()
	var log []session.LogEntry
	if there {
		log = m.log(t, known.Revision+1)
	}
	got, err := m.store(t).UpdateDocument(m.ctx, ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d, _, err := put(key, fmt.Sprint(at))(d)
		d.Updated = at
		return d, log, err
	})
	if !there {
		sameCode(t, err, guideway.CodeNotFound)
		return
	}
	sameCode(t, err, "")
	known.Data = maps.Clone(known.Data)
	known.Data[key], known.Updated = fmt.Sprint(at), at
	known.Revision++
	for _, entry := range log {
		known.log = slices.Insert(known.log, 0, entry)
	}
	same(t, "updated document", got, known.Document)
	m.tellDocument(run.OpChanged, known.Document, at)
}

func (m *machine) deleteDocument(t *rapid.T) { m.hide(t, true) }

func (m *machine) restoreDocument(t *rapid.T) { m.hide(t, false) }

// hide deletes or restores a document.
func (m *machine) hide(t *rapid.T, hide bool) {
	ref, at := m.ref(t), m.tick()
	known, there := m.documents[ref]
	s, op := m.store(t), run.OpCreated
	var err error
	if hide {
		op, err = run.OpDeleted, s.DeleteDocument(m.ctx, ref, at)
	} else {
		err = s.RestoreDocument(m.ctx, ref, at)
	}
	if !there || known.deleted == hide {
		sameCode(t, err, guideway.CodeNotFound)
		return
	}
	sameCode(t, err, "")
	known.deleted = hide
	m.tellDocument(op, known.Document, at)
}

func (m *machine) tellDocument(op string, d session.Document, at time.Time) {
	m.feed = append(m.feed, run.Change{
		At: at, Subject: run.SubjectSession, Op: op, User: d.User, ID: d.ID, Workflow: d.Workflow, Project: d.Project, Seq: d.Revision,
	})
}

// check compares all that a store answers with the model, now and then.
func (m *machine) check(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "look") > 0 {
		return
	}
	s := m.store(t)
	m.checkRuns(t, s)
	m.checkDocuments(t, s)
	list, reset, err := s.Changes(m.ctx, m.start, len(m.feed)+1)
	sameCode(t, err, "")
	same(t, "reset", reset, false)
	for i := range list {
		list[i].Pos = 0
		if list[i].Subject == run.SubjectRun {
			list[i].Workflow, list[i].Project = "", ""
		}
	}
	same(t, "feed", list, m.feed)
}

func (m *machine) checkRuns(t *rapid.T, s Store) {
	users := map[string][]run.Record{}
	for id, known := range m.runs {
		got, err := s.Run(m.ctx, id)
		sameCode(t, err, "")
		same(t, "record", got, known.record)
		users[got.User] = append(users[got.User], got)
		events, err := s.Events(m.ctx, id, 0, len(known.events)+1)
		sameCode(t, err, "")
		same(t, "events", events, known.events)
		snap, err := s.Snapshot(m.ctx, id)
		sameCode(t, err, "")
		same(t, "snapshot", snap, known.snapshot)
		for token, expected := range known.handles {
			h, err := s.Handle(m.ctx, token)
			sameCode(t, err, "")
			same(t, "handle", h, expected)
		}
		for key, expected := range known.outcomes {
			h, err := s.Outcome(m.ctx, id, "", key)
			sameCode(t, err, "")
			same(t, "outcome", h, expected)
		}
	}
	for user, expected := range users {
		slices.SortFunc(expected, func(a, b run.Record) int { return b.Updated.Compare(a.Updated) })
		list, err := s.Runs(m.ctx, run.Filter{User: user})
		sameCode(t, err, "")
		same(t, "runs of "+user, list, expected)
	}
}

func (m *machine) checkDocuments(t *rapid.T, s Store) {
	users := map[string][]session.Document{}
	for ref, known := range m.documents {
		if known.deleted {
			continue
		}
		users[ref.User] = append(users[ref.User], known.Document)
		entries, err := s.ValidationLog(m.ctx, ref, 50)
		sameCode(t, err, "")
		same(t, "log", entries, known.log)
	}
	for _, user := range []string{"ada", "bob"} {
		user = fmt.Sprintf("%s-%d", user, m.walk)
		expected := users[user]
		slices.SortFunc(expected, func(a, b session.Document) int { return b.Updated.Compare(a.Updated) })
		list, err := s.Documents(m.ctx, session.Filter{Ref: session.Ref{User: user}})
		sameCode(t, err, "")
		same(t, "documents of "+user, list, expected)
	}
}
