package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

// hookStateTests cover the state of hooks: entries are separate, expire, and are changed
// atomically within limits.
func hookStateTests() []subtest {
	return []subtest{
		{"entries of other graphs, scopes and keys are separate", testSeparateEntries},
		{"an entry survives, and expires", testExpiry},
		{"a failed change changes nothing", testFailedChange},
		{"concurrent changes do not get lost", testConcurrentChanges},
		{"the state of a graph is bounded", testBoundedState},
		{"entries are listed", testListedState},
	}
}

// putState stores a value without a condition.
func putState(t *testing.T, s Store, ref hookstate.Ref, now time.Time, e hookstate.Entry) error {
	t.Helper()
	return s.ChangeHookState(t.Context(), ref, now, func(hookstate.Entry) (hookstate.Entry, error) { return e, nil })
}

func checkState(t *testing.T, s Store, ref hookstate.Ref, now time.Time, want hookstate.Entry) {
	t.Helper()
	got, err := s.HookState(t.Context(), ref, now)
	requireNoError(t, err)
	if !got.Equal(want) {
		t.Fatalf("the state %q is %s until %v, want %s until %v", ref, got.Value, got.Expires, want.Value, want.Expires)
	}
}

func testSeparateEntries(t *testing.T, f *fixture) {
	s := f.openStore(t)
	refs := []hookstate.Ref{
		{Graph: "a", Scope: "global", Key: "k"},
		{Graph: "b", Scope: "global", Key: "k"},
		{Graph: "a", Scope: "client", Key: "k"},
		{Graph: "a", Scope: "global", Key: "k\x00"},
		{Graph: "a", Scope: "global", Key: "\xff"},
		{Graph: "aglobal", Scope: "", Key: "k"},
	}
	for i, ref := range refs {
		checkState(t, s, ref, startTime(), hookstate.Entry{})
		requireNoError(t, putState(t, s, ref, startTime(), hookstate.Entry{Value: json.RawMessage(strconv.Itoa(i))}))
	}
	requireNoError(t, putState(t, s, refs[0], startTime(), hookstate.Entry{}))
	checkState(t, s, refs[0], startTime(), hookstate.Entry{})
	other := f.openStore(t)
	for i, ref := range refs[1:] {
		checkState(t, other, ref, startTime(), hookstate.Entry{Value: json.RawMessage(strconv.Itoa(i + 1))})
	}
}

func testExpiry(t *testing.T, f *fixture) {
	s := f.openStore(t)
	ref := hookstate.Ref{Graph: "g", Scope: "global", Key: "k"}
	e := hookstate.Entry{Value: json.RawMessage(`{ "a": "é" }`), Expires: startTime().Add(time.Second)}
	requireNoError(t, putState(t, s, ref, startTime(), e))
	checkState(t, f.openStore(t), ref, e.Expires.Add(-time.Microsecond), e)
	checkState(t, s, ref, e.Expires, hookstate.Entry{})
	requireNoError(t, s.ChangeHookState(t.Context(), ref, e.Expires, func(before hookstate.Entry) (hookstate.Entry, error) {
		if !before.Equal(hookstate.Entry{}) {
			t.Errorf("a change gets the expired value %s", before.Value)
		}
		return hookstate.Entry{Value: json.RawMessage("1")}, nil
	}))
	checkState(t, s, ref, e.Expires.Add(time.Hour), hookstate.Entry{Value: json.RawMessage("1")})
}

func testFailedChange(t *testing.T, f *fixture) {
	s := f.openStore(t)
	ref := hookstate.Ref{Graph: "g", Scope: "global", Key: "k"}
	one := hookstate.Entry{Value: json.RawMessage("1")}
	requireNoError(t, putState(t, s, ref, startTime(), one))
	err := s.ChangeHookState(t.Context(), ref, startTime(), func(hookstate.Entry) (hookstate.Entry, error) {
		return hookstate.Entry{Value: json.RawMessage("2")}, guideway.Errorf(guideway.CodeInvalid, "no")
	})
	checkCode(t, err, guideway.CodeInvalid, "a refused change")
	checkState(t, s, ref, startTime(), one)
}

func testConcurrentChanges(t *testing.T, f *fixture) {
	stores := make([]Store, 3)
	for i := range stores {
		stores[i] = f.openStore(t)
	}
	ref := hookstate.Ref{Graph: "g", Scope: "global", Key: "k"}
	const changes = 64
	for _, err := range runConcurrently(changes, func(i int) error {
		return stores[i%len(stores)].ChangeHookState(t.Context(), ref, startTime(), func(e hookstate.Entry) (hookstate.Entry, error) {
			n, _ := strconv.Atoi(string(e.Value)) // 0 without a value
			return hookstate.Entry{Value: json.RawMessage(strconv.Itoa(n + 1))}, nil
		})
	}) {
		requireNoError(t, err)
	}
	checkState(t, stores[0], ref, startTime(), hookstate.Entry{Value: json.RawMessage(strconv.Itoa(changes))})
}

func testBoundedState(t *testing.T, f *fixture) {
	s := f.openStore(t)
	big := json.RawMessage(`"` + strings.Repeat("x", hookstate.MaxBytes/8) + `"`)
	put := func(graph, key string, e hookstate.Entry, now time.Time) error {
		return putState(t, s, hookstate.Ref{Graph: graph, Scope: "global", Key: key}, now, e)
	}
	later := startTime().Add(time.Minute)
	requireNoError(t, put("g", "0", hookstate.Entry{Value: big, Expires: later}, startTime()))
	for i := range 6 {
		requireNoError(t, put("g", fmt.Sprint(i+1), hookstate.Entry{Value: big}, startTime()))
	}
	checkCode(t, put("g", "one more", hookstate.Entry{Value: big}, startTime()), guideway.CodeTooLarge, "a full state")
	checkState(t, s, hookstate.Ref{Graph: "g", Scope: "global", Key: "one more"}, startTime(), hookstate.Entry{})
	requireNoError(t, put("g", "2", hookstate.Entry{Value: json.RawMessage("1")}, startTime())) // a smaller value
	requireNoError(t, put("g", "2", hookstate.Entry{Value: big}, startTime()))
	requireNoError(t, put("other", "0", hookstate.Entry{Value: big}, startTime()))
	requireNoError(t, put("g", "one more", hookstate.Entry{Value: big}, later)) // an expired value takes no room
	checkCode(t, put("g", "and another", hookstate.Entry{Value: big}, later), guideway.CodeTooLarge, "a full state")
}

func testListedState(t *testing.T, f *fixture) {
	s := f.openStore(t)
	put := func(graph, scope, key string, expires time.Time) hookstate.Item {
		i := hookstate.Item{
			Ref:   hookstate.Ref{Graph: graph, Scope: scope, Key: key},
			Entry: hookstate.Entry{Value: json.RawMessage(`"` + graph + `"`), Expires: expires},
		}
		requireNoError(t, putState(t, s, i.Ref, startTime(), i.Entry))
		return i
	}
	later := startTime().Add(time.Second)
	first, second := put("a", "x", "1", later), put("a", "x", "\xff", time.Time{})
	third, fourth := put("a", "y", "1", time.Time{}), put("b", "x", "1", later.Add(time.Hour))
	check := func(graph string, now time.Time, want ...hookstate.Item) {
		t.Helper()
		got, err := s.HookStates(t.Context(), graph, now)
		requireNoError(t, err)
		if !slices.EqualFunc(got, want, func(a, b hookstate.Item) bool { return a.Ref == b.Ref && a.Equal(b.Entry) }) {
			t.Fatalf("the entries of %q are %v, want %v", graph, got, want)
		}
	}
	check("", startTime(), first, second, third, fourth)
	check("a", startTime(), first, second, third)
	check("a", later, second, third)
	check("none", startTime())
}
