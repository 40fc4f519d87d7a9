package toolpolicy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy string
		call   toolpolicy.Call
		want   toolpolicy.Verdict
	}{
		"no policy":                          {`{}`, toolpolicy.Call{Tool: "x"}, toolpolicy.Allowed},
		"allowed by name":                    {`{"allow":[{"tool":"github__*"}]}`, toolpolicy.Call{Tool: "github__search"}, toolpolicy.Allowed},
		"not in the list":                    {`{"allow":[{"tool":"github__*"}]}`, toolpolicy.Call{Tool: "slack__post"}, toolpolicy.Denied},
		"an empty list allows nothing":       {`{"allow":[]}`, toolpolicy.Call{Tool: "x"}, toolpolicy.Denied},
		"deny wins over allow":               {`{"allow":[{"tool":"*"}],"deny":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Denied},
		"deny wins over hold":                {`{"hold":[{"tool":"Bash"}],"deny":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Denied},
		"held":                               {`{"hold":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Held},
		"hold does not allow":                {`{"allow":[{"tool":"Edit"}],"hold":[{"tool":"Bash"}]}`, toolpolicy.Call{Tool: "Bash"}, toolpolicy.Denied},
		"declared annotation":                {`{"hold":[{"tool":"*","annotations":{"readOnly":true}}]}`, toolpolicy.Call{Tool: "x", Annotations: map[string]bool{"readOnly": true}}, toolpolicy.Held},
		"default of an annotation":           {`{"hold":[{"tool":"*","annotations":{"destructive":true}}]}`, toolpolicy.Call{Tool: "x"}, toolpolicy.Held},
		"other annotation":                   {`{"hold":[{"tool":"*","annotations":{"destructive":true}}]}`, toolpolicy.Call{Tool: "x", Annotations: map[string]bool{"destructive": false}}, toolpolicy.Allowed},
		"argument by name":                   {`{"deny":[{"tool":"Bash","arguments":{"command":"git push*"}}]}`, toolpolicy.Call{Tool: "Bash", Arguments: json.RawMessage(`{"command":"git push origin"}`)}, toolpolicy.Denied},
		"argument by pointer":                {`{"deny":[{"tool":"*","arguments":{"/a/0/b~1c":"1"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a":[{"b/c": 1}]}`)}, toolpolicy.Denied},
		"missing argument":                   {`{"deny":[{"tool":"*","arguments":{"command":"*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{}`)}, toolpolicy.Allowed},
		"index out of range":                 {`{"deny":[{"tool":"*","arguments":{"/a/1":"*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a":[1]}`)}, toolpolicy.Allowed},
		"null is not the empty text":         {`{"deny":[{"tool":"*","arguments":{"a":"null"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a":null}`)}, toolpolicy.Denied},
		"a large number is not rounded":      {`{"deny":[{"tool":"*","arguments":{"a":"12345678901234567890"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a":12345678901234567890}`)}, toolpolicy.Denied},
		"value that is not text":             {`{"deny":[{"tool":"*","arguments":{"a":"{\"b\":true}"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"a": { "b" : true }}`)}, toolpolicy.Denied},
		"a tool that reads destroys nothing": {`{"hold":[{"tool":"*","annotations":{"destructive":true}}]}`, toolpolicy.Call{Tool: "x", Annotations: map[string]bool{"readOnly": true}}, toolpolicy.Allowed},
		"duplicate member, first denied":     {`{"deny":[{"tool":"*","arguments":{"c":"rm*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"c":"rm -r","c":"ls"}`)}, toolpolicy.Denied},
		"duplicate member, last denied":      {`{"deny":[{"tool":"*","arguments":{"c":"rm*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"c":"ls","c":"rm -r"}`)}, toolpolicy.Denied},
		"duplicate member held":              {`{"hold":[{"tool":"*","arguments":{"c":"rm*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"c":"ls","\u0063":"rm -r"}`)}, toolpolicy.Held},
		"duplicate member, not allowed":      {`{"allow":[{"tool":"*","arguments":{"c":"ls"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"c":"ls","c":"rm -r"}`)}, toolpolicy.Denied},
		"member in other case denied":        {`{"deny":[{"tool":"*","arguments":{"command":"rm*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"Command":"rm -r"}`)}, toolpolicy.Denied},
		"member in other case not allowed":   {`{"allow":[{"tool":"*","arguments":{"path":"/a*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"path":"/a","Path":"/etc"}`)}, toolpolicy.Denied},
		"duplicate inside a value":           {`{"allow":[{"tool":"*","arguments":{"o":"*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"o":{"a":1,"a":2}}`)}, toolpolicy.Denied},
		"duplicate of a parent":              {`{"deny":[{"tool":"*","arguments":{"/o/f":"true"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"o":{"f":true},"o":{}}`)}, toolpolicy.Denied},
		"other duplicates are allowed":       {`{"allow":[{"tool":"*","arguments":{"c":"ls"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"c":"ls","d":1,"d":2}`)}, toolpolicy.Allowed},
		"arguments that are no object":       {`{"deny":[{"tool":"*","arguments":{"c":"*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`null`)}, toolpolicy.Allowed},
		"escapes in a list":                  {`{"deny":[{"tool":"*","arguments":{"p":"*/etc/*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"p":["\/etc\u002fpasswd"]}`)}, toolpolicy.Denied},
		"escapes in an object":               {`{"deny":[{"tool":"*","arguments":{"p":"{\"f\":\"<a>\"}"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"p":{"\u0066":"\u003ca>"}}`)}, toolpolicy.Denied},
		"escapes do not hide an allowed one": {`{"allow":[{"tool":"*","arguments":{"p":"[\"/a\"]"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"p":["\/a"]}`)}, toolpolicy.Allowed},
		"another form of a number":           {`{"deny":[{"tool":"*","arguments":{"n":"-1"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"n":-10e-1}`)}, toolpolicy.Denied},
		"the same form of a number":          {`{"deny":[{"tool":"*","arguments":{"n":"[1.0,2]"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"n":[1.0,2]}`)}, toolpolicy.Denied},
		"an object as a text denied":         {`{"deny":[{"tool":"*","arguments":{"/o/f":"true"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"o":" {\"f\":true}"}`)}, toolpolicy.Denied},
		"an object as a text not allowed":    {`{"allow":[{"tool":"*","arguments":{"/o/f":"true"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"o":"{\"f\":true}"}`)}, toolpolicy.Denied},
		"a list as a text denied":            {`{"deny":[{"tool":"*","arguments":{"/o/0":"a"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"o":"[\"a\"]"}`)}, toolpolicy.Denied},
		"escapes in a list as a text":        {`{"deny":[{"tool":"*","arguments":{"p":"*/etc/*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"p":"[\"\\/etc\\/passwd\"]"}`)}, toolpolicy.Denied},
		"a list of arguments is denied":      {`{"deny":[{"tool":"*","arguments":{"state":"closed"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`[{"state":"closed"}]`)}, toolpolicy.Denied},
		"a list of arguments is held":        {`{"hold":[{"tool":"*","arguments":{"state":"closed"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(` ["closed"]`)}, toolpolicy.Held},
		"a list of arguments is unlisted":    {`{"allow":[{"tool":"*","arguments":{"state":"closed"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`["closed"]`)}, toolpolicy.Denied},
		"a text that is no object":           {`{"deny":[{"tool":"*","arguments":{"/o/f":"*"}}]}`, toolpolicy.Call{Tool: "x", Arguments: json.RawMessage(`{"o":"{f"}`)}, toolpolicy.Allowed},
		"all members of a rule must fit":     {`{"deny":[{"tool":"Bash","arguments":{"a":"1","b":"2"}}]}`, toolpolicy.Call{Tool: "Bash", Arguments: json.RawMessage(`{"a":"1","b":"3"}`)}, toolpolicy.Allowed},
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

// TestDecideAnySpelling checks that a rule matches each spelling of a value, whatever the
// escapes of its texts and the spaces between them.
func TestDecideAnySpelling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var plain, spelled []byte
		add := func(delimiter string) {
			plain = append(plain, delimiter...)
			spelled = append(append(spelled, delimiter...), rapid.SampledFrom([]string{"", " ", "\n\t"}).Draw(rt, "space")...)
		}
		add("{")
		for i := range rapid.IntRange(1, 3).Draw(rt, "members") {
			if i > 0 {
				add(",")
			}
			name, text := fmt.Sprint("n", i), rapid.StringN(0, 8, -1).Draw(rt, "text")
			plain, spelled = append(plain, '"'), append(spelled, '"')
			plain, spelled = append(plain, name...), append(spelled, spell(rt, name)...)
			plain, spelled = append(plain, '"'), append(spelled, '"')
			add(":")
			add("[")
			plain = jsontext.AppendString(plain, text)
			spelled = append(append(append(spelled, '"'), spell(rt, text)...), '"')
			add("]")
		}
		add("}")
		p := toolpolicy.Policy{Deny: []toolpolicy.Rule{{Tool: "x", Arguments: map[string]string{"a": string(plain)}}}}
		arguments := json.RawMessage(`{"a":` + string(spelled) + `}`)
		if got, _ := p.Decide(toolpolicy.Call{Tool: "x", Arguments: arguments}); got != toolpolicy.Denied {
			rt.Fatalf("%s is not %s: verdict %d", arguments, plain, got)
		}
	})
}

// spell returns a text in JSON, with escapes for some of its characters.
func spell(rt *rapid.T, text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		if must := unit < ' ' || unit > '~' || unit == '"' || unit == '\\'; must || rapid.Bool().Draw(rt, "escape") {
			fmt.Fprintf(&b, `\u%04X`, unit)
		} else {
			b.WriteByte(byte(unit))
		}
	}
	return b.String()
}

// TestWithin checks that a policy and its outer policies apply together, and that the
// strictest verdict names the rule.
func TestWithin(t *testing.T) {
	t.Parallel()
	inner := &toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "a*"}}, Hold: []toolpolicy.Rule{{Tool: "ab"}}}
	outer := &toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "*b"}}, Deny: []toolpolicy.Rule{{Tool: "aab"}}}
	both := inner.Within(outer)
	for tool, want := range map[string]string{"ab": "1 ab", "acb": "0 -", "ac": "2 -", "cb": "2 -", "aab": "2 aab"} {
		v, rule := both.Decide(toolpolicy.Call{Tool: tool})
		got := fmt.Sprint(int(v), " -")
		if rule != nil {
			got = fmt.Sprint(int(v), " ", rule)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
	if inner.Outer != nil {
		t.Error("Within changed its receiver")
	}
	if got := both.String(); got != "only a*; after approval ab; only *b; never aab" {
		t.Error(got)
	}
	var none *toolpolicy.Policy
	if none.Within(&toolpolicy.Policy{}) != nil || none.Within(outer) != outer || inner.Within(none) != inner || none.String() != "" {
		t.Error("a policy that restricts nothing is not left out")
	}
	if got := (&toolpolicy.Policy{Allow: []toolpolicy.Rule{}}).String(); got != "none" {
		t.Error(got)
	}
}

// TestDecideAll checks that the strictest scope decides.
func TestDecideAll(t *testing.T) {
	t.Parallel()
	scopes := []toolpolicy.Scope{
		{Run: "r1"},
		{Run: "r2", Policy: &toolpolicy.Policy{Hold: []toolpolicy.Rule{{Tool: "*"}}}},
		{Run: "r3", Policy: &toolpolicy.Policy{Allow: []toolpolicy.Rule{{Tool: "x"}}}},
	}
	for tool, want := range map[string]string{"x": "r2", "y": "r3"} {
		if got := toolpolicy.DecideAll(scopes, toolpolicy.Call{Tool: tool}); got.Scope == nil || got.Scope.Run != want {
			t.Errorf("%s: %+v", tool, got)
		}
	}
	if got := toolpolicy.DecideAll(scopes[:1], toolpolicy.Call{Tool: "x"}); got != (toolpolicy.Decision{}) {
		t.Errorf("%+v", got)
	}
}

// TestJSON checks that a policy survives encoding, and that a misspelled member of a rule is
// an error.
func TestJSON(t *testing.T) {
	t.Parallel()
	const text = `{"allow":["a",{"tool":"b","annotations":{"readOnly":true}}],"hold":["c"],"outer":{"allow":[]}}`
	var p toolpolicy.Policy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(p)
	if err != nil || string(again) != text {
		t.Errorf("%s, %v", again, err)
	}
	for _, bad := range []string{`{"deny":[{"tol":"x"}]}`, `{"deny":[5]}`} {
		if json.Unmarshal([]byte(bad), &p) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// A tool whose advertised name is shortened is denied by either name, and allowed by either
// name or by a pattern for the full one.
func TestDecideByEitherName(t *testing.T) {
	t.Parallel()
	c := toolpolicy.Call{Tool: "db__drop_the_whole_table", Short: "db__drop_the_1a2badd"}
	for pattern, want := range map[string]struct{ denied, allowed bool }{
		"db__drop_the_whole_table": {true, true},
		"db__drop_the_1a2badd":     {true, true},
		"db__*_table":              {true, true},
		"db__drop_*":               {true, true},
		"db__drop_the_1*":          {true, false},
		"*add":                     {true, false},
		"db__read*":                {false, false},
		"":                         {false, false},
	} {
		rules := []toolpolicy.Rule{{Tool: pattern}}
		if got, _ := (&toolpolicy.Policy{Deny: rules}).Decide(c); (got == toolpolicy.Denied) != want.denied {
			t.Errorf("deny %q: verdict %d", pattern, got)
		}
		if got, _ := (&toolpolicy.Policy{Hold: rules}).Decide(c); (got == toolpolicy.Held) != want.denied {
			t.Errorf("hold %q: verdict %d", pattern, got)
		}
		if got, _ := (&toolpolicy.Policy{Allow: rules}).Decide(c); (got == toolpolicy.Allowed) != want.allowed {
			t.Errorf("allow %q: verdict %d", pattern, got)
		}
	}
}
