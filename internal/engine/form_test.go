package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
)

func TestIsPlaceholder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"...": true, " … ": true, "`...`": true, "\"...\"": true, "<output>": true, "<one of: red, blue>": true, "TODO": true, "todo.": true, "TBD": true, "\u200b...": true, ".\u2060..": true, "\u200b": true,
		"... ...": true, ". . .": true, "[...]": true, "{ … }": true, "\u3164": true, "\u2800": true, "\ufe0f": true, ".": true, "..": true, ":": true, "(...)": true,
		"[]": false, "{}": false, "<https://example.com/a>": false, "\u2764\ufe0f": false, "./a": false, "...and more": false,
		"": false, "done": false, "TODO: none left": false, "the list is [...]": false, "<b>bold</b>": false, "a < b and b > c": false, "see <https://example.com>": false, "``": false, "-": false,
	} {
		if got := engine.IsPlaceholder(text); got != want {
			t.Errorf("IsPlaceholder(%q) = %v, want %v", text, got, want)
		}
	}
}

// TestPathsInConditions checks that a condition and a loop of a step workflow read members of
// objects, and that setting a member keeps the others.
func TestPathsInConditions(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[
		{"id":"set","title":"Set","prompt":"Set report."},
		{"id":"each","type":"loop","title":"Each","loop":{"type":"forEach","items":"report.files","itemVar":"f","maxIterations":3},"body":[
			{"id":"look","title":"Look","prompt":"p","runCondition":{"var":"f.lang","equals":"go"}}]},
		{"id":"bad","title":"Bad","prompt":"p","runCondition":{"var":"report.ok","equals":false}}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil), outputCommand("set", map[string]any{"report": map[string]any{"files": []any{map[string]any{"lang": "c"}, map[string]any{"lang": "go"}}}}))
	pos := p.PositionOf(s)
	if pos.ID != "look" || pos.Loop.Round != 2 {
		t.Fatalf("at %+v", pos)
	}
	if _, r := p.Decide(s, outputCommand("x", map[string]any{"f.lang": "c"})); r == nil || r.Rule != engine.RuleServerVariable {
		t.Errorf("a caller set a member of the loop's item: %+v", r)
	}
	s = applyToProgram(t, p, s, outputCommand("gone", map[string]any{"report": map[string]any{"ok": false}}))
	if pos := p.PositionOf(s); pos.ID != "bad" {
		t.Errorf("at %+v", pos)
	}
	if d := cmp.Diff(map[string]any{"ok": false, "files": []any{map[string]any{"lang": "c"}, map[string]any{"lang": "go"}}}, s.Vars["report"]); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
}
