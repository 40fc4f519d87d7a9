package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/hooks/state"
)

var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// serve executes a request of a client, and returns the result or the code of the error.
func serve(t *testing.T, s state.Store, c state.Caller, at time.Duration, request string) string {
	t.Helper()
	result, err := state.Serve(t.Context(), s, c, start.Add(at), []byte(request))
	if err != nil {
		return string(guideway.ErrorCode(err))
	}
	return string(result)
}

// TestServe executes requests in order. Each row has the time of the request in
// milliseconds, the request, and the result.
func TestServe(t *testing.T) {
	t.Parallel()
	var s state.Memory
	ann := state.Caller{Graph: "g", Owner: "ann", Client: "editor", Upstream: "files"}
	for _, tt := range []struct {
		at            time.Duration
		request, want string
	}{
		{0, `{"op":"get","scope":"client","key":"k"}`, `null`},
		{0, `{"op":"set","scope":"client","key":"k","value":{"b":1,"a":[null]}}`, `true`},
		{0, `{"op":"get","scope":"client","key":"k"}`, `{"b":1,"a":[null]}`},

		// Compare and set.
		{0, `{"op":"set","scope":"client","key":"k","value":1,"if":null}`, `false`},
		{0, `{"op":"set","scope":"client","key":"k","value":1,"if":{"a":[],"b":1}}`, `false`},
		{0, `{"op":"set","scope":"client","key":"k","value":1,"if":{"a":[null],"b":1}}`, `true`},
		{0, `{"op":"set","scope":"client","key":"k","value":null,"if":2}`, `false`},
		{0, `{"op":"set","scope":"client","key":"k","value":null,"if":1}`, `true`},
		{0, `{"op":"get","scope":"client","key":"k"}`, `null`},
		{0, `{"op":"set","scope":"client","key":"k","value":"new","if":null}`, `true`},

		// A value expires; without a ttl it stays.
		{0, `{"op":"set","scope":"client","key":"k","value":"short","ttl":10}`, `true`},
		{9, `{"op":"get","scope":"client","key":"k"}`, `"short"`},
		{10, `{"op":"get","scope":"client","key":"k"}`, `null`},
		{10, `{"op":"set","scope":"client","key":"k","value":"again","if":null}`, `true`},
		{1e9, `{"op":"get","scope":"client","key":"k"}`, `"again"`},

		// A counter expires with the call that created it.
		{0, `{"op":"incr","scope":"upstream","key":"n","by":1,"ttl":10}`, `1`},
		{5, `{"op":"incr","scope":"upstream","key":"n","by":41,"ttl":10}`, `42`},
		{9, `{"op":"incr","scope":"upstream","key":"n","by":-2}`, `40`},
		{10, `{"op":"incr","scope":"upstream","key":"n","by":1}`, `1`},
		{10, `{"op":"set","scope":"upstream","key":"n","value":9007199254740991}`, `true`},
		{10, `{"op":"incr","scope":"upstream","key":"n","by":0}`, `9007199254740991`},
		{10, `{"op":"incr","scope":"upstream","key":"n","by":1}`, `invalid`},
		{10, `{"op":"incr","scope":"upstream","key":"n","by":0.5}`, `invalid`},
		{10, `{"op":"incr","scope":"upstream","key":"n","by":null}`, `invalid`},
		{10, `{"op":"incr","scope":"upstream","key":"n","by":"1"}`, `invalid`},
		{10, `{"op":"incr","scope":"upstream","key":"n"}`, `invalid`},
		{10, `{"op":"get","scope":"upstream","key":"n"}`, `9007199254740991`},
		{0, `{"op":"set","scope":"upstream","key":"text","value":"1"}`, `true`},
		{0, `{"op":"incr","scope":"upstream","key":"text","by":1}`, `invalid`},

		// Requests that a script may forge.
		{0, `{"op":"get","scope":"graph","key":"k"}`, `invalid`},
		{0, `{"op":"drop","scope":"client","key":"k"}`, `invalid`},
		{0, `{"op":"get","scope":"client","key":""}`, `invalid`},
		{0, `{"op":"get","scope":"client","key":"` + strings.Repeat("k", state.MaxKey) + `"}`, `null`},
		{0, `{"op":"get","scope":"client","key":"` + strings.Repeat("k", state.MaxKey+1) + `"}`, `invalid`},
		{0, `{"op":"set","scope":"client","key":"k"}`, `invalid`},
		{0, `{"op":"set","scope":"client","key":"k","value":"` + strings.Repeat("v", state.MaxValue-2) + `"}`, `true`},
		{0, `{"op":"set","scope":"client","key":"k","value":"` + strings.Repeat("v", state.MaxValue-1) + `"}`, `too_large`},
		{0, `{"op":"set","scope":"client","key":"k","value":1,"ttl":null}`, `invalid`},
		{0, `{"op":"set","scope":"client","key":"k","value":1,"ttl":0}`, `invalid`},
		{0, `{"op":"set","scope":"client","key":"k","value":1,"ttl":"1"}`, `invalid`},
		{0, `{"op":"set","scope":"client","key":"k","value":1,"ttl":1e300}`, `invalid`},
		{0, `{`, `invalid`},
		{0, `[]`, `invalid`},
	} {
		if got := serve(t, &s, ann, tt.at*time.Millisecond, tt.request); got != tt.want {
			t.Errorf("%s at %d: got %s, want %s", tt.request, tt.at, got, tt.want)
		}
	}
}

// The values of a client, of an upstream and of the whole graph are separate, and so are
// those of different graphs. Clients differ by their credentials and their names.
func TestScopes(t *testing.T) {
	t.Parallel()
	var s state.Memory
	set := func(c state.Caller) map[string]string {
		got := map[string]string{}
		for _, scope := range []string{"client", "upstream", "global"} {
			got[scope] = serve(t, &s, c, 0, `{"op":"incr","scope":"`+scope+`","key":"k","by":1}`)
		}
		return got
	}
	for _, tt := range []struct {
		caller                   state.Caller
		client, upstream, global string
	}{
		{state.Caller{Graph: "g", Owner: "ann", Client: "editor", Upstream: "files"}, "1", "1", "1"},
		{state.Caller{Graph: "g", Owner: "ann", Client: "editor", Upstream: "other"}, "2", "1", "2"},
		{state.Caller{Graph: "g", Owner: "bob", Client: "editor", Upstream: "files"}, "1", "2", "3"},
		{state.Caller{Graph: "g", Owner: "ann", Client: "shell", Upstream: "files"}, "1", "3", "4"},
		{state.Caller{Graph: "g", Owner: `ann","editor`, Client: "", Upstream: "client"}, "1", "1", "5"},
		{state.Caller{Graph: "h", Owner: "ann", Client: "editor", Upstream: "files"}, "1", "1", "1"},
	} {
		got := set(tt.caller)
		if got["client"] != tt.client || got["upstream"] != tt.upstream || got["global"] != tt.global {
			t.Errorf("%+v: %v", tt.caller, got)
		}
	}
}

// A full state refuses new keys until other keys have expired.
func TestFullState(t *testing.T) {
	t.Parallel()
	var s state.Memory
	c := state.Caller{Graph: "g"}
	set := func(at time.Duration, key string) string {
		return serve(t, &s, c, at, `{"op":"set","scope":"global","key":"`+key+`","value":"`+strings.Repeat("v", state.MaxValue-2)+`","ttl":1000}`)
	}
	n := 0
	for ; set(0, strings.Repeat("k", n+1)) == "true"; n++ {
	}
	if want := state.MaxBytes / (state.MaxValue + state.MaxKey); n < want-2 || n > want+2 {
		t.Errorf("%d values fit", n)
	}
	if got := set(0, strings.Repeat("k", n+1)); got != string(guideway.CodeTooLarge) {
		t.Errorf("a full state: %s", got)
	}
	if got := set(time.Second, strings.Repeat("k", n+1)); got != "true" {
		t.Errorf("a state with expired values: %s", got)
	}
	if err := state.CheckRoom("g", state.MaxKeys+1, 1); guideway.ErrorCode(err) != guideway.CodeTooLarge || guideway.ErrorFix(err) == "" {
		t.Errorf("too many keys: %v", err)
	}
}
