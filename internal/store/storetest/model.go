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

// modelTests compare random calls with a model.
func modelTests() []subtest {
	return []subtest{{"random calls behave like a model", testRandomCalls}}
}

// testRandomCalls makes random calls of two stores with the same data, as two processes
// would, and of a model in memory. Each sequence of calls has its own users, so that all
// sequences can share the data.
func testRandomCalls(t *testing.T, f *fixture) {
	stores := []Store{f.openStore(t), f.openStore(t)}
	var walks atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		start, err := stores[0].Latest(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		m := &modelTest{
			stores: stores, ctx: t.Context(), walk: walks.Add(1), start: start, now: startTime(),
			runs: map[string]*modelRun{}, requests: map[string]run.Handle{}, documents: map[session.Ref]*modelDocument{},
		}
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.checkStore,
			"create":   m.createRun,
			"append":   m.appendEvents,
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

// modelTest is the model with the stores to compare. It keeps the context of its test,
// which has the same lifetime.
type modelTest struct {
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

// drawStore draws the store that receives a call.
func (m *modelTest) drawStore(t *rapid.T) Store {
	return rapid.SampledFrom(m.stores).Draw(t, "process")
}

// nextTime returns a time after all times that it returned before.
func (m *modelTest) nextTime() time.Time {
	m.now = m.now.Add(time.Millisecond)
	return m.now
}

func (m *modelTest) drawUser(t *rapid.T) string {
	return fmt.Sprintf("%s-%d", rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "user"), m.walk)
}

// modelEqual fails the test unless a result equals the result of the model.
func modelEqual(t *rapid.T, what string, got, expected any) {
	t.Helper()
	if diff := cmp.Diff(expected, got, equateOption()); diff != "" {
		t.Fatalf("%s (-model +store):\n%s", what, diff)
	}
}

// modelCode fails the test unless a call returned a code; "" is success.
func modelCode(t *rapid.T, err error, code guideway.Code) {
	t.Helper()
	if got := guideway.ErrorCode(err); got != code {
		t.Fatalf("the code is %q (%v), the model has %q", got, err, code)
	}
}

func (m *modelTest) createRun(t *rapid.T) {
	user := m.drawUser(t)
	r := newRecord(fmt.Sprintf("r_%d_%d", m.walk, rapid.IntRange(0, 3).Draw(t, "run")), user)
	r.Created = m.nextTime()
	r.Updated = r.Created
	r.Seq = int64(rapid.IntRange(1, 3).Draw(t, "events"))
	r.Handle = fmt.Sprintf("h_%d_%d", m.walk, r.Created.UnixMicro())
	c := createCommit(r)
	c.Key = rapid.SampledFrom([]string{"", "request-1", "request-2"}).Draw(t, "key")
	request := user + "/" + c.Key
	code := guideway.Code("")
	if _, there := m.runs[r.ID]; there {
		code = guideway.CodeConflict
	}
	if _, there := m.requests[request]; there && c.Key != "" {
		code = guideway.CodeConflict
	}
	modelCode(t, m.drawStore(t).Create(m.ctx, newDefinition(r), c), code)
	if code != "" {
		return
	}
	h := run.Handle{Token: r.Handle, Run: r.ID, Seq: r.Seq}
	m.runs[r.ID] = &modelRun{record: r, events: c.Events, handles: map[string]run.Handle{r.Handle: h}, outcomes: map[string]run.Handle{}}
	if c.Key != "" {
		m.requests[request] = h
	}
	m.addRunChange(run.OpCreated, r)
}

func (m *modelTest) appendEvents(t *rapid.T) {
	id := fmt.Sprintf("r_%d_%d", m.walk, rapid.IntRange(0, 3).Draw(t, "run"))
	known, there := m.runs[id]
	if !there {
		modelCode(t, m.drawStore(t).Append(m.ctx, appendCommit(newRecord(id, m.drawUser(t)), "x")), guideway.CodeNotFound)
		return
	}
	before := known.record
	before.Seq += int64(rapid.SampledFrom([]int{0, 0, 0, -1, 1}).Draw(t, "off"))
	c := appendCommit(before, fmt.Sprint(m.nextTime().UnixMicro()))
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
	modelCode(t, m.drawStore(t).Append(m.ctx, c), code)
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
	m.addRunChange(run.OpChanged, c.Record)
}

func (m *modelTest) addRunChange(op string, r run.Record) {
	m.feed = append(m.feed, run.Change{At: r.Updated, Subject: run.SubjectRun, Op: op, User: r.User, ID: r.ID, Seq: r.Seq})
}

// drawRef draws the reference of a document, which may not exist.
func (m *modelTest) drawRef(t *rapid.T) session.Ref {
	return session.Ref{
		User: m.drawUser(t), Project: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "project"),
		Workflow: "w", ID: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "document"),
	}
}

// drawLog draws entries of a validation log.
func (m *modelTest) drawLog(t *rapid.T, revision int64) []session.LogEntry {
	var entries []session.LogEntry
	for range rapid.IntRange(0, 2).Draw(t, "entries") {
		entries = append(entries, session.LogEntry{At: m.nextTime(), Revision: revision, Pointer: "/a", Message: fmt.Sprint(m.now)})
	}
	return entries
}

func (m *modelTest) createDocument(t *rapid.T) {
	ref := m.drawRef(t)
	d := newDocument(ref.User, ref.Project, ref.Workflow, ref.ID)
	d.Created = m.nextTime()
	d.Updated = d.Created
	log := m.drawLog(t, 1)
	known, there := m.documents[ref]
	code := guideway.Code("")
	if there && !known.deleted {
		code = guideway.CodeConflict
	}
	modelCode(t, m.drawStore(t).CreateDocument(m.ctx, d, log), code)
	if code != "" {
		return
	}
	slices.Reverse(log)
	m.documents[ref] = &modelDocument{Document: d, log: log}
	m.addDocumentChange(run.OpCreated, d, d.Updated)
}

func (m *modelTest) updateDocument(t *rapid.T) {
	ref := m.drawRef(t)
	known, there := m.documents[ref]
	there = there && !known.deleted
	key, at := rapid.SampledFrom([]string{"title", "a", "b"}).Draw(t, "key"), m.nextTime()
	var log []session.LogEntry
	if there {
		log = m.drawLog(t, known.Revision+1)
	}
	got, err := m.drawStore(t).UpdateDocument(m.ctx, ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d, _, err := setKey(key, fmt.Sprint(at))(d)
		d.Updated = at
		return d, log, err
	})
	if !there {
		modelCode(t, err, guideway.CodeNotFound)
		return
	}
	modelCode(t, err, "")
	known.Data = maps.Clone(known.Data)
	known.Data[key], known.Updated = fmt.Sprint(at), at
	known.Revision++
	for _, entry := range log {
		known.log = slices.Insert(known.log, 0, entry)
	}
	modelEqual(t, "updated document", got, known.Document)
	m.addDocumentChange(run.OpChanged, known.Document, at)
}

func (m *modelTest) deleteDocument(t *rapid.T) { m.setDeleted(t, true) }

func (m *modelTest) restoreDocument(t *rapid.T) { m.setDeleted(t, false) }

// setDeleted deletes or restores a document.
func (m *modelTest) setDeleted(t *rapid.T, hide bool) {
	ref, at := m.drawRef(t), m.nextTime()
	known, there := m.documents[ref]
	s, op := m.drawStore(t), run.OpCreated
	var err error
	if hide {
		op, err = run.OpDeleted, s.DeleteDocument(m.ctx, ref, at)
	} else {
		err = s.RestoreDocument(m.ctx, ref, at)
	}
	if !there || known.deleted == hide {
		modelCode(t, err, guideway.CodeNotFound)
		return
	}
	modelCode(t, err, "")
	known.deleted = hide
	m.addDocumentChange(op, known.Document, at)
}

func (m *modelTest) addDocumentChange(op string, d session.Document, at time.Time) {
	m.feed = append(m.feed, run.Change{
		At: at, Subject: run.SubjectSession, Op: op, User: d.User, ID: d.ID, Workflow: d.Workflow, Project: d.Project, Seq: d.Revision,
	})
}

// checkStore compares the runs, documents and feed of a store with the model, in about one
// of five calls.
func (m *modelTest) checkStore(t *rapid.T) {
	if rapid.IntRange(0, 4).Draw(t, "look") > 0 {
		return
	}
	s := m.drawStore(t)
	m.checkRuns(t, s)
	m.checkDocuments(t, s)
	list, reset, err := s.Changes(m.ctx, m.start, len(m.feed)+1)
	modelCode(t, err, "")
	modelEqual(t, "reset", reset, false)
	for i := range list {
		list[i].Pos = 0
		if list[i].Subject == run.SubjectRun {
			list[i].Workflow, list[i].Project = "", ""
		}
	}
	modelEqual(t, "feed", list, m.feed)
}

func (m *modelTest) checkRuns(t *rapid.T, s Store) {
	users := map[string][]run.Record{}
	for id, known := range m.runs {
		got, err := s.Run(m.ctx, id)
		modelCode(t, err, "")
		modelEqual(t, "record", got, known.record)
		users[got.User] = append(users[got.User], got)
		events, err := s.Events(m.ctx, id, 0, len(known.events)+1)
		modelCode(t, err, "")
		modelEqual(t, "events", events, known.events)
		snap, err := s.Snapshot(m.ctx, id)
		modelCode(t, err, "")
		modelEqual(t, "snapshot", snap, known.snapshot)
		for token, expected := range known.handles {
			h, err := s.Handle(m.ctx, token)
			modelCode(t, err, "")
			modelEqual(t, "handle", h, expected)
		}
		for key, expected := range known.outcomes {
			h, err := s.Outcome(m.ctx, id, "", key)
			modelCode(t, err, "")
			modelEqual(t, "outcome", h, expected)
		}
	}
	for user, expected := range users {
		slices.SortFunc(expected, func(a, b run.Record) int { return b.Updated.Compare(a.Updated) })
		list, err := s.Runs(m.ctx, run.Filter{User: user})
		modelCode(t, err, "")
		modelEqual(t, "runs of "+user, list, expected)
	}
}

func (m *modelTest) checkDocuments(t *rapid.T, s Store) {
	users := map[string][]session.Document{}
	for ref, known := range m.documents {
		if known.deleted {
			continue
		}
		users[ref.User] = append(users[ref.User], known.Document)
		entries, err := s.ValidationLog(m.ctx, ref, 50)
		modelCode(t, err, "")
		modelEqual(t, "log", entries, known.log)
	}
	for _, user := range []string{"ada", "bob"} {
		user = fmt.Sprintf("%s-%d", user, m.walk)
		expected := users[user]
		slices.SortFunc(expected, func(a, b session.Document) int { return b.Updated.Compare(a.Updated) })
		list, err := s.Documents(m.ctx, session.Filter{Ref: session.Ref{User: user}})
		modelCode(t, err, "")
		modelEqual(t, "documents of "+user, list, expected)
	}
}
