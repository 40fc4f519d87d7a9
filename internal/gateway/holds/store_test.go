package holds_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/holds"
)

// fixture is a store with a clock that tests set.
type fixture struct {
	*holds.Store
	path string
	at   atomic.Int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{path: filepath.Join(t.TempDir(), "held-calls.json")}
	f.at.Store(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).UnixMilli())
	f.Store = f.reopen()
	return f
}

// reopen returns another store on the file, as after a restart.
func (f *fixture) reopen() *holds.Store {
	return holds.New(holds.Options{Path: f.path, Key: func() ([]byte, error) { return []byte("key"), nil }, Now: func() time.Time { return time.UnixMilli(f.at.Load()) }})
}

func (f *fixture) advance(d time.Duration) { f.at.Add(d.Milliseconds()) }

// newRequest returns a call with arguments.
func newRequest(t *testing.T, arguments string) holds.Request {
	t.Helper()
	canonical, hash, err := holds.EncodeArguments(json.RawMessage(arguments))
	if err != nil {
		t.Fatal(err)
	}
	return holds.Request{
		Binding: holds.Binding{User: "ann", Token: "t1", Client: "claude", Upstream: "git", Server: "s1", Tool: "push", Pin: "p1", Hash: hash},
		Name:    "git__push", Arguments: canonical, Reason: "pushes",
	}
}

func claim(t *testing.T, s *holds.Store, r holds.Request, want holds.Status) holds.Call {
	t.Helper()
	c, err := s.Claim(t.Context(), r)
	if err != nil || c.Status != want {
		t.Fatalf("Claim() = %s %v, want %s", c.Status, err, want)
	}
	return c
}

func answer(t *testing.T, s *holds.Store, c holds.Call, approve bool) {
	t.Helper()
	if _, err := s.Answer(t.Context(), holds.AnswerRequest{ID: c.ID, User: c.User, Answer: holds.Answer{Approve: approve, By: "ann", Via: "terminal", Note: "ok"}}); err != nil {
		t.Fatal(err)
	}
}

// An approval lets exactly one call pass, also after a restart. The next call is a new
// question.
func TestApprovalIsUsedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newRequest(t, `{"branch":"main"}`)
	first := claim(t, f.Store, r, holds.Waiting)
	if again := claim(t, f.reopen(), r, holds.Waiting); again.ID != first.ID {
		t.Errorf("a repeated call is a new question: %s and %s", first.ID, again.ID)
	}
	answer(t, f.Store, first, true)
	if used := claim(t, f.reopen(), r, holds.Used); used.ID != first.ID {
		t.Errorf("another approval was used: %s", used.ID)
	}
	if next := claim(t, f.Store, r, holds.Waiting); next.ID == first.ID {
		t.Error("the approval was used twice")
	}
	c, err := f.Get("ann", first.ID)
	if err != nil || c.Status != holds.Used || c.Arguments != nil || c.Answer.By != "ann" || c.Answer.Via != "terminal" || c.UsedAt.IsZero() {
		t.Errorf("the used call is %+v %v", c, err)
	}
}

// An approval covers no call that differs in any part of the binding.
func TestApprovalCoversOneBinding(t *testing.T) {
	t.Parallel()
	changed := newRequest(t, `{"branch":"dev"}`)
	for name, change := range map[string]func(*holds.Binding){
		"arguments": func(b *holds.Binding) { b.Hash = changed.Hash },
		"user":      func(b *holds.Binding) { b.User = "bob" },
		"token":     func(b *holds.Binding) { b.Token = "t2" },
		"client":    func(b *holds.Binding) { b.Client = "codex" },
		"upstream":  func(b *holds.Binding) { b.Upstream = "hub" },
		"server":    func(b *holds.Binding) { b.Server = "s2" },
		"tool":      func(b *holds.Binding) { b.Tool = "force" },
		"pin":       func(b *holds.Binding) { b.Pin = "p2" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := newRequest(t, `{"branch":"main"}`)
			answer(t, f.Store, claim(t, f.Store, r, holds.Waiting), true)
			other := r
			change(&other.Binding)
			claim(t, f.Store, other, holds.Waiting)
			claim(t, f.Store, r, holds.Used)
		})
	}
}

// The order of members and white space do not change a call; a value, a type or an additional
// member do. Arguments with a duplicate member are refused.
func TestCanonicalArguments(t *testing.T) {
	t.Parallel()
	base := newRequest(t, `{"a":1,"b":[1,2],"c":"<x>"}`)
	for text, same := range map[string]bool{
		`{ "c":"\u003cx\u003e", "b":[1, 2], "a":1 }`: true,
		`{"a":1,"b":[2,1],"c":"<x>"}`:                false,
		`{"a":"1","b":[1,2],"c":"<x>"}`:              false,
		`{"a":1.0,"b":[1,2],"c":"<x>"}`:              false,
		`{"a":1,"b":[1,2],"c":"<x>","d":null}`:       false,
		`{"A":1,"b":[1,2],"c":"<x>"}`:                false,
		`{}`:                                         false,
		``:                                           false,
	} {
		r := newRequest(t, text)
		if (r.Hash == base.Hash) != same {
			t.Errorf("%s: same hash is %t", text, !same)
		}
	}
	for _, text := range []string{`{"a":1,"a":2}`, `{"a":{"b":1,"\u0062":2}}`, `{"a":`, `{"a":"` + strings.Repeat("x", 64<<10) + `"}`} {
		if canonical, _, err := holds.EncodeArguments(json.RawMessage(text)); err == nil || guideway.ErrorFix(err) == "" {
			t.Errorf("%.40s is accepted as %.40s: %v", text, canonical, err)
		}
	}
	c := holds.Call{Arguments: base.Arguments}
	if got, want := c.ShownArguments(), "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    2\n  ],\n  \"c\": \"<x>\"\n}"; got != want {
		t.Errorf("shown arguments: %s", got)
	}
}

// A denied call is refused without a new question for an hour.
func TestDenial(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newRequest(t, `{}`)
	first := claim(t, f.Store, r, holds.Waiting)
	answer(t, f.Store, first, false)
	f.advance(59 * time.Minute)
	if c := claim(t, f.reopen(), r, holds.Denied); c.ID != first.ID || c.Answer.Note != "ok" || c.Arguments != nil {
		t.Errorf("the denied call is %+v", c)
	}
	f.advance(time.Minute)
	if c := claim(t, f.Store, r, holds.Waiting); c.ID == first.ID {
		t.Error("the denied call waits again")
	}
}

// A question and an approval expire; neither can be used or answered afterwards.
func TestExpiry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newRequest(t, `{}`)
	r.Wait, r.UseWithin = time.Hour, time.Minute
	question := claim(t, f.Store, r, holds.Waiting)
	f.advance(time.Hour)
	_, err := f.Answer(t.Context(), holds.AnswerRequest{ID: question.ID, User: "ann", Answer: holds.Answer{Approve: true, By: "ann"}})
	if guideway.ErrorCode(err) != guideway.CodeConflict || !strings.Contains(err.Error(), "is expired") {
		t.Errorf("the answer to an expired question: %v", err)
	}
	approved := claim(t, f.Store, r, holds.Waiting)
	if approved.ID == question.ID {
		t.Fatal("the expired question waits again")
	}
	answer(t, f.Store, approved, true)
	f.advance(time.Minute)
	if late := claim(t, f.Store, r, holds.Waiting); late.ID == approved.ID {
		t.Error("an expired approval was used")
	}
	for _, id := range []string{question.ID, approved.ID} {
		if c, err := f.Get("ann", id); err != nil || c.Status != holds.Expired || c.Arguments != nil {
			t.Errorf("the call is %+v %v", c, err)
		}
	}
}

// A call is answered once, by its owner.
func TestAnswersThatAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := claim(t, f.Store, newRequest(t, `{}`), holds.Waiting)
	try := func(id, user string, approve bool) error {
		_, err := f.Answer(t.Context(), holds.AnswerRequest{ID: id, User: user, Answer: holds.Answer{Approve: approve, By: user}})
		return err
	}
	for _, err := range []error{try(c.ID, "bob", true), try("hc_nothing", "ann", true)} {
		if guideway.ErrorCode(err) != guideway.CodeNotFound || guideway.ErrorFix(err) == "" {
			t.Errorf("the answer to a call of another user or to an unknown call: %v", err)
		}
	}
	if _, err := f.Get("bob", c.ID); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("another user reads the call: %v", err)
	}
	if list, err := f.List("bob"); err != nil || len(list) != 0 {
		t.Errorf("another user lists %v %v", list, err)
	}
	answer(t, f.Store, c, true)
	for _, approve := range []bool{true, false} {
		if err := try(c.ID, "ann", approve); guideway.ErrorCode(err) != guideway.CodeConflict || guideway.ErrorFix(err) == "" {
			t.Errorf("the second answer: %v", err)
		}
	}
}

// One of 64 concurrent claims in two processes uses the approval.
func TestRacingClaims(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newRequest(t, `{}`)
	answer(t, f.Store, claim(t, f.Store, r, holds.Waiting), true)
	stores := []*holds.Store{f.reopen(), f.reopen()}
	var used atomic.Int32
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			c, err := stores[i%2].Claim(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			if c.Status == holds.Used {
				used.Add(1)
			}
		})
	}
	all.Wait()
	if used.Load() != 1 {
		t.Errorf("%d claims used one approval", used.Load())
	}
	if list, err := f.List("ann"); err != nil || len(list) != 2 {
		t.Errorf("%d calls, want the used one and one question: %v", len(list), err)
	}
}

// Editing the file approves nothing: it is invalid for every use.
func TestEditedFile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"status":   {`"status": "waiting"`, `"status": "approved"`},
		"owner":    {`"user": "ann"`, `"user": "bob"`},
		"argument": {`"main"`, `"dev"`},
		"empty":    {``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			r := newRequest(t, `{"branch":"main"}`)
			c := claim(t, f.Store, r, holds.Waiting)
			text, err := os.ReadFile(f.path)
			if err != nil {
				t.Fatal(err)
			}
			edited := strings.Replace(string(text), change[0], change[1], 1)
			if name == "empty" {
				edited = ""
			} else if edited == string(text) {
				t.Fatal("nothing was edited")
			}
			if err := os.WriteFile(f.path, []byte(edited), 0o600); err != nil {
				t.Fatal(err)
			}
			_, claimed := f.Claim(t.Context(), r)
			_, answered := f.Answer(t.Context(), holds.AnswerRequest{ID: c.ID, User: "ann", Answer: holds.Answer{Approve: true}})
			_, listed := f.List("ann")
			for _, err := range []error{claimed, answered, listed} {
				if guideway.ErrorCode(err) != guideway.CodeForbidden || guideway.ErrorFix(err) == "" {
					t.Errorf("the edited file is used: %v", err)
				}
			}
		})
	}
}

// The number of open calls is limited for each client, and so is the number of finished
// calls that are kept.
func TestLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var first holds.Call
	for i := range 32 {
		c := claim(t, f.Store, newRequest(t, fmt.Sprintf(`{"i":%d}`, i)), holds.Waiting)
		if i == 0 {
			first = c
		}
	}
	more := newRequest(t, `{"i":32}`)
	if _, err := f.Claim(t.Context(), more); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("the call beyond the limit: %v", err)
	}
	other := more
	other.Client = "codex"
	claim(t, f.Store, other, holds.Waiting)
	answer(t, f.Store, first, false)
	claim(t, f.Store, more, holds.Waiting)

	f.advance(8 * 24 * time.Hour)
	last := claim(t, f.Store, more, holds.Waiting)
	list, err := f.List("ann")
	if err != nil || !slices.EqualFunc(list, []string{last.ID}, func(c holds.Call, id string) bool { return c.ID == id }) {
		t.Errorf("after a week the list has %d calls, want one: %v", len(list), err)
	}
}

// A form that was closed is not an answer, and is counted.
func TestClosedForms(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newRequest(t, `{}`)
	c := claim(t, f.Store, r, holds.Waiting)
	for _, byClient := range []bool{false, true} {
		if err := f.CloseForm(t.Context(), "ann", c.ID, byClient); err != nil {
			t.Fatal(err)
		}
	}
	if got := claim(t, f.reopen(), r, holds.Waiting); got.Closed == nil || got.Closed.Count != 2 || !got.Closed.ByClient {
		t.Errorf("the closed forms are %+v", got.Closed)
	}
	if err := f.CloseForm(t.Context(), "bob", c.ID, true); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("another user closes the form: %v", err)
	}
}

// Calls that are held within the same millisecond get different times. A reader that
// continues after the time of the last call therefore misses no call. It reads only calls
// that wait.
func TestWaitingSince(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := claim(t, f.Store, newRequest(t, `{"n":1}`), holds.Waiting)
	second := claim(t, f.reopen(), newRequest(t, `{"n":2}`), holds.Waiting)
	third := claim(t, f.Store, newRequest(t, `{"n":3}`), holds.Waiting)
	answer(t, f.Store, third, false)
	for after, want := range map[time.Time][]string{
		{}: {first.ID, second.ID}, first.Created: {second.ID}, second.Created: nil,
	} {
		list, err := f.Store.WaitingSince(after)
		var got []string
		for _, c := range list {
			got = append(got, c.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %s: %q, %v, want %q", after, got, err, want)
		}
	}
	f.advance(holds.DefaultWait)
	if list, err := f.Store.WaitingSince(time.Time{}); err != nil || len(list) > 1 {
		t.Errorf("expired calls wait: %+v, %v", list, err)
	}
}
