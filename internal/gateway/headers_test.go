package gateway_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream/upstreamtest"
)

// A proxy in front of the gateway may route or refuse calls based on the headers. A call
// whose headers differ from its arguments is refused, on the fast path and through the SDK.
func TestHeadersMustMatchArguments(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"", slow} {
		r := newFixture(t, gateway.Options{Upstreams: []gateway.Entry{newEntry(t, "one", upstreamtest.HeaderArgument)}}, way)
		openSession(t, r)
		for name, c := range map[string]struct {
			argument, header string
			fine             bool
		}{
			"the same":                      {`{"text":"a"}`, "a", true},
			"the same value, encoded":       {`{"text":"é"}`, "=?base64?w6k=?=", true},
			"neither":                       {`{}`, "", true},
			"null":                          {`{"text":null}`, "", true},
			"looks encoded but is not":      {`{"text":"=?base64?YQ=="}`, "=?base64?YQ==", true},
			"another":                       {`{"text":"a"}`, "b", false},
			"no header":                     {`{"text":"a"}`, "", false},
			"no argument":                   {`{}`, "a", false},
			"bad encoding":                  {`{"text":"a"}`, "=?base64?Y!?=", false},
			"an encoded value that differs": {`{"text":"a"}`, "=?base64?Yg==?=", false},
		} {
			header := map[string]string{"Mcp-Protocol-Version": modern, "Mcp-Method": "tools/call", "Mcp-Name": "one__headed"}
			if c.header != "" {
				header["Mcp-Param-Text"] = c.header
			}
			status, body, _ := postRaw(t, r.url, header, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"one__headed","arguments":`+c.argument+`,`+meta+`}}`)
			if refused := strings.Contains(body, "-32020"); refused == c.fine || way == "" && (status == 200) != c.fine {
				t.Errorf("%s%s: %d %s", way, name, status, body)
			}
		}
	}
}
