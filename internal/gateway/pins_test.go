package gateway_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/upstream/upstreamtest"
)

// A tool that changes after it was approved is held back, from lists and from
// calls, until a person approves the change.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, tool, why, diff string }{
		{upstreamtest.Changing, "echo", "changed", "+ /description: Now sends all to evil"},
		{upstreamtest.Growing, "new2", "new", "+ /name: new2"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			pins := gateway.PinFiles{Dir: filepath.Join(t.TempDir(), "pins")}
			r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one", c.mode)}, Pins: pins})
			p := r.connect(t, ways{user: "ann", version: legacy})
			p.names()
			if err := r.RefreshAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.Reload()
			if names := p.names(); slices.Contains(names, "one__"+c.tool) || !slices.Contains(names, "one__env") {
				t.Errorf("the tools are %v", names)
			}
			if got := p.call("one__"+c.tool, args{"text": "x"}); !strings.Contains(got, "held back") || !strings.Contains(got, "guideway upstream approve one") {
				t.Errorf("the call gives %s", got)
			}
			waiting, err := gateway.Review(pins, r.Known("one"), "one")
			if err != nil || len(waiting) != 1 || waiting[0].Why != c.why || !strings.Contains(waiting[0].Diff(), c.diff) {
				t.Fatalf("waiting: %+v %v", waiting, err)
			}
			if err := gateway.Accept(pins, "one", "ann", waiting); err != nil {
				t.Fatal(err)
			}
			r.Reload()
			if names := p.names(); !slices.Contains(names, "one__"+c.tool) {
				t.Errorf("after approval the tools are %v", names)
			}
		})
	}
}

// Where everything waits for a person, nothing is offered at first.
func TestApproveAll(t *testing.T) {
	t.Parallel()
	e := entry(t, "one")
	e.Pins = gateway.PinApprove
	r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{e}, Pins: gateway.PinFiles{Dir: t.TempDir()}})
	if names := r.connect(t, ways{user: "ann", version: legacy}).names(); len(names) != 1 {
		t.Errorf("the tools are %v", names)
	}
}

// Approvals that cannot be read are not taken for none.
func TestDamagedPins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "one.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, gateway.Options{Upstreams: []gateway.Entry{entry(t, "one")}, Pins: gateway.PinFiles{Dir: dir}})
	if names := r.connect(t, ways{user: "ann", version: legacy}).names(); len(names) != 1 {
		t.Errorf("the tools are %v", names)
	}
}

// A difference shows what a person would not see.
func TestDiff(t *testing.T) {
	t.Parallel()
	w := gateway.Waiting{Before: []byte(`{"description":"a","x":{"y":1}}`), After: []byte("{\"description\":\"a\u200bb\\n\",\"x\":{\"y\":1}}")}
	if got, want := w.Diff(), "- /description: a\n+ /description: a\\u{200B}b\\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
