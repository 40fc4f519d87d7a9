package doc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// FuzzJSON compares the reader with encoding/json. Intended differences: the reader skips a
// byte order mark and rejects duplicate keys, lone surrogates, NUL, invalid UTF-8, and
// documents above the limits.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,true,null,"\u00e9\n"],"b":{}}`, `{"a":1,"a":2}`, `"\ud83d\ude00"`, `"\ud83d"`, "\xef\xbb\xbf{}", `[1,]`, `{"a":1,}`, `01`, `1e999`, `{'a':1}`, `// c`, "\"\t\"", "[[[[", `nul`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, found := doc.Parse("x.json", data, doc.Limits{})
		if root == nil && len(found) == 0 {
			t.Fatal("neither a tree nor a diagnostic")
		}
		var want any
		err := json.Unmarshal(data, &want)
		ours := false
		for _, d := range found {
			if d.Message == "" || d.Fix == "" || d.Code == "" {
				t.Fatalf("incomplete diagnostic %+v", d)
			}
			switch d.Code {
			case doc.CodeDuplicateKey, doc.CodeSurrogate, doc.CodeNUL, doc.CodeEncoding, doc.CodeDepth, doc.CodeNodes, doc.CodeTooLarge:
				ours = true
			}
		}
		switch {
		case ours, bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		case (err == nil) != (len(found) == 0):
			t.Fatalf("encoding/json returned %v, Parse %v", err, found)
		case err == nil:
			if diff := cmp.Diff(want, root.Any()); diff != "" {
				t.Fatalf("(-encoding/json +ours):\n%s", diff)
			}
			checkStable(t, root)
		}
	})
}

// checkStable checks that the canonical form is valid JSON, and that it does not change if
// it is parsed and written again.
func checkStable(t *testing.T, root *doc.Node) {
	t.Helper()
	canonical := doc.Canonical(root)
	var value any
	if err := json.Unmarshal(canonical, &value); err != nil {
		t.Fatalf("%s: %v", canonical, err)
	}
	again, found := doc.Parse("x.json", canonical, doc.Limits{MaxBytes: 64 << 20})
	if len(found) > 0 {
		t.Fatalf("%s: %v", canonical, found)
	}
	if !bytes.Equal(canonical, doc.Canonical(again)) {
		t.Fatalf("%s becomes %s", canonical, doc.Canonical(again))
	}
}

// FuzzYAML checks that no text makes the reader panic or exceed its limits, and that
// accepted texts can be written as JSON.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [x, {c: d}]\n", "a: &a [*a]", "a: &x 1\nb: *x", "<<: *x", "? [a]\n: b", "a: |\n  t\n", "--- a\n--- b", "!!binary x", "a: .inf", "0x_: 1", "a: !!int x", "\"\\0\"", "é: ü", "!!merge <<: a", "a: !!timestamp x", "!!null x: 1", "a: !!float 1e999", "!!bool: y", "a: !!bool maybe",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := doc.Limits{MaxBytes: 1 << 16, MaxNodes: 1000}
		root, found := doc.Parse("x.yaml", data, limits)
		if root == nil && len(found) == 0 {
			t.Fatal("neither a tree nor a diagnostic")
		}
		for _, d := range found {
			if d.Message == "" || d.Fix == "" || d.Code == "" || d.Line < 0 || !utf8.ValidString(d.Pointer) {
				t.Fatalf("incomplete diagnostic %+v", d)
			}
		}
		if len(found) == 0 {
			checkStable(t, root)
			if strings.Count(string(doc.Canonical(root)), ",") > 1000 {
				t.Fatal("the tree exceeds the node limit")
			}
			if err := json.NewEncoder(io.Discard).Encode(root.Any()); errors.Is(err, errors.ErrUnsupported) {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	text := []byte(`{"steps":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a-step","title":"A title","prompt":"`+strings.Repeat(`Do it with care.\n`, 60)+`","guidance":["one","two"],"runCondition":{"var":"x","gte":1.5}},`, 50), ",") + `]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		doc.Parse("x.json", text, doc.Limits{})
	}
}

func BenchmarkYAML(b *testing.B) {
	text := []byte("steps:\n" + strings.Repeat("  - id: a-step\n    title: A title\n    prompt: |\n"+strings.Repeat("      Do it with care.\n", 60)+"    guidance: [one, two]\n", 50))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		doc.Parse("x.yaml", text, doc.Limits{})
	}
}
