package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
)

const (
	projectA = "aaaaaaaaaaaa"
	projectB = "bbbbbbbbbbbb"
)

var (
	ann = guideway.Principal{User: "ann", Client: "editor"}
	bob = guideway.Principal{User: "bob"}
)

// fixture is a service with its own store and a clock that a test sets.
type fixture struct {
	*Service
	t     *testing.T
	store *memoryStore
	clock time.Time
}

func newFixture(t *testing.T) *fixture {
	b := &fixture{t: t, store: newMemory(), clock: time.Date(2026, 1, 31, 12, 0, 0, 123456789, time.FixedZone("", 3600))}
	b.Service = New(Options{Store: b.store, Now: func() time.Time { return b.clock }})
	return b
}

// createDocument creates a document of the user ann.
func (b *fixture) createDocument(project, workflow, id, data string) *Document {
	b.t.Helper()
	d, err := b.Create(b.t.Context(), ann, CreateRequest{Project: project, ProjectPath: "/srv/" + project, Workflow: workflow, ID: id, Data: decodeObject(b.t, data)})
	if err != nil {
		b.t.Fatal(err)
	}
	return d
}

// wantError checks that an error has a code, a fix, and the parts in its text.
func wantError(t *testing.T, err error, code guideway.Code, parts ...string) {
	t.Helper()
	if guideway.ErrorCode(err) != code || guideway.ErrorFix(err) == "" {
		t.Errorf("got %v with code %s and fix %q, want %s", err, guideway.ErrorCode(err), guideway.ErrorFix(err), code)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error()+"\n"+guideway.ErrorFix(err), part) {
			t.Errorf("%v (%s) does not contain %q", err, guideway.ErrorFix(err), part)
		}
	}
}

func TestDocumentLifecycle(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	ctx := t.Context()
	name := Name{Project: projectA, Workflow: "bug-hunt", ID: "BUG-1"}
	created := b.createDocument(projectA, "bug-hunt", "BUG-1", `{"a":{"b":1},"dashboard":{"status":"done","x.y":1}}`)
	want := &Document{
		Ref: Ref{User: "ann", Project: projectA, Workflow: "bug-hunt", ID: "BUG-1"}, ProjectPath: "/srv/" + projectA,
		Created: time.Date(2026, 1, 31, 11, 0, 0, 123456000, time.UTC), Updated: time.Date(2026, 1, 31, 11, 0, 0, 123456000, time.UTC),
		Revision: 1, Data: decodeObject(t, `{"a":{"b":1},"dashboard":{"status":"complete","x.y":1}}`),
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if got := created.URI(); got != "guideway://sessions/aaaaaaaaaaaa/bug-hunt/BUG-1" {
		t.Errorf("the URI is %s", got)
	}

	b.clock = b.clock.Add(time.Minute)
	updated, err := b.Update(ctx, ann, name, decodeObject(t, `{"a":{"c":2},"dashboard.progress":"25%"}`))
	if err != nil {
		t.Fatal(err)
	}
	want.Updated, want.Revision = want.Updated.Add(time.Minute), 2
	want.Data = decodeObject(t, `{"a":{"b":1,"c":2},"dashboard":{"status":"complete","progress":25,"x.y":1}}`)
	if diff := cmp.Diff(want, updated); diff != "" {
		t.Errorf("updated (-want +got):\n%s", diff)
	}
	got, err := b.Get(ctx, ann, name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(updated, got); diff != "" {
		t.Errorf("the stored document differs from the answer:\n%s", diff)
	}

	if _, err := b.Delete(ctx, ann, name); err != nil {
		t.Fatal(err)
	}
	_, err = b.Get(ctx, ann, name)
	wantError(t, err, guideway.CodeNotFound, "session not found: bug-hunt/BUG-1", "workrail_create_session")
	_, err = b.Update(ctx, ann, name, nil)
	wantError(t, err, guideway.CodeNotFound, "session not found: bug-hunt/BUG-1")
	_, err = b.Delete(ctx, ann, name)
	wantError(t, err, guideway.CodeNotFound)
	if _, err := b.Restore(ctx, ann, name); err != nil {
		t.Fatal(err)
	}
	if got, err = b.Get(ctx, ann, name); err != nil || got.Revision != 2 {
		t.Errorf("restored: %+v, %v", got, err)
	}
	_, err = b.Restore(ctx, ann, Name{ID: "BUG-1"})
	wantError(t, err, guideway.CodeInvalid, "projectId is missing")
}

func TestCreateNeverOverwrites(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createDocument(projectA, "w", "s", `{"keep":1}`)
	_, err := b.Create(t.Context(), ann, CreateRequest{Project: projectA, Workflow: "w", ID: "s"})
	wantError(t, err, guideway.CodeConflict, "session already exists: w/s", "workrail_update_session")
	if strings.Contains(err.Error(), "document exists") {
		t.Errorf("the error repeats the text of the store's error, which may contain SQL: %v", err)
	}
	if got, _ := b.Get(t.Context(), ann, Name{ID: "s"}); encodeJSON(t, got.Data) != `{"keep":1}` {
		t.Errorf("the error is now %v", got.Data)
	}
}

func TestConcurrentUpdates(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createDocument(projectA, "w", "s", `{}`)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if _, err := b.Update(t.Context(), ann, Name{ID: "s"}, map[string]any{fmt.Sprintf("keys.k%d", i): i}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	got, err := b.Read(t.Context(), ann, Name{ID: "s"}, "keys")
	if err != nil || len(got.Data.(map[string]any)) != 20 || got.Revision != 21 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestUpdateIsAtomic(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createDocument(projectA, "w", "s", `{"a":1}`)
	_, err := b.Update(t.Context(), ann, Name{ID: "s"}, map[string]any{"b": 2, "a.c": 3})
	wantError(t, err, guideway.CodeInvalid, "update session w/s", `the path "a.c": a is a number`)
	if got, _ := b.Get(t.Context(), ann, Name{ID: "s"}); encodeJSON(t, got.Data) != `{"a":1}` || got.Revision != 1 {
		t.Errorf("the document is now %+v", got)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	d := b.createDocument(projectA, "w", "s", investigation)
	tests := []struct {
		path  string
		query string
		found bool
		data  string
	}{
		{"", "(full session)", true, encodeJSON(t, d.Data)},
		{"hypotheses[0].status", "hypotheses[0].status", true, `"active"`},
		{"$.hypotheses[0].status", "$.hypotheses[0].status", true, `"active"`},
		{"nothing", "nothing", true, `null`},
		{"nowhere", "nowhere", false, `null`},
	}
	for _, tt := range tests {
		got, err := b.Read(t.Context(), ann, Name{ID: "s"}, tt.path)
		if err != nil {
			t.Errorf("%q: %v", tt.path, err)
			continue
		}
		if got.Query != tt.query || got.Found != tt.found || encodeJSON(t, got.Data) != tt.data || got.Ref != d.Ref || got.Revision != 1 {
			t.Errorf("%q: got %+v", tt.path, got)
		}
	}
	_, err := b.Read(t.Context(), ann, Name{ID: "s"}, "a[")
	wantError(t, err, guideway.CodeInvalid, "read session w/s", "hypotheses[0].status")
	// The schema can be read without a document.
	got, err := b.Read(t.Context(), bob, Name{ID: "none"}, "$schema")
	if err != nil || !got.Found || !strings.Contains(encodeJSON(t, got.Data), "json-schema.org/draft/2020-12") {
		t.Errorf("$schema: %+v, %v", got, err)
	}
}

func TestPartialNames(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createDocument(projectA, "w1", "alone", `{}`)
	b.createDocument(projectA, "w1", "flows", `{}`)
	b.createDocument(projectA, "w2", "flows", `{}`)
	b.createDocument(projectA, "w1", "places", `{}`)
	b.createDocument(projectB, "w1", "places", `{}`)
	b.createDocument(projectA, "w1", "both", `{}`)
	b.createDocument(projectB, "w2", "both", `{}`)
	tests := []struct {
		name Name
		want string // the URI, or a part of the error
	}{
		{Name{ID: "alone"}, "guideway://sessions/aaaaaaaaaaaa/w1/alone"},
		{Name{ID: "alone", Here: projectB}, "guideway://sessions/aaaaaaaaaaaa/w1/alone"},
		{Name{ID: "flows", Workflow: "w2"}, "guideway://sessions/aaaaaaaaaaaa/w2/flows"},
		{Name{ID: "flows"}, "also pass the workflow"},
		{Name{ID: "flows", Here: projectA}, "aaaaaaaaaaaa/w1/flows (/srv/aaaaaaaaaaaa), aaaaaaaaaaaa/w2/flows"},
		{Name{ID: "places"}, "also pass the project"},
		{Name{ID: "places", Workflow: "w1"}, "also pass the project"},
		{Name{ID: "places", Here: projectB}, "guideway://sessions/bbbbbbbbbbbb/w1/places"},
		{Name{ID: "places", Project: projectA, Here: projectB}, "guideway://sessions/aaaaaaaaaaaa/w1/places"},
		{Name{ID: "both"}, "also pass the project and the workflow"},
		{Name{ID: "both", Here: "cccccccccccc"}, "is not unique"},
		{Name{ID: "both", Project: projectB}, "guideway://sessions/bbbbbbbbbbbb/w2/both"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%+v", tt.name), func(t *testing.T) {
			t.Parallel()
			got, err := b.Get(t.Context(), ann, tt.name)
			if !strings.HasPrefix(tt.want, "guideway:") {
				wantError(t, err, guideway.CodeConflict, tt.want)
				return
			}
			if err != nil || got.URI() != tt.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestDocumentsOfOtherUsersAreHidden(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	ctx := t.Context()
	b.createDocument(projectA, "w", "s", `{"secret":1}`)
	for _, name := range []Name{{ID: "s"}, {Project: projectA, Workflow: "w", ID: "s"}} {
		_, err := b.Get(ctx, bob, name)
		wantError(t, err, guideway.CodeNotFound)
		_, err = b.Read(ctx, bob, name, "secret")
		wantError(t, err, guideway.CodeNotFound)
		_, err = b.Update(ctx, bob, name, map[string]any{"secret": 2})
		wantError(t, err, guideway.CodeNotFound)
		_, err = b.Delete(ctx, bob, name)
		wantError(t, err, guideway.CodeNotFound)
		_, err = b.ValidationLog(ctx, bob, name, 0)
		wantError(t, err, guideway.CodeNotFound)
	}
	if list, err := b.List(ctx, bob, Filter{}); err != nil || len(list) != 0 {
		t.Errorf("bob lists %v, %v", list, err)
	}
	// A caller without a user is refused.
	nobody := guideway.Principal{}
	_, errList := b.List(ctx, nobody, Filter{})
	_, errGet := b.Get(ctx, nobody, Name{ID: "s"})
	_, errCreate := b.Create(ctx, nobody, CreateRequest{Project: projectA, Workflow: "w", ID: "s"})
	for _, err := range []error{errList, errGet, errCreate} {
		if guideway.ErrorCode(err) != guideway.CodeUnauthorized {
			t.Errorf("got %v", err)
		}
	}
}

func TestListsAreFiltered(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for i, ref := range []Ref{{Project: projectA, Workflow: "w1", ID: "one"}, {Project: projectA, Workflow: "w2", ID: "two"}, {Project: projectB, Workflow: "w1", ID: "one"}} {
		b.clock = b.clock.Add(time.Duration(i) * time.Minute)
		b.createDocument(ref.Project, ref.Workflow, ref.ID, `{}`)
	}
	tests := []struct {
		options Filter
		want    string
	}{
		{Filter{}, "bbbbbbbbbbbb/w1/one aaaaaaaaaaaa/w2/two aaaaaaaaaaaa/w1/one"},
		{Filter{Limit: 1}, "bbbbbbbbbbbb/w1/one"},
		{Filter{Ref: Ref{Project: projectA}}, "aaaaaaaaaaaa/w2/two aaaaaaaaaaaa/w1/one"},
		{Filter{Ref: Ref{Workflow: "w1", ID: "one"}}, "bbbbbbbbbbbb/w1/one aaaaaaaaaaaa/w1/one"},
	}
	for _, tt := range tests {
		list, err := b.List(t.Context(), ann, tt.options)
		var got []string
		for _, d := range list {
			got = append(got, strings.TrimPrefix(d.URI(), uriPrefix))
		}
		if strings.Join(got, " ") != tt.want || err != nil {
			t.Errorf("%+v: got %v, %v", tt.options, got, err)
		}
	}
}

func TestLogHasNewRemarksOnly(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	ctx := t.Context()
	b.createDocument(projectA, "w", "s", `{"dashboard":{"status":"odd","progress":150},"fix":"x"}`)
	for _, updates := range []string{`{"other":1}`, `{"hypotheses":[1]}`, `{"dashboard.progress":"-5%"}`} {
		if _, err := b.Update(ctx, ann, Name{ID: "s"}, decodeObject(t, updates)); err != nil {
			t.Fatal(err)
		}
	}
	log, err := b.ValidationLog(ctx, ann, Name{ID: "s"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range log {
		got = append(got, fmt.Sprintf("%d %s %s", e.Revision, e.Pointer, e.Message))
	}
	want := []string{
		"4 /dashboard/progress -5% is not between 0 and 100; it is stored as 0",
		"3 /hypotheses/0 found a number; expected an object",
		"1 /fix found a string; expected an object",
		"1 /dashboard/progress 150 is not between 0 and 100; it is stored as 100",
		`1 /dashboard/status "odd" is not one of in_progress, complete and blocked; it is stored as in_progress`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if log, _ = b.ValidationLog(ctx, ann, Name{ID: "s"}, 1); len(log) != 1 {
		t.Errorf("a limit of 1 returns %d", len(log))
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for _, id := range []string{"BUG-1699999999999", "abc", "7", "_x", "2026-01-31T12:00:00", "a.b", "0b9e7b0c-6f0e-4f37-9a5d-0d6d3a7c6f11", strings.Repeat("x", 128)} {
		b.createDocument(projectA, id, id, `{}`)
		d, err := b.Get(t.Context(), ann, Name{ID: id})
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		name, err := ParseURI(d.URI())
		if want := (Name{Project: projectA, Workflow: id, ID: id}); name != want || err != nil {
			t.Errorf("%s is %+v, %v", d.URI(), name, err)
		}
	}
	stored := len(b.store.kept)
	for id, proposal := range map[string]string{
		"": "", "..": "", "../../evil": "evil", "a/b": `"a-b"`, "a..b": `"a-b"`, "a\\b": `"a-b"`, ".hidden": `"hidden"`, "-x": `"x"`,
		"a b": `"a-b"`, "a\x00b": `"a-b"`, "ü": "", "feature/login": `"feature-login"`, strings.Repeat("x", 129): "",
	} {
		for _, r := range []CreateRequest{{Project: projectA, Workflow: id, ID: "x"}, {Project: projectA, Workflow: "x", ID: id}} {
			_, err := b.Create(t.Context(), ann, r)
			wantError(t, err, guideway.CodeInvalid, proposal)
			if r.Workflow == "" {
				continue // Update accepts a name without a workflow, and looks the document up by its other parts.
			}
			_, err = b.Update(t.Context(), ann, Name{Project: r.Project, Workflow: r.Workflow, ID: r.ID}, nil)
			wantError(t, err, guideway.CodeInvalid)
		}
		_, err := b.Get(t.Context(), ann, Name{ID: id})
		wantError(t, err, guideway.CodeInvalid)
	}
	for _, project := range []string{"", "../..", "AAAAAAAAAAAA", "aaaaaaaaaaa", "aaaaaaaaaaaaa"} {
		_, err := b.Create(t.Context(), ann, CreateRequest{Project: project, Workflow: "w", ID: "s"})
		wantError(t, err, guideway.CodeInvalid, "projectId")
	}
	if len(b.store.kept) != stored {
		t.Error("a refused document was stored")
	}
	for _, uri := range []string{"", "guideway://sessions/", "guideway://sessions/aaaaaaaaaaaa/w", "guideway://sessions/aaaaaaaaaaaa/w/s/x", "guideway://sessions//w/s", "guideway://sessions/aaaaaaaaaaaa/w/..%2Fs", "guideway://sessions/aaaaaaaaaaaa/%zz/s", "http://sessions/aaaaaaaaaaaa/w/s"} {
		_, err := ParseURI(uri)
		wantError(t, err, guideway.CodeInvalid)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	deep := any("x")
	for range MaxDepth {
		deep = []any{deep}
	}
	many := make([]any, MaxValues)
	tests := []struct {
		name string
		data map[string]any
		code guideway.Code
	}{
		{"too large", map[string]any{"a": strings.Repeat("x", MaxBytes)}, guideway.CodeTooLarge},
		{"just small enough", map[string]any{"a": strings.Repeat("x", MaxBytes-len(`{"a":""}`))}, ""},
		{"too deep", map[string]any{"a": deep}, guideway.CodeTooLarge},
		{"just flat enough", map[string]any{"a": deep.([]any)[0]}, ""},
		{"too many values", map[string]any{"a": many}, guideway.CodeTooLarge},
		{"just few enough", map[string]any{"a": many[1:]}, ""},
		{"not JSON", map[string]any{"a": func() {}}, guideway.CodeInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			_, err := b.Create(t.Context(), ann, CreateRequest{Project: projectA, Workflow: "w", ID: "s", Data: tt.data})
			if guideway.ErrorCode(err) != tt.code {
				t.Errorf("create: %v", err)
			}
			b.createDocument(projectA, "w", "empty", `{}`)
			_, err = b.Update(t.Context(), ann, Name{ID: "empty"}, tt.data)
			if guideway.ErrorCode(err) != tt.code {
				t.Errorf("update: %v", err)
			}
		})
	}
	// The result of a small update may be too large.
	b := newFixture(t)
	half := strings.Repeat("x", MaxBytes*2/3)
	b.createDocument(projectA, "w", "s", `{"a":"`+half+`"}`)
	_, err := b.Update(t.Context(), ann, Name{ID: "s"}, map[string]any{"b": half})
	wantError(t, err, guideway.CodeTooLarge, "update session w/s")
}

// lockedStore is a store whose documents cannot be updated.
type lockedStore struct{ Store }

var errLocked = guideway.Errorf(guideway.CodeUnavailable, "a transaction began")

func (lockedStore) UpdateDocument(context.Context, Ref, func(Document) (Document, []LogEntry, error)) (Document, error) {
	return Document{}, errLocked
}

// TestLimitsOfUpdates checks that large updates are refused before a transaction begins,
// because a transaction blocks other writers.
func TestLimitsOfUpdates(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createDocument(projectA, "w", "s", `{}`)
	b.Service = New(Options{Store: lockedStore{b.store}})
	paths := func(n int, form string) map[string]any {
		updates := map[string]any{}
		for i := range n {
			updates[fmt.Sprintf(form, i)] = 1
		}
		return updates
	}
	for _, tt := range []struct {
		updates map[string]any
		parts   []string
	}{
		{paths(maxPaths+1, "a.k%d"), []string{"1001 paths", "maximum of 1000"}},
		{paths(20_000, "h.%06d"), []string{"20000 paths", "maximum of 1000"}},
		{paths(maxPaths+1, "h[%d"), []string{"1001 paths"}},
		{paths(MaxValues+1, "k%d"), []string{"50001 values", "maximum of 50000"}},
		{map[string]any{"a": make([]any, MaxValues/2), "b": make([]any, MaxValues/2)}, []string{"50002 values"}},
	} {
		_, err := b.Update(t.Context(), ann, Name{ID: "s"}, tt.updates)
		wantError(t, err, guideway.CodeTooLarge, tt.parts...)
	}
	for _, updates := range []map[string]any{paths(maxPaths, "a.k%d"), paths(MaxValues, "k%d"), paths(maxPaths+1, "e.g. no %d...")} {
		if _, err := b.Update(t.Context(), ann, Name{ID: "s"}, updates); !errors.Is(err, errLocked) {
			t.Errorf("%d updates: %v", len(updates), err)
		}
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.createDocument(projectA, "w", "s", `{"a":1.50,"b":12345678901234567890,"c":1e400}`)
	if _, err := b.Update(t.Context(), ann, Name{ID: "s"}, map[string]any{"d": 0.1, "e": int64(1) << 60, "f": []int{1}, "g": uint8(7)}); err != nil {
		t.Fatal(err)
	}
	got, err := b.Get(t.Context(), ann, Name{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a":1.50,"b":12345678901234567890,"c":1e400,"d":0.1,"e":1152921504606846976,"f":[1],"g":7}`
	if encodeJSON(t, got.Data) != want {
		t.Errorf("got %s", encodeJSON(t, got.Data))
	}
}

func TestErrorsOfTheStoreKeepTheirCode(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.store.failing = guideway.Errorf(guideway.CodeUnavailable, "the disk is full").WithFix("free some space")
	ctx, name := t.Context(), Name{Project: projectA, Workflow: "w", ID: "s"}
	_, errCreate := b.Create(ctx, ann, CreateRequest{Project: projectA, Workflow: "w", ID: "s"})
	_, errUpdate := b.Update(ctx, ann, name, nil)
	_, errGet := b.Get(ctx, ann, name)
	_, errList := b.List(ctx, ann, Filter{})
	for _, err := range []error{errCreate, errUpdate, errGet, errList} {
		wantError(t, err, guideway.CodeUnavailable, "the disk is full", "free some space")
	}
}

// TestTimesNeverDecrease checks that the time of the last change of a document does not
// decrease if the clock goes back.
func TestTimesNeverDecrease(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	d := b.createDocument(projectA, "w", "s", `{}`)
	b.clock = b.clock.Add(-time.Hour)
	got, err := b.Update(t.Context(), ann, Name{ID: "s"}, map[string]any{"a": 1})
	if err != nil || !got.Updated.Equal(d.Updated) || got.Revision != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}
