package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// The limit of a client counts the calls of that client only: another client of the same
// user, another user with a client of the same name, and another token of the user have
// limits of their own.
func TestEachClientHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	g, err := New(Options{Key: []byte(strings.Repeat("k", 32)), ClientPerMinute: 2})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Upstream: upstream.New(upstream.Spec{Name: "one"}, upstream.Options{})}
	called := &tool{entry: entry{member: m, name: "one__echo", original: "echo"}}
	clients := map[string]*Client{
		"a client":                  {Principal: guideway.Principal{User: "ann", Client: "editor"}},
		"another client":            {Principal: guideway.Principal{User: "ann", Client: "terminal"}},
		"another user":              {Principal: guideway.Principal{User: "bob", Client: "editor"}},
		"another token of the user": {Principal: guideway.Principal{User: "ann", Client: "editor"}, Holder: "phone"},
	}
	for name, c := range clients {
		if err := g.checkLimits(t.Context(), c, called, ""); err != nil {
			t.Errorf("%s: the first call: %v", name, err)
		}
		if err := g.checkRequestLimits(t.Context(), c, m, Request{}); err != nil {
			t.Errorf("%s: the second request: %v", name, err)
		}
	}
	for name, c := range clients {
		again := *c // a limit belongs to the client, not to a connection
		again.Session = "new"
		if err := g.checkLimits(t.Context(), &again, called, ""); err == nil || !strings.Contains(err.Error(), "this client has sent too many calls") {
			t.Errorf("%s: a third call: %v", name, err)
		}
		if err := g.checkRequestLimits(t.Context(), &again, m, Request{}); err == nil {
			t.Errorf("%s: a third request is allowed", name)
		}
	}
}

// newLimits returns limits that have counted no calls.
func newLimits() *limits {
	return &limits{buckets: map[string]*bucket{}, answered: map[string]time.Time{}}
}

// TestRefusalNamesTheLimitThatBlocksLongest checks which limit a refusal names: the one
// that blocks longest, or the first of two that block equally long.
func TestRefusalNamesTheLimitThatBlocksLongest(t *testing.T) {
	t.Parallel()
	l := newLimits()
	quick, slow, alike := bound{"client", "a", "a client", 60}, bound{"upstream", "b", "an upstream", 2}, bound{"tool", "c", "a tool", 2}
	for range 2 {
		if over, _ := l.takeAll(slow, alike); over != nil {
			t.Fatalf("%s blocks a call within its limit", over.said)
		}
	}
	for range 60 {
		if over, _ := l.takeAll(quick); over != nil {
			t.Fatalf("%s blocks a call within its limit", over.said)
		}
	}
	for want, bounds := range map[string][]bound{"an upstream": {quick, slow, alike}, "a tool": {quick, alike, slow}, "a client": {quick}} {
		over, wait := l.takeAll(bounds...)
		if over == nil || over.said != want || wait <= 0 {
			t.Fatalf("%v blocks for %s, want %s", over, wait, want)
		}
		if most := time.Minute / time.Duration(over.perMinute); wait > most {
			t.Errorf("%s blocks for %s, more than %s", want, wait, most)
		}
	}
}

// TestManyNamesDoNotResetALimit checks that a client cannot reset a used limit by making
// the gateway create many others: limits in use are kept, and the others are dropped.
func TestManyNamesDoNotResetALimit(t *testing.T) {
	t.Parallel()
	l := newLimits()
	used := bound{"client", "used", "the client", 1}
	if over, _ := l.takeAll(used); over != nil {
		t.Fatal("the first call is refused")
	}
	fill := func(name string) {
		for i := range maxBuckets {
			l.takeAll(bound{"client", fmt.Sprint(name, i), "another client", 1})
		}
	}
	fill("a")
	if over, _ := l.takeAll(used); over == nil {
		t.Error("the second call is allowed after many other clients")
	}
	for _, b := range l.buckets {
		b.used = b.used.Add(-time.Hour)
	}
	fill("b")
	if n := len(l.buckets); n > maxBuckets {
		t.Errorf("%d limits are kept, though an hour without a call passed", n)
	}
}

// TestRepeatedAnswersCount checks that the first return of a request state does not count
// as a call, and any later one does. If the memory of states is full, every return counts
// until the states have expired.
func TestRepeatedAnswersCount(t *testing.T) {
	t.Parallel()
	l := newLimits()
	if l.isFirstAnswer("") {
		t.Error("a call without a state is an answer")
	}
	for i := range maxBuckets {
		if !l.isFirstAnswer(fmt.Sprint(i)) {
			t.Fatalf("the first answer %d counts", i)
		}
	}
	for _, state := range []string{"0", "9999", "new", "new"} {
		if l.isFirstAnswer(state) {
			t.Errorf("the answer %s does not count, though the memory is full", state)
		}
	}
	for key, at := range l.answered {
		l.answered[key] = at.Add(-stateTime - time.Second)
	}
	if !l.isFirstAnswer("new") || l.isFirstAnswer("new") {
		t.Error("after the states expired, the first answer counts, or the second does not")
	}
	if len(l.answered) != 1 {
		t.Errorf("%d expired states are kept", len(l.answered)-1)
	}
}

// TestLimitOfAnUnlistedTool checks that a call of a listed tool counts against the tool's
// limit when it arrives. A call of an unlisted tool, which hooks may redirect, counts only
// after the hooks.
func TestLimitOfAnUnlistedTool(t *testing.T) {
	t.Parallel()
	g, err := New(Options{Key: []byte(strings.Repeat("k", 32))})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{Entry: Entry{ToolPerMinute: 1}, Upstream: upstream.New(upstream.Spec{Name: "one"}, upstream.Options{})}
	c := &Client{Principal: guideway.Principal{User: "ann", Client: "editor"}}
	listed := &tool{entry: entry{member: m, name: "one__echo", original: "echo"}}
	unlisted := &tool{entry: entry{member: m, name: "one__env", original: "env"}, unlisted: true}
	for i, want := range []bool{true, false, false} {
		if err := g.checkLimits(t.Context(), c, listed, ""); (err == nil) != want {
			t.Errorf("call %d of a listed tool: %v", i+1, err)
		}
	}
	for range 3 {
		if err := g.checkLimits(t.Context(), c, unlisted, ""); err != nil {
			t.Errorf("an unlisted tool is counted on arrival: %v", err)
		}
	}
	for i, want := range []bool{true, false} {
		if err := g.checkToolLimit(t.Context(), unlisted); (err == nil) != want {
			t.Errorf("call %d after the hooks: %v", i+1, err)
		}
	}
}
