package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
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
		if got, want := jsonrpc.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%.80q: %v, want %v", text, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]string{
			"{", "}", "[", "]", ",", ":", `"a"`, `"`, `\`, `\u00e9`, "1", "-", ".", "e", "0", "true", "null", " ", "\n", "\x01", "é",
		})).Draw(t, "parts")
		text := strings.Join(parts, "")
		if got, want := jsonrpc.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
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
				if got, want := jsonrpc.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
					t.Errorf("%q: %v, want %v", text, got, want)
				}
				if open := text[:len(text)-1]; jsonrpc.Valid([]byte(open)) != json.Valid([]byte(open)) {
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
		if got, want := jsonrpc.Valid([]byte(text)), json.Valid([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat(`some text to echo \"\n `, 3000) + `"}]}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := jsonrpc.Parse(text); err != nil {
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
