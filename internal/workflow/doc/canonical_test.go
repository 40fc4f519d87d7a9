package doc_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, text, want string }{
		{
			"RFC 8785, 3.2.3", "x.json", `{
			"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
			"1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}`,
			"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u0080\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}",
		},
		{
			"RFC 8785, 3.2.2", "x.json",
			`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		},
		{"numbers", "x.json", `[-0, 1e21, 1e20, 1e-6, 1e-7, 9007199254740993, -1.50, 5e-324, 1.7976931348623157e308]`, `[0,1e+21,100000000000000000000,0.000001,1e-7,9007199254740992,-1.5,5e-324,1.7976931348623157e+308]`},
		{"control characters", "x.json", `"\u0001\b\t\n\f\r\u007f\u2028<>&"`, "\"\\u0001\\b\\t\\n\\f\\r\u007f\u2028<>&\""},
		{"surrogate order", "x.json", `{"\ue000":1,"\ud83d\ude00":2,"\ud83d\ude01":3,"a":4,"ab":5}`, "{\"a\":4,\"ab\":5,\"😀\":2,\"😁\":3,\"\ue000\":1}"},
		{"YAML with the same value", "x.yaml", "b: [1.0, 0x10, ~]\na: &x |\n  text\nc: *x\n", `{"a":"text\n","b":[1,16,null],"c":"text\n"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := string(doc.Canonical(parseDocument(t, c.file, c.text)))
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if again := string(doc.Canonical(parseDocument(t, "x.json", got))); again != got {
				t.Errorf("the canonical form changes when parsed again: %s", again)
			}
		})
	}
	if got := string(doc.Canonical(nil)); got != "null" {
		t.Errorf("the canonical form of nil is %s, want null", got)
	}
}

// TestMark checks that the source of every value is its canonical form.
func TestMark(t *testing.T) {
	t.Parallel()
	const text = `{"z": [1, "a\"b", {"\ud83d\ude00": null, "k\n": [[]]}], "a": "plain", "t": true, "\ue000": {}}`
	root := parseDocument(t, "x.json", text)
	want := string(doc.Canonical(root))
	marked := doc.Mark(root)
	if marked != want {
		t.Fatalf("\n got %s\nwant %s", marked, want)
	}
	var visit func(n *doc.Node)
	visit = func(n *doc.Node) {
		if got, want := n.Source(marked), string(doc.Canonical(n)); got != want {
			t.Errorf("the source is %s, want %s", got, want)
		}
		for _, item := range n.Items {
			visit(item)
		}
		for _, m := range n.Members {
			visit(m.Value)
		}
	}
	visit(root)
	if again := string(doc.Canonical(root)); again != want {
		t.Errorf("marking changed the value to %s", again)
	}
	if got := root.Get("none").Source(marked); got != "" {
		t.Errorf("the source of a missing member is %s", got)
	}
}
