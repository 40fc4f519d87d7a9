package contexts_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestLayerPrecedence checks that the workflow's rules, the agent's marks and the
// variables that the workflow reads take precedence over names and contents, for a run and
// a session.
func TestLayerPrecedence(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	vars := map[string]any{"scratchPad": "s", "contract": "c", "files": []any{"a"}, "debugLog": "d", "marked": "m", "service": "x"}
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: vars})
	mustSucceed(t, err)
	for _, mark := range []contexts.MarkRequest{{Handle: a.Handle, Keys: []string{"marked"}, Tags: []string{"api"}}, {Session: "line", Keys: []string{"marked"}}} {
		_, err := r.Mark(t.Context(), testCaller(), mark)
		mustSucceed(t, err)
	}
	want := map[string]string{
		"scratchPad": "ephemeral hint", "contract": "critical hint", "files": "critical variable", "service": "critical variable",
		"debugLog": "ephemeral key", "marked": "critical mark",
	}
	layers, err := r.Layers(t.Context(), testCaller(), run.Ref{Handle: a.Handle})
	mustSucceed(t, err)
	got, tokens := map[string]string{}, 0
	for _, item := range layers.Items {
		got[item.Key] = string(item.Layer) + " " + string(item.Rule)
		if item.Why == "" || item.Bytes == 0 {
			t.Errorf("%+v", item)
		}
		if item.Key == "marked" && !slices.Equal(item.Tags, []string{"api"}) {
			t.Errorf("tags %v", item.Tags)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("of a run (-want +got):\n%s", d)
	}
	for _, l := range layers.Layers {
		tokens += l.Tokens
	}
	if tokens != layers.Tokens || layers.Tokens == 0 || len(layers.Layers) != 4 {
		t.Errorf("layers %+v", layers.Layers)
	}
	p, err := r.Prioritize(t.Context(), testCaller(), contexts.ReduceRequest{Session: "line", Workflow: "move", Context: vars, Fit: contexts.Fit{Budget: 1000}})
	mustSucceed(t, err)
	for _, item := range p.Items {
		for _, key := range item.Keys {
			if wanted := strings.Fields(want[key])[0]; string(item.Layer) != wanted || item.Kept != (item.Layer != compress.Ephemeral) {
				t.Errorf("of a session: %+v, want %s", item, wanted)
			}
		}
	}
}

// TestReadOnlyOmitsNothing checks that nothing is omitted if nothing can be stored.
func TestReadOnlyOmitsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	given := map[string]any{"goal": "g", "analysis": longText("analysis", 300), "debugLog": longText("log", 50)}
	first := reopenRig(t, dir)
	a, err := first.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: given})
	mustSucceed(t, err)
	saved, err := first.Save(t.Context(), testCaller(), contexts.SaveRequest{Handle: a.Handle})
	mustSucceed(t, err)
	for name, change := range map[string]func(*parts){
		"known to both":                 func(p *parts) { p.memory.ReadOnly, p.checkpoint.ReadOnly, p.saver.Off = true, true, true },
		"known after the first attempt": func(p *parts) { p.checkpoint.ReadOnly, p.saver.Off = true, true },
	} {
		r := reopenRig(t, dir, change)
		c, err := r.Compress(t.Context(), testCaller(), contexts.ReduceRequest{Context: given, Fit: contexts.Fit{Budget: 500}})
		mustSucceed(t, err)
		if len(c.Omitted) != 0 || c.Over == "" || len(c.Context) != len(given) {
			t.Errorf("%s: compress %+v", name, c.Omitted)
		}
		p, err := r.Prioritize(t.Context(), testCaller(), contexts.ReduceRequest{Context: given, Fit: contexts.Fit{Budget: 500}})
		mustSucceed(t, err)
		if len(p.Context) != len(given) || p.Over == "" {
			t.Errorf("%s: prioritize keeps %d of %d", name, len(p.Context), len(given))
		}
		if _, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Context: given}); guideway.ErrorCode(err) != guideway.CodeForbidden {
			t.Errorf("%s: save: %v", name, err)
		}
		if loaded, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{ID: saved.ID}); err != nil || loaded.Handle != a.Handle {
			t.Errorf("%s: load: %+v, %v", name, loaded, err)
		}
	}
}

// TestOmittedValuesRoundTrip checks that omitted values of any context can be loaded byte
// for byte, and that the other values are unchanged.
func TestOmittedValuesRoundTrip(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	value := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any {
			return strings.Repeat(rapid.String().Draw(t, "s")+". ", rapid.IntRange(0, 400).Draw(t, "n"))
		}),
		rapid.Custom(func(t *rapid.T) any {
			return json.Number(rapid.StringMatching(`-?[1-9][0-9]{0,20}(\.[0-9]{1,3})?`).Draw(t, "d"))
		}),
		rapid.Custom(func(t *rapid.T) any {
			return []any{rapid.String().Draw(t, "s"), nil, true, map[string]any{"k<": longText("entry", 40)}}
		}),
	)
	generator := rapid.MapOfN(rapid.StringMatching(`[a-zA-Z<&é"][a-zA-Z0-9_.]{0,12}`), value, 1, 8)
	rapid.Check(t, func(rt *rapid.T) {
		given := generator.Draw(rt, "context")
		out, err := r.Compress(t.Context(), testCaller(), contexts.ReduceRequest{Context: given, Session: "any", Fit: contexts.Fit{Budget: rapid.IntRange(1, 600).Draw(rt, "budget")}})
		mustSucceed(t, err)
		omitted := map[string]contexts.Omission{}
		var unlisted contexts.Omission
		for _, o := range out.Omitted {
			for _, key := range o.Keys {
				omitted[key] = o
			}
			if o.More > 0 {
				unlisted = o
			}
		}
		for key, v := range given {
			want := asJSON(t, v)
			o, left := omitted[key]
			if !left {
				if string(out.Context[key]) == want {
					continue
				}
				if o = unlisted; o.More == 0 {
					rt.Fatalf("%q was changed without a reference", key)
				}
			}
			if len(o.Keys)+o.More > 1 {
				back, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: o.Ref, Keys: []string{key}})
				mustSucceed(t, err)
				if some := map[string]json.RawMessage{}; json.Unmarshal(back.Context, &some) != nil || string(some[key]) != want {
					rt.Fatalf("%q is loaded as %.100s, want %.100s", key, back.Context, want)
				}
				continue
			}
			back, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: o.Ref})
			mustSucceed(t, err)
			if string(back.Value) != want {
				rt.Fatalf("%q is loaded as %.100s, want %.100s", key, back.Value, want)
			}
		}
	})
}

// TestOldValuesCanBeLoaded checks that a reference to a value of a run returns the old value
// after a change, many events later and in another process.
func TestOldValuesCanBeLoaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := reopenRig(t, dir)
	old := longText("first", 200)
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"analysis": old, "service": "s"}})
	mustSucceed(t, err)
	out, err := r.Compress(t.Context(), testCaller(), contexts.ReduceRequest{Handle: a.Handle, Fit: contexts.Fit{Budget: 300}})
	mustSucceed(t, err)
	if len(out.Omitted) != 1 {
		t.Fatalf("omitted %+v", out.Omitted)
	}
	_, err = r.runs.Continue(t.Context(), testCaller(), run.ContinueRequest{Handle: a.Handle, Output: "o", Context: map[string]any{"analysis": "short"}})
	mustSucceed(t, err)
	for range 250 { // the later events fill more than a page
		_, _ = r.runs.Continue(t.Context(), testCaller(), run.ContinueRequest{Handle: a.Handle, Output: "again"})
		_, err := r.Mark(t.Context(), testCaller(), contexts.MarkRequest{Handle: a.Handle, Keys: []string{fmt.Sprint("k", len(old))}})
		mustSucceed(t, err)
	}
	for name, r := range map[string]*rig{"here": r, "elsewhere": reopenRig(t, dir)} {
		back, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: out.Omitted[0].Ref})
		mustSucceed(t, err)
		if string(back.Value) != asJSON(t, old) {
			t.Errorf("%s: the reference loads %.60s", name, back.Value)
		}
	}
	for _, ref := range []string{a.RunID + ".1.0123456789", a.RunID + ".900-999", "r_nowhere.1.0123456789"} {
		if _, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: ref}); guideway.ErrorCode(err) != guideway.CodeNotFound {
			t.Errorf("%s: %v", ref, err)
		}
	}
	eve := run.Caller{Principal: guideway.Principal{User: "eve"}}
	if _, err := r.Load(t.Context(), eve, contexts.LoadRequest{Ref: out.Omitted[0].Ref}); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("Load by another user returned %v", err)
	}
}

// TestRunSummary checks that the summary of a long run has headings for its phases and a
// bounded size, and that its reference loads the outputs of the steps.
func TestRunSummary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := reopenRig(t, dir)
	parts := []any{}
	for i := range 60 {
		parts = append(parts, fmt.Sprintf("part-%d", i))
	}
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "release", Context: map[string]any{"parts": parts}})
	mustSucceed(t, err)
	b, err := r.Brief(t.Context(), testCaller(), a.RunID)
	mustSucceed(t, err)
	if b.Summary != nil {
		t.Errorf("a run without steps has the summary %+v", b.Summary)
	}
	for i := 0; a.Position.Kind != engine.PositionGate; i++ {
		a, err = handIn(t.Context(), r, a, fmt.Sprintf("Error E%d was mended in /src/file-%d.go. %s", i, i, longText("work", 5)))
		mustSucceed(t, err)
	}
	a, err = answerGate(t.Context(), r, a, "yes")
	mustSucceed(t, err)
	for name, r := range map[string]*rig{"here": r, "elsewhere": reopenRig(t, dir)} {
		b, err = r.Brief(t.Context(), testCaller(), a.RunID)
		mustSucceed(t, err)
		s := b.Summary
		if s == nil || s.Steps != 121 || !strings.Contains(s.Text, "## prepare") || !strings.Contains(s.Text, "## build") {
			t.Fatalf("%s: summary %+v", name, s)
		}
		if n := compress.Estimate(s.Text); n > 4000 {
			t.Errorf("%s: the summary has %d tokens", name, n)
		}
		for _, want := range []string{"- try, round 60: Error E120 ", "- ok: Answered: yes."} {
			if !strings.Contains(s.Text, want) {
				t.Errorf("%s: the summary lacks %q:\n%s", name, want, s.Text)
			}
		}
		for _, one := range s.Sections {
			if back, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: one.Ref, Lines: "1"}); err != nil || len(back.Value) < 3 {
				t.Errorf("%s: the section %+v loads %q: %v", name, one, back.Value, err)
			}
		}
		for _, want := range []string{"Error E0 ", "Error E120 ", `"option":"yes"`} {
			if _, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: s.Ref, Find: want}); err != nil {
				t.Errorf("%s: the referenced outputs lack %q: %v", name, want, err)
			}
		}
	}
}

// TestBudgetKeepsCritical checks that a checkpoint of a run that is loaded within a budget
// contains all variables that the run's marks and pinned rules make critical.
func TestBudgetKeepsCritical(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	given := map[string]any{"service": "login", "contract": longText("contract", 40), "pinned": longText("pinned", 40), "notes": longText("notes", 40)}
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: given})
	mustSucceed(t, err)
	saved, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Handle: a.Handle})
	mustSucceed(t, err)
	_, err = r.Mark(t.Context(), testCaller(), contexts.MarkRequest{Handle: a.Handle, Keys: []string{"pinned"}})
	mustSucceed(t, err)
	back, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{ID: saved.ID, Budget: 50})
	mustSucceed(t, err)
	for _, key := range []string{"service", "contract", "pinned"} {
		if !strings.Contains(string(back.Context), asJSON(t, given[key])) {
			t.Errorf("%s was changed: %s", key, back.Context)
		}
	}
	if len(back.Omitted) != 1 || back.Omitted[0].Keys[0] != "notes" || !strings.Contains(back.Note, "critical") {
		t.Errorf("omitted %+v, note %q", back.Omitted, back.Note)
	}
}

// TestSessions checks that a branch is reported, that keys select variables, that a value
// that was omitted within a budget can be loaded, and that Diff reports the changed
// variable.
func TestSessions(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	save := func(context map[string]any, head string) *contexts.Saved {
		s, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "line", Context: context, ExpectedHead: head})
		mustSucceed(t, err)
		return s
	}
	one := save(map[string]any{"goal": "g", "n": 1}, "")
	two := save(map[string]any{"goal": "g", "n": 2}, one.ID)
	three := save(map[string]any{"goal": "g", "n": 3}, one.ID)
	if two.Parent != one.ID || three.Head != two.ID || len(three.Warnings) != 1 || three.Warnings[0].Code != checkpoint.WarnBranch {
		t.Errorf("a branch: %+v", three)
	}
	loaded, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Session: "line", Keys: []string{"n", "absent"}})
	mustSucceed(t, err)
	if string(loaded.Context) != `{"n":3}` || !slices.Equal(loaded.Missing, []string{"absent"}) || len(loaded.Heads) != 1 {
		t.Errorf("loaded %+v", loaded)
	}
	big := save(map[string]any{"goal": "g", "analysis": longText("analysis", 200)}, "")
	small, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{ID: big.ID, Budget: 300})
	mustSucceed(t, err)
	if len(small.Omitted) != 1 || len(small.Context) > 3000 {
		t.Errorf("within a budget: %d bytes, %+v", len(small.Context), small.Omitted)
	}
	if back, err := r.Load(t.Context(), testCaller(), contexts.LoadRequest{Ref: small.Omitted[0].Ref}); err != nil || string(back.Value) != asJSON(t, longText("analysis", 200)) {
		t.Errorf("the reference cannot be loaded: %v", err)
	}
	if diff, err := r.Diff(t.Context(), testCaller(), one.ID, two.ID); err != nil || len(diff.Changes) != 1 {
		t.Errorf("diff %+v, %v", diff, err)
	}
}
