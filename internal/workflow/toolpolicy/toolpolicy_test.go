package toolpolicy_test

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy string
		call   toolpolicy.Call
		want   toolpolicy.Verdict
	}{
		"no policy":                      {`{}`, toolpolicy.Call{Tool: "x"}, toolpolicy.Allowed},
		"allowed by name":                {`{"allow":[{"tool":"github__*"}]}`, toolpolicy.Call{Tool: "github__search"}, toolpolicy.Allowed},
		"not in the list":                {`{"allow":[{"tool":"github__*"}]}`, toolpolicy.Call{Tool: "slack__post"}, toolpolicy.Denied},
		"an empty list allows nothing":   {`{"allow":[]}`, toolpolicy.Call{Tool: "x"}, toolpolicy.Denied},
		"deny wins over allow":           {`{"allow":[{"tool":"*"}],"deny":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Denied},
		"deny wins over hold":            {`{"hold":[{"tool":"Bash"}],"deny":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Denied},
		"held":                           {`{"hold":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Held},
		"hold does not allow":            {`{"allow":[{"tool":"Edit"}],"hold":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Denied},
		"declared annotation":            {`{"hold":[{"tool":"*","annotations":{"readOnly":true}}]}`, toolpolicy.Call{Tool: "x", Annotations: map[string]bool{"readOnly": true}}, toolpolicy.Held},
		"default of an annotation":       {`{"hold":[{"tool":"*","annotations":{"destructive":true}}]}`, toolpolicy.Call{Tool: "x"}, toolpolicy.Held},
		"other annotation":               {`{"hold":[{"tool":"*","annotations":{"destructive":true}}]}`, toolpolicy.Call{Tool: "x", Annotations: map[string]bool{"destructive": false}}, toolpolicy.Allowed},
		"argument by name":               {`{"deny":[{"tool":"Bash","arguments":{"command":"git push*"}}]}`, toolpolicy.Call{Tool: "Bash", Arguments: json.RawMessage(`{"command":"git push origin"}`)}, toolpolicy.Denied},
		"argument by pointer":            {`{"deny":[{"tool":"*","arguments":{"/a/0/b~1c":"1"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a":[{"b/c": 1}]}`)}, toolpolicy.Denied},
		"missing argument":               {`{"deny":[{"tool":"*","arguments":{"command":"*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{}`)}, toolpolicy.Allowed},
		"index out of range":             {`{"deny":[{"tool":"*","arguments":{"/a/1":"*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a":[1]}`)}, toolpolicy.Allowed},
		"value that is not text":         {`{"deny":[{"tool":"*","arguments":{"a":"{\"b\":true}"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a": { "b" : true }}`)}, toolpolicy.Denied},
		"all members of a rule must fit": {`{"deny":[{"tool":"Bash","arguments":{"a":"1","b":"2"}}]}`, toolpolicy.Call{Tool: "Bash", Arguments: json.RawMessage(`{"a":"1","b":"3"}`)}, toolpolicy.Allowed},
	} {
		var p toolpolicy.Policy
		if err := json.Unmarshal([]byte(tt.policy), &p); err != nil {
			t.Fatal(err)
		}
		if got, _ := p.Decide(tt.call); got != tt.want {
			t.Errorf("%s: verdict %d, want %d", name, got, tt.want)
		}
	}
}
