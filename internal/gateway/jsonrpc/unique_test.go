package jsonrpc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// A duplicate member is found at every level and in every spelling of its name. The same
// name in different objects is no duplicate.
func TestCheckUnique(t *testing.T) {
	t.Parallel()
	var wide strings.Builder
	for i := range 100 {
		wide.WriteString(`"` + strings.Repeat("k", i+1) + `":{},`)
	}
	for _, text := range []string{
		`1`, `"a"`, `null`, `{}`, `[]`, ` { "a" : [ ] , "b" : { "a" : 1 } } `, `[{"a":1},{"a":1}]`, `{"a":1,"A":1}`, `{"a":"\"a\":1,\"a\":2"}`, `{` + wide.String() + `"last":1}`,
	} {
		if err := jsonrpc.CheckUnique([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{
		`{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"x":{"a":1,"a":1}}`, `[[{"a":[],"b":{},"a":[]}]]`, `{"x":[1,{"y":{"a":1,"b":2,"a":3}}]}`,
		`{"\ud800":1,"\ud801":2}`, `{` + wide.String() + `"kkk":1}`,
	} {
		if err := jsonrpc.CheckUnique([]byte(text)); !errors.Is(err, jsonrpc.ErrDuplicate) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a" 1}`, `{"a":1,}`, `[`, `[1`, `[1,]`, `[1 2]`, `{1:2}`, `{"a":1]`, `[1}`} {
		if err := jsonrpc.CheckUnique([]byte(text)); errors.Is(err, jsonrpc.ErrDuplicate) { // Text that is not JSON has other errors.
			t.Errorf("%s: %v", text, err)
		}
	}
}
