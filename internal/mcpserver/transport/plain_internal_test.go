package transport

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// plainMessages has messages, and whether plainRequest reads them.
func plainMessages() map[string]bool {
	return map[string]bool{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":[{"c":"}\\\"]"}],"d":null}}`:  true,
		"{\t\"method\" : \"tools/call\" , \"jsonrpc\" :\r\n \"2.0\" , \"id\" : \"x-1\" }": true,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:                          true,
		`{"jsonrpc":"2.0","id":-0,"method":"a","params":{}}`:                              true,
		`{"jsonrpc":"2.0","id":999999999999999,"method":"é","params":{"é":"\u00e9\\"}}`:   true,
		`{"jsonrpc":"2.0","id":"","method":"a"}`:                                          true,
		`{"jsonrpc":"2.0","id":9999999999999999,"method":"a"}`:                            false,
		`{"jsonrpc":"2.0","id":1.5,"method":"a"}`:                                         false,
		`{"jsonrpc":"2.0","id":1e3,"method":"a"}`:                                         false,
		`{"jsonrpc":"2.0","id":null,"method":"a"}`:                                        false,
		`{"jsonrpc":"2.0","id":true,"method":"a"}`:                                        false,
		`{"jsonrpc":"2.0","id":"\u0031","method":"a"}`:                                    false,
		`{"jsonrpc":"2.0","id":1,"method":"\u0061"}`:                                      false,
		`{"jsonrpc":"2.0","id":1,"method":""}`:                                            false,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":null}`:                             false,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}`:                              false,
		`{"jsonrpc":"2.0","id":1,"method":"a","more":1}`:                                  false,
		`{"jsonrpc":"2.0","id":1,"Method":"a"}`:                                           false,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`:                                    false,
		`{"jsonrpc":"2.0","method":"a","method":"b"}`:                                     false,
		`{"jsonrpc":"2.0","method":"a","params":{},"params":{}}`:                          false,
		`{"jsonrpc":"2.0","method":"a","params":{},"id":1,"jsonrpc":"2.0"}`:               false,
		`{"jsonrpc":"1.0","id":1,"method":"a"}`:                                           false,
		`{"jsonrpc":2.0,"id":1,"method":"a"}`:                                             false,
		`{"id":1,"method":"a"}`:                                                           false,
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                            false,
		`{}`:                                                                              false,
		`"jsonrpc"`:                                                                       false,
		`{"jsonrpc":"2.0","method":"a","params":{"a":` + strings.Repeat("[", 998) + strings.Repeat("]", 998) + `}}`: true,
		`{"jsonrpc":"2.0","method":"a","params":{"a":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}}`: false,
	}
}

func TestPlainRequest(t *testing.T) {
	t.Parallel()
	for text, want := range plainMessages() {
		if !json.Valid([]byte(text)) {
			t.Errorf("not JSON: %s", text)
		}
		if got := plainRequest([]byte(text)) != nil; got != want {
			t.Errorf("read is %v: %s", got, text)
		}
		samePlain(t, text)
	}
}

// samePlain checks that a message that plainRequest reads is what the SDK reads.
func samePlain(t *testing.T, text string) {
	t.Helper()
	got := plainRequest([]byte(text))
	if got == nil {
		return
	}
	want, err := jsonrpc.DecodeMessage([]byte(text))
	if err != nil {
		t.Fatalf("the SDK refuses %s: %v", text, err)
	}
	if diff := cmp.Diff(want, jsonrpc.Message(got), cmp.Comparer(func(a, b jsonrpc.ID) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", text, diff)
	}
}

// TestPlainResponse compares with the SDK.
func TestPlainResponse(t *testing.T) {
	t.Parallel()
	number, err := jsonrpc.MakeID(float64(-7))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		resp *jsonrpc.Response
		want bool
	}{
		{&jsonrpc.Response{ID: number, Result: []byte(`{"a":"<&>\u2028"}`)}, true},
		{&jsonrpc.Response{ID: stringID(t, "x~ 1<"), Result: []byte(`{}`)}, true},
		{&jsonrpc.Response{ID: stringID(t, ""), Result: []byte(`[]`)}, true},
		{&jsonrpc.Response{ID: stringID(t, "a\"b"), Result: []byte(`{}`)}, false},
		{&jsonrpc.Response{ID: stringID(t, "é"), Result: []byte(`{}`)}, false},
		{&jsonrpc.Response{ID: number, Result: []byte("{\n}")}, false},
		{&jsonrpc.Response{ID: number}, false},
		{&jsonrpc.Response{Result: []byte(`{}`)}, false},
		{&jsonrpc.Response{ID: number, Result: []byte(`{}`), Error: &jsonrpc.Error{Code: 1, Message: "m"}}, false},
		{nil, false},
	} {
		got := plainResponse(c.resp)
		if (got != nil) != c.want {
			t.Errorf("%d: got %s", i, got)
		}
		if got == nil {
			continue
		}
		want, err := jsonrpc.EncodeMessage(c.resp)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
	}
}

func stringID(t *testing.T, text string) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// FuzzPlainRequest compares with the SDK.
func FuzzPlainRequest(f *testing.F) {
	for text := range plainMessages() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if json.Valid([]byte(text)) && utf8.ValidString(text) { // decode refuses the rest
			samePlain(t, text)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"workflow_next","arguments":{"context":{"a":"` + strings.Repeat("some text ", 100) + `"}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, bad := decode(text); bad != nil {
			b.Fatal(string(bad))
		}
	}
}
