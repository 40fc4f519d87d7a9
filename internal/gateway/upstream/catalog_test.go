package upstream_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
)

// A catalog is cached unchanged and known at the next start without the server.
func TestCatalogIsCached(t *testing.T) {
	t.Parallel()
	dir, spec := t.TempDir(), ownSpec(t)
	c, err := openUpstream(t, spec, upstream.Options{CacheDir: dir}).Catalog(t.Context(), upstream.Want{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(c.Tools[0]), `"x-unknown":1`) || len(c.Prompts) != 1 || len(c.Resources) != 1 || len(c.Templates) != 1 {
		t.Errorf("the catalog is %+v", c)
	}
	next := openUpstream(t, spec, upstream.Options{CacheDir: dir})
	if known := next.Known(); known == nil || len(known.Tools) != len(c.Tools) || next.Health().Condition != upstream.ConditionIdle {
		t.Errorf("the cached catalog is %v", known)
	}
	spec.Args = []string{"other"}
	if known := openUpstream(t, spec, upstream.Options{CacheDir: dir}).Known(); known != nil {
		t.Error("another server got the catalog of the first")
	}
}

// TestInvalidLists checks that an endless or invalid list yields a limited number of valid
// tools and a note.
func TestInvalidLists(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mode, note string
		most       int
	}{
		{upstreamtest.Endless, "exceeds", 2000},
		{upstreamtest.CyclicPages, "repeats a page", 40},
		{upstreamtest.CaseVariant, "letter case", 40},
		{upstreamtest.Colliding, "a second entry", 40},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			got, err := openUpstream(t, ownSpec(t, c.mode), upstream.Options{}).Catalog(t.Context(), upstream.Want{})
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, c.note) {
				t.Errorf("the notes are %q, want %q", notes, c.note)
			}
			if len(got.Tools) == 0 || len(got.Tools) > c.most {
				t.Errorf("there are %d tools", len(got.Tools))
			}
			if strings.Contains(string(mustBytes(json.Marshal(got.Tools))), "unsafe") {
				t.Error("a tool with two names was accepted")
			}
		})
	}
}

func mustBytes(text []byte, _ error) []byte { return text }

// TestFloodOfChanges checks that calls are answered during a flood of list-changed
// notifications, and that the flood causes at most three reports of a change.
func TestFloodOfChanges(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 100)
	u := openUpstream(t, ownSpec(t, upstreamtest.Flood, upstreamtest.Growing), upstream.Options{Changed: func() { changed <- struct{}{} }})
	s := openSession(t, u, upstream.Want{})
	for range 100 {
		if got := callText(t, s, toolCall("echo", args{"text": "in the flood"})); got != "in the flood" {
			t.Fatalf("echo: %q", got)
		}
	}
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("the change was not detected")
	}
	if n := len(changed); n > 2 {
		t.Errorf("%d changes were reported", n)
	}
}

// A change in one process of a server is offered to the client of that process only, and is
// forgotten when the process has exited.
func TestChangeInOneProcess(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{}, 100)
	u := openUpstream(t, ownSpec(t, upstreamtest.Learning), upstream.Options{Changed: func() { changed <- struct{}{} }})
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, *jsonrpc.Error) { return nil, nil }
	openSession(t, u, upstream.Want{Client: "ann", Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: ask})
	s, done, err := u.Session(t.Context(), upstream.Want{Client: "ben", Capabilities: json.RawMessage(`{}`), Ask: ask})
	if err != nil {
		t.Fatal(err)
	}
	before, err := u.Refresh(t.Context(), upstream.Want{})
	if err != nil {
		t.Fatal(err)
	}
	waitUntil := func(what string, ok func() bool) {
		t.Helper()
		for late := time.After(10 * time.Second); !ok(); {
			select {
			case <-changed:
			case <-late:
				t.Fatal(what)
			}
		}
	}
	learned := func(c *upstream.Catalog) bool {
		return c != nil && strings.Contains(string(c.Tools[len(c.Tools)-1]), "learned")
	}
	_ = u.FetchOwn(t.Context(), "ann")
	callText(t, s, toolCall("echo", args{"text": "learn"}))
	waitUntil("the change was not detected", func() bool { return learned(u.Own()["ben"]) })
	if own := u.Own(); learned(own["ann"]) || len(own["ben"].Tools) != len(before.Tools)+1 {
		t.Errorf("ann sees %d tools, ben %d, all %d", len(own["ann"].Tools), len(own["ben"].Tools), len(before.Tools))
	}
	if again, err := u.Refresh(t.Context(), upstream.Want{}); err != nil || learned(again) || learned(u.Known()) {
		t.Errorf("the tool is in the lists of all clients: %v", err)
	}
	done()
	u.Release("ben")
	waitUntil("the lists of a client without a session were kept", func() bool { return u.Own()["ben"] == nil })
}
