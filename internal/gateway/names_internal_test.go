package gateway

import (
	"strings"
	"testing"
)

// An advertised name has at most 49 bytes, does not depend on the other tools, and is
// distinct for each upstream and tool; the full name is as long as MCP allows.
func TestAdvertisedNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	seen := map[string]string{}
	for _, tt := range []struct{ prefix, original, name, full string }{
		{"github__", "search", "github__search", "github__search"},
		{"github__", strings.Repeat("x", 41), "github__" + strings.Repeat("x", 41), "github__" + strings.Repeat("x", 41)},
		{"github__", strings.Repeat("x", 42), "github__" + strings.Repeat("x", 32) + "_2b2573d5", "github__" + strings.Repeat("x", 42)},
		{"github__", long + "1", "github__" + strings.Repeat("x", 32) + "_434e006c", "github__" + long + "1"},
		{"github__", long + "2", "github__" + strings.Repeat("x", 32) + "_580bb3b6", "github__" + long + "2"},
		{"", long, strings.Repeat("x", 40) + "_42f2d973", long},
		// Names that were changed in earlier versions keep their form.
		{"github__", "a b", "github__a_b_c8687a08", "github__a_b_c8687a08"},
		{"github__", "a " + long, "github__a_" + strings.Repeat("x", 30) + "_a0dc6565", "github__a_" + long + "_a0dc6565"},
		{"github__", strings.Repeat("x", 200), "github__" + strings.Repeat("x", 32) + "_aa20c23e", "github__" + strings.Repeat("x", 111) + "_aa20c23e"},
		// The longest prefixes: the names of two upstreams stay distinct.
		{strings.Repeat("u", 40) + "__", "get_it_all", strings.Repeat("u", 39) + "__eb5e51b2", strings.Repeat("u", 40) + "__get_it_all"},
		{strings.Repeat("u", 39) + "__", "get", strings.Repeat("u", 39) + "__get", strings.Repeat("u", 39) + "__get"},
		{strings.Repeat("u", 39) + "__", "get_it_all", strings.Repeat("u", 39) + "__ec477d81", strings.Repeat("u", 39) + "__get_it_all"},
	} {
		for range 2 { // A second surface assigns the same names.
			name, full, ok := newNames([]string{"other"}).assignNames(tt.prefix, tt.original)
			if name != tt.name || full != tt.full || !ok {
				t.Errorf("%s %s: the names are %q and %q, want %q and %q", tt.prefix, tt.original, name, full, tt.name, tt.full)
			}
			if len(name) > 49 || len(full) > 128 {
				t.Errorf("%q has %d bytes, %q has %d", name, len(name), full, len(full))
			}
		}
		if other, taken := seen[tt.name]; taken {
			t.Errorf("%s is the name of %s and %s", tt.name, other, tt.full)
		}
		seen[tt.name] = tt.full
	}
}

// No tool can take the advertised or the full name of another one.
func TestTakenNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	used := newNames(nil)
	short, full, ok := used.assignNames("github__", long)
	if !ok {
		t.Fatal("the name is taken")
	}
	for _, original := range []string{short, full} {
		if name, _, ok := used.assignNames("", original); ok {
			t.Errorf("an upstream without a prefix takes %s by %s", name, original)
		}
	}
}
