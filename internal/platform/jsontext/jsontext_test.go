package jsontext_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"pgregory.net/rapid"
)

// TestAppendString checks the escapes of RFC 8785, that U+2028 and U+2029 are not escaped,
// and that invalid UTF-8 is replaced.
func TestAppendString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              `""`,
		"<a & b>":                       `"<a & b>"`,
		"\"\\/":                         `"\"\\/"`,
		"\b\f\n\r\t\x00\x1f\x7f":        `"\b\f\n\r\t\u0000\u001f` + "\x7f" + `"`,
		"\u2028é\u2029":                 "\"\u2028é\u2029\"",
		"a\xffb\xe2\x80c":               "\"a\ufffdb\ufffd\ufffdc\"",
		strings.Repeat("x", 100) + "\"": `"` + strings.Repeat("x", 100) + `\""`,
	} {
		if got := string(jsontext.AppendString([]byte("before "), text)); got != "before "+want {
			t.Errorf("%q is written as %s, want %s", text, got, want)
		}
	}
}

// TestAppendStringLikeTheLibrary checks that any string is decoded unchanged, and that it
// is encoded as by encoding/json, except for the documented differences.
func TestAppendStringLikeTheLibrary(t *testing.T) {
	t.Parallel()
	same := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029", `\ufffd`, "\ufffd")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab\"/\n\t\b\x01\u2028\u2029é…😀<,:[]{} 1"))).Draw(t, "text") +
			string(rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "bytes"))
		text = strings.ReplaceAll(text, `\`, "") // otherwise the text could contain sequences that look like escapes
		got := string(jsontext.AppendString(nil, text))
		library, err := jsontext.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if want := same.Replace(string(library)); got != want {
			t.Fatalf("%q is written as %s, want %s", text, got, want)
		}
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || !utf8.ValidString(got) {
			t.Fatalf("%s is not JSON: %v", got, err)
		}
		if back != string([]rune(text)) {
			t.Fatalf("%q is decoded as %q", text, back)
		}
	})
}

// TestAppendNumber checks that numbers have the form of ECMAScript and are decoded
// unchanged.
func TestAppendNumber(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]float64{
		"0": math.Copysign(0, -1), "1e+21": 1e21, "100000000000000000000": 1e20, "0.000001": 1e-6, "1e-7": 1e-7, "-1.5e-9": -1.5e-9,
		"-1.5": -1.5, "5e-324": 5e-324, "1.7976931348623157e+308": math.MaxFloat64, "9007199254740992": 1 << 53,
	} {
		if got := string(jsontext.AppendNumber(nil, value)); got != want {
			t.Errorf("%g is written as %s, want %s", value, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64().Draw(t, "value")
		got := string(jsontext.AppendNumber(nil, value))
		if back, err := strconv.ParseFloat(got, 64); err != nil || back != value {
			t.Fatalf("%g is written as %s, which is %g (%v)", value, got, back, err)
		}
	})
}

// TestMarshal checks that Marshal and Indent encode the same value without HTML escapes.
func TestMarshal(t *testing.T) {
	t.Parallel()
	value := map[string]any{"b": "<a & b>\u2028", "a": []int{1}}
	for want, write := range map[string]func(any) ([]byte, error){
		`{"a":[1],"b":"<a & b>\u2028"}`:                              jsontext.Marshal,
		"{\n  \"a\": [\n    1\n  ],\n  \"b\": \"<a & b>\\u2028\"\n}": jsontext.Indent,
	} {
		if got, err := write(value); err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
		if got, err := write(math.NaN()); err == nil {
			t.Errorf("a value that is not a number is written as %s", got)
		}
	}
}

// TestDecode checks that numbers keep their digits and that only the first value is read.
func TestDecode(t *testing.T) {
	t.Parallel()
	var got any
	if err := jsontext.Decode([]byte(`[12345678901234567890] 2`), &got); err != nil || fmt.Sprint(got) != "[12345678901234567890]" {
		t.Errorf("decoded %v, %v", got, err)
	}
	if err := jsontext.Decode([]byte(`[1`), &got); err == nil {
		t.Error("an incomplete text was decoded")
	}
}
