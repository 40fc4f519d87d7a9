package gateway_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestChangedToolNeedsApproval checks that a changed or new tool is not listed and cannot
// be called until a person approves it.
func TestChangedToolNeedsApproval(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, tool, why, diff string }{
		{upstreamtest.Changing, "echo", "changed", "+ /description: Now sends all to evil"},
		{upstreamtest.Growing, "new2", "new", "+ /name: new2"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			store := newPins(t, t.TempDir())
			r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", c.mode)}, Pins: store})
			p := r.connectClient(t, clientSetup{user: "ann", version: legacy})
			p.toolNames()
			if err := r.Refresh(t.Context(), "one", ""); err != nil {
				t.Fatal(err)
			}
			r.Reload()
			if names := p.toolNames(); slices.Contains(names, "one__"+c.tool) || !slices.Contains(names, "one__env") {
				t.Errorf("the tools are %v", names)
			}
			if got := p.callTool("one__"+c.tool, args{"text": "x"}); !strings.Contains(got, "waits for approval") || !strings.Contains(got, "guideway upstream approve one") {
				t.Errorf("the call returned %s", got)
			}
			waiting, err := pins.Review(store, r.Known("one"), "one")
			waiting = slices.DeleteFunc(waiting, func(w pins.Waiting) bool { return strings.Contains(w.Tool, ":") })
			if err != nil || len(waiting) != 1 || waiting[0].Why != c.why || !strings.Contains(waiting[0].Diff(), c.diff) {
				t.Fatalf("waiting: %+v %v", waiting, err)
			}
			if err := pins.Accept(store, "one", "ann", waiting); err != nil {
				t.Fatal(err)
			}
			r.Reload()
			if names := p.toolNames(); !slices.Contains(names, "one__"+c.tool) {
				t.Errorf("after approval the tools are %v", names)
			}
		})
	}
}

// If all tools need approval, none is offered at first.
func TestApproveAll(t *testing.T) {
	t.Parallel()
	e := newEntry(t, "one")
	e.Pins = pins.ModeApprove
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{e}, Pins: newPins(t, t.TempDir())})
	if names := r.connectClient(t, clientSetup{user: "ann", version: legacy}).toolNames(); len(names) != 1 {
		t.Errorf("the tools are %v", names)
	}
}

// TestDamagedPins checks that no tool of an upstream is offered if the approvals were
// edited.
func TestDamagedPins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "approvals.json"), []byte(`{"form":1,"records":[],"mac":""}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one")}, Pins: newPins(t, dir)})
	if names := r.connectClient(t, clientSetup{user: "ann", version: legacy}).toolNames(); len(names) != 1 {
		t.Errorf("the tools are %v", names)
	}
}

// An edited definition is not shown as the approved one.
func TestPinnedDefinitions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := newPins(t, dir)
	sum := sha256.Sum256([]byte(`{"name":"a"}`))
	err := store.Approve("one", map[string]pins.Pin{"a": {Hash: hex.EncodeToString(sum[:]), Definition: json.RawMessage(`{"name":"a"}`), By: "ann"}, "gone": {}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := store.Approved("one"); err != nil || len(got) != 1 || string(got["a"].Definition) != `{"name":"a"}` {
		t.Errorf("the pins are %v, %v", got, err)
	}
	if got, err := store.Approved("two"); err != nil || got != nil {
		t.Errorf("the pins of another upstream are %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pins", "definitions", "one.json"), []byte(`{"a":{"name":"b"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Approved("one"); err != nil || got["a"].Definition != nil || got["a"].Hash == "" {
		t.Errorf("the edited pins are %v, %v", got, err)
	}
}

// newPins returns a pin store in a directory.
func newPins(t *testing.T, dir string) pins.Store {
	t.Helper()
	store, err := approval.Open(approval.Options{Path: filepath.Join(dir, "approvals.json"), Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	return pins.Store{Approvals: store, Dir: filepath.Join(dir, "pins")}
}

// A difference shows hidden characters.
func TestDiff(t *testing.T) {
	t.Parallel()
	w := pins.Waiting{Before: []byte(`{"description":"a","x":{"y":1}}`), After: []byte("{\"description\":\"a\u200bb\\n\",\"x\":{\"y\":1}}")}
	if got, want := w.Diff(), "- /description: a\n+ /description: a\\u{200B}b\\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w = pins.Waiting{Before: []byte(`{"description":"⚠"}`), After: []byte(`{"description":"⚠\ufe0f"}`)}
	if got, want := w.Diff(), "- /description: ⚠\n+ /description: ⚠\\u{FE0F}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestChangedPromptNeedsApproval checks that a changed or new prompt is not listed and
// cannot be used until a person approves it.
func TestChangedPromptNeedsApproval(t *testing.T) {
	t.Parallel()
	for mode, c := range map[string]struct{ prompt, why, diff string }{
		upstreamtest.Changing: {"greet", "changed", "+ /arguments/0/description: Your password"},
		upstreamtest.Growing:  {"new2", "new", "+ /name: new2"},
	} {
		store := newPins(t, t.TempDir())
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}, Pins: store})
		p := r.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
		names := func() string {
			list, err := p.session.ListPrompts(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return marshalText(t, list)
		}
		get := func(name string) error {
			_, err := p.session.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__" + name, Arguments: map[string]string{"who": "you"}})
			return err
		}
		if got := names(); !strings.Contains(got, "one__greet") {
			t.Errorf("%s: the prompts are %s", mode, got)
		}
		if err := r.Refresh(t.Context(), "one", ""); err != nil {
			t.Fatal(err)
		}
		if got := names(); strings.Contains(got, "one__"+c.prompt) {
			t.Errorf("%s: the prompts are %s", mode, got)
		}
		if err := get(c.prompt); err == nil || !strings.Contains(err.Error(), "waits for approval") {
			t.Errorf("%s: the use of the prompt returned %v", mode, err)
		}
		_, err := p.session.Complete(t.Context(), &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "one__" + c.prompt}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "a"},
		})
		if err == nil || !strings.Contains(err.Error(), "waits for approval") {
			t.Errorf("%s: the completion returned %v", mode, err)
		}
		all, err := pins.Review(store, r.Known("one"), "one")
		waiting := slices.DeleteFunc(all, func(w pins.Waiting) bool { return !strings.HasPrefix(w.Tool, "prompt:") })
		if err != nil || len(waiting) != 1 || waiting[0].Tool != "prompt:"+c.prompt || waiting[0].Why != c.why || !strings.Contains(waiting[0].Diff(), c.diff) {
			t.Fatalf("%s: waiting: %+v %v", mode, waiting, err)
		}
		if err := pins.Accept(store, "one", "ann", waiting); err != nil {
			t.Fatal(err)
		}
		r.Reload()
		if err := get(c.prompt); err != nil || !strings.Contains(names(), "one__"+c.prompt) {
			t.Errorf("%s: after approval: %v, %s", mode, err, names())
		}
	}
}

// TestChangedTemplateNeedsApproval checks that a changed or new resource template is not
// listed until a person approves it, and that its upstream does not get its URIs.
func TestChangedTemplateNeedsApproval(t *testing.T) {
	t.Parallel()
	for mode, c := range map[string]struct{ template, why, diff string }{
		upstreamtest.Changing: {"note://{id}", "changed", "+ /icons/0/src: https://evil.example/icon.png"},
		upstreamtest.Growing:  {"new2://{id}", "new", "+ /uriTemplate: new2://{id}"},
	} {
		store := newPins(t, t.TempDir())
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", mode)}, Pins: store})
		p := r.connectClient(t, clientSetup{user: "ann", version: legacy, mute: true})
		if got := listedURIs(t, p); !slices.Equal(got, []string{"note://one", "note://{id}"}) {
			t.Errorf("%s: the lists have %q", mode, got)
		}
		if err := r.Refresh(t.Context(), "one", ""); err != nil {
			t.Fatal(err)
		}
		if got := listedURIs(t, p); slices.Contains(got, c.template) {
			t.Errorf("%s: the lists have %q", mode, got)
		}
		complete := func() error {
			_, err := p.session.Complete(t.Context(), &mcp.CompleteParams{
				Ref: &mcp.CompleteReference{Type: "ref/resource", URI: c.template}, Argument: mcp.CompleteParamsArgument{Name: "id", Value: "a"},
			})
			return err
		}
		if err := complete(); err == nil || mode == upstreamtest.Changing && !strings.Contains(err.Error(), "waits for approval") {
			t.Errorf("%s: the completion returned %v", mode, err)
		}
		if _, err := p.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "new2://x"}); err == nil {
			t.Errorf("%s: a URI of the waiting template was read", mode)
		}
		all, err := pins.Review(store, r.Known("one"), "one")
		waiting := slices.DeleteFunc(all, func(w pins.Waiting) bool { return w.Tool != "template:"+c.template })
		if err != nil || len(waiting) != 1 || waiting[0].Why != c.why || !strings.Contains(waiting[0].Diff(), c.diff) {
			t.Fatalf("%s: waiting: %+v %v", mode, waiting, err)
		}
		if err := pins.Accept(store, "one", "ann", waiting); err != nil {
			t.Fatal(err)
		}
		r.Reload()
		if got := listedURIs(t, p); !slices.Contains(got, c.template) || complete() != nil {
			t.Errorf("%s: after approval, the lists have %q", mode, got)
		}
	}
}
