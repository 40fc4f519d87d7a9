package jsontext_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"pgregory.net/rapid"
)

func testTexts() []string {
	return []string{
		``, ` `, `{}`, `[]`, `{"a":1}`, `[1,2]`, `[1,]`, `{"a":1,}`, `{,}`, `[,]`, `{"a"}`, `{"a":}`, `{1:2}`, `[}`, `{]`, `]`, `}`,
		`"a`, `"\u12"`, `"\u12G4"`, `"\u12aF"`, `"\x"`, `"\`, "\"\n\"", "\"\x00\"", "\x00", "{}\x00", `-`, `-0`, `01`, `1.`, `1.0e`, `1e+5`, `.5`, `1e5.5`,
		`true`, `truex`, `tru`, `nul`, `null null`, `{} {}`, `[[[]]]`, `[[]`, `{"a":{"b":[{}]}}`, ` { "a" : [ ] , "b" : { } } `, `"é"`, "\ufeff{}", `[1 2]`,
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
		strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
	}
}

// Valid agrees with json.Valid of the standard library.
func TestValid(t *testing.T) {
	t.Parallel()
	for _, text := range testTexts() {
		if got, want := jsontext.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%.80q: %v, want %v", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{
			"{", "}", "[", "]", ",", ":", `"a"`, `"`, `\`, `\u00e9`, "1", "-", ".", "e", "0", "true", "null", " ", "\n", "\x01", "é",
		})).Draw(t, "parts")
		text := strings.Join(parts, "")
		if got, want := jsontext.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}

// An invalid byte in a string is found at every position, and no valid byte is rejected.
func TestValidStrings(t *testing.T) {
	t.Parallel()
	for before := range 20 {
		for c := range 256 {
			for _, after := range []int{0, 1, 9} {
				text := `"` + strings.Repeat("x", before) + string([]byte{byte(c)}) + strings.Repeat("\xe9", after) + `"`
				if got, want := jsontext.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
					t.Errorf("%q: %v, want %v", text, got, want)
				}
				if open := text[:len(text)-1]; jsontext.Valid([]byte(open)) != json.Valid([]byte(open)) {
					t.Errorf("%q: Valid and json.Valid disagree", open)
				}
			}
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, text := range testTexts() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := jsontext.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}

// TestParse checks that values are decoded as by encoding/json, with numbers as they are written.
func TestParse(t *testing.T) {
	t.Parallel()
	check := func(t rapid.TB, text string) {
		want, err := any(nil), json.Unmarshal([]byte(text), new(json.RawMessage))
		got, gotErr := jsontext.Parse([]byte(text))
		if fmt.Sprint(err) != fmt.Sprint(gotErr) {
			t.Fatalf("%.80q: %v, want %v", text, gotErr, err)
		}
		if err == nil && jsontext.Decode([]byte(text), &want) == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is decoded as %#v, want %#v", text, got, want)
		}
	}
	for _, text := range append(testTexts(), `{"a":1.50e+10,"b":"\ud800x\u00e9\ud83d\ude00\\","c":[null,true,{}],"a":2}`, "{\"a\":\"\xff\"}", `{"\u0061":12345678901234567890}`) {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{
			`"a"`, `"\ud800"`, `"\ud83d\ude00"`, `"\n\\"`, "1.50", "-0", "1e400", "true", "null", `{"b":`, "[", "é", "}", "]", ",", `{"a":1,"a":`,
		})).Draw(t, "parts")
		text := strings.Join(parts, "")
		data, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.Float64())).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, text)
		check(t, string(data))
	})
}

func BenchmarkParse(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`some text to echo \"\n `, 3000) + `"}]}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := jsontext.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidStandard(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`some text to echo \"\n `, 3000) + `"}]}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if !json.Valid(text) {
			b.Fatal()
		}
	}
}
