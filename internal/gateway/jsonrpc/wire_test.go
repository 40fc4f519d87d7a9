package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

const manyMembers = `"m10":0,"m11":0,"m12":0,"m13":0,"m14":0,"m15":0,"m16":0,"m17":0,"m18":0,"m19":0,`

// TestParse checks that Parse accepts valid messages, and rejects invalid ones and those
// that two readers could understand differently.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"call", `{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1,{"y":"}"}]}}`, ""},
		{"white space", " {\n\"jsonrpc\" : \"2.0\" ,\t\"id\":\"x\",\"result\" : { } }\r\n", ""},
		{"error", `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}`, ""},
		{"other members", `{"jsonrpc":"2.0","id":1,"result":{},"extra":[]}`, ""},
		{"escaped quotes", `{"jsonrpc":"2.0","id":1,"result":{"a":"\\\"}","b":"\\\\"}}`, ""},
		{"method in another case", `{"jsonrpc":"2.0","id":1,"Method":"a"}`, "letter case"},
		{"escaped key twice", `{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}`, "duplicate member"},
		{"id twice", `{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, "duplicate member"},
		{"any member twice", `{"jsonrpc":"2.0","id":1,"result":{},"x":1,"x":2}`, "duplicate member"},
		{"many other members", `{"jsonrpc":"2.0","id":1,"result":{},` + manyMembers + `"last":1}`, ""},
		{"many, one of the last twice", `{"jsonrpc":"2.0","id":1,"result":{},` + manyMembers + `"m19":1}`, "duplicate member"},
		{"many, the first twice", `{"jsonrpc":"2.0","id":1,"result":{},` + manyMembers + `"m10":1}`, "duplicate member"},
		{"method with an escape", `{"jsonrpc":"2.0","id":1,"method":"a\u0062"}`, ""},
		{"method a number", `{"jsonrpc":"2.0","id":1,"method":7}`, "method"},
		{"method empty", `{"jsonrpc":"2.0","id":1,"method":""}`, "method"},
		{"kelvin sign for k", "{\"jsonrpc\":\"2.0\",\"id\":1,\"re\u017fult\":{}}", "letter case"},
		{"no version", `{"id":1,"result":{}}`, "2.0"},
		{"list", `[1]`, "object"},
		{"neither", `{"jsonrpc":"2.0","id":1}`, "either"},
		{"both", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, "either"},
		{"result not an object", `{"jsonrpc":"2.0","id":1,"result":[]}`, "not an object"},
		{"params not an object", `{"jsonrpc":"2.0","id":1,"method":"a","params":[]}`, "not an object"},
		{"id an object", `{"jsonrpc":"2.0","id":{},"method":"a"}`, "id"},
		{"not JSON", `{"jsonrpc":"2.0",}`, "JSON"},
		{"two values", `{} {}`, "JSON"},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"result\":{}}", "UTF-8"},
		{"empty", ``, "JSON"},
		{"deep", `{"jsonrpc":"2.0","id":1,"result":{"x":` + strings.Repeat("[", 998) + strings.Repeat("]", 998) + `}}`, ""},
		{"deeper than clients read", `{"jsonrpc":"2.0","id":1,"result":{"x":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}}`, "nested deeper"},
		{"deeper than any reader supports", `{"jsonrpc":"2.0","id":1,"result":{"x":` + strings.Repeat("[", 99999) + strings.Repeat("]", 99999) + `}}`, "nested deeper"},
		{"wide", `{` + wideMembers(10000) + `"jsonrpc":"2.0","id":1,"result":{}}`, "more than"},
	} {
		_, err := jsonrpc.Parse([]byte(c.text))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// wideMembers returns n members of an object, each with a comma.
func wideMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":0,`, i)
	}
	return b.String()
}

// FuzzParse checks that Parse accepts only valid JSON and finds the same id, params and
// result as encoding/json, and that OneLine returns an equal message on one line.
func FuzzParse(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1,{"y":"}\\\""}],"z":null}}`)
	f.Add(`{"jsonrpc":"2.0","id":"q","result":{"a":-1.5e3,"b":[[],{}]}}`)
	f.Add(`{"jsonrpc":"2.0","id":"q","error":{"code":-32000,"message":"m","data":[1]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := jsonrpc.Parse([]byte(text))
		if err != nil {
			return
		}
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			t.Fatalf("took %q", text)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		for key, got := range map[string]json.RawMessage{"id": m.ID, "params": m.Params, "result": m.Result} {
			if !bytes.Equal(compactText(t, want[key]), compactText(t, got)) {
				t.Errorf("%s is %s, want %s", key, got, want[key])
			}
		}
		if line := jsonrpc.OneLine([]byte(text)); bytes.ContainsAny(line, "\r\n") || !bytes.Equal(compactText(t, line), compactText(t, []byte(text))) {
			t.Errorf("one line: %s", line)
		}
	})
}

func compactText(t *testing.T, text []byte) []byte {
	t.Helper()
	if text == nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return b.Bytes()
}

func TestWith(t *testing.T) {
	t.Parallel()
	got, err := jsonrpc.With(json.RawMessage(` {"a": 1, "b":{"c":2} }`),
		jsonrpc.Member{Key: "b", Value: nil}, jsonrpc.Member{Key: "n", Value: jsonrpc.Text("é\"")}, jsonrpc.Member{Key: "a", Value: jsonrpc.Number(-7)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"n":"é\"","a":-7}`, string(got)); diff != "" {
		t.Error(diff)
	}
}
