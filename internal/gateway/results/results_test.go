package results_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/results"
	"pgregory.net/rapid"
)

func newStore(t *testing.T, maxSize int64) (*results.Store, *time.Time, string) {
	t.Helper()
	now, dir := time.Now(), filepath.Join(t.TempDir(), "results")
	return results.NewStore(results.Options{
		Dir: dir, Retention: time.Hour, MaxSize: maxSize, Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
	}), &now, dir
}

// A result is returned byte for byte to its owner only, until it expires; then its file is
// removed.
func TestStore(t *testing.T) {
	t.Parallel()
	s, now, dir := newStore(t, 0)
	content := "{\"content\": [ ]}\n\x00 \u2028\xff"
	ref, err := s.Add("ann\x00\ntoken", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("ann\x00\ntoken", ref); err != nil || string(got) != content {
		t.Errorf("the result is %q %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(dir, ref)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v %v", info.Mode(), err)
	}
	for _, c := range [][2]string{
		{"ann", ref},
		{"ann\x00", ref},
		{"", ref},
		{"ann\x00\ntoken", ref + "a"},
		{"ann\x00\ntoken", ""},
		{"ann\x00\ntoken", "result_"},
		{"ann\x00\ntoken", "../results/" + ref},
		{"ann\x00\ntoken", "result_../" + ref},
		{"ann\x00\ntoken", "result_a/../" + ref},
		{"ann\x00\ntoken", "result_" + strings.Repeat("a", 1000)},
	} {
		if got, err := s.Get(c[0], c[1]); guideway.ErrorCode(err) != guideway.CodeNotFound {
			t.Errorf("%q gets %q: %q, %v", c[0], c[1], got, err)
		}
	}
	*now = now.Add(61 * time.Minute)
	if got, err := s.Get("ann\x00\ntoken", ref); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("the expired result is %q %v", got, err)
	}
	if _, err := s.Add("bob", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ref)); !os.IsNotExist(err) {
		t.Errorf("the file of an expired result: %v", err)
	}
}

// The oldest results are removed to make room, and no file that is not a result.
func TestStoreIsBounded(t *testing.T) {
	t.Parallel()
	s, _, dir := newStore(t, 2500)
	var refs []string
	for i := range 3 {
		ref, err := s.Add("ann", make([]byte, 1000))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
		at := time.Now().Add(time.Duration(i-10) * time.Second)
		if err := os.Chtimes(filepath.Join(dir, ref), at, at); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "notes.txt"), make([]byte, 5000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{false, true, true} {
		if _, err := s.Get("ann", refs[i]); (err == nil) != want {
			t.Errorf("result %d: %v", i, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}

func resultOf(t *testing.T, blocks ...any) []byte {
	t.Helper()
	text, err := json.Marshal(map[string]any{"content": blocks, "structuredContent": map[string]any{"count": 2}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func textBlock(text string) map[string]any { return map[string]any{"type": "text", "text": text} }

func TestRead(t *testing.T) {
	t.Parallel()
	items := `{"items": [{"name": "näme", "n": 1.50},  {"name": "b", "a/b": {"~": [true]}}]}`
	log := "first\nsecond Line\n\nfourth line, " + strings.Repeat("x", 500) + " LINE " + strings.Repeat("y", 500) + "\n"
	result := resultOf(t, textBlock(items), textBlock(log), map[string]any{"type": "image", "mimeType": "image/png", "data": "AAAA"},
		map[string]any{"type": "resource", "resource": map[string]any{"uri": "a:b", "text": "of the resource"}})
	for name, c := range map[string]struct {
		query      results.Query
		want, fail string
	}{
		"the largest part":     {results.Query{Offset: 6, Lines: "2"}, " Line\n", ""},
		"a part":               {results.Query{Part: "content[3]"}, "of the resource", ""},
		"structured content":   {results.Query{Part: "structuredContent", Path: "/count"}, "2", ""},
		"an image":             {results.Query{Part: "content[2]", Path: "/data"}, "AAAA", ""},
		"a number as written":  {results.Query{Part: "content[0]", Path: "/items/0/n"}, "1.50", ""},
		"a string":             {results.Query{Part: "content[0]", Path: "/items/0/name"}, "näme", ""},
		"white space":          {results.Query{Part: "content[0]", Path: "/items"}, `[{"name": "näme", "n": 1.50},  {"name": "b", "a/b": {"~": [true]}}]`, ""},
		"an escaped key":       {results.Query{Part: "content[0]", Path: "/items/1/a~1b/~0/0"}, "true", ""},
		"a range of lines":     {results.Query{Lines: "1-3"}, "first\nsecond Line\n\n", ""},
		"a long range":         {results.Query{Lines: "3-99", Offset: 1}, log[len("first\nsecond Line\n\n"):], ""},
		"a search in any case": {results.Query{Search: "SECOND"}, "2: second Line\n", ""},
		"a search in a value":  {results.Query{Part: "content[0]", Path: "/items/1", Search: "true"}, `1: {"name": "b", "a/b": {"~": [true]}}` + "\n", ""},
		"unknown part":         {results.Query{Part: "content[9]"}, "", `the result has no part "content[9]": use one of: content[0], content[1], content[2], content[3], structuredContent`},
		"no JSON":              {results.Query{Path: "/a"}, "", "the part content[1] is not JSON, so path cannot be used: use lines or search"},
		"no pointer":           {results.Query{Part: "content[0]", Path: "items"}, "", `the path "items" is not a JSON Pointer: use a JSON Pointer, such as /items/0/name`},
		"a missing member":     {results.Query{Part: "content[0]", Path: "/items/1/x"}, "", `the path "/items/1/x" does not exist: the object at "/items/1" has no "x": use a path that exists: in content[0], the value at "/items/1" is {name: string, a/b: {~: [1 × boolean]}}`},
		"a missing item":       {results.Query{Part: "content[0]", Path: "/items/2"}, "", `the path "/items/2" does not exist: the list of length 2 at "/items" has no "2": use a path that exists: in content[0], the value at "/items" is [2 × {name: string, n: number}]`},
		"an open range":        {results.Query{Lines: "3-", Offset: 1}, log[len("first\nsecond Line\n\n"):], ""},
		"a search in lines":    {results.Query{Lines: "2-3", Search: "line"}, "2: second Line\n", ""},
		"words in any order":   {results.Query{Search: "line SECOND"}, "2: second Line\n", ""},
		"a search of lines":    {results.Query{Lines: "3-4", Search: "first"}, "", `no line contains "first": search for a shorter text; the search ignores case`},
		"line zero":            {results.Query{Lines: "0"}, "", `lines is "0", which selects no line of the text: use a number or a range from 1 to 4, such as "1-4"`},
		"a wrong range":        {results.Query{Lines: "3-2"}, "", `lines is "3-2", which selects no line of the text: use a number or a range from 1 to 4, such as "1-4"`},
		"no match":             {results.Query{Search: "absent"}, "", `no line contains "absent": search for a shorter text; the search ignores case`},
		"a wrong offset":       {results.Query{Lines: "1", Offset: 7}, "", "offset is 7, but the selection has 6 bytes: use a number from 0 to 6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := results.Read(result, c.query)
			if c.fail != "" {
				if got := fmt.Sprint(err, ": ", guideway.ErrorFix(err)); got != c.fail {
					t.Errorf("the error is %s, want %s", got, c.fail)
				}
				return
			}
			if err != nil || answer.Text != c.want {
				t.Errorf("the answer is %+v %v, want %q", answer, err, c.want)
			}
		})
	}
	answer, err := results.Read(result, results.Query{Search: "line, "})
	if err != nil || !strings.HasPrefix(answer.Text, "4: fourth line, xxx") || !strings.HasSuffix(answer.Text, "x …\n") || len(answer.Text) > 500 {
		t.Errorf("the long line is %+v %v", answer, err)
	}
	if answer, err = results.Read(result, results.Query{Search: " line y"}); err != nil || !strings.HasPrefix(answer.Text, "4: … (byte ") {
		t.Errorf("the middle of the long line is %+v %v", answer, err)
	}
}

// Reading any text page by page, with the offsets that follow from the answers, yields the
// whole text.
func TestPagesAreTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 40, -1).Draw(t, "text"), rapid.IntRange(1, 2000).Draw(t, "times"))
		encoded, _ := json.Marshal(text) // a string always marshals
		result := fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, encoded)
		_ = json.Unmarshal(encoded, &text) // invalid UTF-8 is replaced
		read := ""
		for {
			answer, err := results.Read(result, results.Query{Offset: len(read)})
			if err != nil || len(answer.Text) > results.MaxAnswer || answer.Size != len(text) {
				t.Fatalf("%+v %v", answer, err)
			}
			if answer.Text == "" {
				break
			}
			read += answer.Text
		}
		if read != text {
			t.Fatalf("the pages are %q, want %q", read, text)
		}
	})
}

// A summary has the start, the shape and a call for the rest, and is short for any result.
func TestSummarize(t *testing.T) {
	t.Parallel()
	var rows []any
	for i := range 5000 {
		rows = append(rows, map[string]any{"id": i, "tags": []any{"a"}, "deep": map[string]any{"a": map[string]any{"b": map[string]any{"c": map[string]any{"d": 1}}}}})
	}
	text, _ := json.Marshal(rows) // always marshals
	expiry := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	summary, err := results.Summarize(resultOf(t, textBlock(string(text)), textBlock("short")), "result_a", expiry)
	for _, want := range []string{
		"It is stored as result_a until 2026-11-30.\n", "\n- content[0]: text, ", "1 line, JSON: [5000 × {deep: {a: {b: {1 more}}}, id: number, tags: [1 × string]}]\n",
		"\n- content[1]: text, 5 bytes, 1 line\n", "\n- structuredContent: json, 11 bytes, 1 line, JSON: {count: number}\n", `{"ref": "result_a", "lines": "1-50"}`, "Start of content[0]:\n[{",
	} {
		if err != nil || !strings.Contains(summary, want) {
			t.Errorf("the summary lacks %q: %v\n%s", want, err, summary)
		}
	}
	wide := map[string]any{}
	for i := range 1000 {
		wide[strings.Repeat("k", 50)+fmt.Sprint(i)] = map[string]any{"a": wide[""]}
	}
	text, _ = json.Marshal(wide) // always marshals
	blocks := []any{textBlock(string(text))}
	for range 1000 {
		blocks = append(blocks, textBlock("a"))
	}
	if summary, err = results.Summarize(resultOf(t, blocks...), "result_a", time.Time{}); err != nil || len(summary) > 4000 || strings.Contains(summary, "until") {
		t.Errorf("the summary of a wide value has %d bytes: %v\n%s", len(summary), err, summary)
	}
}

// No result of an upstream makes the summary or a query panic.
func FuzzResult(f *testing.F) {
	f.Add(`{"content":[{"type":"text","text":"a"}]}`, "/a", "1-2")
	f.Add(`{"content":[1,null,"a",[]],"structuredContent":[[]],"_meta":{"a":1,"a":2}}`, "//~1", "x")
	f.Fuzz(func(t *testing.T, result, path, text string) {
		_, _ = results.Summarize([]byte(result), "result_a", time.Time{})
		for _, q := range []results.Query{{Path: path, Search: text}, {Lines: text}, {Part: "structuredContent", Path: path}} {
			if answer, err := results.Read([]byte(result), q); err == nil && len(answer.Text) > results.MaxAnswer {
				t.Errorf("the answer has %d bytes", len(answer.Text))
			}
		}
	})
}
