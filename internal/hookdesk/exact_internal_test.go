package hookdesk

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a browser rounds comes back as it was, wherever the nodes went; what may
// have been rounded and went elsewhere is refused rather than changed.
func TestRoundedNumbersComeBack(t *testing.T) {
	t.Parallel()
	const was = `{"variables":{"owner":9007199254740993,"share":0.1,"big":1e400},"nodes":[{"id":"a","data":{"condition":{"value":-123456789012345678901}}},{"id":"b"}]}`
	for name, c := range map[string]struct{ sent, want, refused string }{
		"untouched":        {`{"variables":{"owner":9007199254740992,"share":0.1,"big":null},"nodes":[]}`, `{"nodes":[],"variables":{"big":1e400,"owner":9007199254740993,"share":0.1}}`, ""},
		"nodes in order":   {`{"nodes":[{"id":"b"},{"id":"a","data":{"condition":{"value":-123456789012345680000}}}]}`, `{"nodes":[{"id":"b"},{"data":{"condition":{"value":-123456789012345678901}},"id":"a"}]}`, ""},
		"changed":          {`{"variables":{"owner":9007199254740990}}`, `{"variables":{"owner":9007199254740990}}`, ""},
		"taken out":        {`{"variables":{}}`, `{"variables":{}}`, ""},
		"sent exactly":     {`{"variables":{"owner":9007199254740993}}`, `{"variables":{"owner":9007199254740993}}`, ""},
		"under a new name": {`{"variables":{"who":9007199254740992}}`, "", "the number 9007199254740993"},
		"no JSON":          {`{`, `{`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := restored([]byte(was), json.RawMessage(c.sent))
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got %s, %v; want a refusal of %s", got, err, c.refused)
				}
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// Every number that a browser can write is one that it reads again.
func TestBrowsersNumbersAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(rapid.Float64().Draw(t, "number"))
		if err != nil {
			t.Skip("JSON has no such number")
		}
		if isRounded(string(text)) {
			t.Errorf("%s is said to be rounded", text)
		}
	})
}
