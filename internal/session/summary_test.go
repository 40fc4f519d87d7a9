package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestDashboardSummary checks that the dashboard of a summary is bounded and keeps its short
// members.
func TestDashboardSummary(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxDashboard)
	many := map[string]any{"title": "Login fails"}
	for i := range 1000 {
		many[fmt.Sprintf("member %d", i)] = json.Number("1")
	}
	tests := []struct {
		name      string
		dashboard any
		want      string
	}{
		{"none", nil, ""},
		{"unchanged", map[string]any{"title": "<&>", "progress": json.Number("1.10"), "list": []any{"a"}}, `{"list":["a"],"progress":1.10,"title":"<&>"}`},
		{"a string", "done", `"done"`},
		{"a string that is too long", long, ""},
		{"a list that is too long", []any{long}, ""},
		{"one member that is too long", map[string]any{"title": "t", "status": "blocked", "log": long}, `{"status":"blocked","title":"t"}`},
		{"only members that are too long", map[string]any{"log": long}, ""},
	}
	for _, tt := range tests {
		got, err := Document{Data: map[string]any{"dashboard": tt.dashboard, "notes": long}}.Summary()
		if err != nil || string(got.Dashboard) != tt.want {
			t.Errorf("%s: %.100s, %v, want %s", tt.name, got.Dashboard, err, tt.want)
		}
	}
	got, err := Document{Data: map[string]any{"dashboard": many}}.Summary()
	if err != nil || len(got.Dashboard) > MaxDashboard || !strings.Contains(string(got.Dashboard), `"member 1":1,`) {
		t.Errorf("many members: %d bytes, %v", len(got.Dashboard), err)
	}
}

// TestSummaryIsBounded checks that the dashboard of a summary never exceeds its maximum
// size, has unchanged members, keeps the short ones, and is always the same for a document.
func TestSummaryIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dashboard := map[string]any{}
		for name, size := range rapid.MapOfN(rapid.StringMatching(`[a-z<]{1,8}`), rapid.IntRange(0, MaxDashboard+10), 0, 12).Draw(t, "members") {
			dashboard[name] = strings.Repeat("é", size/2)
		}
		d := Document{Data: map[string]any{"dashboard": dashboard}}
		first, err := d.Summary()
		if err != nil {
			t.Fatal(err)
		}
		again, _ := d.Summary()
		if string(first.Dashboard) != string(again.Dashboard) {
			t.Fatal("two summaries of one document differ")
		}
		if len(first.Dashboard) > MaxDashboard {
			t.Fatalf("%d bytes", len(first.Dashboard))
		}
		if first.Dashboard == nil {
			return
		}
		var kept map[string]any
		if err := json.Unmarshal(first.Dashboard, &kept); err != nil {
			t.Fatal(err)
		}
		longest := 0
		for name, value := range kept {
			if value != dashboard[name] {
				t.Fatalf("the member %q differs", name)
			}
			longest = max(longest, len(value.(string)))
		}
		for name, value := range dashboard {
			if _, ok := kept[name]; !ok && len(value.(string))+20 < longest {
				t.Fatalf("%q was omitted, but a member of %d bytes was kept", name, longest)
			}
		}
	})
}
