package compress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// errUnknownRef is returned for a reference that is not stored.
var errUnknownRef = errors.New("no such blob")

func readFrom(items []Item) func(string) ([]byte, error) {
	return func(ref string) ([]byte, error) {
		for _, item := range items {
			if RefOf(item.Value) == ref {
				return item.Value, nil
			}
		}
		return nil, errUnknownRef
	}
}

// drawContext draws a context of JSON values of all shapes, including texts with errors,
// logs, code, tables and escaped bytes.
func drawContext(t *rapid.T) Context {
	keys := rapid.SliceOfNDistinct(rapid.OneOf(
		rapid.SampledFrom([]string{
			"userGoal", "decisions", "plan", "findings", "notes", "buildOutput", "debugLog", "timestamp", "_currentLoop", "rows", "source", "tempFile",
		}), rapid.StringMatching(`[a-z]{1,8}[A-Z]?[a-z…]{0,5}`)), 1, 12, rapid.ID).Draw(t, "keys")
	c := Context{}
	for _, key := range keys {
		value, err := json.Marshal(drawValue(t, 0))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.IntRange(0, 9).Draw(t, "spaced") == 0 {
			value = append([]byte(" "), append(value, '\n')...)
		}
		c[key] = value
	}
	return c
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 8
	if depth > 2 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.Int().Draw(t, "int")
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.String().Draw(t, "string")
	case 3:
		return strings.Repeat(rapid.SampledFrom([]string{
			"The importer reads rows. ", "2026-03-01T10:00:00Z INFO served id=4\n", "ERROR disk full\n\tat store.go:12\n",
			"func a() {\n\treturn 1\n}\n\n", "We decided to use zstd. It is 1 > 0 & fast.\n- one\n- two\n", "\u2026 ", "\x00\n",
		}).Draw(t, "unit"), rapid.IntRange(1, 40).Draw(t, "times"))
	case 4:
		return nil
	case 5:
		n := rapid.IntRange(0, 12).Draw(t, "rows")
		rows := make([]any, n)
		for i := range rows {
			rows[i] = map[string]any{"id": i, "name": rapid.StringN(0, 12, -1).Draw(t, "name"), "kind": "x"}
		}
		return rows
	case 6:
		list := make([]any, rapid.IntRange(0, 6).Draw(t, "n"))
		for i := range list {
			list[i] = drawValue(t, depth+1)
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(t, "fields") {
			object[rapid.StringN(0, 6, -1).Draw(t, "field")] = drawValue(t, depth+1)
		}
		return object
	}
}

func drawItems(t *rapid.T) (Context, []Item) {
	c := drawContext(t)
	items := Items(c, NewClassifier(Hints{}), Estimator{})
	for i := range items {
		items[i].Age = rapid.IntRange(0, 12).Draw(t, "age")
	}
	return c, items
}

func drawOptions(t *rapid.T) Options {
	return Options{
		Budget:   rapid.IntRange(0, 3000).Draw(t, "budget"),
		Ratio:    rapid.Float64Range(0, 20).Draw(t, "ratio"),
		Question: rapid.SampledFrom([]string{"", "why is the disk full?", "what did the importer read"}).Draw(t, "question"),
		NoBlobs:  rapid.IntRange(0, 9).Draw(t, "noBlobs") == 0,
	}
}

// TestCompressInvariants checks that critical items are unchanged, that the result fits the
// budget or OverReason is set, that every reduced item is listed and can be restored, that
// other items are unchanged, that every value is valid JSON, and that the result is
// deterministic.
func TestCompressInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, items := drawItems(t)
		options := drawOptions(t)
		given := maps.Clone(c)
		r := Compress(items, options)

		if again := Compress(items, options); !cmp.Equal(again, r) {
			t.Fatalf("the result is not deterministic: %s", cmp.Diff(r, again))
		}
		if r.TokensAfter > r.Budget != (r.OverReason != "") {
			t.Fatalf("%d tokens with a budget of %d, and the reason %q", r.TokensAfter, r.Budget, r.OverReason)
		}
		if r.OverReason != "" && !options.NoBlobs && r.TokensAfter != r.CriticalTokens {
			t.Fatalf("over the budget with %d tokens, of which %d are critical", r.TokensAfter, r.CriticalTokens)
		}
		told := map[string]bool{}
		for _, o := range r.Omitted {
			told[o.Key] = true
			if o.Reason == "" || o.Tokens < 0 || !IsRef(o.Ref) {
				t.Fatalf("incomplete omission: %+v", o)
			}
		}
		spent := 0
		for _, item := range items {
			out, in := r.Context[item.Key]
			if item.Layer == Critical && !bytes.Equal(out, item.Value) {
				t.Fatalf("critical %s was changed", item.Key)
			}
			if !told[item.Key] && !bytes.Equal(out, item.Value) {
				t.Fatalf("%s was changed but is not in Omitted", item.Key)
			}
			if in && !json.Valid(out) {
				t.Fatalf("%s is not JSON: %s", item.Key, out)
			}
			if in {
				spent += itemTokens(Estimator{}, item.Key, out)
			}
			if in && told[item.Key] && !bytes.Contains(out, []byte(RefOf(item.Value))) {
				t.Fatalf("%s is reduced and does not contain its reference: %s", item.Key, out)
			}
		}
		if spent != r.TokensAfter {
			t.Fatalf("%d tokens, reported %d", spent, r.TokensAfter)
		}
		back, err := Restore(r.Context, r.Omitted, readFrom(items))
		if err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(back, given) {
			t.Fatalf("the context was not restored: %s", cmp.Diff(given, back))
		}
		if !cmp.Equal(c, given) {
			t.Fatal("the caller's context was changed")
		}
	})
}

// TestPiecesCoverValue checks that the pieces of a value cover it in order and without a
// gap.
func TestPiecesCoverValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			s, _ := drawValue(t, 9).(string)
			return s
		})).Draw(t, "text")
		for _, kind := range []textKind{proseText, logText, codeText} {
			at := 0
			for _, s := range splitSpans(text, kind) {
				if s.from != at || s.to <= s.from {
					t.Fatalf("a part from %d to %d follows one that ends at %d", s.from, s.to, at)
				}
				at = s.to
			}
			if at != len(text) {
				t.Fatalf("the parts end at %d, want %d", at, len(text))
			}
		}
	})
}

// TestPrioritiseInvariants checks that only whole items are kept, that all critical items
// are kept, that ephemeral items are omitted unless NoBlobs is set, and that OverReason is
// set if the result exceeds the budget.
func TestPrioritiseInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, items := drawItems(t)
		options := drawOptions(t)
		p := Prioritise(items, options)
		if again := Prioritise(items, options); !cmp.Equal(again, p) {
			t.Fatal("the result is not deterministic")
		}
		if len(p.Items) != len(items) {
			t.Fatalf("%d items of %d", len(p.Items), len(items))
		}
		if p.TokensAfter > p.Budget != (p.OverReason != "") {
			t.Fatalf("%d tokens with a budget of %d, and the reason %q", p.TokensAfter, p.Budget, p.OverReason)
		}
		back := maps.Clone(p.Context)
		for _, placed := range p.Items {
			if placed.Kept {
				continue
			}
			value, err := readFrom(items)(placed.Ref)
			if err != nil {
				t.Fatalf("the reference of %s does not match its bytes", placed.Key)
			}
			back[placed.Key] = value
		}
		if !cmp.Equal(back, c) {
			t.Fatal("kept and omitted items are not the whole context")
		}
		for _, placed := range p.Items {
			if placed.Layer == Critical && !placed.Kept || placed.Layer == Ephemeral && placed.Kept && !options.NoBlobs {
				t.Fatalf("%s, %s: kept %v", placed.Key, placed.Layer, placed.Kept)
			}
		}
	})
}

// TestLoopContextRoundTrips checks at several budgets that the variables of a loop are not
// changed and that the context can be restored.
func TestLoopContextRoundTrips(t *testing.T) {
	t.Parallel()
	c := Context{
		"_currentLoop":   json.RawMessage(`{"loopId":"modules","iteration":2,"shadowed":{"module":"old"}}`),
		"_loopState":     json.RawMessage(`{"modules":{"iteration":2,"before":1}}`),
		"_warnings":      json.RawMessage(`{"loops":{"modules":["close to its bound"]}}`),
		"_contextSize":   json.RawMessage(`20480`),
		"modules":        json.RawMessage(`["a", "b",  "c"]`),
		"module":         json.RawMessage(`"b"`),
		"iterationCount": json.RawMessage(`2`),
		"buildOutput":    quoteJSON(strings.Repeat("compiling b. It took 3 s. ", 300)),
		"debugOutput":    json.RawMessage(`{"x": 1.0e3}`),
	}
	classifier := NewClassifier(Hints{Variables: []string{"modules", "module", "iterationCount"}})
	for _, budget := range []int{1, 80, 200, 1000, 10_000} {
		items := Items(c, classifier, Estimator{})
		r := Compress(items, Options{Budget: budget})
		for _, key := range []string{"_currentLoop", "_loopState", "modules", "module", "iterationCount"} {
			if !bytes.Equal(r.Context[key], c[key]) {
				t.Errorf("budget %d: the loop's %s was changed", budget, key)
			}
		}
		back, err := Restore(r.Context, r.Omitted, readFrom(items))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, back); diff != "" {
			t.Errorf("budget %d: %s", budget, diff)
		}
	}
}

// TestRestoreRejectsWrongBytes checks that Restore rejects bytes that do not match the
// reference.
func TestRestoreRejectsWrongBytes(t *testing.T) {
	t.Parallel()
	o := []Omission{{Key: "a", Ref: RefOf([]byte("1"))}}
	if _, err := Restore(Context{}, o, func(string) ([]byte, error) { return []byte("2"), nil }); err == nil {
		t.Error("bytes that do not match the reference were accepted")
	}
	if _, err := Restore(Context{}, o, func(string) ([]byte, error) { return nil, errUnknownRef }); !errors.Is(err, errUnknownRef) {
		t.Errorf("the error does not wrap the cause: %v", err)
	}
}

// TestPrecedence checks which rule decides the layer if several rules match a key.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	hints := Hints{
		Marks:     []string{"debugOutput", "userGoal"},
		Rules:     Rules{{Keys: []string{"build*", "debugOutput"}, Layer: Ephemeral, Why: "made anew"}, {Keys: []string{"buildPlan"}, Layer: Critical}},
		Variables: []string{"buildMode", "tempLimit"},
	}
	c := NewClassifier(hints)
	for _, tt := range []struct {
		key, value string
		layer      Layer
		from       Source
	}{
		{"_loopState", `{}`, Critical, FromEngine},
		{"debugOutput", `"x"`, Critical, FromMark},
		{"buildPlan", `"x"`, Ephemeral, FromHint},
		{"buildMode", `"x"`, Ephemeral, FromHint},
		{"tempLimit", `3`, Critical, FromVariable},
		{"tempFile", `"x"`, Ephemeral, FromKey},
		{"tempFile", `"panic: no disk"`, Useful, FromContent},
		{"remark2", `"panic: no disk"`, Important, FromContent},
		{"template", `"x"`, Useful, FromKey},
		{"catalog", `"x"`, Useful, FromDefault},
	} {
		got := c.Classify(tt.key, []byte(tt.value))
		if got.Layer != tt.layer || got.Rule != tt.from {
			t.Errorf("%s: %+v, want %s from %s", tt.key, got, tt.layer, tt.from)
		}
	}
}

// TestCompressLog checks that a compressed log contains the error with its stack trace, and
// notes for the omitted lines.
func TestCompressLog(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 200 {
		fmt.Fprintf(&log, "2026-03-01T10:00:%02dZ INFO served request %d\n", i%60, i)
		if i == 120 {
			log.WriteString("2026-03-01T10:02:00Z ERROR commit failed: disk full\n\tat store.go:41\n\tat main.go:12\n")
		}
	}
	items := []Item{{Key: "serverOutput", Value: quoteJSON(log.String()), Verdict: Verdict{Layer: Useful}}}
	items[0].Tokens = itemTokens(Estimator{}, items[0].Key, items[0].Value)
	r := Compress(items, Options{Budget: 140})
	var got string
	if err := json.Unmarshal(r.Context["serverOutput"], &got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ERROR commit failed: disk full\n\tat store.go:41\n\tat main.go:12\n", "more like it)", "lines omitted; ref_"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

// TestTinyBudget checks that the reasons name critical items only if there are some.
func TestTinyBudget(t *testing.T) {
	t.Parallel()
	value := quoteJSON(strings.Repeat("The rollout waits for the review. ", 40))
	items := []Item{{Key: "notes", Value: value, Tokens: 300, Verdict: Verdict{Layer: Useful}}}
	overhead := func([]Omission, []RankedItem, int) int { return 1 }
	if r := Compress(items, Options{Budget: 1, Overhead: overhead}); len(r.Omitted) != 1 || r.Omitted[0].Reason != "dropped: the budget is too small" {
		t.Errorf("the omissions are %v", r.Omitted)
	}
}

// TestCompressTable checks that similar objects become rows below one header, with a note
// for the omitted rows, and that the row in the question is kept.
func TestCompressTable(t *testing.T) {
	t.Parallel()
	value := []byte(longValueOf(t, "@rows"))
	items := []Item{{Key: "products", Value: value, Verdict: Verdict{Layer: Useful}}}
	items[0].Tokens = itemTokens(Estimator{}, items[0].Key, value)
	r := Compress(items, Options{Budget: 300, Question: "what is row 41?"})
	var got struct {
		Columns []string       `json:"columns"`
		Rows    [][]any        `json:"rows"`
		Same    map[string]any `json:"same in all"`
	}
	if err := json.Unmarshal(r.Context["products"], &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got.Columns, "id") || got.Same["kind"] != "sample" || len(got.Rows) < 5 || !strings.Contains(string(r.Context["products"]), "rows omitted; ref_") {
		t.Errorf("not a table: %s", r.Context["products"])
	}
	if !bytes.Contains(r.Context["products"], []byte(`"row 41"`)) {
		t.Errorf("the requested row is missing: %s", r.Context["products"])
	}
}

// TestNewestStatementIsKept checks that the newer of two contradicting statements is
// kept.
func TestNewestStatementIsKept(t *testing.T) {
	t.Parallel()
	text := "The export queue listens on port 4711. The importer reads one file at a time. " +
		strings.Repeat("Nothing much is to be said here about the weather today. ", 20) + "The export queue now listens on port 8122. "
	items := []Item{{Key: "notes", Value: quoteJSON(text), Verdict: Verdict{Layer: Useful}}}
	items[0].Tokens = itemTokens(Estimator{}, items[0].Key, items[0].Value)
	r := Compress(items, Options{Budget: 80, Question: "where does the export queue listen?"})
	got := string(r.Context["notes"])
	if !strings.Contains(got, "8122") || strings.Contains(got, "4711") {
		t.Errorf("got %s", got)
	}
}

// TestHostileInputIsLinear checks that megabytes of hostile input can be compressed and
// restored. With quadratic work the test would exceed its timeout.
func TestHostileInputIsLinear(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("megabytes")
	}
	for name, value := range map[string][]byte{
		"numbers":  []byte("[" + strings.TrimSuffix(strings.Repeat("123,", 250_000), ",") + "]"),
		"changes":  quoteJSON(strings.Repeat("The port of the queue is now 81. ", 30_000)),
		"nested":   []byte(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)),
		"one word": quoteJSON(strings.Repeat("a", 1_000_000)),
		"lines":    quoteJSON(strings.Repeat("\n\t", 300_000)),
		"traces":   quoteJSON(strings.Repeat("2026-03-01T10:00:00Z ERROR x\n\tat y\n", 30_000)),
		"labels":   quoteJSON(strings.Repeat("a\nb", 300_000)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Context{"notes": value}
			items := Items(c, NewClassifier(Hints{}), Estimator{})
			r := Compress(items, Options{Ratio: 4, Question: "which port?"})
			if r.OverReason != "" {
				t.Error(r.OverReason)
			}
			back, err := Restore(r.Context, r.Omitted, readFrom(items))
			if err != nil || !bytes.Equal(back["notes"], value) {
				t.Errorf("the value was not restored: %v", err)
			}
		})
	}
}

// TestMessagesKeepTheirRole checks that a reduced list of messages has no role without
// content and no content without its role, and that the note counts parts, not entries.
func TestMessagesKeepTheirRole(t *testing.T) {
	t.Parallel()
	var list []map[string]string
	for i := range 60 {
		var text strings.Builder
		for j := range 12 {
			fmt.Fprintf(&text, "Step %d looked at module m%d_%d and found nothing of interest there. ", i, i, j)
		}
		list = append(list, map[string]string{"role": []string{"user", "assistant", "tool"}[i%3], "content": text.String()})
	}
	value, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	items := Items(Context{"messages": value}, NewClassifier(Hints{}), Estimator{})
	for _, ratio := range []float64{2, 4, 10} {
		reduced := Compress(items, Options{Ratio: ratio}).Context["messages"]
		var kept []any
		if err := json.Unmarshal(reduced, &kept); err != nil {
			t.Fatal(err)
		}
		for _, one := range kept {
			message, ok := one.(map[string]any)
			if text, isNote := one.(string); isNote && strings.Contains(text, "parts omitted") {
				continue
			}
			if content, _ := message["content"].(string); !ok || message["role"] == nil || !strings.Contains(content, "Step ") {
				t.Errorf("at %v: %v", ratio, one)
			}
		}
		if len(kept) < 3 {
			t.Errorf("at %v: %d messages", ratio, len(kept))
		}
	}
}
