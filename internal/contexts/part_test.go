package contexts_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/run"
)

// partText returns the text that a load of a part returns.
func partText(t *testing.T, loaded *contexts.Loaded) string {
	t.Helper()
	var text string
	mustSucceed(t, json.Unmarshal(loaded.Value, &text))
	return text
}

// TestParts checks that a part of an omitted text, of a checkpoint and of a run's variables
// can be read by lines, words, keys and a question, without the rest.
func TestParts(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	load := func(q contexts.LoadRequest) *contexts.Loaded {
		t.Helper()
		loaded, err := r.Load(t.Context(), testCaller(), q)
		mustSucceed(t, err)
		return loaded
	}
	var log strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&log, "worker %d finished part %d\n", i%7, i)
	}
	log.WriteString("The CAUSE is a missing flush in journal/tail.go.\n")
	given := map[string]any{"log": log.String(), "messages": []any{
		map[string]any{"role": "user", "content": strings.Repeat("Keep the public interface. ", 20)}, map[string]any{"role": "tool", "content": "ok"},
	}, "goal": "ship"}
	out, err := r.Compress(t.Context(), testCaller(), contexts.ReduceRequest{Context: map[string]any{"log": given["log"]}, Fit: contexts.Fit{Ratio: 10}})
	mustSucceed(t, err)
	ref := out.Omitted[0].Ref
	found := load(contexts.LoadRequest{Ref: ref, Find: "cause is"})
	if got := partText(t, found); got != "2001: The CAUSE is a missing flush in journal/tail.go.\n" || found.Note != "" {
		t.Errorf("find returned %q, note %q", got, found.Note)
	}
	lines := load(contexts.LoadRequest{Ref: ref, Lines: "3-4"})
	if got := partText(t, lines); got != "worker 2 finished part 2\nworker 3 finished part 3\n" || lines.Note != "lines 3-4 of 2001" {
		t.Errorf("lines returned %q, note %q", got, lines.Note)
	}
	some := load(contexts.LoadRequest{Ref: ref, Lines: "1-", Budget: 200})
	if n := compress.Estimate(partText(t, some)); n > 200 || n < 150 || !strings.Contains(some.Note, `continue with lines "`) {
		t.Errorf("lines within a budget: %d tokens, note %q", n, some.Note)
	}
	cut := load(contexts.LoadRequest{Ref: ref})
	if got := partText(t, cut); len(got) > 32_000 || !strings.HasPrefix(log.String(), got) || !strings.Contains(cut.Note, "of 2001; continue with lines") {
		t.Errorf("a text above the limit: %d bytes, note %q", len(got), cut.Note)
	}
	asked := load(contexts.LoadRequest{Ref: ref, Question: "What is the cause?", Budget: 300})
	if got := partText(t, asked); !strings.Contains(got, "missing flush") || compress.Estimate(got) > 300 {
		t.Errorf("a question returned %q", got)
	}

	saved, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "parts", Context: given})
	mustSucceed(t, err)
	whole := load(contexts.LoadRequest{ID: saved.ID})
	if len(whole.Context) > 32_000 || len(whole.Omitted) != 1 || whole.Omitted[0].Keys[0] != "log" || whole.Omitted[0].Ref != saved.ID || !strings.Contains(whole.Note, "load others with ref and keys") {
		t.Errorf("a context above the limit: %d bytes, %+v, note %q", len(whole.Context), whole.Omitted, whole.Note)
	}
	for name, c := range map[string]struct {
		request contexts.LoadRequest
		want    string
	}{
		"a variable of a checkpoint": {contexts.LoadRequest{Ref: saved.ID, Keys: []string{"log"}, Lines: "2"}, "worker 1 finished part 1\n"},
		"the same by its number":     {contexts.LoadRequest{Ref: saved.ID + ".1", Lines: "2"}, "worker 1 finished part 1\n"},
		"of the last checkpoint":     {contexts.LoadRequest{Session: "parts", Keys: []string{"goal"}, Lines: "1"}, "ship"},
		"a message":                  {contexts.LoadRequest{ID: saved.ID, Keys: []string{"messages"}, Find: `"role":"tool"`}, "5: [1]: {\"content\":\"ok\",\"role\":\"tool\"}\n"},
		"lines and words":            {contexts.LoadRequest{Ref: ref, Lines: "1-9", Find: "part 3"}, "4: worker 3 finished part 3\n"},
	} {
		if got := partText(t, load(c.request)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	a, err := r.runs.Start(t.Context(), testCaller(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"service": "login"}})
	mustSucceed(t, err)
	d, err := r.runs.Get(t.Context(), testCaller(), run.Ref{RunID: a.RunID})
	mustSucceed(t, err)
	if got := load(contexts.LoadRequest{Ref: fmt.Sprint(a.RunID, ".", d.Seq), Keys: []string{"service"}}); string(got.Context) != `{"service":"login"}` {
		t.Errorf("the variables of a run: %s", got.Context)
	}
}

// TestPartErrors checks that a parameter that would be ignored is refused.
func TestPartErrors(t *testing.T) {
	t.Parallel()
	r := setupRig(t)
	saved, err := r.Save(t.Context(), testCaller(), contexts.SaveRequest{Session: "s", Context: map[string]any{"goal": "ship"}})
	mustSucceed(t, err)
	for name, c := range map[string]struct {
		request contexts.LoadRequest
		code    guideway.Code
	}{
		"a ref and a session":      {contexts.LoadRequest{Ref: saved.ID, Session: "s"}, guideway.CodeInvalid},
		"a question and lines":     {contexts.LoadRequest{Ref: saved.ID, Question: "why?", Lines: "1"}, guideway.CodeInvalid},
		"a question and words":     {contexts.LoadRequest{Ref: saved.ID, Question: "why?", Find: "a"}, guideway.CodeInvalid},
		"keys of a text":           {contexts.LoadRequest{Ref: saved.ID + ".0", Keys: []string{"a"}}, guideway.CodeInvalid},
		"lines after the last one": {contexts.LoadRequest{Ref: saved.ID + ".0", Lines: "2"}, guideway.CodeInvalid},
		"absent words":             {contexts.LoadRequest{Ref: saved.ID, Find: "absent"}, guideway.CodeNotFound},
		"an absent variable":       {contexts.LoadRequest{Ref: saved.ID + ".7"}, guideway.CodeNotFound},
	} {
		if _, err := r.Load(t.Context(), testCaller(), c.request); guideway.ErrorCode(err) != c.code || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %v, fix %q", name, err, guideway.ErrorFix(err))
		}
	}
}
